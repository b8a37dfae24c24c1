//! Events of publishers, under the numbers that they have in the fleet.

use pubgauge_driver::{Acknowledgement, Change, ClientId, Delivery, Events};

/// Gives publishers the numbers that they have here.
pub(crate) struct Relay<'a> {
    pub events: &'a mut dyn Events,
    pub ours: &'a [ClientId],
    pub reported: bool,
}

impl Events for Relay<'_> {
    fn arrived(&mut self) {
        self.events.arrived();
    }

    fn lowered(&mut self) {
        self.events.lowered();
    }

    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.reported = true;
        self.events
            .delivered(self.ours[client.0 as usize], delivery);
    }

    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.reported = true;
        self.events
            .acknowledged(self.ours[client.0 as usize], tag, answer);
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        self.reported = true;
        self.events.changed(self.ours[client.0 as usize], change);
    }
}
