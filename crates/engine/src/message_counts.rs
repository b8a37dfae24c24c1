//! Counts of the measured messages of a flow.

use crate::counts::counts;

counts! {
    /// Measured messages of one flow: all of the measurement, or those that were due in a part of it.
    pub struct MessageCounts {
        /// Messages due.
        pub offered: u64,
        /// Messages that the driver accepted. Those of a part the system did not reject later, either.
        pub published: u64,
        /// Messages that were refused at once, or rejected by the system later. A later rejection belongs to
        /// the part of the actual send time, the only time that it carries.
        pub refused: u64,
        /// Messages that fell due while their publisher was not connected.
        pub not_connected: u64,
        /// Messages due but never taken before sending ended.
        pub not_sent: u64,
        /// Deliveries that the accepted messages should cause.
        pub expected: u64,
        /// Deliveries that messages which were due but not accepted would have caused.
        pub untaken_deliveries: u64,
        /// Of these, those of messages whose publisher was not connected.
        pub unconnected_deliveries: u64,
        pub delivered: u64,
        /// Of these, first deliveries.
        pub unique: u64,
        /// First deliveries that were overtaken; of groups with members on several workers the conductor counts them.
        pub reordered: u64,
        /// Messages that fell due while their publisher was away, as the workload has it; they are not among those due.
        pub away: u64,
        /// First deliveries of messages that were due before their subscriber came back from an absence.
        pub backlog: u64,
        /// Deliveries that did not come because their subscriber was away, and the system keeps nothing for it.
        pub missed: u64,
        /// Repeated deliveries that the times contain: members of a group on different workers got the message, and each
        /// worker timed its copy. The conductor counts them.
        pub timed_again: u64,
    }
}

impl MessageCounts {
    /// Expected deliveries that have not come.
    pub fn missing(&self) -> u64 {
        self.expected.saturating_sub(self.unique)
    }

    /// Deliveries of messages that the party had.
    pub fn duplicated(&self) -> u64 {
        self.delivered.saturating_sub(self.unique)
    }

    /// Takes away messages that were rejected after they had been accepted.
    pub(crate) fn reject(&mut self, rejected: &Rejected) {
        self.published = self.published.saturating_sub(rejected.messages);
        self.expected = self.expected.saturating_sub(rejected.deliveries);
        self.refused += rejected.messages;
        self.untaken_deliveries += rejected.deliveries;
    }
}

/// Messages that the driver had accepted and the system rejected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rejected {
    pub messages: u64,
    pub deliveries: u64,
}
