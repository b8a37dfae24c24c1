//! Fleets that differ from the one that is described.

use schemars::JsonSchema;
use serde::Serialize;

/// How a fleet that is measured differs from the one that is described.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variation {
    /// Not at all.
    None,
    /// All of it so many times: the devices, or, where this machine cannot have so many, their messages.
    Headroom(f64),
    /// So many times the devices.
    Devices(f64),
    /// Every message comes so many times as often.
    Rate(f64),
    /// Every message is so many times as large.
    Payload(f64),
    /// The rate of the kind that sends the most is searched for.
    Limit,
    /// As with `Limit`, with so many times the fleet, dealt out evenly over several brokers.
    Boxes(f64),
}

impl Variation {
    /// Changes that show what another answer would take.
    pub const OTHERS: [Variation; 3] = [
        Variation::Rate(10.0),
        Variation::Payload(10.0),
        Variation::Devices(10.0),
    ];

    /// The name of its workload.
    pub fn workload(self) -> &'static str {
        match self {
            Variation::None => "fleet",
            Variation::Headroom(_) => "headroom",
            Variation::Devices(_) => "more-devices",
            Variation::Rate(_) => "more-often",
            Variation::Payload(_) => "larger",
            Variation::Limit => "limit",
            Variation::Boxes(_) => "boxes",
        }
    }

    /// As part of a sentence: `10 times the devices`.
    pub fn describe(self) -> String {
        match self {
            Variation::None => "the fleet".into(),
            Variation::Headroom(times) => format!("{times} times the fleet"),
            Variation::Devices(times) => format!("{times} times the devices"),
            Variation::Rate(times) => format!("{times} times as often"),
            Variation::Payload(times) => format!("{times} times as large"),
            Variation::Limit => "the limit".into(),
            Variation::Boxes(times) => format!("boxes for {times} times the fleet"),
        }
    }

    /// Whether a rate is searched for.
    pub(crate) fn is_search(self) -> bool {
        matches!(self, Variation::Limit | Variation::Boxes(_))
    }
}
