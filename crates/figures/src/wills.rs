//! Last wills: what the system published for devices whose connections ended, and how soon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// The wills of devices that come and go. They are in no other figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WillFigures {
    /// Connections of devices with a will that were cut without a word.
    pub cut: u64,
    /// Connections of such devices that ended in order.
    pub in_order: u64,
    /// Connections of such devices that the system ended, or whoever is in between, and those that were not made.
    pub lost: u64,
    /// Of the connections that were cut, those whose will was due to come before the trial ended.
    pub due: u64,
    /// Of these, those whose will came to a subscriber.
    pub published: u64,
    /// Of the connections that were cut, those whose device was back before the will's delay had passed: none was due.
    pub averted: u64,
    /// Of the connections that were cut, those of which nobody can tell whether a will was due: the device was back within a
    /// second of the end of the delay, or the trial ended too soon.
    pub undecided: u64,
    /// Deliveries of the wills that were due, one for each subscriber that hears it and is there throughout.
    pub deliveries_due: u64,
    /// Of these, deliveries that came.
    pub deliveries: u64,
    /// Further deliveries of wills that their subscriber had.
    pub duplicated: u64,
    /// Wills that came although their connection had ended in order.
    pub after_disconnect: u64,
    /// Wills that came for connections that were lost, or not made.
    pub after_loss: u64,
    /// Wills that came although their device was back before the delay had passed, or although their connection had not ended.
    pub needless: u64,
    /// Ends of connections, and deliveries of wills, that were too many to be kept: no other count knows of them.
    #[serde(default)]
    pub not_kept: u64,
    /// From when a connection was cut to the first delivery of its will to each subscriber, the will's delay included.
    /// Deliveries that were due and did not come are larger than all. Absent without any, and where clients are on several hosts,
    /// whose clocks are not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Distribution>,
}

impl WillFigures {
    /// Wills that were due and came to nobody.
    pub fn missing(&self) -> u64 {
        self.due.saturating_sub(self.published)
    }

    /// Deliveries that were due and did not come.
    pub fn deliveries_missing(&self) -> u64 {
        self.deliveries_due.saturating_sub(self.deliveries)
    }
}
