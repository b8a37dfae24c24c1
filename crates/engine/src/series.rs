//! The series of a trial: what had happened by each of a sequence of moments, its cuts.
//!
//! Every worker takes its totals at the same cuts by the trial's clock, before it counts anything
//! later, so that the sums over workers are exact: whatever was delivered before a cut was also
//! published before it.

use pubgauge_driver::Nanos;
use pubgauge_workload::{Arrivals, Phases, Workload};

use crate::counts::{Counts, counts};
use crate::timetable::Timetable;

/// Cuts take no account of flows with periods below this: at a cut few of a record's messages are under
/// way.
const SLOW: Nanos = 5_000_000;

/// How long before a message of a seldom sending flow a cut lies: counters of interfaces, system calls and processor time
/// are read by another thread, which wakes up at the cut.
const LEAD: Nanos = 10_000_000;

counts! {
    /// Messages of one flow, of warm-up and measurement together, up to one moment.
    pub struct Totals {
        /// Messages that the driver accepted.
        pub published: u64,
        /// Deliveries that they should cause.
        pub due: u64,
        /// Of these, deliveries of messages that the system rejected later.
        pub rejected: u64,
        /// First deliveries.
        pub unique: u64,
        /// Deliveries of messages that the party had.
        pub repeated: u64,
        /// Deliveries that have not come although something later of their stream has come to the party.
        pub passed_over: u64,
        /// Deliveries of messages that are due, but which the system does not take yet.
        pub waiting: u64,
    }
}

impl std::ops::Sub for Totals {
    type Output = Totals;

    /// The totals since an earlier moment. A state, unlike a count, may have gone down (passed over, waiting); it is 0
    /// then.
    fn sub(self, earlier: Totals) -> Totals {
        self.combine(earlier, &u64::saturating_sub)
    }
}

/// Adds up two halves of the same series; the one that ends earlier stays at its last totals.
pub fn add_up(sum: &mut Vec<Totals>, part: &[Totals]) {
    let Some(last) = part.last() else { return };
    if sum.len() < part.len() {
        let padding = sum.last().copied().unwrap_or_default();
        sum.resize(part.len(), padding);
    }
    for (n, totals) in sum.iter_mut().enumerate() {
        totals.add(part.get(n).unwrap_or(last));
    }
}

/// The cuts of a trial: the start of the measurement, the end of each interval, the end of the
/// measurement, and the end of each interval of the drain; and steps in between.
///
/// The end of an interval lies where no message is due: where a flow sends seldom, up to a quarter of an interval
/// earlier, 10 ms before a message is due (or a quarter of the time between two), so that each message and its
/// deliveries fall into one record, and what others read at a cut, a moment late, does not lack a message.
#[derive(Clone, Debug, Default)]
pub struct Cuts {
    table: Timetable,
    /// Seldom sending flows: when the first message is due, and the period.
    slow: Vec<(Nanos, f64)>,
    number: u32,
    next_cut: Nanos,
    /// Beginning and end of the interval that the next cut lies in or begins.
    interval: (Nanos, Nanos),
    /// Bounds of windows, and how many of them have passed.
    bounds: Vec<Nanos>,
    passed: usize,
    /// The next cut or bound.
    next: Nanos,
}

/// A moment at which totals are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The measurement begins.
    Begin,
    /// This record of the series ends.
    Record(u32),
    /// A step of the course within a record.
    Step,
    /// A window begins or ends ([`crate::parts`]).
    Bound,
}

impl Cuts {
    /// No cuts before there is a timetable.
    pub fn none() -> Self {
        Cuts {
            next_cut: Nanos::MAX,
            next: Nanos::MAX,
            ..Cuts::default()
        }
    }

