//! Subscribers whose applications are slow, from the study file to plain data.

use pubgauge_quantities::Rate;
use pubgauge_workload::{Nanos, SECOND, Subscriber};

use super::presence::FlowKind;
use crate::clash::Clashes;
use crate::file::{FlowFile, SlowFile, TakesFile};

/// Marks those of a flow's subscribers that are slow.
pub(super) fn mark(
    file: &SlowFile,
    flow: FlowKind,
    subscribers: &mut [Subscriber],
    clashes: &mut Clashes<'_>,
) {
    let all = subscribers.len() as u32;
    let mut below = clashes.below(&["slow"]);
    let takes = time_for_each(file.takes, "takes", &mut below);
    let count = file.subscribers.count_among(all);
    if count == 0 {
        below.add(
            "subscribers",
            "expected at least one: leave `slow` out where nobody is",
        );
    } else if count >= all {
        below.hinted(
            "subscribers",
            format!(
                "{count} of {all} subscribers would be slow: there is none beside whom they are"
            ),
            Some(
                "give the flow more subscribers; what happens to the others is half of the answer"
                    .into(),
            ),
        );
    }
    if flow.shared {
        below.add(
            "subscribers",
            "members of a group share what comes: what one does not take, others may get; give the flow subscribers that \
             each get all",
        );
    }
    if flow.unscheduled {
        below.add(
            "subscribers",
            "with slow subscribers a flow needs a schedule that waits for nobody: give it a `rate` (not \"max\")",
        );
    }
    for subscriber in subscribers.iter_mut().take(count as usize) {
        subscriber.takes = takes;
    }
}

/// The time that the application of each of a flow's subscribers takes for a message, where it takes some.
pub(super) fn time_for_all(file: &FlowFile, clashes: &mut Clashes<'_>) -> Option<Nanos> {
    time_for_each(file.subscribers_take?, "subscribers-take", clashes)
}

/// The time that an application takes for each message, as `key` has it; `None` if that is none, which is then a clash.
fn time_for_each(written: TakesFile, key: &str, clashes: &mut Clashes<'_>) -> Option<Nanos> {
    let takes = match written {
        TakesFile::Time(span) => span.0,
        TakesFile::Rate(Rate::All(per_s)) => (SECOND as f64 / per_s).round() as Nanos,
        TakesFile::Rate(Rate::Each(_) | Rate::Max) => {
            clashes.add(
                key,
                "expected the rate of one subscriber, such as \"200/s\", or a time for each message, such as \"5ms\"",
            );
            return None;
        }
    };
    if takes == 0 {
        clashes.add(
            key,
            "expected some time for each message, such as \"5ms\"; leave it out where it takes none",
        );
        return None;
    }
    Some(takes)
}
