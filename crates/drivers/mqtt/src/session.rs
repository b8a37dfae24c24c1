//! State of a client between packets: messages in flight in both directions, and
//! subscriptions that wait for their answer.
//!
//! Packet identifiers of PUBLISH are slot numbers plus one, so that an acknowledgement finds its
//! message by an index and a free identifier is found by a pop. SUBSCRIBE takes its identifiers
//! from the range above [`MAX_IN_FLIGHT`].

use std::collections::VecDeque;

use pubgauge_driver::{Payload, TopicId};

use crate::options::MAX_IN_FLIGHT;

/// Payload buffers of more bytes than this are freed when their message is acknowledged.
const KEEP_PAYLOAD: usize = 64 << 10;

/// The packet that a message in flight waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// The slot is free.
    Nothing,
    PubAck,
    PubRec,
    PubComp,
}

/// A message in flight.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub awaits: Awaits,
    /// PUBREC already said that nobody is subscribed.
    pub no_subscriber: bool,
    pub topic: TopicId,
    pub tag: u64,
    /// Position in the order of publishing, which a resend must keep (5.0 §4.6).
    order: u64,
    /// A copy for a resend; empty where the session does not outlive the connection.
    pub payload: Vec<u8>,
}

/// Messages in flight and waiting subscriptions, of one client.
#[derive(Debug, Default)]
pub(crate) struct MqttSession {
    slots: Vec<Slot>,
    free: Vec<u16>,
    order: u64,
    /// How many more PUBLISH may be sent before an acknowledgement.
    quota: u32,
    /// Slots that still have to be sent again, in order.
    resend: VecDeque<u16>,
    /// Identifiers of SUBSCRIBE packets without an answer yet.
    pub subscribing: VecDeque<u16>,
    next_subscribe: u16,
    /// QoS 2 messages that came in and were not released: one bit for each identifier.
    received: Option<Box<Received>>,
    received_count: u32,
}

/// One bit for each packet identifier.
#[derive(Debug)]
pub(crate) struct Received([u64; 1024]);

impl Received {
    pub fn empty() -> Box<Self> {
        Box::new(Received([0; 1024]))
    }
}

impl MqttSession {
    /// A connection was made on which `window` messages may be in flight. All that were in flight
    /// are to be sent again.
    pub fn begin_connection(&mut self, window: u32) {
        self.quota = window;
        let mut waiting: Vec<u16> = (0..self.slots.len() as u16)
            .filter(|slot| self.slots[usize::from(*slot)].awaits != Awaits::Nothing)
            .collect();
        waiting.sort_by_key(|slot| self.slots[usize::from(*slot)].order);
        self.resend = waiting.into();
    }

    /// Forgets everything, as the protocol demands when the server has no session (5.0 §4.1, 3.1.1
    /// §3.1.2.4). Returns how many messages were in flight.
    pub fn discard(&mut self) -> u64 {
        let lost = self.in_flight();
        *self = MqttSession::default();
        lost
    }

    /// Number of messages in flight.
    pub fn in_flight(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// Whether a new message may be sent now.
    #[inline]
    pub fn can_publish(&self) -> bool {
        self.quota > 0
            && self.resend.is_empty()
            && (!self.free.is_empty() || self.slots.len() < MAX_IN_FLIGHT as usize)
    }

    /// Whether the session holds nothing that has to be kept.
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.subscribing.is_empty() && self.received_count == 0
    }