    /// The cuts of a timetable.
    pub fn new(table: Timetable, workload: &Workload) -> Self {
        let slow = workload.flows.iter().filter_map(|flow| {
            let period = match flow.arrivals {
                Arrivals::Periodic { per_s } => 1e9 / per_s,
                Arrivals::Bursts { every, .. } => every? as f64,
                _ => return None,
            };
            (period >= SLOW as f64).then(|| (table.origin(flow), period))
        });
        let bounds = bounds(&workload.phases).into_iter();
        let mut cuts = Cuts {
            table,
            slow: slow.collect(),
            bounds: bounds.map(|bound| table.measure + bound).collect(),
            ..Cuts::default()
        };
        cuts.plan();
        cuts
    }

    fn plan(&mut self) {
        let steps = self.table.steps.max(1);
        let (record, step) = (self.number / steps, self.number % steps);
        if step == 0 {
            self.interval = (self.interval_start(record), self.interval_start(record + 1));
        }
        self.next_cut = self.step(self.interval, step);
        let bound = self.bounds.get(self.passed).copied();
        self.next = bound.unwrap_or(Nanos::MAX).min(self.next_cut);
    }

    /// Whether the next cut or bound has come.
    #[inline]
    pub fn is_due(&self, now: Nanos) -> bool {
        now >= self.next
    }

    /// When the next cut or bound is.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Passes the next cut or bound, and returns which it was.
    pub fn pass(&mut self) -> Passed {
        let passed = if self.next < self.next_cut {
            self.passed += 1;
            Passed::Bound
        } else {
            let steps = self.table.steps.max(1);
            let (record, step) = (self.number / steps, self.number % steps);
            self.number += 1;
            match (record, step) {
                (0, 0) => Passed::Begin,
                (begins, 0) => Passed::Record(begins - 1),
                _ => Passed::Step,
            }
        };
        self.plan();
        passed
    }

    /// How many bounds are still to come.
    pub fn bounds_left(&self) -> usize {
        self.bounds.len() - self.passed
    }

    /// Number of the record that has not ended yet.
    pub fn record(&self) -> u32 {
        self.number.saturating_sub(1) / self.table.steps.max(1)
    }

    /// The end of the measurement, by the clock.
    pub fn measurement_end(&self) -> Nanos {
        self.table.end
    }

    /// The measurement ends at `end`, earlier than planned.
    pub fn end_at(&mut self, end: Nanos) {
        if self.next != Nanos::MAX && end < self.table.end {
            self.table.end = end;
            for bound in &mut self.bounds[self.passed..] {
                *bound = end.min(*bound);
            }
            // The interval ends earlier; its steps before that stay where they are.
            let begun = self.number.saturating_sub(1) / self.table.steps.max(1);
            self.interval = (self.interval_start(begun), self.interval_start(begun + 1));
            self.plan();
        }
    }

    /// When a step of an interval is; 0 is its beginning. Where the interval is shorter than usual, the last
    /// steps are at its end.
    fn step(&self, (begins, ends): (Nanos, Nanos), step: u32) -> Nanos {
        let steps = u64::from(self.table.steps.max(1));
        (begins + self.table.interval * u64::from(step) / steps).min(ends)
    }

    /// When each cut is, steps included, from the start of the measurement on: with whether it is the start or
    /// the end of an interval.
    pub fn times(&self) -> impl Iterator<Item = (Nanos, bool)> {
        (0..).flat_map(move |record| {
            let interval = (self.interval_start(record), self.interval_start(record + 1));
            let steps = 0..self.table.steps.max(1);
            steps.map(move |step| (self.step(interval, step), step == 0))
        })
    }

    /// When interval `n` begins: 0 at the start of the measurement.
    pub fn interval_start(&self, n: u32) -> Nanos {
        let Timetable {
            measure,
            end,
            interval,
            ..
        } = self.table;
        let whole = end.saturating_sub(measure).div_ceil(interval);
        let n = u64::from(n);
        match n.cmp(&whole) {
            _ if n == 0 => measure,
            std::cmp::Ordering::Less => self.quiet(measure + n * interval),
            _ => end + (n - whole) * interval,
        }
    }

    /// The timetable with its measurement moved to a moment at which no message is due, up to a quarter
    /// of an interval earlier.
    pub fn quietly(table: Timetable, workload: &Workload) -> Timetable {
        let earlier = table.measure - Cuts::new(table, workload).quiet(table.measure);
        Timetable {
            measure: table.measure - earlier,
            end: table.end - earlier,
            ..table
        }
    }

