//! `pubgauge systems --install`: shows what it will do, asks, and does it.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pubgauge_command::exit::{
    Ending, FINE, NOT_VALID, plain, print, print_json, tell, write_plain,
};
use pubgauge_command::options::Output;
use pubgauge_quantities::text::wrap;
use pubgauge_testbed::install::{At, InstallPlan, NoPlan, sound};
use pubgauge_testbed::{Catalog, SystemFile};
use serde::Serialize;

use crate::drivers;
use crate::question;
use crate::signals;

/// Interval of the lines that say that a step still runs, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Installs the systems of these names; `all` stands for all that can be installed.
///
/// A system that is installed already is skipped. If one of several fails, the others are still
/// installed.
pub fn install(
    catalog: &Catalog,
    names: &[String],
    yes: bool,
    output: Output,
) -> Result<i32, Ending> {
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let all = names.iter().any(|name| name == "all");
    let systems: Vec<SystemFile> = if all {
        catalog.systems().cloned().collect()
    } else {
        names
            .iter()
            .map(|name| catalog.get(name).map_err(Ending::bad_input))
            .collect::<Result<_, _>>()?
    };
    // A system that is half installed would be found.
    sound(&systems).map_err(Ending::bad_input)?;
    // With JSON output, only the result goes to standard output.
    let put = |words: &str| {
        if output.json {
            write_plain(format_args!("{words}"))
        } else {
            print(words)
        }
    };
    let say = |words: &str| {
        if !output.quiet {
            put(words);
        }
    };
    let mut told: Vec<InstallOutcome> = Vec::new();
    let (mut plans, mut cannot) = (Vec::new(), Vec::new());
    for system in &systems {
        match InstallPlan::new(system, &testbed) {
            Ok(plan) => plans.push(plan),
            Err(already @ NoPlan::Already { .. }) => {
                say(&format!("{already}\n"));
                told.push(InstallOutcome::new(&system.name, Done::Already, already));
            }
            // `all` means all that can be installed here: the others are named and are no failure.
            Err(not) if all => {
                say(&format!("passed over: {not}\n"));
                told.push(InstallOutcome::new(&system.name, Done::PassedOver, not));
            }
            Err(not) => cannot.push((system.name.clone(), not.to_string())),
        }
    }
    let (plans, by_root) = without_what_only_root_may(plans);
    if all {
        for (system, not) in by_root {
            say(&format!("passed over: {not}\n"));
            told.push(InstallOutcome::new(&system, Done::PassedOver, not));
        }
    } else {
        cannot.extend(by_root);
    }
    if !plans.is_empty() {
        // Steps are shown whenever a question follows.
        if yes {
            say(&describe(&plans))
        } else {
            put(&describe(&plans))
        }
    }
    for (system, why) in cannot.iter() {
        tell!("{why}");
        told.push(InstallOutcome::new(system, Done::Failed, why));
    }
    if plans.is_empty() {
        print_outcomes(&told, output);
        return if cannot.is_empty() {
            Ok(FINE)
        } else {
            Err(Ending::bad_input("nothing was installed"))
        };
    }
    if !yes {
        ask(names)?;
    }
    let stop = signals::install().map_err(Ending::not_valid)?;
    let mut done_already = BTreeSet::new();
    for plan in &plans {
        if stop.load(Relaxed) {
            told.push(InstallOutcome::new(
                &plan.system,
                Done::Failed,
                "stopped by the user",
            ));
            continue;
        }
        let mut shown = InstallProgress::new(&plan.system, output.quiet);
        let result = plan.execute(&mut done_already, &mut |at| shown.goes_on(at, &stop));
        shown.finish();
        match result {
            Ok(()) => {
                say(&format!("{} is installed\n", plan.system));
                told.push(InstallOutcome::new(&plan.system, Done::Installed, ""));
            }
            Err(error) => {
                tell!("error: {error}");
                told.push(InstallOutcome::new(&plan.system, Done::Failed, error));
            }
        }
    }
    print_outcomes(&told, output);
    if told.iter().any(|told| told.outcome == Done::Failed) {
        Ok(NOT_VALID)
    } else {
        Ok(FINE)
    }
}

/// The outcome for a system, as JSON output.
#[derive(Serialize)]
struct InstallOutcome {
    system: String,
    outcome: Done,
    why: String,
}