    /// Adds a message in flight and returns its packet identifier. Only if
    /// [`Session::can_publish`].
    #[inline]
    pub fn take(
        &mut self,
        awaits: Awaits,
        topic: TopicId,
        tag: u64,
        keep: Option<Payload<'_>>,
    ) -> u16 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot {
                    awaits: Awaits::Nothing,
                    no_subscriber: false,
                    topic,
                    tag,
                    order: 0,
                    payload: Vec::new(),
                });
                (self.slots.len() - 1) as u16
            }
        };
        self.quota -= 1;
        self.order += 1;
        let s = &mut self.slots[usize::from(slot)];
        s.awaits = awaits;
        s.no_subscriber = false;
        s.topic = topic;
        s.tag = tag;
        s.order = self.order;
        s.payload.clear();
        if let Some(payload) = keep {
            payload.append_to(&mut s.payload);
        }
        slot + 1
    }

    /// The message with this packet identifier, if one is in flight.
    #[inline]
    pub fn slot(&mut self, packet_id: u16) -> Option<&mut Slot> {
        self.slots
            .get_mut(usize::from(packet_id.checked_sub(1)?))
            .filter(|slot| slot.awaits != Awaits::Nothing)
    }

    /// Removes a message: its identifier is free again and another may be sent. Returns its tag.
    #[inline]
    pub fn settle(&mut self, packet_id: u16) -> u64 {
        let slot = packet_id - 1;
        let s = &mut self.slots[usize::from(slot)];
        s.awaits = Awaits::Nothing;
        if s.payload.capacity() > KEEP_PAYLOAD {
            s.payload = Vec::new();
        }
        let tag = s.tag;
        self.free.push(slot);
        // A message that still waits to be sent again has not used up any of the quota.
        match self.resend.iter().position(|waiting| *waiting == slot) {
            Some(at) => drop(self.resend.remove(at)),
            None => self.quota += 1,
        }
        tag
    }

    /// The next message to send again: its packet identifier.
    pub fn next_resend(&mut self) -> Option<u16> {
        if self.quota == 0 {
            return None;
        }
        let slot = self.resend.pop_front()?;
        self.quota -= 1;
        Some(slot + 1)
    }

    /// A packet identifier for a SUBSCRIBE; `None` if all are in use.
    pub fn begin_subscribe(&mut self) -> Option<u16> {
        const FIRST: u16 = MAX_IN_FLIGHT as u16 + 1;
        if self.subscribing.len() >= usize::from(u16::MAX - FIRST) {
            return None;
        }
        // Answers come in order, so that the next identifier is free; after answers out of order
        // more have to be tried.
        loop {
            self.next_subscribe = match self.next_subscribe {
                0 | u16::MAX => FIRST,
                id => id + 1,
            };
            if !self.subscribing.contains(&self.next_subscribe) {
                break;
            }
        }
        self.subscribing.push_back(self.next_subscribe);
        Some(self.next_subscribe)
    }

    /// The answer to a SUBSCRIBE came. Whether one was waiting.
    pub fn end_subscribe(&mut self, packet_id: u16) -> bool {
        match self.subscribing.iter().position(|id| *id == packet_id) {
            Some(at) => self.subscribing.remove(at).is_some(),
            None => false,
        }
    }

    /// A QoS 2 PUBLISH came in: whether it is new; `false` if it was received before and not
    /// released. `pool` gives bitmaps that are all zero.
    pub fn receive(&mut self, packet_id: u16, pool: &mut Vec<Box<Received>>) -> bool {
        let bits = self
            .received
            .get_or_insert_with(|| pool.pop().unwrap_or_else(Received::empty));
        let word = &mut bits.0[usize::from(packet_id >> 6)];
        let bit = 1 << (packet_id & 63);
        let new = *word & bit == 0;
        *word |= bit;
        self.received_count += u32::from(new);
        new
    }

    /// QoS 2 messages that came in and were not released.
    pub fn unreleased(&self) -> u32 {
        self.received_count
    }

    /// A PUBREL came in. Whether its message was waiting.
    pub fn release(&mut self, packet_id: u16, pool: &mut Vec<Box<Received>>) -> bool {
        let Some(bits) = &mut self.received else {
            return false;
        };
        let word = &mut bits.0[usize::from(packet_id >> 6)];
        let bit = 1 << (packet_id & 63);
        let waiting = *word & bit != 0;
        *word &= !bit;
        self.received_count -= u32::from(waiting);
        if self.received_count == 0 {
            // All zero again: 8 KiB that the next client may have.
            pool.extend(self.received.take());
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(session: &mut MqttSession, tag: u64) -> u16 {
        session.take(Awaits::PubAck, TopicId(0), tag, None)
    }

    #[test]
    fn the_window_bounds_what_is_under_way() {
        let mut session = MqttSession::default();
        session.begin_connection(2);
        let (a, b) = (take(&mut session, 10), take(&mut session, 11));
        assert!(!session.can_publish());
        assert_ne!(a, b);
        assert_eq!(session.settle(a), 10);
        assert!(session.can_publish());
        assert_eq!(take(&mut session, 12), a, "the identifier is used again");
        assert_eq!(session.in_flight(), 2);
    }

    #[test]
    fn a_resend_keeps_the_order_and_the_new_window() {
        let mut session = MqttSession::default();
        session.begin_connection(3);
        let ids = [
            take(&mut session, 0),
            take(&mut session, 1),
            take(&mut session, 2),
        ];
        session.settle(ids[0]);
        let last = take(&mut session, 3); // Takes the first identifier again.
        assert_eq!(last, ids[0]);
        session.begin_connection(2);
        assert!(!session.can_publish());
        assert_eq!(session.next_resend(), Some(ids[1]));
        assert_eq!(session.next_resend(), Some(ids[2]));
        assert_eq!(session.next_resend(), None, "the new window is smaller");
        session.settle(ids[1]);
        assert_eq!(session.next_resend(), Some(last));
        session.settle(ids[2]);
        session.settle(last);
        assert!(session.can_publish());
        assert_eq!(session.in_flight(), 0);
    }

    #[test]
    fn subscribe_identifiers_do_not_meet_those_of_messages() {
        let mut session = MqttSession::default();
        let first = session.begin_subscribe().unwrap();
        assert!(u32::from(first) > MAX_IN_FLIGHT);
        assert!(session.end_subscribe(first));
        assert!(!session.end_subscribe(first));
        for _ in 0..5000 {
            let id = session.begin_subscribe().unwrap();
            assert!(u32::from(id) > MAX_IN_FLIGHT);
            assert!(session.end_subscribe(id));
        }
        let mut pending = 0;
        while session.begin_subscribe().is_some() {
            pending += 1;
        }
        assert!(pending > 1000);
    }

    proptest! {
        #[test]
        fn a_message_is_received_once_until_it_is_released(ids in prop::collection::vec(1u16..50, 1..200)) {
            let mut session = MqttSession::default();
            let mut pool = Vec::new();
            let mut model = std::collections::HashSet::new();
            for (i, id) in ids.into_iter().enumerate() {
                if i % 3 == 2 {
                    prop_assert_eq!(session.release(id, &mut pool), model.remove(&id));
                } else {
                    prop_assert_eq!(session.receive(id, &mut pool), model.insert(id));
                }
                prop_assert_eq!(session.unreleased() as usize, model.len());
            }
        }
    }
}
