//! The circumstances of a trial that follow from its workload and the engine's record.

use pubgauge_engine::conductor::TrialRecord;
use pubgauge_figures::model::Circumstances;
use pubgauge_workload::{Arrivals, Workload};

/// The resource that the client ran out of, in words.
pub fn exhausted(record: &TrialRecord) -> Option<String> {
    let names: Vec<&str> = record.exhausted.iter().map(|r| r.name()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// The circumstances of trials that follow from their workload.
pub fn circumstances(workload: &Workload) -> Circumstances {
    let varies = |arrivals: &Arrivals| {
        matches!(
            arrivals,
            Arrivals::Varying { .. }
                | Arrivals::OnOff { .. }
                | Arrivals::Bursts { .. }
                | Arrivals::Replay(_)
        )
    };
    let flows = &workload.flows;
    Circumstances {
        disconnects_allowed: workload.phases.disconnects_allowed,
        losses_allowed: workload.phases.losses_allowed,
        rate_varies_by_design: flows.iter().any(|f| {
            varies(&f.arrivals)
                || f.active_for.is_some()
                || f.start_offset.is_some_and(|ns| ns > 0)
                || f.presence.is_some()
        }),
        subscribers_come_and_go: workload.has_absent_subscribers(),
        ..Circumstances::default()
    }
}
