//! The event loop: one thread and one epoll for all connections.

mod moving;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Receiver;

use pubgauge_driver::clock::monotonic_now;
use pubgauge_net::socket::{SocketOptions, begin_connect};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};

use super::connection::{Connection, Live, Trace};
use super::counts::{ConnectionCounts, Counts, Cut, Freeze};
use super::intake::choose;
use super::link::Link;
use super::rules::{Action, Direction, Select};

/// Most bytes read from a socket at a time.
const CHUNK: usize = 64 << 10;
/// Events taken from epoll at a time.
const EVENTS: usize = 256;
/// Shortest sleep in nanoseconds: what is due within it passes together, none of it early.
const GRAIN_NS: u64 = 50_000;
/// Smallest receive buffer that the kernel is asked for, in bytes: below it, TCP over the loopback,
/// whose segments have up to 64 KiB, stalls.
const RECEIVE_BUFFER_MIN: usize = 16 << 10;
/// Event data of the listener; no connection has it.
const LISTENER: u64 = u64::MAX;
/// Event data of the descriptor that wakes the loop.
const WAKE: u64 = u64::MAX - 1;

/// What another thread asks of the loop.
pub(super) type Command = Box<dyn FnOnce(&mut EventLoop) + Send>;

/// The clock of the links, which stops during a freeze.
#[derive(Debug, Default)]
struct LinkTime {
    /// How long it has been stopped in all, in nanoseconds.
    lost: u64,
    /// Since when it is stopped, and until when at least.
    frozen: Option<Freeze>,
}

impl LinkTime {
    fn at(&self, now: u64) -> u64 {
        self.frozen.map_or(now, |f| f.from_ns) - self.lost
    }

    /// `CLOCK_MONOTONIC` at this time of the links, unless it is stopped before.
    fn real(&self, at: u64) -> u64 {
        at + self.lost
    }
}

/// A direction of a connection.
#[derive(Clone, Copy)]
struct Place(usize, Direction);

/// What the loop starts with.
pub(super) struct Setup {
    pub listen: SocketAddr,
    pub server: SocketAddr,
    /// The first is that of all connections that no other link selects.
    pub links: Vec<Link>,
    pub seed: u64,
    pub trace: bool,
}

pub(super) struct EventLoop {
    pub links: Vec<Link>,
    pub trace: Trace,
    pub stop: bool,
    server: SocketAddr,
    seed: u64,
    /// Options of the sockets that are read from in each direction.
    options: [SocketOptions; 2],
    listener: TcpListener,
    acceptable: bool,
    epoll: OwnedFd,
    commands: Receiver<Command>,
    connections: Vec<Connection>,
    /// Directions with something to read, read in turn.
    readable: VecDeque<Place>,
    /// Directions with something to write, or that may have ended.
    touched: Vec<Place>,
    /// Scheduled actions, the next one last.
    schedule: Vec<(u64, Action)>,
    time: LinkTime,
    freezes: Vec<Freeze>,
    cuts: Vec<Cut>,
    chunk: Box<[u8]>,
}

