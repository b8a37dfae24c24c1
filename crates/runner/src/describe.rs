//! A workload in words.

use std::collections::BTreeSet;

use pubgauge_driver::Nanos;
use pubgauge_figures::model::WorkloadInfo;
use pubgauge_quantities::shown::number;
use pubgauge_workload::{Arrivals, Flow, RateCurve, Sizes, Workload};

const SECOND: f64 = 1e9;

/// A workload in words, whose scheduled messages leave within a span of their due time, ns; 0: each at its own.
pub fn describe(workload: &Workload, pacing_within: Nanos) -> WorkloadInfo {
    let publishers = workload.flows.iter().flat_map(|f| &f.publishers);
    let topics: BTreeSet<&String> = publishers.flat_map(|p| &p.topics).collect();
    // A device with connections to several brokers counts once.
    let whole = |device: u32| {
        workload.devices[device as usize]
            .connection_of
            .unwrap_or(device)
    };
    let devices = |of: fn(&Flow) -> Vec<u32>| {
        let all: BTreeSet<u32> = workload.flows.iter().flat_map(of).map(whole).collect();
        all.len() as u32
    };
    let joined = |words: fn(&Flow) -> String| {
        let sending = workload.flows.iter().filter(|f| f.publishes());
        let mut all: Vec<String> = sending.map(words).collect();
        all.dedup();
        all.join(" + ")
    };
    let sending = workload.flows.iter().filter(|f| f.publishes());
    let mut arrivals = added(sending.map(|f| &f.arrivals));
    let scheduled = |f: &Flow| f.publishes() && !f.is_flat_out();
    if pacing_within > 0 && workload.flows.iter().any(scheduled) {
        let ms = number(pacing_within as f64 / 1e6);
        arrivals.push_str(&format!(", within {ms} ms"));
    }
    if workload.flows.iter().any(|f| f.presence.is_some()) {
        arrivals.push_str(", devices come and go");
    }
    if workload.has_wills() {
        arrivals.push_str(", with wills");
    }
    arrivals.extend(topic_zipf(workload).map(|zipf| format!(", {zipf}")));
    arrivals.extend(subscribers_take(workload).map(|take| format!(", {take}")));
    arrivals.extend(slow(workload).map(|slow| format!(", {slow}")));
    arrivals.extend(late(workload).map(|late| format!(", {late}")));
    WorkloadInfo {
        name: workload.name.clone(),
        publishers: devices(|f| f.publishers.iter().map(|p| p.device).collect()),
        subscribers: devices(|f| f.subscribers.iter().map(|s| s.device).collect()),
        topics: topics.len() as u32,
        subscriptions: Some(
            (workload.flows.iter().flat_map(|flow| &flow.subscribers))
                .map(|subscriber| subscriber.filters.len() as u64)
                .sum(),
        ),
        payload: joined(|f| size_words(&f.size)),
        payload_bytes: payload_bytes(workload),
        arrivals,
        rate_msgs_per_s: rate(workload),
        flat_out: workload.flows.iter().any(Flow::is_flat_out),
    }
}

/// How popular the topics are, in words.
fn topic_zipf(workload: &Workload) -> Option<String> {
    let exponents = workload.flows.iter().filter_map(|flow| flow.topic_zipf);
    let (_, exponents) = count_and_range(exponents)?;
    Some(format!("topics by Zipf's law with {exponents}"))
}

/// How long all subscribers of a flow take for each message, in words.
fn subscribers_take(workload: &Workload) -> Option<String> {
    let takes = workload
        .flows
        .iter()
        .filter_map(|flow| flow.subscribers_take);
    let (_, ms) = count_and_range(takes.map(|ns| ns as f64 / 1e6))?;
    Some(format!("subscribers take {ms} ms for each message"))
}

/// Who is slow, in words.
fn slow(workload: &Workload) -> Option<String> {
    let subscribers = workload.flows.iter().flat_map(|flow| &flow.subscribers);
    let takes = subscribers.filter_map(|s| s.takes);
    let (count, ms) = count_and_range(takes.map(|ns| ns as f64 / 1e6))?;
    let who = match count {
        1 => "1 subscriber takes".to_owned(),
        n => format!("{n} subscribers take"),
    };
    Some(format!("{who} {ms} ms for each message"))
}