    /// Where the measurement may end early: at `at`, or up to a quarter of an interval later, so that a cut that was moved
    /// ahead of `at` stays one of its own.
    pub fn end_near(&self, at: Nanos) -> Nanos {
        let Timetable {
            measure,
            end,
            interval,
            ..
        } = self.table;
        let number = at.saturating_sub(measure).div_ceil(interval);
        let nominal = measure + number * interval;
        if number > 0 && self.interval_start(number as u32) <= at && nominal + 1 < end {
            nominal + 1
        } else {
            at
        }
    }

    /// The moment at or shortly before `nominal` for which the last message of a seldom sending
    /// flow was due longest ago, and none is due right after it.
    fn quiet(&self, nominal: Nanos) -> Nanos {
        let earliest = nominal - self.table.interval / 4;
        // When the last message up to `t` was due, and when the next one is; none was before the flow begins.
        let due = |(origin, period): &(Nanos, f64), t: Nanos| {
            let number = (t.checked_sub(*origin)? as f64 / period).floor();
            let at = |number: f64| *origin + (number * period) as Nanos;
            Some([at(number), at(number + 1.0)])
        };
        let lead = |(_, period): &(Nanos, f64)| LEAD.min((period / 4.0) as Nanos);
        let rest = |t: Nanos| {
            let since = self.slow.iter().filter_map(|flow| {
                let [last, next] = due(flow, t)?;
                Some(if next - t < lead(flow) { 0 } else { t - last })
            });
            since.min().unwrap_or(Nanos::MAX)
        };
        let before = self.slow.iter().filter_map(|flow| {
            let around = due(flow, nominal)?;
            Some(around.map(|due| due.saturating_sub(lead(flow))))
        });
        before
            .flatten()
            .filter(|t| (earliest..=nominal).contains(t))
            .chain([nominal])
            .max_by_key(|t| (rest(*t), *t))
            .unwrap_or(nominal)
    }
}

