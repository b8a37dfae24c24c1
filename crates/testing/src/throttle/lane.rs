//! One direction of a throttle: its rules, when each packet passes, and the record of it.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use pubgauge_driver::{Nanos, header::HEADER_LEN};
use pubgauge_mqtt_codec::{MAX_PACKET_LEN, Packet, Publish, QoS, Version, decode, is_publish};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Faults that are planted in one direction. The default passes everything at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Clients whose identifier begins so are throttled; all of them if it is empty.
    pub clients: &'static str,
    /// PUBLISH packets per second of these clients together, above 0, whatever their size; no limit if absent. Counted
    /// from 0, the k-th of a busy period passes at its start + k/rate. Other packets take no time.
    pub per_s: Option<f64>,
    /// Time from taking in a packet until it may pass. Queueing for the rate comes on top, as on a long line behind a
    /// slow one.
    pub delay: Duration,
    /// Share of the PUBLISH packets of QoS 0 that is dropped, 0 to 1, by draws from a fixed seed.
    pub loss: f64,
    /// How long a packet waits at the most before the throttle stops reading from its sender, which TCP holds back
    /// then, by the kernel's buffers later; to half a millisecond. Absent, the throttle reads everything at once.
    pub longest_wait: Option<Duration>,
    /// Change by a server at fault to each message of these clients.
    pub fault: Option<MessageFault>,
}

/// Changes a message on its way, or leaves it as it is.
pub type MessageFault = fn(&mut LaneMessage);

/// A message on its way.
#[derive(Debug)]
pub struct LaneMessage {
    /// How many messages with a body had come to these clients together when it came, itself included.
    pub number: u64,
    /// It has no body: a sentinel, by which pubgauge sees what has come.
    pub is_sentinel: bool,
    pub topic: String,
    pub payload: Vec<u8>,
    /// May be lowered to 0.
    pub qos: QoS,
    /// How much later it passes than those that come after it.
    pub later: Duration,
}

impl LaneMessage {
    /// Whether it is one of each so many messages with a body, the last of them.
    pub fn is_each(&self, so_many: u64) -> bool {
        !self.is_sentinel && self.number.is_multiple_of(so_many)
    }
}

/// Who is at the end of a connection.
pub(super) struct LaneClient {
    pub id: String,
    pub version: Version,
}

/// A PUBLISH packet that came to the throttle. Times are those of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it was taken in.
    pub entered_ns: Nanos,
    /// When it was to pass; absent if it was dropped.
    pub due_ns: Option<Nanos>,
    /// When writing it began, never before it was due; absent while it waits.
    pub passed_ns: Option<Nanos>,
}

/// A packet that waits to pass.
pub(super) struct Waiting {
    pub bytes: Vec<u8>,
    pub due_ns: Nanos,
    /// Others of the connection may overtake it until then.
    pub is_held: bool,
    /// Its place in the record.
    number: Option<usize>,
}

pub(super) struct Lane(Mutex<LaneState>);

struct LaneState {
    rules: Rules,
    pacer: Pacer,
    draws: StdRng,
    record: Vec<Passage>,
    /// Messages with a body that came to a rule with a fault.
    bodies: u64,
}

impl LaneState {
    /// The packet of a message after a fault, and how much later it passes.
    fn faulty(&mut self, fault: MessageFault, version: Version, bytes: &[u8]) -> (Vec<u8>, Nanos) {
        let Ok(Some((Packet::Publish(publish), _))) = decode(bytes, version, MAX_PACKET_LEN) else {
            panic!("not a PUBLISH packet: {bytes:?}");
        };
        let is_sentinel = publish.payload.len() <= HEADER_LEN;
        self.bodies += u64::from(!is_sentinel);
        let mut message = LaneMessage {
            number: self.bodies,
            is_sentinel,
            topic: publish.topic.to_owned(),
            payload: publish.payload.to_vec(),
            qos: publish.qos,
            later: Duration::ZERO,
        };
        fault(&mut message);
        let publish = Publish {
            topic: &message.topic,
            payload: &message.payload,
            qos: message.qos,
            packet_id: match message.qos {
                QoS::AtMostOnce => 0,
                _ => publish.packet_id,
            },
            ..publish
        };
        let mut out = Vec::new();
        let encoded = Packet::Publish(publish).encode(version, &mut out);
        encoded.expect("a fault that leaves a PUBLISH packet");
        (out, nanos(message.later))
    }
}

