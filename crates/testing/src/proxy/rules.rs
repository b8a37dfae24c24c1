//! Injected faults, as plain data.

use std::time::Duration;

/// A direction of a connection through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Direction {
    pub const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

    /// The other one.
    pub fn opposite(self) -> Direction {
        match self {
            Direction::ToServer => Direction::ToClient,
            Direction::ToClient => Direction::ToServer,
        }
    }
}

/// Capacity of a link. All its connections share it, in FIFO order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Bytes per second, above 0. The n-th byte of a busy period passes at its start + n/rate, in
    /// pieces of 0.5 ms at most; a piece passes when its last byte is due.
    BytesPerS(f64),
    /// MQTT PUBLISH packets per second, above 0, whatever their size. Counted from 0, the k-th of a
    /// busy period passes at its start + k/rate; other packets keep their order and take no time of
    /// their own.
    MessagesPerS(f64),
}

impl Rate {
    pub(super) fn per_s(self) -> f64 {
        match self {
            Rate::BytesPerS(rate) | Rate::MessagesPerS(rate) => rate,
        }
    }
}

/// PUBLISH packets of QoS 0 and 1 that come twice. QoS 2 packets are not duplicated, because the
/// handshake would hide the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duplicate {
    /// Share of the messages, 0 to 1, by a seeded draw; 1 is every message.
    pub share: f64,
    /// How much later than the first the second enters the link; with 0, right after it.
    pub late: Duration,
}

/// Rules of one direction of a link. The default passes everything at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rules {
    /// Rate of the link; no limit if absent.
    pub rate: Option<Rate>,
    /// Time from reading a packet until it may pass. Queueing for the rate comes on top, as on a
    /// long line behind a slow one.
    pub delay: Duration,
    /// Most bytes of one connection that wait in the proxy before it stops reading, so that TCP's
    /// back-pressure reaches the sender; above 0. Absent, the queue has no limit but memory, of
    /// which each packet takes its own length and 32 bytes.
    ///
    /// A packet is passed whole, so that up to one packet more may wait. Packets that wait for
    /// their delay count too: below rate x delay, the buffer limits the rate. The kernel's receive
    /// buffer comes on top; the proxy asks for the smallest that a link of this direction has (16
    /// KiB at least, of which Linux makes twice as much) when it starts.
    pub buffer_bytes: Option<usize>,
    /// PUBLISH packets that come twice; none if absent.
    pub duplicate: Option<Duplicate>,
    /// Share of the PUBLISH packets of QoS 0 that is dropped, 0 to 1, by a seeded draw.
    pub lose: f64,
}

impl Rules {
    /// Whether a rule is about MQTT packets.
    pub(super) fn need_mqtt(&self) -> bool {
        matches!(self.rate, Some(Rate::MessagesPerS(_)))
            || self.duplicate.is_some()
            || self.lose > 0.0
    }

    /// Whether the rules could make a topic alias stand for the wrong topic (MQTT 5 §3.3.2.3.4).
    pub(super) fn confuse_aliases(&self) -> bool {
        self.lose > 0.0 || self.duplicate.is_some_and(|d| !d.late.is_zero())
    }

    /// # Errors
    /// Which value is outside its range, and what that is.
    pub(super) fn check(&self) -> Result<(), String> {
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let wrong = if self
            .rate
            .is_some_and(|rate| rate.per_s().is_nan() || rate.per_s() <= 0.0)
        {
            "a rate is above 0"
        } else if self.buffer_bytes == Some(0) {
            "a buffer is above 0 bytes"
        } else if !share(self.lose) || self.duplicate.is_some_and(|d| !share(d.share)) {
            "a share is from 0 to 1"
        } else {
            return Ok(());
        };
        Err(format!("{wrong}: {self:?}"))
    }
}

/// Some connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    All,
    /// Those of an MQTT client by the client identifier of its CONNECT; with a `*` at the end, of
    /// all that begin like it.
    ClientId(String),
    /// The n-th that connected to the proxy, from 0.
    Order(usize),
}

impl Select {
    pub(super) fn holds(&self, order: usize, client_id: Option<&str>) -> bool {
        match self {
            Select::All => true,
            Select::Order(n) => *n == order,
            Select::ClientId(wanted) => {
                client_id.is_some_and(|id| match wanted.strip_suffix('*') {
                    Some(start) => id.starts_with(start),
                    None => id == wanted,
                })
            }
        }
    }
}

/// A fault injected at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing passes in either direction for this time. The clock of the links stops: packets in
    /// flight pass later by that time, in order, and no rate catches up.
    Freeze(Duration),
    /// Ends these connections on both sides; what waits is discarded.
    Cut(Select),
}
