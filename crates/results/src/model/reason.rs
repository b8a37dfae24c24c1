//! Why a verdict is what it is: the rule that applied, and its words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule of verdicts; `docs/verdicts.md` has their thresholds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The trial did not run, or not to its end.
    #[default]
    NotRun,
    /// A process of the system ended.
    SystemDied,
    /// Not every client connected and subscribed in time.
    Unconnected,
    /// Connections were lost, and the study does not allow it.
    ConnectionsLost,
    /// Deliveries came that are not of this trial, or not for that subscriber.
    Foreign,
    /// Deliveries had a damaged body.
    Corrupt,
    /// Nothing fell due in the measurement, or it had no length.
    NothingMeasured,
    /// The system took no message.
    NothingTaken,
    /// No message arrived.
    NothingArrived,
    /// Clocks of hosts differ by more than can be converted.
    Clocks,
    /// Counts that must agree differ: those of the client among themselves, or with the system's own.
    CountsDiffer,
    /// Deliveries were lost.
    Lost,
    /// Deliveries were lost, and the client may have let them fall.
    LostByClient,
    /// Deliveries were repeated, and the settings promise none.
    Repeated,
    /// The queue grew.
    QueueGrew,
    /// Deliveries were still under way at the end of the drain.
    UnderWay,
    /// Messages that were due were not handed over, and the publishers had time.
    Unsent,
    /// Messages that were due were not handed over, and the publishers had none.
    UnsentByClient,
    /// Messages were refused.
    Refused,
    /// The measurement was too short to tell whether the load was carried.
    TooShort,
    /// The delivered rate varied.
    RateWanders,
    /// Latency varied.
    LatencyWanders,
    /// Nothing was delivered for a while.
    SystemSilent,
    /// A client host of a given size was at the end of it.
    HostFull,
    /// The publishing side had no processor time left.
    PublisherFull,
    /// The subscribing side had no processor time left.
    SubscriberFull,
    /// A thread of the client's library had no processor time left.
    LibraryFull,
    /// The machine had no processor time left.
    MachineFull,
    /// The client sent late.
    ClientLate,
    /// The client stood still.
    ClientStalled,
    /// Other programs kept the machine busy.
    OthersBusy,
    /// A link was full.
    LinkFull,
}

/// A rule that applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// What it found, in words with the figures that decided, on one line.
    pub text: String,
}

impl Reason {
    /// A reason in these words.
    pub fn new(rule: Rule, text: impl Into<String>) -> Reason {
        let text = text.into();
        Reason { rule, text }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
