//! The simplest possible counts of what happened to measured messages.

use std::collections::{HashMap, HashSet};

use super::TruthRecord;
use pubgauge_driver::clock::Nanos;
use pubgauge_driver::header::Kind;

/// Counts of what happened to the measured messages of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub delivered: u64,
    /// First deliveries.
    pub unique: u64,
    /// Messages that a subscriber, or a member of a group, should get and never gets.
    pub lost: u64,
    /// Messages that were still on their way to a subscriber or to a group when the record was taken.
    pub under_way: u64,
    /// Deliveries of messages that the subscriber, or a member of its group, had already.
    pub duplicated: u64,
    /// First deliveries after that of a later message of the stream (RFC 4737).
    pub reordered: u64,
    /// Latencies from the intended send time of first deliveries, ns, in ascending order.
    pub latencies: Vec<Nanos>,
}

impl Truth {
    /// Counts the records of a trial whose headers count time from `epoch`.
    pub fn count(records: &[TruthRecord], epoch: Nanos) -> Self {
        let mut truth = Truth::default();
        let mut entitled = HashSet::new();
        let mut coming = HashSet::new();
        let mut seen = HashSet::new();
        let mut highest: HashMap<(&str, u32), u32> = HashMap::new();
        let mut deliveries = Vec::new();
        for record in records {
            let measured = record.header.filter(|h| h.kind == Kind::Measured);
            let Some(header) = measured.filter(|_| !record.last_value) else {
                continue;
            };
            let party = record.group.as_ref().unwrap_or(&record.subscriber);
            let message = (party, header.stream, header.sequence);
            entitled.insert(message);
            if let Some(at) = record.delivered_at {
                deliveries.push((record.turn, at, record, message, header));
            } else if !record.lost {
                coming.insert(message);
            }
        }
        deliveries.sort_unstable_by_key(|(turn, ..)| *turn);
        for (_, at, record, message, header) in deliveries {
            truth.delivered += 1;
            if !seen.insert(message) {
                truth.duplicated += 1;
                continue;
            }
            let highest = highest
                .entry((&*record.subscriber, header.stream))
                .or_insert(header.sequence);
            if header.sequence < *highest {
                truth.reordered += 1;
            }
            *highest = header.sequence.max(*highest);
            truth
                .latencies
                .push(at.saturating_sub(epoch + header.intended));
        }
        truth.unique = seen.len() as u64;
        truth.under_way = coming.difference(&seen).count() as u64;
        truth.lost = (entitled.len() - seen.len()) as u64 - truth.under_way;
        truth.latencies.sort_unstable();
        truth
    }

    /// The smallest latency that a share `quantile` of first deliveries did not exceed; 0 if
    /// there was none.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let rank = (quantile * self.latencies.len() as f64).ceil() as usize;
        self.latencies
            .get(rank.max(1) - 1)
            .or(self.latencies.last())
            .copied()
            .unwrap_or(0)
    }
}
