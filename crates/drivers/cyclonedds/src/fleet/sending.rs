//! Writers, and how messages leave.

use pubgauge_driver::{Batching, Change, ClientId, DriverError, Nanos, Payload, Publish, Refusal};

use super::state::{CycloneFleet, Phase, failed};
use crate::batch::on_the_wire;
use crate::ffi::Written;
use crate::native::Ownership;

impl CycloneFleet {
    /// The key of a writer's messages. Writers have instances of their own, so that KEEP_LAST
    /// counts for each of them; exclusive owners compete for one instance, that of the topic.
    pub(super) fn device(&self, index: usize, topic: &str) -> u32 {
        if self.options.native.ownership == Ownership::Exclusive {
            // FNV-1a: the same in all processes.
            let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            return topic.as_bytes().iter().fold(0x811c_9dc5, mix);
        }
        (self.worker & 0xfff) << 20 | (index as u32 & 0xf_ffff)
    }

    pub(super) fn create_writer(&mut self, index: usize) -> Result<(), DriverError> {
        let domain = self.domain.as_ref().ok_or_else(DriverError::closed)?;
        let publisher = &mut self.publishers[index];
        if publisher.writer.is_none() {
            let writer = domain
                .writer(&publisher.partition, &self.writer_qos)
                .map_err(|code| failed("cannot create a writer", code))?;
            publisher.writer = Some(writer);
        }
        Ok(())
    }

    pub(super) fn drop_writer(&mut self, index: usize) {
        let publisher = &mut self.publishers[index];
        if let (Some(writer), Some(domain)) = (publisher.writer.take(), &self.domain) {
            domain.free_writer(writer);
        }
        publisher.pending = 0;
        publisher.blocked = false;
        publisher.ending = false;
    }

    /// Whether all messages of a client are acknowledged.
    pub(super) fn settled(&self, id: ClientId) -> bool {
        let Some(domain) = &self.domain else {
            return true;
        };
        let own = self.publishers.iter().filter(|p| p.client == id);
        own.filter_map(|p| p.writer)
            .all(|writer| domain.acknowledged(writer, 0))
    }

    #[inline]
    pub(super) fn write(&mut self, index: usize, payload: Payload<'_>) -> Publish {
        let publisher = &mut self.publishers[index];
        let (Some(writer), Some(domain)) = (publisher.writer, &self.domain) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        if publisher.blocked {
            return Publish::Blocked;
        }
        if publisher.ending {
            return Publish::Refused(Refusal::NotConnected);
        }
        let gathers = self.options.batching != Batching::Off;
        let bytes = on_the_wire(payload.len());
        if gathers
            && publisher.pending > 0
            && self
                .batches
                .exceeded(self.batches.with(publisher.pending, bytes))
        {
            writer.flush();
            publisher.pending = 0;
        }
        match domain.write(writer, publisher.device, payload.head, payload.body) {
            Written::Yes => self.patience.sent(),
            Written::NotNow => {
                publisher.blocked = true;
                // Cyclone has sent what it had, to ask for acknowledgements.
                publisher.pending = 0;
                self.hold_back(index);
                return Publish::Blocked;
            }
            Written::Failed(code) => return self.fail(index, payload.len(), code),
        }
        if gathers {
            if self.batches.sent(bytes) {
                self.batches.adapt(self.clock.now());
            }
            publisher.pending = self.batches.with(publisher.pending, bytes);
            if self.batches.complete(publisher.pending) {
                writer.flush();
                publisher.pending = 0;
            } else if !publisher.listed {
                publisher.listed = true;
                self.gathering.push(index as u32);
            }
        }
        Publish::Accepted
    }

    /// Sends all that was gathered.
    #[inline]
    pub(super) fn flush(&mut self) {
        while let Some(index) = self.gathering.pop() {
            let publisher = &mut self.publishers[index as usize];
            publisher.listed = false;
            if let (Some(writer), 1..) = (publisher.writer, publisher.pending) {
                writer.flush();
            }
            publisher.pending = 0;
        }
    }

    #[cold]
    fn hold_back(&mut self, index: usize) {
        if self.blocked.is_empty() {
            self.retry_at = self.clock.now() + self.retry;
            if let Some(domain) = &self.domain {
                domain.hold_back(true);
            }
        }
        self.look = true;
        self.blocked.push(index as u32);
    }

    /// Lets blocked publishers try again for which there is room.
    pub(super) fn release_blocked(&mut self, now: Nanos) {
        let Some(domain) = self.domain.as_ref().filter(|_| !self.blocked.is_empty()) else {
            return;
        };
        let due = now >= self.retry_at;
        let look = std::mem::take(&mut self.look) | domain.heard();
        if !due && !look {
            return;
        }
        let (publishers, news) = (&mut self.publishers, &mut self.news);
        self.blocked.retain(|index| {
            let publisher = &mut publishers[*index as usize];
            let room = publisher.writer.map(|w| domain.has_room(w).unwrap_or(due));
            publisher.blocked = room == Some(false);
            if !publisher.blocked {
                news.push_back((publisher.client, Change::Writable));
            }
            publisher.blocked
        });
        if due {
            self.retry_at = now + self.retry;
        }
        self.batches.restart(now);
        if self.blocked.is_empty() {
            domain.hold_back(false);
        }
    }

    /// A client's publishers are held back no more: they have gone, or are about to.
    pub(super) fn forget_blocked(&mut self, client: ClientId) {
        let publishers = &mut self.publishers;
        self.blocked.retain(|index| {
            let publisher = &mut publishers[*index as usize];
            publisher.blocked &= publisher.client != client;
            publisher.blocked
        });
        if let Some(domain) = self.domain.as_ref().filter(|_| self.blocked.is_empty()) {
            domain.hold_back(false);
        }
    }

    #[cold]
    fn fail(&mut self, index: usize, len: usize, code: i32) -> Publish {
        // A CDR sequence has a 32-bit length; the bound leaves room for Cyclone's own additions.
        if len > i32::MAX as usize - 64 {
            return Publish::Refused(Refusal::TooLarge);
        }
        let client = self.publishers[index].client;
        if self.clients[client.0 as usize].phase == Phase::Up {
            let error = failed(&format!("a message of {len} bytes was not taken"), code);
            self.lower(client);
            self.news.push_back((client, Change::Failed(error.into())));
        }
        Publish::Refused(Refusal::NotConnected)
    }
}
