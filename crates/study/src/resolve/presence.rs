//! Devices that come and go, from the study file to plain data.

use pubgauge_workload::presence::{Between, Presence};

use crate::clash::Clashes;
use crate::file::{FirstLeave, LeaveFile, PresenceFile, PresenceOf, SpanRange};

impl From<SpanRange> for Between {
    fn from(range: SpanRange) -> Between {
        Between {
            least: range.least.0,
            most: range.most.0,
        }
    }
}

/// As plain data, of a flow of this kind.
pub(super) fn presence(file: &PresenceFile, flow: FlowKind, clashes: &mut Clashes<'_>) -> Presence {
    let of = file.of.unwrap_or(PresenceOf::All);
    let (publishers, subscribers) = (of != PresenceOf::Subscribers, of != PresenceOf::Publishers);
    let mut below = clashes.below(&["presence"]);
    for (key, range) in [("online", file.online), ("offline", file.offline)] {
        if range.least.0 == 0 || range.most < range.least {
            below.add(
                key,
                "expected a time above 0, or two of which the second is longer",
            );
        }
        let fixed = range.least == range.most;
        if file.back_within.is_some() && !fixed {
            below.add(
                key,
                "with `back-within` all keep to one clock: give one time, not a range",
            );
        }
    }
    if file
        .back_within
        .is_some_and(|within| within >= file.online.least)
    {
        below.add(
            "back-within",
            "expected less than `online`: else some would leave before they are back",
        );
    }
    if file.back_within.is_some() && file.first == Some(FirstLeave::Spread) {
        below.add("first", "with `back-within` all leave together");
    }
    if flow.unscheduled && publishers {
        below.add(
                "of",
                "publishers that come and go need a schedule: give the flow a `rate` (not \"max\"), or say of = \"subscribers\"",
            );
    }
    if flow.shared && subscribers {
        below.add(
                "of",
                "members of a group share what comes: who is away misses nothing; say of = \"publishers\"",
            );
    }
    Presence {
        publishers,
        subscribers,
        online: file.online.into(),
        offline: file.offline.into(),
        spread: file.first != Some(FirstLeave::Together),
        back_within: file.back_within.map(|within| within.0),
        vanishes: file.leave == Some(LeaveFile::Vanish),
    }
}

/// The facts of a flow that decide which of its devices can come and go.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowKind {
    /// It sends as fast as it can, or bursts that wait for one another.
    pub unscheduled: bool,
    /// Its subscribers share.
    pub shared: bool,
}