impl EventLoop {
    /// Listens, but accepts no connection before it runs. `wake` is an event descriptor: a write to
    /// it makes the loop look for commands.
    ///
    /// # Errors
    /// If the address cannot be listened on, or there are no more descriptors.
    pub(super) fn new(
        mut setup: Setup,
        commands: Receiver<Command>,
        wake: &OwnedFd,
    ) -> std::io::Result<EventLoop> {
        let options = Direction::BOTH.map(|direction| SocketOptions {
            no_delay: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: receive_buffer(&mut setup.links, direction),
        });
        let listener = TcpListener::bind(setup.listen)?;
        if let Some(bytes) = options[Direction::ToServer as usize].receive_buffer_bytes {
            // Connections inherit it, and it bounds the window only if it is set before they come.
            sockopt::set_socket_recv_buffer_size(&listener, bytes)?;
        }
        // The library's backlog of 128 is short when many clients come at once.
        rustix::net::listen(&listener, 4096)?;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        watch(&epoll, &listener, LISTENER)?;
        watch(&epoll, wake, WAKE)?;
        Ok(EventLoop {
            links: setup.links,
            trace: setup.trace.then(Vec::new),
            stop: false,
            server: setup.server,
            seed: setup.seed,
            options,
            listener,
            acceptable: true,
            epoll,
            commands,
            connections: Vec::new(),
            readable: VecDeque::new(),
            touched: Vec::new(),
            schedule: Vec::new(),
            time: LinkTime::default(),
            freezes: Vec::new(),
            cuts: Vec::new(),
            chunk: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(super) fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Runs until it is told to stop.
    pub(super) fn run(&mut self) {
        while !self.stop {
            self.wait();
            while let Ok(command) = self.commands.try_recv() {
                command(self);
            }
            self.plant();
            if self.time.frozen.is_none() {
                self.accept();
                self.move_on();
            }
        }
    }

    /// Schedules an action.
    pub(super) fn schedule(&mut self, at_ns: u64, action: Action) {
        self.schedule.push((at_ns, action));
        self.schedule.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    }

    /// The counts so far.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            connections: self.connections.iter().map(|c| c.counts.clone()).collect(),
            freezes: self.freezes.clone(),
            cuts: self.cuts.clone(),
        }
    }

    /// The present, in the time of the links.
    pub(super) fn link_time(&self) -> u64 {
        self.time.at(monotonic_now())
    }

    /// Sleeps until something is due or happens, and notes what sockets are ready.
    fn wait(&mut self) {
        let busy = !self.readable.is_empty() && self.time.frozen.is_none();
        let sleep = |at: u64| at.saturating_sub(monotonic_now()).max(GRAIN_NS);
        let wait = if busy {
            Some(0)
        } else {
            self.next_at().map(sleep)
        };
        let timeout = wait.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let none = epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        };
        let mut events = [none; EVENTS];
        let n = match epoll::wait(&self.epoll, &mut events[..], timeout.as_ref()) {
            Ok(n) => n,
            Err(Errno::INTR) => 0,
            Err(errno) => panic!("epoll failed: {errno}"),
        };
        for event in &events[..n] {
            self.note(event.data.u64(), event.flags);
        }
    }

    fn note(&mut self, data: u64, flags: epoll::EventFlags) {
        use epoll::EventFlags as Is;
        match data {
            LISTENER => self.acceptable = true,
            WAKE => {}
            _ => {
                let order = (data >> 1) as usize;
                let direction = Direction::BOTH[(data & 1) as usize];
                let Some(live) = &mut self.connections[order].live else {
                    return;
                };
                let socket = live.source(direction);
                socket.readable |= flags.intersects(Is::IN | Is::RDHUP | Is::HUP | Is::ERR);
                socket.writable |= flags.intersects(Is::OUT | Is::HUP | Is::ERR);
                let (readable, writable) = (socket.readable, socket.writable);
                if readable {
                    queue(&mut self.readable, live, Place(order, direction));
                }
                if writable {
                    touch(&mut self.touched, live, Place(order, direction.opposite()));
                }
            }
        }
    }

    /// When something is to be done next, if nothing happens before.
    fn next_at(&mut self) -> Option<u64> {
        let planted = self.schedule.last().map(|(at, _)| *at);
        if let Some(freeze) = self.time.frozen {
            return planted.into_iter().chain([freeze.to_ns]).min();
        }
        let mut next = planted;
        for link in &mut self.links {
            for direction in Direction::BOTH {
                let at = link.lane(direction).next_at().map(|at| self.time.real(at));
                next = next.into_iter().chain(at).min();
            }
        }
        next
    }

    /// Ends a freeze that is over, and carries out the actions that are due.
    fn plant(&mut self) {
        let now = monotonic_now();
        if let Some(freeze) = self.time.frozen
            && freeze.to_ns <= now
        {
            self.time.lost += now - freeze.from_ns;
            self.time.frozen = None;
            self.freezes.push(Freeze {
                to_ns: now,
                ..freeze
            });
        }
        while self.schedule.last().is_some_and(|(at, _)| *at <= now) {
            match self.schedule.pop() {
                Some((_, Action::Freeze(span))) => self.freeze(span.as_nanos() as u64),
                Some((_, Action::Cut(select))) => {
                    self.cut(&select);
                }
                None => {}
            }
        }
    }

