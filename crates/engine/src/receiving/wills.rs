//! Deliveries that are no message of a flow: a last will, or something foreign.

use pubgauge_driver::{ClientId, WillStamp};

use super::Receiving;

impl Receiving {
    /// Takes in a delivery without a header of this trial.
    #[cold]
    pub(super) fn take_in_other(&mut self, client: ClientId, payload: &[u8]) {
        let devices = &self.brief.workload.devices;
        let of_device = |stamp: &WillStamp| {
            let device = devices.get(stamp.device as usize);
            device.is_some_and(|device| device.will.is_some())
        };
        match WillStamp::decode(payload, self.mark).filter(of_device) {
            Some(stamp) => self.wills.note(client, stamp, self.epoch + self.now),
            None => self.foreign += 1,
        }
    }
}
