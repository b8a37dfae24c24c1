//! Progress on standard error: two live lines on a terminal, below the results so far; plain lines
//! elsewhere.

mod view;

use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pubgauge_campaign::{Note, pairs};
use pubgauge_command::exit::{plain, tell};
use pubgauge_driver::Nanos;
use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::Live;
use pubgauge_figures::model::{Status, Trial};
use pubgauge_figures::search::{Purpose, Search, StepOutcome};
use pubgauge_quantities::shown::{self, so_many};
use pubgauge_runner::Watch;
use pubgauge_study::{Plan, PlannedTrial};

use crate::endpoint::{Current, LiveFigures};
use crate::forecast::{Ahead, Forecast};
use crate::lock;
use crate::terminal;
use view::{Rates, View};

/// How often the live lines are redrawn, per second.
const DRAWN_PER_S: u8 = 4;
/// Interval over which live rates are computed, ns.
const RATES_OVER: Nanos = 500_000_000;
/// Interval of the lines that say that a trial still runs, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Most notes that are shown without `--verbose`: each connection may have one.
pub const NOTES: usize = 5;

/// About how long, rounded up: `40 s`, `12 min`, `3.5 h`.
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s <= 120.0 => format!("{:.0} s", s.ceil()),
        s if s <= 7200.0 => format!("{:.0} min", (s / 60.0).ceil()),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Estimated time of searches, and of the trials beside them.
pub fn lengths(plan: &Plan, trials: &[&PlannedTrial]) -> String {
    let (searches, plain): (Vec<&PlannedTrial>, Vec<_>) = trials
        .iter()
        .copied()
        .partition(|trial| trial.seeks().is_some());
    let words = |trials: &[&PlannedTrial], what: &str, about_or_most: &str| {
        let all = trials.iter().map(|trial| plan.estimate(trial));
        let time = about(Duration::from_nanos(all.fold(0, u64::saturating_add)));
        let count = so_many(trials.len() as u64, what);
        (!trials.is_empty()).then(|| format!("{count}, {about_or_most} {time}"))
    };
    let parts = [
        words(&searches, "search", "at most"),
        words(&plain, "trial", "about"),
    ];
    parts
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; then ")
}

/// The first notes, and how many more there are.
pub fn notes(notes: &[String], most: usize) -> Vec<String> {
    let mut shown: Vec<String> = notes.iter().take(most).cloned().collect();
    match notes.len() - shown.len() {
        0 => {}
        more => shown.push(format!("and {}", so_many(more as u64, "more note"))),
    }
    shown
}

/// The progress of a search, in one line.
pub fn so_far(search: &Search) -> String {
    let show = |load: f64| search.axis.format_load(load);
    let last = search.trials.last();
    let told = last.map_or("", |trial| match (trial.purpose, trial.finding) {
        (Purpose::FlatOut | Purpose::Cost, _) => "",
        (_, StepOutcome::Within) => "within; ",
        (_, StepOutcome::Beyond) => "beyond; ",
        (_, StepOutcome::Client) => "client-bound; ",
        (_, StepOutcome::Nothing) => "tells nothing; ",
    });
    match (search.low, search.high) {
        (Some(low), Some(high)) => format!("{told}limit between {} and {}", show(low), show(high)),
        (Some(low), None) => format!("{told}limit above {}", show(low)),
        (None, Some(high)) => format!("{told}limit below {}", show(high)),
        (None, None) => format!("{told}limit not known yet"),
    }
}

/// Shows the progress of a run.
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    /// State that the live lines show; the bar draws it from a thread of its own.
    view: Arc<Mutex<View>>,
    forecast: Forecast,
    /// The figures of the metrics endpoint.
    shown: Option<Arc<Mutex<LiveFigures>>>,
    repeats: u32,
    last: Option<(Nanos, u64, u64)>,
    line_at: Instant,
}

