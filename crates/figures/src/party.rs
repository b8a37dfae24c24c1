//! Deliveries party by party: to subscribers, and to groups that share. Those that got least, last or latest are named.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A subscriber, or a group whose members share messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartyName {
    /// The subscriber's name, or the group's.
    pub name: String,
    /// It is a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_group: bool,
    /// Its flow, where the workload has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Its broker, from 1, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker: Option<u32>,
}

impl fmt::Display for PartyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_group { "group" } else { "subscriber" };
        write!(f, "{kind} `{}`", self.name)?;
        if let Some(flow) = &self.flow {
            write!(f, " of flow `{flow}`")?;
        }
        if let Some(broker) = self.broker {
            write!(f, " at broker {broker}")?;
        }
        Ok(())
    }
}

/// The course of a party's latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartyCourse {
    /// The party.
    pub party: PartyName,
    /// First deliveries of measured messages.
    pub deliveries: u64,
    /// Slot by slot of the measurement the lowest latency from when a message was due, ns; `null` where nothing of what was
    /// due in it has come.
    pub lowest_ns: Vec<Option<u64>>,
}

/// The party that lost most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartyLoss {
    /// The party.
    pub party: PartyName,
    /// Messages that it lost although something later of their stream has come to it.
    pub lost: u64,
    /// First deliveries of measured messages.
    pub deliveries: u64,
    /// The number of parties that lost as many or fewer, but some.
    pub others: u64,
}

/// The slowest party at a percentile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowestParty {
    /// The percentile by its name in a distribution: `p50`, `p90`, `p99`, `p99_9`.
    pub percentile: String,
    /// The party.
    pub party: PartyName,
    /// First deliveries of measured messages.
    pub deliveries: u64,
    /// The lower bound of this percentile of its latency, from the actual send, ns: lower ones would come with a
    /// chance of 1 in 100 among all parties.
    pub at_least_ns: u64,
}

/// The parties of a trial that has several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartyFigures {
    /// How many there are.
    pub count: u64,
    /// Length of the slots of courses in seconds.
    pub slot_s: f64,
    /// Slot by slot the lowest latency over all parties, ns; empty where no party's rose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowest_ns: Vec<Option<u64>>,
    /// Those whose latency rose against that of the fastest, by 1 % of the time that passed or more; 16 at the most, those
    /// first that it rose for most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rising: Vec<PartyCourse>,
    /// The party that lost most; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_most: Option<PartyLoss>,
    /// The slowest party, percentile by percentile, where the workload has several flows that of each; of the first 4,096
    /// parties of each worker. Empty where one-way times are of two clocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowestParty>,
}

impl PartyFigures {
    /// The slowest party of a flow, or of all, at a percentile by its name in a distribution.
    pub fn slowest_at(&self, percentile: &str, flow: Option<&str>) -> Option<&SlowestParty> {
        let is_of_flow = |slow: &&SlowestParty| match (flow, &slow.party.flow) {
            (Some(asked), Some(own)) => asked == own,
            _ => true,
        };
        let slowest = self.slowest.iter().filter(is_of_flow);
        slowest
            .filter(|slow| slow.percentile == percentile)
            .max_by_key(|slow| slow.at_least_ns)
    }
}
