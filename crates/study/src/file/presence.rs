//! Devices that come and go, as it is written.

use std::fmt;

use pubgauge_quantities::Span;
use pubgauge_workload::presence::{Between, Presence};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::clash::Clashes;

/// Devices that come and go during the measurement. Before it all are connected; after it those that are away come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PresenceFile {
    /// Which devices of the flow; all if absent.
    pub of: Option<PresenceOf>,
    /// How long a device is connected: "5min", or "2min..5min", drawn anew each time.
    pub online: SpanRange,
    /// How long it is away, likewise.
    pub offline: SpanRange,
    /// When devices leave for the first time; spread if absent.
    pub first: Option<FirstLeave>,
    /// All leave at the same moments, `online` after the beginning of the measurement and again every `online` + `offline`,
    /// and come back within this time of the end of `offline`, each at random.
    pub back_within: Option<Span>,
    /// How they leave; disconnect if absent.
    pub leave: Option<LeaveFile>,
}

/// A time, or two between which one is drawn each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRange {
    /// Shortest.
    pub least: Span,
    /// Longest.
    pub most: Span,
}

/// Which devices of a flow come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PresenceOf {
    Publishers,
    Subscribers,
    All,
}

/// When devices leave for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirstLeave {
    /// Each at a moment of its own, spread evenly over the time for which it is connected.
    Spread,
    /// At the end of that time.
    Together,
}

/// How devices leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeaveFile {
    /// In order, as the protocol has it, once what they have sent is acknowledged.
    Disconnect,
    /// Without a word: the connection is reset.
    Vanish,
}

impl fmt::Display for SpanRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least == self.most {
            true => write!(f, "{}", self.least),
            false => write!(f, "{}..{}", self.least, self.most),
        }
    }
}

impl Serialize for SpanRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<SpanRange> for Between {
    fn from(range: SpanRange) -> Between {
        Between {
            least: range.least.0,
            most: range.most.0,
        }
    }
}

impl PresenceFile {
    /// As plain data, of a flow of this kind.
    pub(crate) fn resolve(&self, flow: FlowKind, clashes: &mut Clashes<'_>) -> Presence {
        let of = self.of.unwrap_or(PresenceOf::All);
        let (publishers, subscribers) =
            (of != PresenceOf::Subscribers, of != PresenceOf::Publishers);
        let mut below = clashes.below(&["presence"]);
        for (key, range) in [("online", self.online), ("offline", self.offline)] {
            if range.least.0 == 0 || range.most < range.least {
                below.add(
                    key,
                    "expected a time above 0, or two of which the second is longer",
                );
            }
            let fixed = range.least == range.most;
            if self.back_within.is_some() && !fixed {
                below.add(
                    key,
                    "with `back-within` all keep to one clock: give one time, not a range",
                );
            }
        }
        if self
            .back_within
            .is_some_and(|within| within >= self.online.least)
        {
            below.add(
                "back-within",
                "expected less than `online`: else some would leave before they are back",
            );
        }
        if self.back_within.is_some() && self.first == Some(FirstLeave::Spread) {
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
            online: self.online.into(),
            offline: self.offline.into(),
            spread: self.first != Some(FirstLeave::Together),
            back_within: self.back_within.map(|within| within.0),
            vanishes: self.leave == Some(LeaveFile::Vanish),
        }
    }
}

/// The facts of a flow that decide which of its devices can come and go.
#[derive(Clone, Copy, Debug)]
pub struct FlowKind {
    /// It sends as fast as it can, or bursts that wait for one another.
    pub unscheduled: bool,
    /// Its subscribers share.
    pub shared: bool,
}
