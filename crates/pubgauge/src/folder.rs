//! Several studies: all of a folder, one after the other, each into a folder of its own; one page and one file over
//! all of them.

mod list;
mod runs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pubgauge_command::exit::{Ending, NOT_VALID, tell};
use pubgauge_export::check::{Check, CheckOutcome};
use pubgauge_figures::model::Results;
use pubgauge_hosts::Hosts;
use pubgauge_place::shell::quoted;
use pubgauge_quantities::lists::grouped;
use pubgauge_quantities::shown::so_many;
use pubgauge_results::store;
use pubgauge_runner::convert::one_line;
use pubgauge_study::{Plan, Study, studies_in};

use crate::args::{GateArgs, RunArgs, Selection};
use crate::ending;
use crate::endpoint::MetricsEndpoint;
use crate::progress::about;
use crate::study_run::{Ready, default_folder};
use crate::{gate, hosts, signals};
use list::{Listed, StudyList};
pub use runs::{folders_below, has_runs, one_run, one_run_of, report, studies};
use runs::{name_of, of_study, print_studies, write_index};

/// The studies of a folder.
pub struct FolderStudies {
    /// Those that can be run.
    pub files: Vec<PathBuf>,
    /// The others, which lack what a variable of the environment names, in a sentence.
    pub left_out: Option<String>,
}

/// The studies of the selected folder; `None` if no folder is selected. A study whose recordings nobody has named is left
/// out, unless all are such.
///
/// # Errors
/// If it cannot be read, or has no studies.
pub fn studies_of(selection: &Selection) -> Result<Option<FolderStudies>, Ending> {
    let Some(folder) = selection.study.as_deref().filter(|path| path.is_dir()) else {
        return Ok(None);
    };
    let files = studies_in(folder).map_err(Ending::bad_input)?;
    if files.is_empty() {
        return Err(Ending::bad_input(format!(
            "{}: no study is in this folder\n  hint: studies are files that end in .toml and have a `name`; folders below it are not looked into",
            folder.display()
        )));
    }
    // Errors of a study are told where it is planned.
    let missing = |file: &PathBuf| {
        let study = Study::open(file).ok();
        study.map_or(Vec::new(), |study| study.missing_variables())
    };
    let (left_out, whole): (Vec<_>, Vec<_>) = (files.into_iter())
        .map(|file| (missing(&file), file))
        .partition(|(missing, _)| !missing.is_empty());
    let of = |studies: Vec<(Vec<String>, PathBuf)>| studies.into_iter().map(|(_, file)| file);
    if whole.is_empty() {
        let (files, left_out) = (of(left_out).collect(), None);
        return Ok(Some(FolderStudies { files, left_out }));
    }
    let words = grouped(left_out).into_iter().map(|(missing, files)| {
        let names = files.iter().map(|file| file.display().to_string());
        format!(
            "{} (set {} to the folder of the recordings: docs/traces.md)",
            names.collect::<Vec<_>>().join(", "),
            missing.join(", ")
        )
    });
    let words: Vec<String> = words.collect();
    Ok(Some(FolderStudies {
        files: of(whole).collect(),
        left_out: (!words.is_empty()).then(|| format!("left out: {}", words.join("; "))),
    }))
}

/// Calls `act` with each study; collects the errors of all.
///
/// # Errors
/// All errors, with the worst exit code.
pub fn for_each_study<T>(
    selection: &Selection,
    files: &[PathBuf],
    act: impl Fn(&Selection) -> Result<T, Ending>,
) -> Result<Vec<T>, Ending> {
    let done = files.iter().map(|file| {
        let one = Selection {
            study: Some(file.clone()),
            ..selection.clone()
        };
        (file.display().to_string(), act(&one))
    });
    collect_results(done)
}

/// All results, or all errors.
fn collect_results<T>(
    done: impl Iterator<Item = (String, Result<T, Ending>)>,
) -> Result<Vec<T>, Ending> {
    let (mut fine, mut wrong, mut code, mut count) = (Vec::new(), Vec::new(), 0, 0u64);
    for (name, result) in done {
        count += 1;
        match result {
            Ok(one) => fine.push(one),
            Err(ending) => {
                code = code.max(ending.code);
                wrong.push(if ending.message.starts_with(&name) {
                    ending.message
                } else {
                    format!("{name}: {}", ending.message)
                });
            }
        }
    }
    if wrong.is_empty() {
        return Ok(fine);
    }
    Err(Ending {
        message: format!(
            "{} of {} cannot be run; none was started\n{}",
            wrong.len(),
            so_many(count, "study"),
            wrong.join("\n")
        ),
        code,
    })
}

