//! The text of the live lines, as a function of time and width.

use std::time::{Duration, Instant};

use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::{LatencyLive, Live};
use pubgauge_quantities::shown;
use pubgauge_study::PlannedTrial;

/// Live figures of a trial.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    /// Messages of any kind published per second.
    pub out_per_s: f64,
    /// Deliveries of any kind per second.
    pub in_per_s: f64,
    /// Counts of the workers.
    pub live: Live,
}

/// The progress of a run.
#[derive(Clone, Debug)]
pub struct View {
    began: Instant,
    number: u64,
    of: u64,
    what: String,
    trial_began: Instant,
    /// Expected length of this trial.
    expected: Duration,
    /// Expected length of all trials after it.
    rest: Duration,
    phase: Option<Phase>,
    phase_began: Instant,
    warm_up: Duration,
    measure: Duration,
    /// The newest live figures.
    pub rates: Option<Rates>,
}

impl View {
    /// A run of `of` trials begins; 0 if the number is not known.
    pub fn new(of: u64, now: Instant) -> View {
        View {
            began: now,
            number: 0,
            of,
            what: String::new(),
            trial_began: now,
            expected: Duration::ZERO,
            rest: Duration::ZERO,
            phase: None,
            phase_began: now,
            warm_up: Duration::ZERO,
            measure: Duration::ZERO,
            rates: None,
        }
    }

    /// A trial begins.
    pub fn trial(&mut self, number: u64, what: &str, trial: &PlannedTrial, now: Instant) {
        let phases = &trial.workload.phases;
        self.number = number;
        what.clone_into(&mut self.what);
        (self.trial_began, self.phase_began) = (now, now);
        self.phase = None;
        self.warm_up = Duration::from_nanos(phases.warm_up.latest());
        self.measure = Duration::from_nanos(phases.measure.latest());
        self.rates = None;
    }

    /// Sets the expected lengths of this trial and of all after it.
    pub fn expect(&mut self, this: Duration, rest: Duration) {
        (self.expected, self.rest) = (this, rest);
    }

    /// A phase begins.
    pub fn phase(&mut self, phase: Phase, now: Instant) {
        self.phase = Some(phase);
        self.phase_began = now;
        self.rates = None;
    }

    /// `[ 3/12]`.
    pub fn number(&self) -> String {
        // Repeats for undecided claims come after those that were planned.
        if self.of == 0 || self.number > self.of {
            return format!("[{}]", self.number);
        }
        let width = self.of.to_string().len();
        format!("[{:>width$}/{}]", self.number, self.of)
    }

    /// The trial in words.
    pub fn trial_name(&self) -> &str {
        &self.what
    }

    /// Time since the run began.
    pub fn elapsed(&self, now: Instant) -> Duration {
        now.duration_since(self.began)
    }

    /// Time since the trial began.
    pub fn trial_elapsed(&self, now: Instant) -> Duration {
        now.duration_since(self.trial_began)
    }

    /// Estimated time until the end of the run. Of a trial that takes longer than expected, the
    /// planned phases that are left still count.
    pub fn remaining(&self, now: Instant) -> Duration {
        let gone = now.duration_since(self.phase_began);
        let planned = match self.phase {
            None | Some(Phase::Connect | Phase::Prove) => self.warm_up + self.measure,
            Some(Phase::WarmUp) => self.warm_up.saturating_sub(gone) + self.measure,
            Some(Phase::Measure) => self.measure.saturating_sub(gone),
            Some(Phase::Drain | Phase::Close) => Duration::ZERO,
        };
        let expected = self.expected.saturating_sub(self.trial_elapsed(now));
        // Between two trials, no trial runs.
        let this = if self.expected.is_zero() {
            Duration::ZERO
        } else {
            expected.max(planned)
        };
        this + self.rest
    }

    /// `measuring 3 of 10 s`.
    fn doing(&self, now: Instant) -> String {
        let gone = now.duration_since(self.phase_began).as_secs();
        let of = |what: &str, length: Duration| match length.as_secs() {
            0 | 1 => what.to_owned(),
            all => format!("{what} {} of {all} s", gone.min(all)),
        };
        match self.phase {
            None => "starting the system".to_owned(),
            Some(Phase::Connect) => "connecting".to_owned(),
            Some(Phase::Prove) => "proving that all receive".to_owned(),
            Some(Phase::WarmUp) => of("warming up", self.warm_up),
            Some(Phase::Measure) => of("measuring", self.measure),
            Some(Phase::Drain) => "draining".to_owned(),
            Some(Phase::Close) => "closing".to_owned(),
        }
    }

    /// The upper line: what is done, and on the right the time. The trial's name is cut first.
    pub fn above(&self, now: Instant, columns: usize) -> String {
        let room = columns.saturating_sub(1);
        let time = self.time(now);
        if self.number == 0 {
            return cut(&time, room);
        }
        let (number, doing) = (self.number(), self.doing(now));
        let length = |text: &str| text.chars().count();
        let others = length(&number) + length(&doing) + length(&time) + 5;
        let what = cut(&self.what, room.saturating_sub(others).max(8));
        let left = format!("{number} {what}: {doing}");
        match room.checked_sub(length(&left) + length(&time)) {
            Some(gap) if gap >= 2 => format!("{left}{:gap$}{time}", ""),
            _ => cut(&left, room),
        }
    }

    /// The lower line: the live figures.
    pub fn below(&self, _: Instant, columns: usize) -> String {
        let indent = self.number().chars().count() + 1;
        let words = self.figures();
        cut(&format!("{:indent$}{words}", ""), columns.saturating_sub(1))
    }

    /// Both in one line, where there is no terminal.
    pub fn one_line(&self, now: Instant) -> String {
        format!(
            "{}: {}; {}",
            self.doing(now),
            self.figures(),
            self.time(now)
        )
    }