impl Lane {
    pub(super) fn new(rules: Rules) -> Lane {
        Lane(Mutex::new(LaneState {
            rules,
            pacer: Pacer::default(),
            draws: StdRng::seed_from_u64(1),
            record: Vec::new(),
            bodies: 0,
        }))
    }

    fn state(&self) -> MutexGuard<'_, LaneState> {
        self.0.lock().unwrap()
    }

    pub(super) fn change(&self, edit: impl FnOnce(&mut Rules)) {
        edit(&mut self.state().rules);
    }

    pub(super) fn record(&self) -> Vec<Passage> {
        self.state().record.clone()
    }

    pub(super) fn is_paced(&self) -> bool {
        self.state().rules.per_s.is_some()
    }

    /// Takes in what a client sends or gets, and says when its sender may be read again; `None` if it is dropped.
    pub(super) fn admit(
        &self,
        client: &LaneClient,
        mut bytes: Vec<u8>,
        entered_ns: Nanos,
    ) -> Option<(Waiting, Nanos)> {
        let state = &mut *self.state();
        let throttled = client.id.starts_with(state.rules.clients);
        let rules = if throttled {
            state.rules
        } else {
            Rules::default()
        };
        let (mut due_ns, mut number) = (entered_ns + nanos(rules.delay), None);
        let mut later = 0;
        if is_publish(&bytes) {
            let qos_0 = bytes[0] & 0b110 == 0;
            let passes = !(qos_0 && state.draws.random_bool(rules.loss));
            if let Some(rate) = rules.per_s.filter(|_| passes) {
                due_ns = state.pacer.due(due_ns, rate);
            }
            if let Some(fault) = rules.fault.filter(|_| passes) {
                (bytes, later) = state.faulty(fault, client.version, &bytes);
                due_ns += later;
            }
            number = Some(state.record.len());
            state.record.push(Passage {
                entered_ns,
                due_ns: passes.then_some(due_ns),
                passed_ns: None,
            });
            passes.then_some(())?;
        }
        let waiting = Waiting {
            bytes,
            due_ns,
            is_held: later > 0,
            number,
        };
        let longest = rules.longest_wait.map_or(Nanos::MAX, nanos);
        Some((waiting, due_ns.saturating_sub(longest)))
    }

    /// Notes that these began to pass then.
    pub(super) fn passed(&self, packets: &[Waiting], at: Nanos) {
        let mut state = self.state();
        for number in packets.iter().filter_map(|packet| packet.number) {
            state.record[number].passed_ns = Some(at);
        }
    }
}

fn nanos(span: Duration) -> Nanos {
    span.as_nanos() as Nanos
}

/// The schedule of a rate: a busy period begins with a packet before which all others have passed.
#[derive(Default)]
struct Pacer {
    /// When the busy period began.
    start: Nanos,
    /// How many packets it has so far.
    packets: u64,
}

impl Pacer {
    /// When the next packet is due, which may pass from `ready` on.
    fn due(&mut self, ready: Nanos, per_s: f64) -> Nanos {
        // Rounded up: never early.
        let next =
            |pacer: &Pacer| pacer.start + (pacer.packets as f64 * 1e9 / per_s).ceil() as Nanos;
        if next(self) < ready {
            (self.start, self.packets) = (ready, 0);
        }
        let due = next(self);
        self.packets += 1;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(pacer: &mut Pacer, per_s: f64, ready: &[Nanos]) -> Vec<Nanos> {
        ready.iter().map(|at| pacer.due(*at, per_s)).collect()
    }

    #[test]
    fn the_kth_packet_of_a_busy_period_passes_at_its_start_and_k_intervals() {
        let mut pacer = Pacer::default();
        let first = dues(&mut pacer, 3.0, &[500; 4]);
        assert_eq!(first, [500, 333_333_834, 666_667_167, 1_000_000_500]);
        let million = dues(&mut pacer, 3.0, &vec![500; 3_000_000]);
        assert_eq!(million[2_999_999], 1_000_001_000_000_500);
    }

    #[test]
    fn an_idle_link_saves_nothing_up() {
        let ready = [0, 0, 9_000_000, 9_100_000, 11_000_000];
        let due = dues(&mut Pacer::default(), 1000.0, &ready);
        assert_eq!(due, [0, 1_000_000, 9_000_000, 10_000_000, 11_000_000]);
    }
}
