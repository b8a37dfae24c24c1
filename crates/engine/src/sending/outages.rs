//! Messages that are refused, and publishers that are not connected.

use pubgauge_driver::{Nanos, Refusal};

use super::Sending;
use crate::recording::{Outage, Recording};

impl Sending {
    /// Notes that a measured message was refused, or fell due while its publisher was not connected.
    #[cold]
    pub(super) fn refused(&mut self, local: u32, stream: u32, intended: Nanos, why: Refusal) {
        let state = &mut self.locals[local as usize];
        let deliveries = u64::from(self.brief.audience.fan_out(stream));
        let (refused, out, unconnected) = match why {
            Refusal::NotConnected => {
                state.out_since.get_or_insert(intended);
                (0, 1, deliveries)
            }
            _ => (1, 0, 0),
        };
        let counts = &mut self.flows[state.flow as usize];
        counts.too_large += u64::from(why == Refusal::TooLarge);
        counts.dropped += u64::from(why == Refusal::Dropped);
        counts.messages.refused += refused;
        counts.messages.not_connected += out;
        counts.messages.untaken_deliveries += deliveries;
        counts.messages.unconnected_deliveries += unconnected;
        if let Some(parts) = &mut self.parts[state.flow as usize] {
            let part = parts.due_at(intended);
            part.refused += refused;
            part.not_connected += out;
            part.untaken_deliveries += deliveries;
            part.unconnected_deliveries += unconnected;
        }
    }

    /// Notes that the outage of a publisher, if there is one, ends at `to`.
    pub(super) fn outage_ends(&mut self, local: u32, to: Nanos) {
        let state = &mut self.locals[local as usize];
        let Some(from) = state.out_since.take() else {
            return;
        };
        self.outages.push(Outage {
            stream: state.first_stream,
            from,
            to,
        });
        if self.outages.len() == 2 * Recording::MOST_OUTAGES {
            self.keep_longest_outages();
        }
    }

    fn keep_longest_outages(&mut self) {
        let length = |outage: &Outage| outage.to.saturating_sub(outage.from);
        self.outages
            .sort_by_key(|outage| std::cmp::Reverse(length(outage)));
        self.outages.truncate(Recording::MOST_OUTAGES);
    }

    /// The longest outages of its publishers.
    pub fn finish_outages(&mut self) -> Vec<Outage> {
        self.keep_longest_outages();
        std::mem::take(&mut self.outages)
    }
}
