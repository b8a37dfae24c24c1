//! One connection; and the table of all connections with what they share.

use std::os::fd::{AsFd, OwnedFd};

use pubgauge_mqtt_codec::{Packet, Version};
use rustix::event::epoll;

use crate::encode::Outgoing;
use crate::options::Counters;
use crate::outbuf::{OutBuf, Pool, WriteProgress};
use crate::routes::{NO_ROUTE, RouteId};
use crate::table::IndexTable;
use crate::tree::SessionId;

/// Index of a connection.
pub(crate) type ConnId = u32;
/// The index that stands for no connection or no session.
pub(crate) const NONE: u32 = u32::MAX;

/// Bytes gathered over all connections at which they are written before the
/// turn ends: beyond the processor's cache, waiting longer costs more than the
/// system calls it saves.
const FLUSH_AT: usize = 256 * 1024;

/// One connection. Thousands of idle ones must stay small, so what only a busy
/// one needs is not held here.
#[derive(Debug)]
pub(crate) struct Conn {
    pub fd: OwnedFd,
    /// Tells this connection from an earlier one with the same index.
    pub generation: u32,
    /// Its session once CONNECT has come.
    pub session: SessionId,
    /// Route of the last message: publishers tend to stay with their topic.
    pub last_route: RouteId,
    /// Longest packet the client takes, in bytes.
    pub max_packet: u32,
    /// QoS 1 and 2 messages the client takes at a time.
    pub receive_max: u16,
    /// Keep alive in seconds; 0 means no limit.
    pub keep_alive_s: u16,
    pub version: Version,
    /// It has bytes that were not offered to the kernel yet.
    dirty: bool,
    /// The kernel's buffer was full at the last write.
    pub blocked: bool,
    /// It is not read: it waits for the session `waits_on` to drain.
    pub paused: bool,
    /// The client closed the connection while it was paused.
    pub hung_up: bool,
    /// The events that epoll currently watches.
    watched: epoll::EventFlags,
    /// Session whose backlog it waits on.
    pub waits_on: SessionId,
    /// May go past the limit of a session that waits on it in turn.
    pub passes: bool,
    /// When the last bytes were received.
    pub last_read_ms: u64,
    /// Bytes received that are not a whole packet yet, or wait for the pause to
    /// end.
    pub partial: Vec<u8>,
    pub out: OutBuf,
    /// Topics of the aliases the client has set (MQTT 5 section 3.3.2.3.4).
    pub aliases: Option<Box<Aliases>>,
}

/// Topics by alias, from alias 1 on; an empty one is not set.
#[derive(Debug, Default)]
pub(crate) struct Aliases(pub Vec<Box<[u8]>>);

/// All connections.
#[derive(Debug)]
pub(crate) struct Net {
    pub conns: IndexTable<Conn>,
    pub pool: Pool,
    pub stats: Counters,
    epoll: OwnedFd,
    dirty: Vec<ConnId>,
    /// Bytes gathered since the last flush.
    gathered: usize,
    generations: u32,
    /// Connections that a write found broken, with their generation; the broker
    /// ends them.
    pub broken: Vec<(ConnId, u32)>,
    /// Connections whose backlog shrank; the broker wakes those that wait for
    /// it.
    pub drained: Vec<ConnId>,
}

impl Net {
    pub(crate) fn new(epoll: OwnedFd) -> Net {
        Net {
            conns: IndexTable::new(),
            pool: Pool::default(),
            stats: Counters::default(),
            epoll,
            dirty: Vec::new(),
            gathered: 0,
            generations: 0,
            broken: Vec::new(),
            drained: Vec::new(),
        }
    }

    /// Adds a new connection and watches it.
    pub(crate) fn add(&mut self, fd: OwnedFd, now_ms: u64) -> Result<ConnId, rustix::io::Errno> {
        self.generations = self.generations.wrapping_add(1);
        let id = self.conns.insert(Conn {
            fd,
            generation: self.generations,
            session: NONE,
            last_route: NO_ROUTE,
            max_packet: u32::MAX,
            receive_max: u16::MAX,
            keep_alive_s: 0,
            version: Version::V311,
            dirty: false,
            blocked: false,
            paused: false,
            hung_up: false,
            watched: epoll::EventFlags::IN,
            waits_on: NONE,
            passes: false,
            last_read_ms: now_ms,
            partial: Vec::new(),
            out: OutBuf::default(),
            aliases: None,
        });
        let conn = self.conns.get(id).expect("it was just inserted");
        let data = token(id, conn.generation);
        let added = epoll::add(&self.epoll, &conn.fd, data, epoll::EventFlags::IN);
        if let Err(errno) = added {
            self.conns.remove(id);
            return Err(errno);
        }
        Ok(id)
    }

    /// The connection an event is about, unless it is gone.
    pub(crate) fn by_token(&self, data: epoll::EventData) -> Option<ConnId> {
        let raw = data.u64();
        let (id, generation) = (raw as u32, (raw >> 32) as u32);
        self.has(id, generation).then_some(id)
    }

