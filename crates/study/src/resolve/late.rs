//! Subscribers that come late, from the study file to plain data.

use pubgauge_workload::Subscriber;

use super::presence::FlowKind;
use crate::clash::Clashes;
use crate::file::LateFile;

/// Marks those of a flow's subscribers that are late.
pub(super) fn mark(
    file: &LateFile,
    flow: FlowKind,
    subscribers: &mut [Subscriber],
    clashes: &mut Clashes<'_>,
) {
    let all = subscribers.len() as u32;
    let count = file.subscribers.count_among(all);
    let mut below = clashes.below(&["late"]);
    if count == 0 {
        below.add(
            "subscribers",
            "expected at least one: leave `late` out where nobody is",
        );
    } else if count >= all {
        below.hinted(
            "subscribers",
            format!(
                "{count} of {all} subscribers would be late: there is none beside whom they are"
            ),
            Some(
                "give the flow more subscribers; what those who are there get meanwhile is half of the answer"
                    .into(),
            ),
        );
    }
    if flow.shared {
        below.add(
            "subscribers",
            "members of a group share what comes: who is late misses nothing; give the flow subscribers that do not share",
        );
    }
    let on_time = all.saturating_sub(count) as usize;
    for subscriber in &mut subscribers[on_time..] {
        subscriber.late = Some(file.after.0);
    }
}