/// Estimated time of studies, without trials that were measured already.
pub fn length<'a>(plans: impl Iterator<Item = (&'a Plan, Option<&'a Results>)>) -> String {
    let (mut count, mut trials, mut time, mut open) = (0, 0, 0u64, false);
    for (plan, results) in plans {
        count += 1;
        if plan.search.is_some() || plan.rounds().is_some() {
            open = true;
            time = time.saturating_add(plan.duration_estimate());
            trials += match plan.search {
                Some(_) => plan.plain().count() as u64,
                None => 0,
            };
            continue;
        }
        let is_left = |order: u32| {
            results.is_none_or(|results| !results.trials.iter().any(|trial| trial.id == order))
        };
        for trial in plan.trials.iter().filter(|trial| is_left(trial.order)) {
            trials += 1;
            time = time.saturating_add(trial.duration_estimate());
        }
    }
    let studies = so_many(count, "study");
    let trials = if open {
        format!(
            "{} and what searches and rounds take",
            so_many(trials, "trial")
        )
    } else {
        so_many(trials, "trial")
    };
    let about_or_most = if open { "at most" } else { "about" };
    format!(
        "{studies}, {trials}, {about_or_most} {} in all",
        about(Duration::from_nanos(time))
    )
}

/// A run over several studies; the flags are checked, the studies are not.
pub enum Several {
    /// All studies of a folder.
    New {
        folder: PathBuf,
        studies: FolderStudies,
    },
    /// A run to be resumed.
    Again {
        out: PathBuf,
        /// Its studies.
        list: StudyList,
    },
}

/// One study of it.
struct One {
    listed: Listed,
    args: RunArgs,
    ready: Ready,
}

impl Several {
    /// The run over several studies that the arguments ask for; `None` if they ask for one study.
    ///
    /// # Errors
    /// If a folder has no studies, or flags do not go together.
    pub fn asked_for(args: &RunArgs) -> Result<Option<Several>, Ending> {
        if let Some(out) = &args.resume
            && let Some(list) = StudyList::read(out)?
        {
            if !args.selection.is_empty_but_for_systems() {
                return Err(Ending::bad_input(format!(
                    "{} holds a run of several studies, which goes on as it was begun\n  hint: pubgauge run --resume {}",
                    out.display(),
                    quoted(out)
                )));
            }
            let out = out.clone();
            return Ok(Some(Several::Again { out, list }));
        }
        let Some(studies) = studies_of(&args.selection)? else {
            return Ok(None);
        };
        if let Some(out) = &args.resume {
            return Err(Ending::bad_input(format!(
                "{} holds no run of several studies\n  hint: name the folder that `pubgauge run FOLDER` printed, alone: pubgauge run --resume DIR",
                out.display()
            )));
        }
        let folder = args.selection.study.clone().unwrap_or_default();
        Ok(Some(Several::New { folder, studies }))
    }