/// Who is late, in words.
fn late(workload: &Workload) -> Option<String> {
    let subscribers = workload.flows.iter().flat_map(|flow| &flow.subscribers);
    let after = subscribers.filter_map(|s| s.late);
    let (count, s) = count_and_range(after.map(|ns| ns as f64 / SECOND))?;
    let who = match count {
        1 => "1 subscriber subscribes".to_owned(),
        n => format!("{n} subscribers subscribe"),
    };
    Some(format!("{who} after {s} s"))
}

/// How many values there are, and the least and the largest: `5`, `5 to 20`; `None` of none.
fn count_and_range(values: impl Iterator<Item = f64>) -> Option<(usize, String)> {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().reduce(f64::min)?;
    let most = values.iter().copied().reduce(f64::max)?;
    let range = if least == most {
        number(least)
    } else {
        format!("{} to {}", number(least), number(most))
    };
    Some((values.len(), range))
}

/// The payload that all flows have in common, bytes; see [`WorkloadInfo::payload_bytes`].
fn payload_bytes(workload: &Workload) -> Option<f64> {
    let sending = workload.flows.iter().filter(|flow| flow.publishes());
    let each: Option<Vec<f64>> = sending.map(|flow| mean_bytes(&flow.size)).collect();
    let each = each?;
    let first = *each.first()?;
    each.iter().all(|bytes| *bytes == first).then_some(first)
}

/// The mean of sizes that follows from how they are written.
fn mean_bytes(size: &Sizes) -> Option<f64> {
    match size {
        Sizes::Fixed { bytes } => Some(f64::from(*bytes)),
        Sizes::List { bytes } => {
            let sum: f64 = bytes.iter().copied().map(f64::from).sum();
            Some(sum / bytes.len() as f64)
        }
        Sizes::Uniform { min, max } => Some((f64::from(*min) + f64::from(*max)) / 2.0),
        // Cut off at both ends, or known to the trace alone.
        Sizes::Normal { .. } | Sizes::LogNormal { .. } | Sizes::Recorded => None,
    }
}

/// Messages a second over all flows; see [`WorkloadInfo::rate_msgs_per_s`].
fn rate(workload: &Workload) -> Option<f64> {
    let sending = workload.flows.iter().filter(|flow| flow.publishes());
    let measure = workload.phases.measure.latest();
    let each: Option<Vec<f64>> = sending.map(|flow| flow_rate(flow, measure)).collect();
    each.filter(|each| !each.is_empty())
        .map(|each| each.iter().sum())
}

fn flow_rate(flow: &Flow, measure: Nanos) -> Option<f64> {
    match &flow.arrivals {
        Arrivals::Periodic { per_s } | Arrivals::Poisson { per_s } => Some(*per_s),
        Arrivals::Varying { curve, .. } => Some(curve.mean_per_s(flow.sends_for(measure))),
        Arrivals::OnOff { per_s, on, off } => Some((*per_s)? * *on as f64 / (*on + *off) as f64),
        Arrivals::Bursts { messages, every } => {
            let each = f64::from(*messages) * SECOND / (*every)? as f64;
            Some(each * flow.publishers.len() as f64)
        }
        Arrivals::FlatOut | Arrivals::Replay(_) => None,
    }
}

/// Most loads of one kind that are told one by one.
const ONE_BY_ONE: usize = 3;

/// The loads of several flows: `50/s + 50/s`, `20 x 50/s`. What has no rate is told once.
fn added<'a>(all: impl Iterator<Item = &'a Arrivals>) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for arrivals in all {
        let words = arrival_words(arrivals);
        let has_rate = !matches!(arrivals, Arrivals::FlatOut | Arrivals::Replay(_));
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += usize::from(has_rate),
            None => kinds.push((words, 1)),
        }
    }
    let told = kinds.into_iter().map(|(words, count)| match count {
        count if count > ONE_BY_ONE => format!("{count} x {words}"),
        count => vec![words; count].join(" + "),
    });
    told.collect::<Vec<_>>().join(" + ")
}

