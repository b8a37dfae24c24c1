//! The histograms of a trial as files.

use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::times::{Measure, histogram};
use pubgauge_figures::histogram::{Interval, write_log};
use pubgauge_workload::Workload;

/// The histograms of a trial as logs: one per measure, one interval per flow and step of the series. `of` names the
/// trial in their comments.
///
/// # Errors
/// The histograms of a record are missing, or cannot be encoded.
pub fn logs(
    workload: &Workload,
    record: &TrialRecord,
    of: &str,
) -> Result<Vec<(String, String)>, String> {
    let names = [
        (Measure::Latency, "latency"),
        (Measure::LatencyFromSend, "latency-from-send"),
        (Measure::SendLag, "send-lag"),
        (Measure::Acknowledgement, "acknowledgement"),
        (Measure::RoundTrip, "round-trip"),
    ];
    let mut files = Vec::new();
    let at = |n: u32| {
        let moment = record.series.get(n as usize).or(record.series.last());
        Duration::from_nanos(moment.map_or(0, |moment| moment.at))
    };
    for (measure, name) in names {
        let mut lost = None;
        // One histogram at a time is in memory.
        let mut intervals = (record.intervals.each_of(measure))
            .map_while(|interval| interval.map_err(|error| lost = Some(error)).ok())
            .map(|i| Interval {
                tag: Some(workload.flows[i.flow as usize].name.clone()),
                start: at(i.number),
                length: at(i.number + 1).saturating_sub(at(i.number)),
                histogram: decode(&i.histogram),
            })
            .peekable();
        if intervals.peek().is_none() {
            continue;
        }
        let head = format!("{name} of {of}").replace(['\r', '\n'], " ");
        let log = write_log(&[&head], intervals).map_err(|error| error.to_string())?;
        if let Some(error) = lost {
            return Err(format!(
                "the histograms of single records are lost: {error}"
            ));
        }
        files.push((name.to_owned(), log));
    }
    Ok(files)
}

fn decode(encoded: &[u8]) -> Histogram<u64> {
    // The conductor wrote them with the same library.
    Deserializer::new()
        .deserialize(&mut &encoded[..])
        .unwrap_or_else(|_| histogram())
}