    /// Freezes all links for this time.
    pub(super) fn freeze(&mut self, span_ns: u64) {
        let now = monotonic_now();
        let freeze = self.time.frozen.get_or_insert(Freeze {
            from_ns: now,
            to_ns: now,
        });
        freeze.to_ns = freeze.to_ns.max(now + span_ns);
    }

    /// Ends these connections; returns how many they were.
    pub(super) fn cut(&mut self, select: &Select) -> usize {
        let at_ns = monotonic_now();
        let mut connections = 0;
        for order in 0..self.connections.len() {
            let connection = &self.connections[order];
            let client_id = connection.counts.client_id.as_deref();
            if connection.live.is_some() && select.holds(order, client_id) {
                self.end(order, None);
                connections += 1;
            }
        }
        self.cuts.push(Cut { at_ns, connections });
        connections
    }

    /// Closes both sockets of a connection and discards what waits.
    fn end(&mut self, order: usize, problem: Option<String>) {
        let Connection { counts, live } = &mut self.connections[order];
        *live = None;
        counts.ended_ns = Some(monotonic_now());
        counts.problem = problem;
        counts.to_server.discard();
        counts.to_client.discard();
    }

    fn accept(&mut self) {
        while self.acceptable {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(client) => self.connect(client),
                Err(Errno::AGAIN) => self.acceptable = false,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => panic!("the proxy cannot take a connection: {errno}"),
            }
        }
    }

    /// Connects a client to the server.
    fn connect(&mut self, client: OwnedFd) {
        let order = self.connections.len();
        self.connections.push(Connection {
            counts: ConnectionCounts {
                opened_ns: monotonic_now(),
                ..ConnectionCounts::default()
            },
            live: None,
        });
        let options = &self.options[Direction::ToClient as usize];
        let shown = self.server.to_string();
        let server = match begin_connect(self.server, None, options, &shown) {
            Ok((server, Ok(()))) => server,
            Ok((_, Err(failure))) => return self.end(order, Some(failure.to_string())),
            Err(error) => return self.end(order, Some(error.to_string())),
        };
        let watched = sockopt::set_tcp_nodelay(&client, true)
            .and_then(|()| watch(&self.epoll, &client, order as u64 * 2))
            .and_then(|()| watch(&self.epoll, &server, order as u64 * 2 + 1));
        if let Err(errno) = watched {
            panic!("the proxy cannot watch a connection: {errno}");
        }
        let link = choose(&self.links, order, None);
        let live = Live::new(order, link, [client, server], self.seed);
        self.connections[order].live = Some(Box::new(live));
    }
}

/// The smallest buffer of the links of a direction, as the receive buffer to ask the kernel for.
fn receive_buffer(links: &mut [Link], direction: Direction) -> Option<usize> {
    let buffer = |link: &mut Link| link.lane(direction).rules.buffer_bytes;
    let smallest = links.iter_mut().filter_map(buffer).min()?;
    Some(smallest.max(RECEIVE_BUFFER_MIN))
}

fn watch(epoll: &OwnedFd, fd: impl AsFd, data: u64) -> Result<(), Errno> {
    use epoll::EventFlags as For;
    // Edge-triggered: bytes that are left unread on purpose do not wake the loop again and again.
    let flags = For::IN | For::OUT | For::RDHUP | For::ET;
    epoll::add(epoll, fd, epoll::EventData::new_u64(data), flags)
}

fn queue(readable: &mut VecDeque<Place>, live: &mut Live, place: Place) {
    let pipe = live.pipe(place.1);
    if !pipe.ended && !std::mem::replace(&mut pipe.queued, true) {
        readable.push_back(place);
    }
}

fn touch(touched: &mut Vec<Place>, live: &mut Live, place: Place) {
    if !std::mem::replace(&mut live.pipe(place.1).touched, true) {
        touched.push(place);
    }
}