/// A payload size in words.
pub fn size_words(size: &Sizes) -> String {
    match size {
        Sizes::Fixed { bytes } => bytes_words(*bytes),
        Sizes::List { bytes } => bytes
            .iter()
            .map(|b| bytes_words(*b))
            .collect::<Vec<_>>()
            .join(", "),
        Sizes::Uniform { min, max } => format!("{} to {}", bytes_words(*min), bytes_words(*max)),
        Sizes::Normal { mean, sd, .. } => format!("normal, {mean:.0} B \u{b1} {sd:.0} B"),
        Sizes::LogNormal { median, sigma, .. } => {
            format!("log-normal, median {median:.0} B, sigma {}", number(*sigma))
        }
        Sizes::Recorded => "as recorded".into(),
    }
}

fn bytes_words(bytes: u32) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

pub fn arrival_words(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::FlatOut => "flat out".into(),
        Arrivals::Periodic { per_s } => rate_words(*per_s),
        Arrivals::Poisson { per_s } => format!("Poisson {}", rate_words(*per_s)),
        Arrivals::Varying { curve, random } => {
            let random = if *random { "Poisson, " } else { "" };
            format!("{random}{}", curve_words(curve))
        }
        Arrivals::OnOff { per_s, on, off } => format!(
            "bursts of {} s every {} s, {}",
            number(*on as f64 / SECOND),
            number((*on + *off) as f64 / SECOND),
            per_s.map_or("flat out".into(), rate_words),
        ),
        Arrivals::Bursts { messages, every } => format!(
            "bursts of {messages} each, {}",
            every.map_or("one after the other".into(), |every| format!(
                "every {} s",
                number(every as f64 / SECOND)
            )),
        ),
        Arrivals::Replay(_) => "replayed trace".into(),
    }
}

/// Most rates of steps that are told one by one.
const MOST_STEPS: usize = 4;

/// A rate over time: `100/s to 10000/s`, `100/s, then 1000/s`, `100/s to 900/s in days of 60 s`.
fn curve_words(curve: &RateCurve) -> String {
    let rates = || curve.pieces.iter().flat_map(|p| [p.from_per_s, p.to_per_s]);
    let [low, high] = [
        rates().fold(f64::INFINITY, f64::min),
        rates().fold(0.0, f64::max),
    ];
    let between = format!("{} to {}", rate_words(low), rate_words(high));
    match &curve.pieces[..] {
        _ if curve.repeats => {
            let day = number(curve.length() as f64 / SECOND);
            format!("{between} in days of {day} s")
        }
        [one] => format!(
            "{} to {}",
            rate_words(one.from_per_s),
            rate_words(one.to_per_s)
        ),
        few if few.len() <= MOST_STEPS => {
            let rates: Vec<String> = few.iter().map(|step| rate_words(step.from_per_s)).collect();
            rates.join(", then ")
        }
        many => format!("{} steps between {between}", many.len()),
    }
}