    /// Runs what is not done yet.
    ///
    /// # Errors
    /// If anything is wrong with any of the studies, before the first starts.
    pub fn run(self, args: &RunArgs) -> Result<i32, Ending> {
        gate::can_be_written(&args.gate)?;
        if let Some(out) = &args.out {
            runs::can_be_made(out)?;
        }
        let hosts = hosts::from_args(&args.hosts)?;
        let studies = self.ready(args, hosts.as_ref())?;
        let endpoint = args
            .listen
            .as_deref()
            .map(MetricsEndpoint::open)
            .transpose()?;
        let stop = signals::install().map_err(Ending::not_valid)?;
        if let Some(hosts) = &hosts {
            pubgauge_campaign::hosts::gather(hosts, &stop, &mut |words| args.output.remark(words))
                .map_err(ending)?;
        }
        let out = match &self {
            Several::Again { out, .. } => out.clone(),
            Several::New { folder, .. } => {
                let out = match &args.out {
                    Some(out) => out.clone(),
                    None => default_folder(&name_of(folder))?,
                };
                StudyList::new(studies.iter().map(|one| one.listed.clone())).write(&out)?;
                out
            }
        };
        let done: Vec<Option<Results>> = studies
            .iter()
            .map(|one| store::load(&out.join(&one.listed.folder)).ok())
            .collect();
        let plans = studies.iter().map(|one| &one.ready.prepared.plan);
        let told = length(plans.zip(done.iter().map(Option::as_ref)));
        args.output.remark(&told);
        let left_out = match &self {
            Several::New { studies, .. } => studies.left_out.as_deref(),
            Several::Again { .. } => None,
        };
        left_out.inspect(|words| args.output.remark(words));
        let number = studies.len();
        let (mut worst, mut checks, mut failed) = (0, Vec::new(), Vec::new());
        for (nth, one) in studies.into_iter().enumerate() {
            if stop.load(Relaxed) {
                let why = not_run("ended by the user before it began".to_owned());
                checks.extend(of_study(&one.listed.folder, vec![why]));
                continue;
            }
            let name = one.listed.folder.clone();
            args.output
                .remark(&format!("study {} of {number}: {name}", nth + 1));
            let mut inner = one.args;
            let place = out.join(&name);
            if inner.resume.is_some() {
                inner.resume = Some(place)
            } else {
                inner.out = Some(place)
            }
            let own = match one
                .ready
                .carry_out(&inner, endpoint.as_ref(), hosts.as_ref(), &stop)
            {
                Ok(done) => {
                    worst = worst.max(gate::exit_code(&done.checks));
                    done.checks
                }
                Err(ending) => {
                    tell!("error: {name}: {}", ending.message);
                    worst = worst.max(ending.code);
                    failed.push((name.clone(), one_line(&ending.message)));
                    vec![not_run(ending.message)]
                }
            };
            let annotations = GateArgs {
                junit: None,
                ..args.gate.clone()
            };
            gate::report(&annotations, &name, inner.selection.study.as_deref(), &own)?;
            checks.extend(of_study(&name, own));
            write_index(&out, &failed)?;
        }
        pubgauge_testbed::stop_everything();
        let (studies, page) = write_index(&out, &failed)?;
        print_studies(&studies, &page, args.output.json);
        left_out.inspect(|words| args.output.remark(words));
        gate::write(&args.gate, &name_of(&out), &checks)?;
        if stop.load(Relaxed) {
            tell!(
                "ended by the user; go on with: pubgauge run --resume {}",
                quoted(&out)
            );
            worst = worst.max(NOT_VALID);
        }
        Ok(worst)
    }

    /// Every study, checked.
    fn ready(&self, args: &RunArgs, hosts: Option<&Arc<Hosts>>) -> Result<Vec<One>, Ending> {
        let alone = |selection: Selection| RunArgs {
            selection,
            out: None,
            resume: None,
            ..args.clone()
        };
        match self {
            Several::New { studies, .. } => {
                for_each_study(&args.selection, &studies.files, |selection| {
                    let args = alone(selection.clone());
                    let ready = Ready::check_run(&args, None, hosts)?;
                    let ready = ready.one_of(studies.files.len(), &args);
                    let file = selection.study.as_deref().unwrap_or(Path::new(""));
                    let listed = Listed::new(file, &ready);
                    Ok(One {
                        listed,
                        args,
                        ready,
                    })
                })
            }
            Several::Again { out, list } => collect_results(list.studies.iter().map(|listed| {
                let one = || {
                    let mut args = alone(args.selection.clone());
                    listed.begun.on_systems(&args.selection.on)?;
                    // A study that has not begun starts from its recorded invocation.
                    if out.join(&listed.folder).join(store::RESULTS_FILE).exists() {
                        args.resume = Some(out.join(&listed.folder))
                    } else {
                        args.selection.study = Some(listed.file.clone())
                    }
                    let ready = Ready::check_run(&args, Some(&listed.begun), hosts)?;
                    let mut ready = ready.one_of(list.studies.len(), &args);
                    ready.prepared.given.clone_from(&listed.given);
                    Ok(One {
                        listed: listed.clone(),
                        args,
                        ready,
                    })
                };
                (listed.folder.clone(), one())
            })),
        }
    }
}

/// A study that could not be carried through.
fn not_run(why: String) -> Check {
    Check {
        group: "run".into(),
        name: "the run".into(),
        outcome: CheckOutcome::Undecided,
        words: why,
    }
}
