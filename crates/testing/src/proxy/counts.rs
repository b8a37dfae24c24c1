//! Counts of what passed, and of injected faults.

use std::ops::{AddAssign, SubAssign};

use super::rules::Direction;

/// Length of a slot, in nanoseconds.
pub const SLOT_NS: u64 = 100_000_000;

/// MQTT PUBLISH packets, and all bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// PUBLISH packets, those that the proxy made included.
    pub publishes: u64,
    /// Those that the proxy made, by doubling.
    pub duplicates: u64,
    /// Bytes of everything.
    pub bytes: u64,
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Amount) {
        self.publishes += more.publishes;
        self.duplicates += more.duplicates;
        self.bytes += more.bytes;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, less: Amount) {
        self.publishes -= less.publishes;
        self.duplicates -= less.duplicates;
        self.bytes -= less.bytes;
    }
}

/// What passed within 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its beginning in nanoseconds of `CLOCK_MONOTONIC`, a multiple of [`SLOT_NS`].
    pub start_ns: u64,
    pub passed: Amount,
}

/// One direction of a connection, or of many. At any time, and for publishes,
/// `received + duplicated = dropped + passed + waiting + discarded`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Whole packets that the proxy has read; of other protocols than MQTT, bytes.
    pub received: Amount,
    /// What it has written to the other side.
    pub passed: Amount,
    /// What it holds, duplicates that are still to come included.
    pub waiting: Amount,
    /// What it held for a connection that ended or was cut.
    pub discarded: Amount,
    /// Injected: duplicates that it made, those that still wait included.
    pub duplicated: u64,
    /// Injected: PUBLISH packets that it dropped.
    pub dropped: u64,
    /// PUBACKs of this direction that it did not pass on, because they answered its own duplicates.
    pub acks_withheld: u64,
    /// What passed, for each 100 ms in which something did, in the order of time.
    pub slots: Vec<Slot>,
    /// Longest lateness of a packet against its due time, in nanoseconds: of the proxy's thread, or
    /// of the other side's reading.
    pub latest_ns: u64,
}

impl Traffic {
    pub(super) fn pass(&mut self, amount: Amount, at_ns: u64, due_ns: u64) {
        self.waiting -= amount;
        self.passed += amount;
        self.latest_ns = self.latest_ns.max(at_ns.saturating_sub(due_ns));
        let start_ns = at_ns - at_ns % SLOT_NS;
        match self.slots.last_mut() {
            Some(slot) if slot.start_ns == start_ns => slot.passed += amount,
            _ => self.slots.push(Slot {
                start_ns,
                passed: amount,
            }),
        }
    }

    /// Counts what waits as discarded.
    pub(super) fn discard(&mut self) {
        self.discarded += std::mem::take(&mut self.waiting);
    }

    fn add(&mut self, other: &Traffic) {
        self.received += other.received;
        self.passed += other.passed;
        self.waiting += other.waiting;
        self.discarded += other.discarded;
        self.duplicated += other.duplicated;
        self.dropped += other.dropped;
        self.acks_withheld += other.acks_withheld;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
        self.slots.extend_from_slice(&other.slots);
    }
}

/// A connection through the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Client identifier of its CONNECT; absent if it has sent none.
    pub client_id: Option<String>,
    /// When the proxy accepted it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub opened_ns: u64,
    /// When it ended, in the same clock; absent while it is open.
    pub ended_ns: Option<u64>,
    /// Why the proxy ended it without being asked to; that is no injected fault.
    pub problem: Option<String>,
    /// From the client to the server.
    pub to_server: Traffic,
    /// From the server to the client.
    pub to_client: Traffic,
}

impl ConnectionCounts {
    pub fn of(&self, direction: Direction) -> &Traffic {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }

    pub(super) fn of_mut(&mut self, direction: Direction) -> &mut Traffic {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}

/// A time in which nothing moved, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Nothing passed from then on.
    pub from_ns: u64,
    /// Until then.
    pub to_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Connections that it ended.
    pub connections: usize,
}

/// All that the proxy has counted and injected so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Every connection, in the order of connecting, those that have ended included.
    pub connections: Vec<ConnectionCounts>,
    /// Freezes that are over.
    pub freezes: Vec<Freeze>,
    pub cuts: Vec<Cut>,
}

impl Counts {
    /// One direction of all connections together; slots of the same time are one.
    pub fn total(&self, direction: Direction) -> Traffic {
        let mut total = Traffic::default();
        for connection in &self.connections {
            total.add(connection.of(direction));
        }
        total.slots.sort_by_key(|slot| slot.start_ns);
        total.slots.dedup_by(|later, slot| {
            let same = later.start_ns == slot.start_ns;
            if same {
                slot.passed += later.passed;
            }
            same
        });
        total
    }

    /// The latest connection of an MQTT client.
    pub fn client(&self, client_id: &str) -> Option<&ConnectionCounts> {
        let is = |c: &&ConnectionCounts| c.client_id.as_deref() == Some(client_id);
        self.connections.iter().rev().find(is)
    }
}

/// Something that has passed: an MQTT packet, or bytes of another protocol, or a piece of either at
/// a rate of bytes. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Which connection, in the order of connecting.
    pub connection: usize,
    /// Which way.
    pub direction: Direction,
    /// What it was: a PUBLISH packet is counted with its last piece.
    pub amount: Amount,
    /// When the proxy had read it, or when the duplicate entered the link.
    pub entered_ns: u64,
    /// When it was to pass.
    pub due_ns: u64,
    /// When the proxy began to write it: never before it was due.
    pub passed_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_and_slots_of_the_same_time_are_one() {
        let amount = |publishes| Amount {
            publishes,
            duplicates: 1,
            bytes: 10 * publishes,
        };
        let mut counts = Counts::default();
        for order in 0..2 {
            let mut traffic = Traffic::default();
            for k in 0..3 {
                let sum = amount(k + order);
                traffic.waiting += sum;
                traffic.pass(sum, 50 + k * 70_000_000, 20);
            }
            traffic.waiting += amount(7);
            traffic.discard();
            counts.connections.push(ConnectionCounts {
                client_id: Some(format!("c{order}")),
                to_client: traffic,
                ..ConnectionCounts::default()
            });
        }
        let total = counts.total(Direction::ToClient);
        let slot = |s: &Slot| (s.start_ns, s.passed.publishes);
        let slots: Vec<_> = total.slots.iter().map(slot).collect();
        assert_eq!(slots, [(0, 4), (SLOT_NS, 5)]);
        assert_eq!((total.passed.publishes, total.passed.bytes), (9, 90));
        assert_eq!(
            (total.waiting, total.discarded.publishes),
            (Amount::default(), 14)
        );
        assert_eq!(total.latest_ns, 140_000_030);
        assert_eq!(counts.client("c1"), Some(&counts.connections[1]));
        assert_eq!(counts.client("c2"), None);
        assert_eq!(counts.total(Direction::ToServer), Traffic::default());
    }
}