/// The bounds of a measurement's parts: where its windows begin and end, ns from its start, ascending.
pub fn bounds(phases: &Phases) -> Vec<Nanos> {
    let windows = phases.windows.iter();
    let mut bounds: Vec<Nanos> = windows.flat_map(|w| [w.from, w.to]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_workload::{Exchange, Flow, SECOND, Sizes};

    fn cuts(rates: &[f64], warm_up: Nanos) -> Cuts {
        let flow = |per_s: &f64| Flow {
            name: "flow".into(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            arrivals: Arrivals::Periodic { per_s: *per_s },
            size: Sizes::Fixed { bytes: 16 },
            start_offset: None,
            active_for: None,
            exchange: Exchange::OneWay,
            window: None,
            topic_zipf: None,
            subscribers_take: None,
            answered_by_last: false,
            presence: None,
            settings: 0,
        };
        let workload = Workload {
            name: "test".into(),
            devices: Vec::new(),
            flows: rates.iter().map(flow).collect(),
            phases: Phases::default(),
            cluster: false,
            seed: 1,
        };
        let table = Timetable {
            warm_up,
            measure: 10 * SECOND,
            end: 13 * SECOND + SECOND / 2,
            interval: SECOND,
            steps: 1,
        };
        Cuts::new(table, &workload)
    }

    /// These cuts with four steps to an interval.
    fn in_steps(of: &Cuts) -> Cuts {
        let mut cuts = of.clone();
        cuts.table.steps = 4;
        cuts.plan();
        cuts
    }

    #[test]
    fn steps_divide_intervals() {
        let mut cuts = in_steps(&cuts(&[1000.0], 8 * SECOND));
        let all: Vec<(Nanos, bool)> = cuts.times().take(17).collect();
        let mut passed = Vec::new();
        for (at, whole) in &all {
            assert_eq!(cuts.next(), *at);
            let record = cuts.record();
            passed.push(cuts.pass());
            match (passed.len() - 1, whole) {
                (0, true) => assert_eq!(passed[0], Passed::Begin),
                (n, true) => assert_eq!(passed[n], Passed::Record(record)),
                (n, false) => assert_eq!(passed[n], Passed::Step),
            }
        }
        let quarter = SECOND / 4;
        let at: Vec<Nanos> = all.iter().map(|(at, _)| at / quarter).collect();
        // The last interval is half as long: two of its steps are at its end.
        let expected: Vec<Nanos> = (40..=54).chain([54]).chain([54]).collect();
        assert_eq!(at, expected);
        // The measurement ends early.
        let mut cuts = in_steps(&super::tests::cuts(&[1000.0], 8 * SECOND));
        for _ in 0..6 {
            cuts.pass();
        }
        assert_eq!((cuts.next(), cuts.record()), (11 * SECOND + SECOND / 2, 1));
        cuts.end_at(11 * SECOND + SECOND / 3);
        assert_eq!(cuts.next(), 11 * SECOND + SECOND / 3);
    }

    #[test]
    fn cuts_are_whole_intervals_and_the_end() {
        let mut cuts = cuts(&[1000.0], 8 * SECOND);
        let mut all = vec![cuts.next()];
        assert_eq!(cuts.pass(), Passed::Begin);
        for number in 0..5 {
            all.push(cuts.next());
            assert_eq!(cuts.pass(), Passed::Record(number));
        }
        let half = SECOND / 2;
        assert_eq!(all, [20, 22, 24, 26, 27, 29].map(|halves| halves * half));
    }

    #[test]
    fn cuts_lie_where_no_message_is_due() {
        // Messages are due 0.1 ms before each full second.
        let due = 8 * SECOND - 100_000;
        let slow = cuts(&[1.0], due);
        assert_eq!(slow.interval_start(1), due + 3 * SECOND - LEAD);
        // Messages on the full second, or right after it: each falls into the record that begins there, and what is
        // read a moment after the cut is read before them.
        for after in [0, 1_000, LEAD / 2] {
            let on_the_second = cuts(&[1.0], 8 * SECOND + after).interval_start(1);
            assert_eq!(on_the_second, 11 * SECOND + after - LEAD);
        }
        // Two flows, half a second apart: the cut is never right after either.
        let cuts = cuts(&[1.0, 2.0], 8 * SECOND - 200_000);
        for n in 1..3 {
            let phase = (cuts.interval_start(n) + 200_000) % (SECOND / 2);
            assert!(phase > SECOND / 4, "{phase}");
        }
    }

    #[test]
    fn an_earlier_end_moves_the_cuts() {
        let mut cuts = cuts(&[1000.0], 8 * SECOND);
        cuts.pass();
        cuts.end_at(10 * SECOND + 5);
        assert_eq!(cuts.next(), 10 * SECOND + 5);
    }

    /// Cuts lie 10 ms before messages on full seconds. An end between such a cut and its second would take the place of
    /// the cut, and the totals of the cut for its own.
    #[test]
    fn an_earlier_end_spares_a_cut_that_was_moved() {
        let mut slow = cuts(&[1.0], 8 * SECOND);
        let second = 11 * SECOND;
        for (at, end) in [
            (second - LEAD - 1, second - LEAD - 1),
            (second - LEAD, second + 1),
            (second - 1, second + 1),
            (second + 1, second + 1),
        ] {
            assert_eq!(slow.end_near(at), end);
        }
        slow.pass();
        slow.pass();
        slow.end_at(second + 1);
        assert_eq!((slow.next(), slow.pass()), (second + 1, Passed::Record(1)));
    }

    #[test]
    fn halves_add_up() {
        let totals = |n| Totals {
            published: n,
            ..Totals::default()
        };
        let mut sum = Vec::new();
        add_up(&mut sum, &[totals(1), totals(2)]);
        add_up(&mut sum, &[totals(10), totals(20), totals(30)]);
        let published: Vec<u64> = sum.iter().map(|t| t.published).collect();
        assert_eq!(published, [11, 22, 32]);
    }
}