/// A rate: `1000/s`, `3.33/s`; less than one a second as the interval: `1 every 15 min`.
fn rate_words(per_s: f64) -> String {
    if per_s >= 1.0 || per_s <= 0.0 {
        return format!("{}/s", number(per_s));
    }
    let (between, unit) = match 1.0 / per_s {
        s if s < 119.5 => (s, "s"),
        s if s < 119.5 * 60.0 => (s / 60.0, "min"),
        s => (s / 3600.0, "h"),
    };
    format!("1 every {} {unit}", number(between))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A paced flow beside one that only subscribes is one paced load.
    #[test]
    fn subscribing_is_no_load() {
        let mut workload = Workload::fan(2, 1, Arrivals::Periodic { per_s: 2000.0 });
        let mut listening = workload.flows[0].clone();
        workload.flows[0].subscribers.clear();
        (listening.publishers, listening.arrivals) = (Vec::new(), Arrivals::FlatOut);
        listening.size = Sizes::Fixed { bytes: 16 };
        let payload = describe(&workload, 0).payload;
        workload.flows.push(listening);
        let told = describe(&workload, 0);
        assert_eq!((told.arrivals.as_str(), told.flat_out), ("2000/s", false));
        assert_eq!(told.payload, payload);
        let within = describe(&workload, 1_000_000).arrivals;
        assert_eq!(within, "2000/s, within 1 ms");
        workload.flows[0].arrivals = Arrivals::FlatOut;
        let told = describe(&workload, 1_000_000);
        assert_eq!((told.arrivals.as_str(), told.flat_out), ("flat out", true));
    }

    /// As publishers and topics of several flows are, their loads are added up.
    #[test]
    fn loads_of_flows_are_all_told() {
        let rates = |rates: &[f64]| {
            let mut workload = Workload::fan(1, 1, Arrivals::FlatOut);
            let flow = workload.flows[0].clone();
            workload.flows = rates
                .iter()
                .map(|per_s| {
                    let mut flow = flow.clone();
                    if *per_s > 0.0 {
                        flow.arrivals = Arrivals::Periodic { per_s: *per_s };
                    }
                    flow
                })
                .collect();
            describe(&workload, 0).arrivals
        };
        for (all, words) in [
            (&[50.0, 50.0][..], "50/s + 50/s"),
            (&[10.0, 10.0, 20.0], "10/s + 10/s + 20/s"),
            (&[10.0, 20.0, 10.0], "10/s + 10/s + 20/s"),
            (&[50.0; 20], "20 x 50/s"),
            (&[0.0, 0.0], "flat out"),
            (&[0.0, 50.0, 0.0, 50.0], "flat out + 50/s + 50/s"),
        ] {
            assert_eq!(rates(all), words);
        }
    }

    /// Programs read numbers, not words.
    #[test]
    fn a_load_is_told_in_numbers() {
        let flow = |arrivals, size| Flow {
            size,
            ..Workload::fan(4, 1, arrivals).flows[0].clone()
        };
        let told = |flows: Vec<Flow>| {
            let mut workload = Workload::fan(4, 1, Arrivals::FlatOut);
            workload.flows = flows;
            let told = describe(&workload, 0);
            (told.payload_bytes, told.rate_msgs_per_s)
        };
        let (per_s, small) = (
            Arrivals::Periodic { per_s: 50.0 },
            Sizes::Fixed { bytes: 64 },
        );
        let two = vec![flow(per_s.clone(), small.clone()); 2];
        assert_eq!(told(two), (Some(64.0), Some(100.0)));
        let listed = Sizes::List {
            bytes: vec![64, 192],
        };
        let on_off = Arrivals::OnOff {
            per_s: Some(100.0),
            on: 1_000_000_000,
            off: 3_000_000_000,
        };
        assert_eq!(told(vec![flow(on_off, listed)]), (Some(128.0), Some(25.0)));
        let bursts = Arrivals::Bursts {
            messages: 10,
            every: Some(500_000_000),
        };
        let between = Sizes::Uniform { min: 16, max: 48 };
        assert_eq!(
            told(vec![flow(bursts, between.clone())]),
            (Some(32.0), Some(80.0))
        );
        let differ = vec![flow(per_s, small.clone()), flow(Arrivals::FlatOut, between)];
        assert_eq!(told(differ), (None, None));
        assert_eq!(
            told(vec![flow(Arrivals::FlatOut, small)]),
            (Some(64.0), None)
        );
    }

    #[test]
    fn rates_are_read_by_people() {
        for (per_s, words) in [
            (1000.0, "1000/s"),
            (10.0 / 3.0, "3.33/s"),
            (1234.5, "1234/s"),
            (0.1, "1 every 10 s"),
            (1.0 / 900.0, "1 every 15 min"),
            (100.0 / 900.0, "1 every 9 s"),
            (1.0 / 86_400.0, "1 every 24 h"),
        ] {
            assert_eq!(rate_words(per_s), words);
            assert_eq!(arrival_words(&Arrivals::Periodic { per_s }), words);
        }
    }
}