impl Progress {
    /// Progress over the trials of a plan that are `left`; silent if `quiet`. `shown` is kept up to
    /// date. A run that is `led` has as many trials as it needs.
    pub fn new(
        plan: &Plan,
        left: &[&PlannedTrial],
        led: bool,
        quiet: bool,
        shown: Option<Arc<Mutex<LiveFigures>>>,
    ) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let forecast = Forecast::new(left.iter().map(|trial| Ahead {
            system: trial.system.clone(),
            workload: trial.workload.name.clone(),
            planned: Duration::from_nanos(trial.duration_estimate()),
        }));
        // The number of trials of searches and rounds is not known beforehand.
        let known = if led || plan.search.is_some() || plan.rounds().is_some() {
            0
        } else {
            plan.trials.len() as u64
        };
        let mut view = View::new(known, Instant::now());
        view.expect(forecast.next(), forecast.remaining_time());
        let view = Arc::new(Mutex::new(view));
        if let Some(shown) = &shown {
            let mut shown = lock(shown);
            shown.study.clone_from(&plan.name);
            shown.trials = plan.trials.len() as u64;
            shown.left = left.len() as u64;
        }
        let progress = Progress {
            bar: (!quiet && terminal).then(|| bar(view.clone())),
            lines: !quiet && !terminal,
            view,
            repeats: match plan.rounds() {
                Some(rounds) => rounds.pairs,
                None => plan.repeats,
            },
            shown,
            last: None,
            line_at: Instant::now(),
            forecast,
        };
        let all = progress.forecast.next() + progress.forecast.remaining_time();
        let count = so_many(left.len() as u64, "trial");
        match left.len() {
            _ if led => {}
            0 => progress.print_line("every trial has been measured already"),
            _ if plan.search.is_some() => progress.print_line(&lengths(plan, left)),
            _ if plan.rounds().is_some() => {
                let each = so_many(plan.trials.len() as u64, "trial");
                progress.print_line(&format!("rounds of {each}"));
            }
            _ => progress.print_line(&format!("{count}, about {}", about(all))),
        }
        for note in notes(&plan.notes, NOTES) {
            progress.print_line(&format!("note: {note}"));
        }
        progress
    }

    /// A trial begins.
    fn trial(&mut self, trial: &PlannedTrial) {
        let what = self.name(trial);
        let mut view = lock(&self.view);
        view.trial(u64::from(trial.order) + 1, &what, trial, Instant::now());
        view.expect(self.forecast.next(), self.forecast.remaining_time());
        let line = format!("{} {what}", view.number());
        drop(view);
        self.last = None;
        self.line_at = Instant::now();
        if self.lines {
            tell!("{line}");
        }
        self.update(|shown| {
            shown.current = Some(Current {
                number: trial.order + 1,
                system: trial.system.clone(),
                workload: trial.workload.name.clone(),
                settings: trial.settings_name.clone(),
                repeat: trial.repeat,
                ..Current::default()
            });
        });
    }

    /// The trial is over; its result stays on the screen.
    fn trial_is_over(&mut self, trial: &Trial) {
        let mut view = lock(&self.view);
        self.forecast.done(view.trial_elapsed(Instant::now()));
        let found = outcome_line(trial);
        let line = if self.lines {
            format!("  {found}")
        } else {
            format!("{} {}: {found}", view.number(), view.trial_name())
        };
        let said = view.to_stay(&line, self.columns());
        view.expect(
            Duration::ZERO,
            self.forecast.next() + self.forecast.remaining_time(),
        );
        drop(view);
        self.print_line(&said);
        for end in &trial.not_in_order {
            self.print_line(&format!("  {end}"));
        }
        if trial.verdict.status == Status::Broken {
            for reason in &trial.verdict.reasons {
                self.print_line(&format!("  broken: {reason}"));
            }
        }
        self.update(|shown| {
            shown.left = shown.left.saturating_sub(1);
            *shown.verdicts.entry(trial.verdict.status).or_default() += 1;
        });
    }

    /// A line that stays, above the progress.
    pub fn print_line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(&*plain(line)),
            None if self.lines => tell!("{line}"),
            None => {}
        }
    }

    /// The run is over.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.update(|shown| shown.current = None);
    }

    /// A trial in words.
    fn name(&self, trial: &PlannedTrial) -> String {
        let mut parts = vec![trial.system.clone(), trial.workload.name.clone()];
        if trial.settings_name != "default" {
            parts.push(trial.settings_name.clone());
        }
        parts.extend(
            trial
                .axes
                .iter()
                .map(|(axis, value)| format!("{axis} {value}")),
        );
        if self.repeats > 1 {
            parts.push(format!("repeat {}", trial.repeat));
        }
        plain(&parts.join(", ")).into_owned()
    }

    fn columns(&self) -> Option<usize> {
        self.bar
            .as_ref()
            .and(terminal::columns(libc::STDERR_FILENO))
    }

    fn update(&self, change: impl FnOnce(&mut LiveFigures)) {
        if let Some(shown) = &self.shown {
            let mut shown = lock(shown);
            change(&mut shown);
            let view = lock(&self.view);
            let now = Instant::now();
            (shown.elapsed, shown.remaining) = (view.elapsed(now), view.remaining(now));
        }
    }

    /// Live rates of a trial since the last ones; `None` if those are newer than [`RATES_OVER`], or
    /// there are none.
    fn rates(&mut self, live: &Live, now: Nanos) -> Option<Rates> {
        let (sent, received) = (live.sent, live.received);
        let Some((at, sent_before, received_before)) = self.last else {
            self.last = Some((now, sent, received));
            return None;
        };
        if now < at + RATES_OVER {
            return None;
        }
        self.last = Some((now, sent, received));
        let per_s = |n: u64| n as f64 * 1e9 / (now - at) as f64;
        Some(Rates {
            out_per_s: per_s(sent.saturating_sub(sent_before)),
            in_per_s: per_s(received.saturating_sub(received_before)),
            live: live.clone(),
        })
    }
}

