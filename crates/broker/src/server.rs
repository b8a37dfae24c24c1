//! The event loop: one thread and one epoll for all connections.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pubgauge_mqtt_codec::{ReasonCode, read_varint};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, accept_with, recv, sockopt};

use crate::broker::{Broker, End};
use crate::conn::{ConnId, NONE, Net};
use crate::connect::keep_alive_ms;
use crate::cost::Cost;
use crate::options::{BrokerError, Counters, Options};
use crate::timers::Timer;

/// Size of the buffer that all connections are read into, in bytes.
const READ_BUF: usize = 256 * 1024;
/// The rest of an incomplete packet longer than this is read into the
/// connection's own buffer, instead of through the shared one.
const GATHER_FROM: usize = 64 * 1024;
/// Most bytes reserved ahead for such a packet: a client may announce more than
/// it sends.
const GATHER_STEP: usize = 1024 * 1024;
/// Bytes held for paused connections above which reads get smaller.
const HELD_MUCH: usize = 64 * 1024 * 1024;
/// Size of a read above that, or where messages are made to cost more, in bytes.
const READ_SMALL: usize = 16 * 1024;
/// Events taken from epoll at a time.
const EVENTS: usize = 1024;
/// Connections accepted at a time, so that many at once do not stop the others.
const ACCEPTS: usize = 256;
/// How often the stop flag is checked.
const STOP_CHECK_MS: u64 = 50;
/// How long accepting pauses when no file descriptor is left.
const ACCEPT_REST_MS: u64 = 100;
/// Event data of the listening socket; no connection has it.
const LISTENER: u64 = u64::MAX;

/// Listens on [`Options::listen`] and serves until `stop` is set; calls `ready`
/// with the address once connections are accepted.
///
/// Raises the process's limit of open files to its hard limit, because it
/// bounds the number of clients.
///
/// # Errors
/// If the address cannot be listened on, or epoll fails.
pub fn run(
    options: Options,
    ready: impl FnOnce(SocketAddr),
    stop: &AtomicBool,
) -> Result<Counters, BrokerError> {
    let address = options.listen;
    let listen = |source| BrokerError::Listen { address, source };
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    // If it is refused, the lower limit holds.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
    let listener = TcpListener::bind(address).map_err(listen)?;
    // The library's backlog of 128 is short when thousands of devices come at once.
    rustix::net::listen(&listener, 4096).map_err(|e| listen(e.into()))?;
    ready(listener.local_addr().map_err(listen)?);
    serve(listener, options, stop)
}

/// Serves on a socket that already listens, until `stop` is set; then
/// disconnects every client and returns the counters. [`Options::listen`] is
/// ignored.
///
/// The flag is noticed within 50 ms.
///
/// # Errors
/// If epoll fails, which ends the broker. Errors of single connections end those.
pub fn serve(
    listener: TcpListener,
    options: Options,
    stop: &AtomicBool,
) -> Result<Counters, BrokerError> {
    let mut server = Server::new(listener, options)?;
    while !stop.load(Ordering::Relaxed) {
        server.turn(stop)?;
    }
    Ok(server.stop())
}

struct Server {
    broker: Broker,
    listener: TcpListener,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buf: Box<[u8]>,
    started: Instant,
    cost: Cost,
    /// A descriptor held in reserve, to be freed when there are no others.
    reserve: Option<OwnedFd>,
}

fn system(what: &'static str) -> impl Fn(Errno) -> BrokerError {
    move |errno| BrokerError::System {
        what,
        source: errno.into(),
    }
}

impl Server {
    fn new(listener: TcpListener, options: Options) -> Result<Server, BrokerError> {
        let create = || epoll::create(epoll::CreateFlags::CLOEXEC);
        let epoll = create().map_err(system("epoll_create"))?;
        listener
            .set_nonblocking(true)
            .map_err(|source| BrokerError::System {
                what: "setting O_NONBLOCK",
                source,
            })?;
        watch_listener(&epoll, &listener).map_err(system("epoll_ctl"))?;
        let shared = rustix::io::fcntl_dupfd_cloexec(&epoll, 3).map_err(system("fcntl"))?;
        let cost = Cost::new(options.cpu_per_message);
        let mut broker = Broker::new(options, Net::new(shared));
        broker.publish_sys();
        let interval = broker.options.sys_interval.as_millis() as u64;
        broker.timers.set(interval.max(1), Timer::Sys);
        Ok(Server {
            broker,
            cost,
            reserve: rustix::io::fcntl_dupfd_cloexec(&listener, 3).ok(),
            listener,
            epoll,
            events: Vec::with_capacity(EVENTS),
            buf: vec![0; READ_BUF].into_boxed_slice(),
            started: Instant::now(),
        })
    }