    /// Whether a connection is there, and not a later one with the same index.
    pub(crate) fn has(&self, id: ConnId, generation: u32) -> bool {
        let conn = self.conns.get(id);
        conn.is_some_and(|c| c.generation == generation)
    }

    /// Whether a connection speaks MQTT 5.
    pub(crate) fn speaks_v5(&self, id: ConnId) -> bool {
        let conn = self.conns.get(id);
        conn.is_some_and(|c| c.version == Version::V5)
    }

    /// Removes a connection; its file descriptor is closed when the result is
    /// dropped.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Conn> {
        let mut conn = self.conns.remove(id)?;
        conn.out.clear(&mut self.pool);
        Some(conn)
    }

    /// Watches what the connection's state asks for.
    pub(crate) fn rewatch(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        if conn.hung_up {
            return;
        }
        let mut wanted = epoll::EventFlags::empty();
        wanted.set(epoll::EventFlags::IN, !conn.paused);
        wanted.set(epoll::EventFlags::OUT, conn.blocked);
        if wanted != conn.watched {
            conn.watched = wanted;
            let data = token(id, conn.generation);
            // It fails only if the descriptor is not watched, which cannot be.
            let _ = epoll::modify(&self.epoll, &conn.fd, data, wanted);
        }
    }

    /// Stops watching a connection that was closed by the client while it must
    /// not be read; epoll would report it for ever.
    pub(crate) fn unwatch(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id) {
            conn.hung_up = true;
            let _ = epoll::delete(&self.epoll, &conn.fd);
        }
    }

    /// Copies whole packets, `count` PUBLISHes, to a connection.
    #[inline]
    pub(crate) fn push_publishes(&mut self, id: ConnId, bytes: &[u8], count: u64) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        conn.out.push(&mut self.pool, bytes);
        self.stats.publish_sent += count;
        self.stats.packets_sent += count;
        self.gathered += bytes.len();
        if !conn.dirty {
            conn.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Encodes one PUBLISH to a connection; `flags` as in
    /// [`Outgoing::encode`]. False if it is longer than the client takes.
    pub(crate) fn send_publish(
        &mut self,
        id: ConnId,
        message: &Outgoing<'_>,
        flags: u8,
        packet_id: u16,
        ids: &[u32],
    ) -> bool {
        let Some(conn) = self.conns.get_mut(id) else {
            return true;
        };
        let version = conn.version;
        let len = message.packet_len(version, flags >> 1 & 3, ids);
        if len > conn.max_packet as usize {
            self.stats.publish_dropped += 1;
            return false;
        }
        self.stats.publish_sent += 1;
        self.append(id, len, |out| {
            message.encode(version, flags, packet_id, ids, out)
        });
        true
    }

    /// Sends any other packet.
    pub(crate) fn send(&mut self, id: ConnId, packet: &Packet<'_>) {
        let Some(conn) = self.conns.get(id) else {
            return;
        };
        let version = conn.version;
        let sent = self.append(id, 64, |out| Some(packet.encode(version, out)));
        debug_assert!(matches!(sent, Some(Ok(()))), "{packet:?}: {sent:?}");
    }

    /// Lets `encode` append one packet of about `len` bytes.
    pub(crate) fn append<R: Default>(
        &mut self,
        id: ConnId,
        len: usize,
        encode: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> R {
        let Some(conn) = self.conns.get_mut(id) else {
            return R::default();
        };
        let result = conn.out.append(&mut self.pool, len, encode);
        self.stats.packets_sent += 1;
        self.gathered += len;
        if !conn.dirty {
            conn.dirty = true;
            self.dirty.push(id);
        }
        result
    }

    /// Writes all gathered bytes if there are at least [`FLUSH_AT`].
    pub(crate) fn flush_if_much(&mut self) {
        if self.gathered >= FLUSH_AT {
            self.flush();
        }
    }

    /// Writes all gathered bytes, each connection once.
    pub(crate) fn flush(&mut self) {
        self.gathered = 0;
        let mut dirty = std::mem::take(&mut self.dirty);
        for id in dirty.drain(..) {
            if let Some(conn) = self.conns.get_mut(id) {
                conn.dirty = false;
                // A blocked one is written when epoll says that it can be.
                if !conn.blocked {
                    self.write(id);
                }
            }
        }
        self.dirty = dirty;
    }

    /// Offers a connection's bytes to the kernel.
    pub(crate) fn write(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else {
            return;
        };
        let before = conn.out.len();
        let written = conn.out.write(conn.fd.as_fd(), &mut self.pool);
        let moved = before - conn.out.len();
        self.stats.bytes_sent += moved as u64;
        if written == WriteProgress::Broken {
            self.broken.push((id, conn.generation));
            return;
        }
        let was_blocked = std::mem::replace(&mut conn.blocked, written == WriteProgress::Blocked);
        if was_blocked != conn.blocked {
            self.rewatch(id);
        }
        if was_blocked && moved > 0 {
            self.drained.push(id);
        }
    }
}

fn token(id: ConnId, generation: u32) -> epoll::EventData {
    epoll::EventData::new_u64(u64::from(id) | u64::from(generation) << 32)
}
