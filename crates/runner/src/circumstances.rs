//! The circumstances of a trial that follow from its workload and the engine's record.

use pubgauge_engine::conductor::TrialRecord;
use pubgauge_figures::model::Circumstances;
use pubgauge_workload::{Arrivals, Flow, Workload};

/// The resource that the client ran out of, in words.
pub fn exhausted(record: &TrialRecord) -> Option<String> {
    let names: Vec<&str> = record.exhausted.iter().map(|r| r.name()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

/// Whether the load is the same at any time of the measurement: paced, at one rate, from the same clients.
pub fn is_steady(workload: &Workload) -> bool {
    let flat_out = workload.flows.iter().any(Flow::is_flat_out);
    !flat_out && !circumstances(workload).rate_varies_by_design
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_changes_is_not_steady() {
        const SECOND: u64 = 1_000_000_000;
        let of = |arrivals| Workload::fan(2, 1, arrivals);
        let mut late = of(Arrivals::Periodic { per_s: 10.0 });
        assert!(is_steady(&late) && is_steady(&of(Arrivals::Poisson { per_s: 10.0 })));
        assert!(!is_steady(&of(Arrivals::FlatOut)));
        let bursts = Arrivals::Bursts {
            messages: 5,
            every: Some(SECOND),
        };
        assert!(!is_steady(&of(bursts)));
        late.flows[0].start_offset = Some(SECOND);
        assert!(!is_steady(&late));
    }
}