    fn turn(&mut self, stop: &AtomicBool) -> Result<(), BrokerError> {
        self.wait()?;
        let events = std::mem::take(&mut self.events);
        for event in &events {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == LISTENER {
                self.accept();
                continue;
            }
            if flags.contains(epoll::EventFlags::OUT)
                && let Some(id) = self.broker.net.by_token(data)
            {
                self.broker.net.write(id);
            }
            let read = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            if flags.intersects(read)
                && let Some(id) = self.broker.net.by_token(data)
            {
                self.readable(id);
            }
        }
        self.events = events;
        // A message has cost what it is to cost before it is delivered.
        self.cost
            .settle(self.broker.net.stats.publish_received, stop);
        self.broker.net.flush();
        self.settle();
        while let Some(timer) = self.broker.timers.due(self.broker.now_ms) {
            self.due(timer);
        }
        self.broker.net.flush();
        Ok(())
    }

    fn wait(&mut self) -> Result<(), BrokerError> {
        let broker = &self.broker;
        let idle = broker.resume.is_empty()
            && broker.net.drained.is_empty()
            && broker.net.broken.is_empty();
        let until = broker.timers.next_ms().unwrap_or(u64::MAX);
        let wait_ms = if idle {
            until.saturating_sub(broker.now_ms).min(STOP_CHECK_MS)
        } else {
            0
        };
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: (wait_ms * 1_000_000) as _,
        };
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timeout),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(system("epoll_wait")(errno)),
        }
        self.broker.now_ms = self.started.elapsed().as_millis() as u64;
        Ok(())
    }

    /// Handles the results of the turn's writes: broken and drained
    /// connections.
    fn settle(&mut self) {
        while let Some((id, generation)) = self.broker.net.broken.pop() {
            // Another may have its index by now.
            if self.broker.net.has(id, generation) {
                self.broker.finish(id, End::Gone);
            }
        }
        while let Some(id) = self.broker.net.drained.pop() {
            if let Some(session) = self.broker.session_of(id) {
                self.broker.wake_if_drained(session);
            }
        }
        // Only those that wait now: they may pause again at once.
        for _ in 0..self.broker.resume.len() {
            if let Some(id) = self.broker.resume.pop_front() {
                self.resume(id);
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match accept_with(&self.listener, flags) {
                Ok(fd) => self.welcome(fd),
                Err(Errno::AGAIN) => return,
                Err(Errno::MFILE | Errno::NFILE) => return self.out_of_files(),
                // The client may be gone already. After other errors, such as
                // lack of memory, accepting pauses.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(_) => return self.rest_accepting(),
            }
        }
    }

    fn welcome(&mut self, fd: OwnedFd) {
        // Writes are gathered over a turn already; Nagle's algorithm would only
        // add latency.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
        let broker = &mut self.broker;
        let Ok(id) = broker.net.add(fd, broker.now_ms) else {
            return;
        };
        broker.net.stats.connections_accepted += 1;
        let generation = broker.net.conns.get(id).map_or(0, |c| c.generation);
        let at = broker.now_ms + broker.options.connect_timeout.as_millis() as u64;
        broker.timers.set(at, Timer::Connect { id, generation });
    }

    /// Accepts and closes the first waiting connection, so that its client
    /// knows, and then pauses accepting: epoll would report the queue without
    /// end.
    fn out_of_files(&mut self) {
        self.broker.net.stats.accept_out_of_files += 1;
        if self.reserve.take().is_some() {
            drop(accept_with(
                &self.listener,
                SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            ));
            self.reserve = rustix::io::fcntl_dupfd_cloexec(&self.listener, 3).ok();
        }
        self.rest_accepting();
    }

    fn rest_accepting(&mut self) {
        let _ = epoll::delete(&self.epoll, &self.listener);
        self.broker
            .timers
            .set(self.broker.now_ms + ACCEPT_REST_MS, Timer::Accept);
    }

    fn readable(&mut self, id: ConnId) {
        let Some(conn) = self.broker.net.conns.get_mut(id) else {
            return;
        };
        if conn.paused {
            // Not watched for input, so this event is its end; its last bytes
            // are still to be read.
            self.broker.net.unwatch(id);
            return;
        }
        conn.last_read_ms = self.broker.now_ms;
        let got = match announced_len(&conn.partial) {
            Some(len) if len > GATHER_FROM && len > conn.partial.len() => {
                let missing = (len - conn.partial.len()).min(GATHER_STEP);
                conn.partial.reserve(missing);
                recv(
                    &conn.fd,
                    spare_capacity(&mut conn.partial),
                    RecvFlags::empty(),
                )
                .map(|(_, n)| (n, None))
            }
            _ => {
                // Not paused, so this is the beginning of one packet, and not of a
                // long one.
                let held = conn.partial.len().min(self.buf.len() / 2);
                debug_assert_eq!(held, conn.partial.len());
                self.buf[..held].copy_from_slice(&conn.partial[..held]);
                let small = self.broker.held_bytes > HELD_MUCH || self.cost.is_planted();
                let most = if small {
                    (held + READ_SMALL).min(self.buf.len())
                } else {
                    self.buf.len()
                };
                recv(&conn.fd, &mut self.buf[held..most], RecvFlags::empty())
                    .map(|(n, _)| (n, Some(held + n)))
            }
        };
        match got {
            Ok((0, _)) => self.broker.finish(id, End::Gone),
            Ok((n, in_buf)) => {
                self.broker.net.stats.bytes_received += n as u64;
                match in_buf {
                    Some(len) => {
                        let buf = std::mem::take(&mut self.buf);
                        self.input(id, &buf[..len]);
                        self.buf = buf;
                    }
                    None => self.gathered(id),
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.broker.finish(id, End::Gone),
        }
    }

    /// Handles a long packet being gathered, once it is complete.
    fn gathered(&mut self, id: ConnId) {
        let max = self.broker.options.max_packet_bytes as usize;
        let Some(conn) = self.broker.net.conns.get_mut(id) else {
            return;
        };
        let whole =
            announced_len(&conn.partial).is_none_or(|len| conn.partial.len() >= len || len > max);
        if whole {
            let partial = std::mem::take(&mut conn.partial);
            self.input(id, &partial);
        }
    }

    /// Hands bytes to the broker and keeps what it leaves.
    fn input(&mut self, id: ConnId, bytes: &[u8]) {
        match self.broker.input(id, bytes) {
            Ok(taken) => {
                let Some(conn) = self.broker.net.conns.get_mut(id) else {
                    return;
                };
                let rest = &bytes[taken..];
                conn.partial.clear();
                if rest.is_empty() && conn.partial.capacity() > 1024 {
                    conn.partial = Vec::new();
                }
                conn.partial.extend_from_slice(rest);
                if conn.paused {
                    self.broker.held_bytes += rest.len();
                }
            }
            Err(end) => self.broker.finish(id, end),
        }
    }

    /// Takes a connection up again whose pause is over.
    fn resume(&mut self, id: ConnId) {
        let Some(conn) = self.broker.net.conns.get_mut(id) else {
            return;
        };
        if !conn.paused {
            return;
        }
        conn.paused = false;
        conn.waits_on = NONE;
        // While it was paused, its keep-alive could not be seen.
        conn.last_read_ms = self.broker.now_ms;
        let partial = std::mem::take(&mut conn.partial);
        self.broker.held_bytes -= partial.len();
        self.input(id, &partial);
        self.broker.net.rewatch(id);
        while self
            .broker
            .net
            .conns
            .get(id)
            .is_some_and(|c| c.hung_up && !c.paused)
        {
            self.readable(id);
        }
    }

    fn due(&mut self, timer: Timer) {
        let broker = &mut self.broker;
        let now_ms = broker.now_ms;
        match timer {
            Timer::Connect { id, generation } => {
                let waits = |c: &crate::conn::Conn| c.generation == generation && c.session == NONE;
                if broker.net.conns.get(id).is_some_and(waits) {
                    broker.finish(id, End::Gone);
                }
            }
            Timer::KeepAlive { id, generation } => {
                let Some(conn) = broker.net.conns.get_mut(id) else {
                    return;
                };
                if conn.generation != generation {
                    return;
                }
                if conn.paused {
                    conn.last_read_ms = now_ms;
                }
                let at = conn.last_read_ms + keep_alive_ms(conn.keep_alive_s);
                if at <= now_ms {
                    broker.finish(id, End::Close(ReasonCode::KEEP_ALIVE_TIMEOUT));
                } else {
                    broker.timers.set(at, timer);
                }
            }
            Timer::Stall {
                id,
                generation,
                sent,
            } => broker.check_stall(id, generation, sent),
            Timer::SessionExpiry { id, generation } if broker.has_session(id, generation) => {
                broker.end_session(id);
            }
            Timer::Will { id, generation } if broker.has_session(id, generation) => {
                broker.publish_will(id);
            }
            Timer::SessionExpiry { .. } | Timer::Will { .. } => {}
            Timer::Sys => {
                broker.publish_sys();
                let interval = broker.options.sys_interval.as_millis() as u64;
                broker.timers.set(now_ms + interval.max(1), Timer::Sys);
            }
            Timer::Accept => {
                if watch_listener(&self.epoll, &self.listener).is_err() {
                    broker.timers.set(now_ms + ACCEPT_REST_MS, Timer::Accept);
                }
            }
        }
    }

    fn stop(mut self) -> Counters {
        // No wills: the broker ends, not these clients.
        for id in self.broker.sessions.ids() {
            if let Some(session) = self.broker.sessions.get_mut(id) {
                session.will = None;
            }
        }
        for id in self.broker.net.conns.ids() {
            self.broker
                .finish(id, End::Close(ReasonCode::SERVER_SHUTTING_DOWN));
        }
        self.broker.net.stats
    }
}

fn watch_listener(epoll: &OwnedFd, listener: &TcpListener) -> Result<(), Errno> {
    let data = epoll::EventData::new_u64(LISTENER);
    epoll::add(epoll, listener.as_fd(), data, epoll::EventFlags::IN)
}

/// Length of the packet that begins here, once its header says it.
fn announced_len(partial: &[u8]) -> Option<usize> {
    let (remaining, len_bytes) = read_varint(partial.get(1..)?).ok()??;
    Some(1 + len_bytes + remaining as usize)
}
