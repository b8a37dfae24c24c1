//! Moves bytes: reads them, puts them into the links, takes them out when they are due, and writes
//! them.

use std::os::fd::AsFd;

use pubgauge_driver::clock::monotonic_now;
use pubgauge_net::socket::{self, Io};
use rustix::io::Errno;

use super::super::connection::Connection;
use super::super::intake::{Intake, introduce};
use super::super::link::Arrival;
use super::super::rules::Direction;
use super::{CHUNK, EventLoop, Place, queue, touch};

/// Longest time spent reading in one turn, in nanoseconds, so that due packets are not late.
const READ_NS: u64 = 500_000;

impl EventLoop {
    /// One turn of reading, passing and writing.
    pub(super) fn move_on(&mut self) {
        self.read_in_turn();
        let at = self.link_time();
        self.enter_late(at);
        self.release(at);
        self.write();
    }

    /// Reads once from each socket with something to read, unless that takes longer than
    /// [`READ_NS`].
    fn read_in_turn(&mut self) {
        let end = monotonic_now() + READ_NS;
        for _ in 0..self.readable.len() {
            let Some(place) = self.readable.pop_front() else {
                return;
            };
            self.read(place);
            if monotonic_now() >= end {
                return;
            }
        }
    }

    fn read(&mut self, place: Place) {
        let Place(order, direction) = place;
        let connection = &mut self.connections[order];
        let Some(live) = &mut connection.live else {
            return;
        };
        let rules = self.links[live.link].lane(direction).rules;
        let pipe = live.pipe(direction);
        pipe.queued = false;
        let room = rules
            .buffer_bytes
            .map_or(CHUNK, |b| b.saturating_sub(pipe.buffered).min(CHUNK));
        if room == 0 {
            // It is read from again after a write.
            pipe.behind = rules.delay.is_zero();
            return;
        }
        let source = live.source(direction);
        let n = match socket::read(source.fd.as_fd(), &mut self.chunk[..room]) {
            Io::WouldBlock => {
                source.readable = false;
                live.pipe(direction).behind = false;
                return;
            }
            Io::Failed(errno @ (Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH)) => {
                let failure = socket::failure(errno, &self.server.to_string(), true);
                return self.end(order, Some(failure.to_string()));
            }
            Io::Done(0) | Io::Failed(_) => {
                live.pipe(direction).ended = true;
                return touch(&mut self.touched, live, place);
            }
            Io::Done(n) => n,
        };
        queue(&mut self.readable, live, place);
        let pipe = live.pipe(direction);
        if pipe.done {
            // The other side takes nothing more: this one is read to its end.
            return;
        }
        pipe.inbox.extend_from_slice(&self.chunk[..n]);
        let now = monotonic_now();
        let arrival = Arrival {
            connection: order,
            at: self.time.at(now),
            entered_ns: now,
            behind: pipe.behind,
        };
        self.enter_late(arrival.at);
        let connection = &mut self.connections[order];
        if direction == Direction::ToServer {
            introduce(connection, &self.links, order);
        }
        if let Some((mut intake, protocol)) =
            Intake::of(connection, &mut self.links, direction, arrival)
            && let Err(problem) = intake.take_in(protocol)
        {
            self.end(order, Some(format!("{direction:?}: {problem}")));
        }
    }

    /// Puts due duplicates into their links, before other packets of this time of the links.
    fn enter_late(&mut self, at: u64) {
        for link in 0..self.links.len() {
            for direction in Direction::BOTH {
                while let Some(late) = self.links[link].lane(direction).pop_late(at) {
                    let connection = &mut self.connections[late.connection];
                    let arrival = Arrival {
                        connection: late.connection,
                        at: late.at,
                        entered_ns: self.time.real(late.at),
                        behind: false,
                    };
                    if let Some((mut intake, _)) =
                        Intake::of(connection, &mut self.links, direction, arrival)
                    {
                        intake.enter_duplicate(&late);
                    }
                }
            }
        }
    }

    /// Moves what is due at this time of the links to the sockets' buffers.
    fn release(&mut self, at: u64) {
        for link in &mut self.links {
            for direction in Direction::BOTH {
                let lane = link.lane(direction);
                while let Some(next) = lane.next() {
                    let live = self.connections[next.connection].live.as_mut();
                    let Some(live) = live.filter(|live| !live.pipes[direction as usize].done)
                    else {
                        lane.discard();
                        continue;
                    };
                    if next.due > at {
                        break;
                    }
                    let pipe = live.pipe(direction);
                    lane.pass(next, &mut pipe.out);
                    pipe.append(next.piece, next.entered_ns, self.time.real(next.due));
                    touch(&mut self.touched, live, Place(next.connection, direction));
                }
            }
        }
    }

    /// Writes what the sockets take.
    fn write(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        for place in touched.drain(..) {
            let Place(order, direction) = place;
            let Connection { counts, live } = &mut self.connections[order];
            let Some(live) = live else { continue };
            live.pipe(direction).touched = false;
            let traffic = counts.of_mut(direction);
            live.write(direction, monotonic_now(), traffic, &mut self.trace);
            if live.source(direction).readable {
                queue(&mut self.readable, live, place);
            }
            if live.over() {
                self.end(order, None);
            }
        }
        self.touched = touched;
    }
}
