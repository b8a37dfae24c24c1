//! One direction of a link: its queue, and when each packet passes.

use std::collections::VecDeque;

use super::counts::Amount;
use super::pacer::Pacer;
use super::rules::{Direction, Rules, Select};

/// The kind of a run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another packet than PUBLISH, or bytes of another protocol.
    Other,
    Publish,
    /// A PUBLISH that the proxy made.
    Duplicate,
}

impl Kind {
    pub(super) fn amount(self, len: u32) -> Amount {
        Amount {
            publishes: u64::from(self != Kind::Other),
            duplicates: u64::from(self == Kind::Duplicate),
            bytes: u64::from(len),
        }
    }
}

/// Where a packet comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Its connection, in the order of connecting.
    pub connection: usize,
    /// When it came, in the link's time.
    pub at: u64,
    /// The same in `CLOCK_MONOTONIC`.
    pub entered_ns: u64,
    /// The link has not been idle before it: see [`Pacer::next`].
    pub behind: bool,
}

/// An entry of a link's queue: 32 bytes, for there may be millions.
#[derive(Debug)]
struct Item {
    connection: u32,
    len: u32,
    /// When it may pass at the earliest, in the link's time.
    ready: u64,
    entered_ns: u64,
    kind: Kind,
    behind: bool,
}

const _: () = assert!(size_of::<Item>() == 32);

/// A duplicate that enters the link later.
#[derive(Debug)]
pub(super) struct Late {
    pub connection: usize,
    /// When it enters, in the link's time.
    pub at: u64,
    /// Of the PUBLISH; 0 at QoS 0.
    pub packet_id: u16,
    pub bytes: Vec<u8>,
}

/// What passes next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub connection: usize,
    pub entered_ns: u64,
    /// When, in the link's time.
    pub due: u64,
    pub piece: Piece,
}

/// Bytes to write: a packet, a run of bytes, or a piece of either.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub len: u32,
    /// `Other` for all pieces of a PUBLISH but the last.
    pub kind: Kind,
}

/// One direction of a link.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub rules: Rules,
    pacer: Pacer,
    items: VecDeque<Item>,
    /// The bytes of all items.
    bytes: VecDeque<u8>,
    late: VecDeque<Late>,
    /// When the last that passed was due: no later entry is due before.
    passed: u64,
}

impl Lane {
    pub(super) fn new(rules: Rules) -> Lane {
        Lane {
            rules,
            pacer: Pacer::new(rules.rate),
            ..Lane::default()
        }
    }

    /// Changes the rules for packets that enter from now on; the rate also for those that wait
    /// already.
    pub(super) fn change(&mut self, rules: Rules, now: u64) {
        self.pacer.change(rules.rate, now);
        self.rules = rules;
    }

    pub(super) fn enter(&mut self, arrival: Arrival, bytes: &[u8], kind: Kind) {
        self.bytes.extend(bytes);
        self.items.push_back(Item {
            connection: arrival.connection as u32,
            len: bytes.len() as u32,
            ready: arrival.at + self.rules.delay.as_nanos() as u64,
            entered_ns: arrival.entered_ns,
            kind,
            behind: arrival.behind,
        });
    }

    /// Keeps a duplicate until it is to enter.
    pub(super) fn enter_late(&mut self, late: Late) {
        self.late.push_back(late);
    }

    /// Takes out a duplicate that is to enter.
    pub(super) fn pop_late(&mut self, now: u64) -> Option<Late> {
        if self.late.front()?.at > now {
            return None;
        }
        self.late.pop_front()
    }

    /// What passes next.
    pub(super) fn next(&mut self) -> Option<Next> {
        let item = self.items.front()?;
        let publish = item.kind != Kind::Other;
        let (len, due) = self.pacer.next(item.len, publish, item.ready, item.behind);
        let kind = if len == item.len {
            item.kind
        } else {
            Kind::Other
        };
        Some(Next {
            connection: item.connection as usize,
            entered_ns: item.entered_ns,
            due: due.max(self.passed),
            piece: Piece { len, kind },
        })
    }

    /// Removes what [`Lane::next`] returned, appending its bytes to `out`.
    pub(super) fn pass(&mut self, next: Next, out: &mut VecDeque<u8>) {
        let piece = next.piece;
        self.passed = next.due;
        self.pacer.passed(piece.len, piece.kind != Kind::Other);
        let len = piece.len as usize;
        let (front, back) = self.bytes.as_slices();
        out.extend(&front[..len.min(front.len())]);
        out.extend(&back[..len.saturating_sub(front.len())]);
        self.take(piece.len);
    }

    /// Removes the first item, whose connection has ended: it takes the link no time.
    pub(super) fn discard(&mut self) {
        if let Some(item) = self.items.front() {
            self.take(item.len);
        }
    }

    fn take(&mut self, len: u32) {
        self.bytes.drain(..len as usize);
        if let Some(item) = self.items.front_mut() {
            item.len -= len;
            if item.len == 0 {
                self.items.pop_front();
            }
        }
    }

    /// When something is to be done next, in the link's time.
    pub(super) fn next_at(&mut self) -> Option<u64> {
        let passes = self.next().map(|next| next.due);
        let enters = self.late.front().map(|late| late.at);
        passes.into_iter().chain(enters).min()
    }
}

/// A link, for the connections that are selected.
#[derive(Debug)]
pub(super) struct Link {
    pub select: Select,
    lanes: [Lane; 2],
}

impl Link {
    pub(super) fn new(select: Select, rules: [Rules; 2]) -> Link {
        Link {
            select,
            lanes: rules.map(Lane::new),
        }
    }

    pub(super) fn lane(&mut self, direction: Direction) -> &mut Lane {
        &mut self.lanes[direction as usize]
    }
}
