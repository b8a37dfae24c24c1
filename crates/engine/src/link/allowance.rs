//! How much a report may be: what its bytes become is bounded by what the trial has, before anything is made of them.
//!
//! A value of JSON takes two bytes (`0,`) and becomes up to 24 (an empty list), twice that while its list grows: a frame
//! of 256 MiB was 4 GB. So the values of a frame are counted first, in one pass that keeps nothing.

use pubgauge_workload::{Phases, Workload};

use super::Order;
use crate::groups;
use crate::parties;
use crate::recording::Recording;
use crate::timetable::steps_of;
use crate::wills;

/// Bytes of memory that a value takes, reckoned for a report that waits to be read.
const VALUE_BYTES: usize = 16;
/// Bytes of JSON that a value takes at the most, its name included.
const LONGEST_VALUE: usize = 48;
/// The longest frame of all: a report of a trial of any size.
const LONGEST: usize = 256 << 20;
/// Values that any report may have: numbers of a worker's own, such as its use of processors.
const FEW: usize = 1_000;
/// Codes with which the system may have rejected messages of one flow.
const CODES: usize = 256;
/// Bytes of words: addresses, errors, a histogram.
const WORDS: usize = 1 << 20;
/// Bytes of one address.
const ADDRESS: usize = 1 << 10;
/// Time that a worker may count after the drain, ns, while connections are closed: with a millisecond for each device.
const CLOSING: u64 = 60_000_000_000;

/// The bounds of one worker's reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    flows: usize,
    devices: usize,
    streams: usize,
    subscribers: usize,
    groups: usize,
    parts: usize,
    cuts: usize,
    bursts: usize,
    threads: usize,
    wills: bool,
}

impl Allowance {
    /// Of the worker that gets this order.
    pub fn for_order(order: &Order) -> Allowance {
        let workload = &order.workload;
        let subscribers = workload.flows.iter().map(|flow| flow.subscribers.len());
        Allowance {
            flows: workload.flows.len(),
            devices: workload.devices.len(),
            streams: order.spread.len(),
            subscribers: subscribers.sum(),
            groups: order.apart.len(),
            parts: most_parts(&workload.phases),
            cuts: most_cuts(workload),
            bursts: most_bursts(workload),
            threads: MOST_THREADS,
            wills: workload.has_wills(),
        }
    }

    /// The longest frame that is read, bytes.
    pub fn longest(&self) -> usize {
        let kinds = KINDS.iter().filter_map(|kind| self.of_kind(kind));
        let bytes = kinds.map(|(values, words)| values.saturating_mul(LONGEST_VALUE) + words);
        bytes.max().unwrap_or(0).min(LONGEST)
    }

    /// Checks a report before it is decoded, and returns how many bytes it takes until it is read.
    ///
    /// # Errors
    /// The excess in it, in words.
    pub fn check(&self, frame: &[u8]) -> Result<usize, String> {
        let kind = kind(frame);
        let (most, words) = self.of_kind(kind).ok_or("it is no report")?;
        let values = count_values(frame);
        if values > most {
            return Err(format!(
                "its report `{kind}` has {values} values, where one of this trial has {most} at the most"
            ));
        }
        let longest = (most.saturating_mul(LONGEST_VALUE) + words).min(LONGEST);
        if frame.len() > longest {
            return Err(format!(
                "its report `{kind}` has {} bytes, where one of this trial has {longest} at the most",
                frame.len()
            ));
        }
        Ok(frame.len() + values * VALUE_BYTES)
    }

    /// Most values and most bytes of words of a report of a kind; `None` if there is no such kind.
    fn of_kind(&self, kind: &str) -> Option<(usize, usize)> {
        let Allowance {
            flows,
            devices,
            streams,
            ..
        } = *self;
        let (values, words) = match kind {
            "Hello" => (self.threads, 0),
            "Counters" => (14 * flows, 0),
            "Proven" => (self.groups.saturating_mul(streams).saturating_mul(4), 0),
            "Unproven" => (2 * streams, 0),
            "Got" if self.groups > 0 => (GOT_VALUES, 16 * WORDS),
            "Ready" => (4 * devices, devices.saturating_mul(ADDRESS)),
            "Stuck" => (6 * streams, 0),
            "Recording" => (self.of_recording(), 16 * WORDS),
            "Interval" | "Failed" | "Gone" => (0, WORDS),
            "Got" | "Passed" | "BurstSent" | "Closing" => (0, 0),
            _ => return None,
        };
        Some((values.saturating_add(FEW), words))
    }

