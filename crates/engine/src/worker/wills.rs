//! Clients that have a last will: each connection has its own, and its end is noted.

use pubgauge_driver::{ClientId, DriverError, Nanos, Will, WillStamp};

use super::Worker;
use crate::wills::HowEnded;

impl Worker {
    /// The will of a device on its first connection.
    pub(super) fn first_will(&self, device: u32) -> Option<Will> {
        let will = self.context.brief.workload.devices[device as usize]
            .will
            .as_deref()?;
        let stamp = WillStamp {
            device,
            connection: 0,
        };
        Some(Will {
            topic: will.topic.clone(),
            payload: stamp.payload(self.assignment.mark, will.bytes as usize),
            retain: will.retain,
            qos: will.qos,
            delay_s: will.delay_s,
        })
    }

    /// Begins to connect a client again.
    pub(super) fn reconnect(&mut self, client: ClientId) -> Result<(), DriverError> {
        let mark = self.assignment.mark;
        self.wills.begin_again(client, mark, &mut *self.fleet)?;
        self.fleet.reconnect(client)
    }

    /// The connection of a client ends in this way.
    pub(super) fn note_end(&mut self, client: ClientId, how: HowEnded, now: Nanos) {
        let patience = self.context.brief.workload.phases.drain_quiet;
        self.wills.end_connection(client, how, now, patience);
    }
}
