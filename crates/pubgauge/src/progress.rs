//! Progress on standard error: a live line on a terminal, a line per trial elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pubgauge_driver::Nanos;
use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::Live;
use pubgauge_runner::Watch;

/// So many trials, in words.
pub fn so_many_trials(count: u64) -> String {
    format!("{count} trial{}", if count == 1 { "" } else { "s" })
}

/// Shows how far a run is.
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    trial: String,
    phase: &'static str,
    last: Option<(Nanos, u64, u64)>,
}

impl Progress {
    /// Progress of a run of `trials` trials; silent if `quiet`.
    pub fn new(trials: u64, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(Some(trials), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("[{pos}/{len}] {wide_msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Progress {
            bar,
            lines: !quiet && !terminal,
            trial: String::new(),
            phase: "",
            last: None,
        }
    }

    /// A trial begins.
    pub fn trial(&mut self, number: u64, of: u64, what: &str) {
        self.trial = what.to_owned();
        self.phase = "starting the system";
        self.last = None;
        match &self.bar {
            Some(bar) => {
                bar.set_position(number);
                self.show("");
            }
            None if self.lines => eprintln!("[{number}/{of}] {what}"),
            None => {}
        }
    }

    /// A line that stays, above the progress.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if self.lines => eprintln!("{line}"),
            None => {}
        }
    }

    /// The run is over.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn show(&self, rates: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {} {rates}", self.trial, self.phase));
        }
    }
}

impl Watch for Progress {
    fn phase(&mut self, phase: Phase) {
        self.phase = match phase {
            Phase::Connect => "connecting",
            Phase::Prove => "proving readiness",
            Phase::WarmUp => "warming up",
            Phase::Measure => "measuring",
            Phase::Drain => "draining",
            Phase::Close => "closing",
        };
        self.show("");
    }

    fn tick(&mut self, live: &Live, now: Nanos) {
        if self.bar.is_none() {
            return;
        }
        let (sent, received) = (live.sent, live.received);
        let rates = match self.last {
            Some((at, s, r)) if now > at => {
                let per_s = |n: u64| n as f64 * 1e9 / (now - at) as f64;
                format!(
                    "out {}/s, in {}/s",
                    short(per_s(sent.saturating_sub(s))),
                    short(per_s(received.saturating_sub(r)))
                )
            }
            _ => format!("{} connected", live.connected),
        };
        let rates = match (self.phase, self.last) {
            ("draining", Some((at, _, r))) => {
                let left = live.under_way;
                let per_s = received.saturating_sub(r) as f64 * 1e9 / (now - at).max(1) as f64;
                let seconds = match per_s > 0.0 {
                    true => format!(", about {:.0} s", left as f64 / per_s),
                    false => String::new(),
                };
                format!("{rates}, {} under way{seconds}", short(left as f64))
            }
            _ => rates,
        };
        self.last = Some((now, sent, received));
        self.show(&rates);
    }
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1}M", v / 1e6),
        v if v >= 1e3 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}