impl pubgauge_campaign::Watch for Progress {
    fn trial_begins(&mut self, trial: &PlannedTrial) {
        self.trial(trial);
    }

    fn done(&mut self, trial: &Trial) {
        self.trial_is_over(trial);
    }

    fn note(&mut self, note: Note<'_>) {
        self.print_line(&match note {
            Note::Settling(left) => format!(
                "  waiting {:.0} s for what the last trial left in the system",
                left.as_secs_f64()
            ),
            Note::BareNetwork => "measuring the bare network, some 5 s".to_owned(),
            Note::HostIsBack(words) | Note::NotCounted(words) | Note::Ended(words) => {
                words.to_owned()
            }
            Note::Compared(comparisons, round) => {
                format!("  {}", pairs::describe_progress(comparisons, round))
            }
            Note::Searched(search) => format!("  {}", so_far(search)),
            Note::Undecided(forecast) => forecast.sentence(),
            Note::NotMeasured(cell) => format!("not measured: {}: {}", cell.cell, cell.reason),
        });
    }
}

impl Watch for Progress {
    fn phase(&mut self, phase: Phase) {
        lock(&self.view).phase(phase, Instant::now());
        self.last = None;
        self.update(|shown| {
            if let Some(current) = &mut shown.current {
                current.phase = Some(phase);
            }
        });
    }

    fn tick(&mut self, live: &Live, now: Nanos) {
        self.update(|shown| {
            if let Some(current) = &mut shown.current {
                current.live.clone_from(live);
            }
        });
        if self.bar.is_none() && !self.lines {
            return;
        }
        let Some(rates) = self.rates(live, now) else {
            return;
        };
        lock(&self.view).rates = Some(rates);
        if self.lines && self.line_at.elapsed() >= LINE_EVERY {
            self.line_at = Instant::now();
            let view = lock(&self.view);
            tell!("  {}", view.one_line(Instant::now()));
        }
    }
}

/// The result of a trial, in one line.
fn outcome_line(trial: &Trial) -> String {
    let rate = shown::rate(trial.messages.carried_msgs_per_s());
    let carried = if trial.messages.are_unheard() {
        format!("takes {rate}")
    } else {
        format!("{rate} delivered")
    };
    let mut words = vec![trial.verdict.status.as_str().to_owned(), carried];
    // Latency of a trial that is not valid is not quoted.
    if trial.verdict.status == Status::Valid && !trial.workload.flat_out {
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            if let Some(ns) = trial.messages.latency_ns.quotable(quantile) {
                words.push(format!("{name} {}", shown::time(ns as f64)));
            }
        }
    }
    words.push(format!("lost {}", shown::count(trial.shortfall.lost)));
    words.join(", ")
}

fn bar(view: Arc<Mutex<View>>) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(DRAWN_PER_S);
    let bar = ProgressBar::with_draw_target(None, target);
    let below = view.clone();
    let key = |view: Arc<Mutex<View>>, line: fn(&View, Instant, usize) -> String| {
        move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let columns = terminal::columns(libc::STDERR_FILENO).unwrap_or(80);
            let _ = out.write_str(&line(&lock(&view), Instant::now(), columns));
        }
    };
    let style = ProgressStyle::with_template("{above}\n{below}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("above", key(view, View::above))
        .with_key("below", key(below, View::below));
    let bar = bar.with_style(style);
    // Also redrawn while a system starts, when nothing else redraws it.
    bar.enable_steady_tick(Duration::from_millis(1000 / u64::from(DRAWN_PER_S)));
    bar
}