impl InstallOutcome {
    fn new(system: &str, outcome: Done, why: impl ToString) -> InstallOutcome {
        InstallOutcome {
            system: system.to_owned(),
            outcome,
            why: why.to_string(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Done {
    Installed,
    /// It was installed before.
    Already,
    /// It cannot be installed on this machine, and `all` was asked for.
    PassedOver,
    Failed,
}

fn print_outcomes(told: &[InstallOutcome], output: Output) {
    if output.json {
        print_json(&told);
    }
}

/// Separates the plans that only root may carry out, with the commands for the user.
fn without_what_only_root_may(
    plans: Vec<InstallPlan>,
) -> (Vec<InstallPlan>, Vec<(String, String)>) {
    // SAFETY: geteuid cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        return (plans, Vec::new());
    }
    let (theirs, ours): (Vec<InstallPlan>, Vec<InstallPlan>) =
        plans.into_iter().partition(|p| p.needs_root);
    let said = theirs.iter().map(|plan| {
        let commands: Vec<String> = (plan.steps.iter())
            .map(|step| format!("\n  sudo {step}"))
            .collect();
        let commands = commands.concat();
        let words = format!(
            "only root may install {}; with sudo:{commands}",
            plan.system
        );
        (plan.system.clone(), words)
    });
    let said = said.collect();
    (ours, said)
}

fn describe(plans: &[InstallPlan]) -> String {
    let mut out = String::from("will do:\n");
    let mut size = 0;
    for plan in plans {
        let download = match plan.download_mb {
            Some(mb) => format!(", downloads about {mb} MB"),
            None => String::new(),
        };
        size += plan.download_mb.unwrap_or(0);
        let how = match &plan.folder {
            Some(folder) => format!("into {}", folder.display()),
            None => format!("with {}", plan.manager),
        };
        out.push_str(&format!("  {}: {how}{download}\n", plan.system));
        for step in &plan.steps {
            // A command is never wrapped: users copy it.
            out.push_str(&format!("    {step}\n"));
        }
        for note in &plan.notes {
            out.push_str(&wrap(&format!("note: {note}"), 4));
        }
    }
    if plans.iter().any(|plan| plan.folder.is_some()) {
        out.push_str(&wrap(
            "Folders are prepared beside and get their names when they are complete: an \
             installation that is interrupted leaves nothing half-done. Maven keeps what it \
             downloads in its own cache, ~/.m2/repository, besides.",
            2,
        ));
    }
    if plans.len() > 1 && size > 0 {
        out.push_str(&format!("  in all about {size} MB from Maven Central\n"));
    }
    out
}

/// Asks whether to install them.
fn ask(names: &[String]) -> Result<(), Ending> {
    let command = format!("pubgauge systems --install {} --yes", names.join(","));
    question::ask("", "install", "nothing was installed", &command)
}

/// Progress of one installation: a live line on a terminal, a line every [`LINE_EVERY`] elsewhere.
struct InstallProgress {
    system: String,
    bar: Option<ProgressBar>,
    quiet: bool,
    step: Option<usize>,
    said: Duration,
}

impl InstallProgress {
    fn new(system: &str, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        InstallProgress {
            system: system.to_owned(),
            bar,
            quiet,
            step: None,
            said: Duration::ZERO,
        }
    }

    fn goes_on(&mut self, at: At<'_>, stop: &AtomicBool) -> bool {
        let what = || {
            let program = at.shown.split_whitespace().next().unwrap_or_default();
            let seconds = at.elapsed.as_secs();
            format!(
                "{}: step {} of {}, {program}, {seconds} s",
                self.system,
                at.step + 1,
                at.of
            )
        };
        if let Some(bar) = &self.bar {
            bar.set_message(plain(&what()).into_owned());
            bar.tick();
        } else if !self.quiet {
            if self.step != Some(at.step) {
                (self.step, self.said) = (Some(at.step), Duration::ZERO);
            }
            // No line for steps that take less than 2 s.
            let first = self.said.is_zero() && at.elapsed >= Duration::from_secs(2);
            if first || at.elapsed >= self.said + LINE_EVERY {
                tell!("{}", what());
                self.said = at.elapsed;
            }
        }
        !stop.load(Relaxed)
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
