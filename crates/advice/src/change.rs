//! Fleets that differ from the one that is described.

use schemars::JsonSchema;
use serde::Serialize;

/// How a fleet that is measured differs from the one that is described.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
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
}

impl Change {
    /// Changes that show what another answer would take.
    pub const OTHERS: [Change; 3] = [
        Change::Rate(10.0),
        Change::Payload(10.0),
        Change::Devices(10.0),
    ];

    /// The name of its workload.
    pub fn workload(self) -> &'static str {
        match self {
            Change::None => "fleet",
            Change::Headroom(_) => "headroom",
            Change::Devices(_) => "more-devices",
            Change::Rate(_) => "more-often",
            Change::Payload(_) => "larger",
            Change::Limit => "limit",
        }
    }

    /// As part of a sentence: `10 times the devices`.
    pub fn describe(self) -> String {
        match self {
            Change::None => "the fleet".into(),
            Change::Headroom(times) => format!("{times} times the fleet"),
            Change::Devices(times) => format!("{times} times the devices"),
            Change::Rate(times) => format!("{times} times as often"),
            Change::Payload(times) => format!("{times} times as large"),
            Change::Limit => "the limit".into(),
        }
    }
}
