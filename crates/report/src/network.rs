//! Networks of a run in words: their links, baselines of these, and the traffic of systems.

use pubgauge_figures::network::{self, NetworkInfo, NetworkTraffic, fullest_link};
use pubgauge_figures::{Results, Trial};
use pubgauge_network::{Baseline, Throughput};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;
use pubgauge_quantities::written::amount;

use crate::summary::Cell;

/// The performance of the bare links, in a sentence; `None` where they were not measured.
pub(crate) fn raw(info: &NetworkInfo) -> Option<String> {
    let Baseline {
        from,
        to,
        tcp,
        udp,
        multicast,
        round_trips,
        ..
    } = info.baseline.as_ref()?;
    let whom = match &to[..] {
        [one] => one.to_string(),
        all => format!("{} hosts together", all.len()),
    };
    let [tcp, udp, multicast] = [tcp, udp, multicast].map(rate);
    let trip = round_trips.iter().map(|trip| trip.p50_ns).max();
    let trip = trip.filter(|ns| *ns > 0).map_or(String::new(), |ns| {
        format!("; there and back {}", shown::time(ns as f64))
    });
    Some(format!(
        "bare links, {from} to {whom}: {tcp} by TCP, {udp} by UDP, {multicast} by multicast{trip}"
    ))
}

/// The figures of a network's trials that must not be quoted; `None` where all can be.
pub(crate) fn doubt(info: &NetworkInfo) -> Option<String> {
    let words =
        "shape only: every packet crosses programs, so that throughput is not that of the links";
    info.shape_only.then(|| words.to_owned())
}

/// Bits per second in words.
pub(crate) fn rate(measured: &Throughput) -> String {
    let mega = measured.bits_per_s() / 1e6;
    format!("{} Mbit/s", shown::digits(mega))
}

/// The network traffic of a cell's trials, as means over them, in one sentence; `None` without a network.
pub(crate) fn sentence(results: &Results, cell: &Cell<'_>) -> Option<String> {
    let on: Vec<(&Trial, &NetworkTraffic)> = (cell.trials.iter())
        .filter_map(|trial| Some((*trial, trial.network.as_ref()?)))
        .collect();
    let (first, _) = on.first()?;
    let info = network::network_of(results, first)?;
    if let Some(why) = on.iter().find_map(|(_, traffic)| traffic.not_told.as_ref()) {
        return Some(format!("{}: links not counted: {why}", cell.label));
    }
    let mean = |figure: &dyn Fn(&Trial, &NetworkTraffic) -> Option<f64>| {
        let values: Option<Vec<f64>> = on.iter().map(|(trial, on)| figure(trial, on)).collect();
        mean(values?)
    };
    let each = |trial: &Trial, count: u64| {
        let deliveries = trial.messages.delivered_msgs_per_s * trial.duration_s;
        (deliveries > 0.0).then(|| count as f64 / deliveries)
    };
    let bytes = mean(&|trial, on| each(trial, on.sent_by("publisher").0))?;
    let packets = mean(&|trial, on| each(trial, on.sent_by("publisher").1))?;
    let mut said = format!(
        "{}: publishers' hosts sent {} B in {} packets for each delivery",
        cell.label,
        shown::digits(bytes),
        shown::digits(packets)
    );
    let payload = mean(&|trial, _| payload_bits_per_s(trial));
    let bare = info.baseline.as_ref().map(|b| b.tcp.bits_per_s());
    if let (Some(payload), Some(bare)) = (payload, bare.filter(|bits| *bits > 0.0)) {
        said.push_str(&if info.shape_only {
            "; throughput is not quotable: every packet crosses programs".to_owned()
        } else {
            format!(
                "; {} Mbit/s of payload, {} of what bare TCP carries",
                shown::digits(payload / 1e6),
                shown::share(payload / bare)
            )
        });
    }
    let fullest = on.iter().filter_map(|(trial, _)| fullest_link(trial));
    let fullest = fullest.max_by(|(_, a), (_, b)| a.total_cmp(b));
    if let Some((host, share)) = fullest {
        let share = shown::share(share);
        said.push_str(&format!("; the link of {} was {share} full", host.host));
    }
    Some(said)
}

/// Payload delivered, in bits per second; `None` where payloads have several sizes.
fn payload_bits_per_s(trial: &Trial) -> Option<f64> {
    Some(trial.messages.delivered_msgs_per_s * amount(&trial.workload.payload)? * 8.0)
}