    fn of_recording(&self) -> usize {
        let parties = (self.subscribers).min(parties::WITH_DISTRIBUTION + 2 * parties::NOTABLE);
        let of_flow = 44 + 10 * self.cuts + 12 * self.bursts + 24 * self.parts + 4 * CODES;
        let of_party = 16 + parties::SLOTS + 3 * parties::BUCKETS;
        let noted = 4 * Recording::MOST_OUTAGES + 4 * Recording::MOST_GAPS;
        [
            self.flows.saturating_mul(of_flow),
            parties.saturating_mul(of_party),
            5 * self.subscribers,
            // Slow ones.
            8 * self.subscribers,
            // Late ones.
            13 * self.subscribers,
            // Ends of connections, and deliveries of wills.
            if self.wills { 18 * wills::MOST } else { 0 },
            noted,
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}

/// All kinds of reports.
const KINDS: [&str; 14] = [
    "Hello",
    "Counters",
    "Proven",
    "Unproven",
    "Got",
    "Passed",
    "BurstSent",
    "Interval",
    "Ready",
    "Failed",
    "Stuck",
    "Closing",
    "Recording",
    "Gone",
];

/// Most threads of a worker.
pub(crate) const MOST_THREADS: usize = 100_000;

/// Values of a report of what members of groups got: a worker hands in what it has once that takes
/// [`groups::MOST_KEPT`], which it looks for now and then.
const GOT_VALUES: usize = 4 * 14 * (groups::MOST_KEPT / size_of::<groups::Got>());

/// Most parts of a measurement, and totals at their bounds.
pub(crate) fn most_parts(phases: &Phases) -> usize {
    2 * phases.windows.len() + 2
}

/// Most records of a series, those of the drain included.
pub(crate) fn most_records(workload: &Workload) -> usize {
    let phases = &workload.phases;
    let length = phases.measure.latest();
    let devices = workload.devices.len() as u64 * 2_000_000;
    let whole = [length, phases.drain_within, CLOSING, devices]
        .into_iter()
        .fold(0, u64::saturating_add);
    (whole / phases.record_length()) as usize + 4
}

/// Most totals of a flow's series, steps included.
pub(crate) fn most_cuts(workload: &Workload) -> usize {
    let steps = steps_of(&workload.phases) as usize;
    most_records(workload).saturating_mul(steps)
}

/// Most bursts of one flow.
fn most_bursts(workload: &Workload) -> usize {
    let length = workload.phases.measure.latest();
    let of = workload.flows.iter().filter_map(|flow| {
        let period = flow.arrivals.burst_period()?;
        Some(length.div_ceil(period.max(1)) as usize + 2)
    });
    of.max().unwrap_or(0)
}

/// The kind of a report: its first text.
fn kind(frame: &[u8]) -> &str {
    let mut parts = frame.splitn(3, |byte| *byte == b'"');
    let kind = parts.nth(1).unwrap_or_default();
    std::str::from_utf8(kind).unwrap_or_default()
}

/// Values of a text in JSON, lists and objects included, names not; an upper bound where it is none.
fn count_values(text: &[u8]) -> usize {
    let (mut values, mut in_words, mut escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_words,
            b'"' => in_words = !in_words,
            b',' | b'[' | b'{' if !in_words => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use pubgauge_driver::{Mark, Target};
    use pubgauge_workload::{Arrivals, Window, Workload};

    use super::*;
    use crate::assignment::{Assignment, Brief, Role};
    use crate::failures::{ClientFailure, Failures};
    use crate::live::{FlowCounters, LiveCounters};
    use crate::parties::{BUCKETS, PartyRecording, SLOTS};
    use crate::recording::tests::recording;
    use crate::recording::{
        FlowRecording, LateParty, MemberRecording, Outage, Rejections, SlowParty,
    };
    use crate::reports::Report;
    use crate::series::Totals;
    use crate::times::{Interval, LONGEST as LONGEST_TIME, Measure, histogram};

    /// Of a trial of three publishers and four subscribers.
    pub(in crate::link) fn order() -> Order {
        order_of(fan())
    }

    fn order_of(workload: Workload) -> Order {
        let streams = Brief::new(workload.clone()).unwrap().stream_count() as usize;
        Order {
            version: 0,
            assignment: Assignment {
                worker: 0,
                role: Role::Publishers,
                devices: vec![0],
                settings: 0,
                broker: 0,
                host: 0,
                mark: Mark::from_seed(1),
                default_window: None,
                client: Default::default(),
                pin_to: None,
            },
            workload: Arc::new(workload),
            driver: String::new(),
            target: Target::default(),
            settings: Arc::new([]),
            epoch: 0,
            spread: vec![1; streams].into(),
            apart: Arc::new([]),
        }
    }

    fn fan() -> Workload {
        Workload::fan(3, 4, Arrivals::Periodic { per_s: 10.0 })
    }

    fn check(allowance: &Allowance, report: &Report) -> Result<usize, String> {
        allowance.check(&serde_json::to_vec(report).unwrap())
    }

    /// The largest of each kind that the conductor takes.
    #[test]
    fn what_a_trial_has_is_allowed() {
        let mut workload = fan();
        workload.phases.windows = vec![Window {
            name: "first".into(),
            from: 0,
            to: 1_000_000_000,
        }];
        let order = order_of(workload.clone());
        let allowance = Allowance::for_order(&order);
        let mut large = recording();
        large.flows = vec![FlowRecording::default(); workload.flows.len()];
        large.series = vec![vec![Totals::default(); most_cuts(&workload)]];
        large.parts = vec![crate::parts::FlowParts {
            of: vec![Default::default(); most_parts(&workload.phases)],
            by: vec![Totals::default(); most_parts(&workload.phases)],
        }];
        large.gaps = vec![(u64::MAX, u64::MAX); Recording::MOST_GAPS];
        let (from, to) = (u64::MAX, u64::MAX);
        let stream = u32::MAX;
        large.outages = vec![Outage { stream, from, to }; Recording::MOST_OUTAGES];
        large.rejections = vec![
            Rejections {
                flow: 0,
                code: u16::MAX,
                messages: u64::MAX
            };
            CODES
        ];
        large.failures = vec![
            ClientFailure {
                why: "e".repeat(2_000),
                ..ClientFailure::default()
            };
            Failures::MOST
        ];
        let mut times = crate::times::histogram();
        (1..4_000_000).for_each(|n| times.saturating_record(n * 1_000));
        large.connecting.times = Some(times.clone().into());
        large.connecting.times_again = Some(times.into());
        let member = MemberRecording {
            party: 0,
            flow: 0,
            subscriber: 0,
            unique: u64::MAX,
        };
        large.members = vec![member; 4];
        large.slow.of = vec![SlowParty::default(); 4];
        large.slow.latency = large.connecting.times.clone();
        large.late.of = vec![LateParty::default(); 4];
        large.late.subscribing = large.connecting.times.clone();
        large.late.last_values = large.connecting.times.clone();
        large.late.backlog = large.connecting.times.clone();
        large.parties.of = vec![
            PartyRecording {
                lowest: vec![Some(u64::MAX); SLOTS],
                latencies: vec![(u32::MAX, u32::MAX); BUCKETS],
                ..PartyRecording::default()
            };
            4
        ];
        let mut values = histogram();
        for n in 0..60_000 {
            let value = LONGEST_TIME as f64 * f64::powi(0.9995, n);
            values.saturating_record_n((value as u64).max(1), 1 << (n % 40));
        }
        let interval = Interval {
            flow: 0,
            measure: Measure::Latency,
            number: 1,
            part: 0,
            values: values.into(),
        };
        let counters = LiveCounters {
            flows: vec![FlowCounters::default(); workload.flows.len()],
            ..LiveCounters::default()
        };
        let devices = workload.devices.len() as u32;
        for report in [
            Report::Recording(Box::new(large)),
            Report::Interval(interval),
            Report::Counters(Box::new(counters)),
            Report::Ready((0..devices).map(|n| (n, "a".repeat(100))).collect()),
            Report::Unproven((0..order.spread.len() as u32).collect()),
            Report::Stuck(
                7,
                (0..order.spread.len() as u32)
                    .map(|n| (n, [n, n]))
                    .collect(),
            ),
            Report::Passed(0, 1),
            Report::Closing,
            Report::Failed("no server".into()),
            Report::Gone("x".repeat(100_000)),
        ] {
            let size = check(&allowance, &report);
            assert!(size.is_ok(), "{size:?}");
        }
    }

    #[test]
    fn what_would_become_more_than_the_trial_has_is_refused() {
        let allowance = Allowance::for_order(&order());
        let head = r#"{"Recording":{"worker":0,"role":"publishers","flows":[],"series":["#;
        let lists = [head, &"[],".repeat(1_000_000), "[]]}}"].concat();
        let why = allowance.check(lists.as_bytes()).unwrap_err();
        assert!(
            why.contains("`Recording` has 2000009 values, where one of this trial has"),
            "{why}"
        );
        let words = format!(r#"{{"Failed":{{"why":"{}"}}}}"#, "x".repeat(3 << 20));
        let why = allowance.check(words.as_bytes()).unwrap_err();
        assert!(why.contains("`Failed` has 3145749 bytes"), "{why}");
        // There are no groups.
        let got = format!(r#"{{"Got":[{}0]}}"#, "0,".repeat(10_000));
        assert!(allowance.check(got.as_bytes()).is_err());
        for none in ["", "7", "[]", r#"{"Wishes":1}"#, r#"{"\u0052ecording":1}"#] {
            assert_eq!(
                allowance.check(none.as_bytes()).unwrap_err(),
                "it is no report"
            );
        }
    }

    #[test]
    fn commas_in_words_are_no_values() {
        for (text, values) in [
            (r#""[,]\",[""#, 1),
            (r#"{"a":[1,2,"x,y"],"b\\":{}}"#, 7),
            ("[]", 2),
            ("7", 1),
        ] {
            assert_eq!(count_values(text.as_bytes()), values, "{text}");
        }
    }
}
