//! Late subscribers: what the system had kept for them and what came afterwards, over all workers.

use pubgauge_engine::recording::LateParty;
use pubgauge_figures::late::LateFigures;

use crate::record_sums::RecordSums;

/// The late subscribers of a trial; `None` where there are none.
pub fn of_trial(sums: &RecordSums<'_>) -> Option<LateFigures> {
    let recordings = sums.record.recordings.iter();
    let of: Vec<&LateParty> = recordings.flat_map(|r| &r.late.of).collect();
    let there = |party: &&&LateParty| party.subscribed;
    let sum = |count: fn(&LateParty) -> u64| of.iter().map(|party| count(party)).sum::<u64>();
    // Nothing was due to who never subscribed.
    let due: u64 = of.iter().filter(there).map(|party| party.topics).sum();
    let subscribers = of.len() as u64;
    (subscribers > 0).then(|| LateFigures {
        subscribers,
        subscribed: of.iter().filter(there).count() as u64,
        last_values_due: (sum(|party| party.topics) > 0).then_some(due),
        last_values: sum(|party| party.last_values),
        last_values_repeated: sum(|party| party.last_values_repeated),
        backlog: sum(|party| party.backlog),
        live: sum(|party| party.live),
        lost: of.iter().filter(there).map(|party| party.lost).sum(),
        open_paths: of
            .iter()
            .filter(there)
            .map(|party| party.open_streams)
            .sum(),
        duplicated: sum(|party| party.duplicated),
        within: sum(|party| party.within),
        subscribe_ns: sums.united(|r| r.late.subscribing.as_ref(), 0),
        last_values_ns: sums.united(|r| r.late.last_values.as_ref(), 0),
        backlog_ns: sums.united(|r| r.late.backlog.as_ref(), 0),
    })
}