    fn time(&self, now: Instant) -> String {
        // Repeats for undecided claims come after those that were planned.
        if self.of == 0 || self.number > self.of {
            return clock(self.elapsed(now));
        }
        let (elapsed, left) = (clock(self.elapsed(now)), clock(self.remaining(now)));
        format!("{elapsed}, about {left} left")
    }

    fn figures(&self) -> String {
        let Some(rates) = &self.rates else {
            return String::new();
        };
        let live = &rates.live;
        if let None | Some(Phase::Connect) = self.phase {
            return format!("{} connected", live.connected);
        }
        let rate = |per_s: f64| match per_s {
            per_s if per_s < 999.5 => format!("{per_s:.0}/s"),
            per_s => shown::rate(per_s),
        };
        let mut parts = vec![
            format!("out {}", rate(rates.out_per_s)),
            format!("in {}", rate(rates.in_per_s)),
        ];
        if let Some(LatencyLive { p50, p99 }) = live.latency {
            let time = |ns: u64| shown::time(ns as f64);
            parts.extend([format!("p50 {}", time(p50)), format!("p99 {}", time(p99))]);
        }
        if let Some(Phase::Measure | Phase::Drain) = self.phase {
            parts.push(format!("lost {}", shown::count(live.passed_over)));
        }
        if self.phase == Some(Phase::Drain) && live.under_way > 0 {
            let mut words = format!("{} under way", shown::count(live.under_way));
            if rates.in_per_s > 0.0 {
                let seconds = live.under_way as f64 / rates.in_per_s;
                words.push_str(&format!(", about {seconds:.0} s"));
            }
            parts.push(words);
        }
        parts.join("  ")
    }

    /// A line that stays on the screen: cut only if the terminal is too narrow to read it
    /// otherwise.
    pub fn to_stay(&self, line: &str, columns: Option<usize>) -> String {
        match columns {
            Some(columns) if columns >= 40 => cut(line, columns - 1),
            _ => line.to_owned(),
        }
    }
}

/// A text of at most so many characters.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    match room {
        0 => String::new(),
        _ => format!("{kept}\u{2026}"),
    }
}

/// `0:42`, `12:05`, `1:02:03`.
pub fn clock(time: Duration) -> String {
    let all = time.as_secs_f64().round() as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(began: Instant) -> View {
        let mut view = View::new(12, began);
        view.number = 3;
        view.what = "mosquitto, fleet, payload 1KiB, repeat 2".into();
        view.warm_up = Duration::from_secs(2);
        view.measure = Duration::from_secs(10);
        view.expect(Duration::from_secs(14), Duration::from_secs(126));
        view
    }

    fn after(began: Instant, seconds: u64) -> Instant {
        began + Duration::from_secs(seconds)
    }

    #[test]
    fn two_lines_of_any_width() {
        let began = Instant::now();
        let mut view = view(began);
        view.phase(Phase::Measure, after(began, 3));
        view.rates = Some(Rates {
            out_per_s: 999.6,
            in_per_s: 123_456.0,
            live: Live {
                latency: Some(LatencyLive {
                    p50: 99_100,
                    p99: 218_000,
                }),
                ..Live::default()
            },
        });
        let now = after(began, 7);
        assert_eq!(
            view.above(now, 100),
            "[ 3/12] mosquitto, fleet, payload 1KiB, repeat 2: measuring 4 of 10 s         0:07, about 2:13 left"
        );
        assert_eq!(
            view.above(now, 80),
            "[ 3/12] mosquitto, fleet, payload \u{2026}: measuring 4 of 10 s  0:07, about 2:13 left"
        );
        assert_eq!(
            view.below(now, 80),
            "        out 1.00 k/s  in 123 k/s  p50 99.1 µs  p99 218 µs  lost 0"
        );
        for columns in 0..200 {
            for line in [view.above(now, columns), view.below(now, columns)] {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn what_remains_never_falls_below_what_is_planned() {
        let began = Instant::now();
        let mut view = view(began);
        let left = |view: &View, seconds| view.remaining(after(began, seconds)).as_secs();
        assert_eq!(left(&view, 0), 14 + 126);
        assert_eq!(left(&view, 2), 12 + 126);
        // The system takes its time to start.
        assert_eq!(left(&view, 60), 12 + 126);
        view.phase(Phase::WarmUp, after(began, 60));
        assert_eq!(left(&view, 61), 11 + 126);
        view.phase(Phase::Measure, after(began, 62));
        assert_eq!(left(&view, 70), 2 + 126);
        view.phase(Phase::Drain, after(began, 72));
        assert_eq!(left(&view, 90), 126);
        view.expect(Duration::ZERO, Duration::from_secs(126));
        assert_eq!(left(&view, 90), 126);
    }

    #[test]
    fn a_drain_is_told() {
        let began = Instant::now();
        let mut view = view(began);
        view.phase(Phase::Drain, began);
        let under_way = |under_way| Live {
            under_way,
            ..Live::default()
        };
        view.rates = Some(Rates {
            in_per_s: 50_000.0,
            live: under_way(250_000),
            ..Rates::default()
        });
        assert!(
            view.below(began, 100)
                .ends_with("lost 0  250 k under way, about 5 s")
        );
        view.rates = Some(Rates {
            live: under_way(3),
            ..Rates::default()
        });
        assert!(view.below(began, 100).ends_with("lost 0  3 under way"));
    }

    #[test]
    fn clocks() {
        let shown = |s: f64| clock(Duration::from_secs_f64(s));
        assert_eq!(shown(0.4), "0:00");
        assert_eq!(shown(41.6), "0:42");
        assert_eq!(shown(725.0), "12:05");
        assert_eq!(shown(3723.0), "1:02:03");
    }
}
