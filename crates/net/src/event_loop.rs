//! The loop of a fleet over TCP: write what waits, keep the timers, sleep in epoll, give each
//! client that has something to read its turn. What is written and read, and when, is the
//! driver's: it implements [`Driven`].

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use pubgauge_driver::{
    Acknowledgement, Attempt, Change, ClientId, Clock, Delivery, DriverError, Events, Nanos,
};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// Events taken from epoll at once.
const EVENTS: usize = 256;

/// The epoll set of a fleet, the queue of clients to read from, and the clock of the loop.
pub struct EventLoop {
    epoll: OwnedFd,
    queue: VecDeque<u32>,
    clock: Clock,
    opened: Nanos,
}

impl EventLoop {
    /// No sockets yet. Milliseconds are counted from now on.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn new(clock: Clock) -> Result<EventLoop, DriverError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| {
            DriverError::of_io(
                "cannot make an epoll descriptor",
                Attempt::Open,
                &errno.into(),
            )
        })?;
        let opened = clock.now();
        Ok(EventLoop {
            epoll,
            queue: VecDeque::new(),
            clock,
            opened,
        })
    }

    /// Watches a client's socket until it is closed.
    ///
    /// # Errors
    /// If the kernel refuses: `fs.epoll.max_user_watches` bounds the sockets of a user.
    pub fn watch(&self, fd: impl AsFd, id: ClientId) -> Result<(), DriverError> {
        // Edge-triggered and never changed: one system call for the whole life of a connection.
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(u64::from(id.0));
        epoll::add(&self.epoll, fd, data, flags).map_err(|errno| {
            DriverError::of_io("cannot watch a socket", Attempt::Watch, &errno.into())
        })
    }

    /// The time on the fleet's clock.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// A point of the clock in milliseconds since the fleet was opened, as timers count.
    #[inline]
    fn to_ms(&self, now: Nanos) -> u32 {
        let ms = now.saturating_sub(self.opened) / 1_000_000;
        u32::try_from(ms).unwrap_or(u32::MAX)
    }

    /// The point of the clock at which a timer is due.
    #[inline]
    fn at_ms(&self, ms: u32) -> Nanos {
        self.opened + Nanos::from(ms) * 1_000_000
    }

    /// Sleeps up to `wait` nanoseconds; how many of `list` are then filled.
    fn sleep(&self, wait: Nanos, list: &mut [epoll::Event]) -> Result<usize, DriverError> {
        let timeout = Timespec {
            tv_sec: (wait / 1_000_000_000) as i64,
            tv_nsec: (wait % 1_000_000_000) as i64,
        };
        match epoll::wait(&self.epoll, list, Some(&timeout)) {
            Ok(n) => Ok(n),
            Err(Errno::INTR) => Ok(0),
            Err(errno) => Err(DriverError::of_io(
                "epoll failed",
                Attempt::Transfer,
                &errno.into(),
            )),
        }
    }
}

/// How far a client's connection is, as far as the loop must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    Down,
    /// TCP is connecting.
    Connecting,
    /// TCP is connected.
    Up,
}

/// Notes of the loop on a client. It is kept in the client, so that an idle one costs two
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It is in the queue of clients to read from.
    queued: bool,
    /// The server has ended its side, or the connection has an error that a read will return.
    pub hung_up: bool,
}

/// Changes that a fleet has to report.
#[derive(Debug, Default)]
pub struct Reports {
    owed: Vec<(ClientId, Change)>,
    /// Something was reported during this poll, which therefore returns.
    pub reported: bool,
}

impl Reports {
    /// Reports a change now.
    #[inline]
    pub fn report(&mut self, events: &mut dyn Events, id: ClientId, change: Change) {
        self.reported = true;
        events.changed(id, change);
    }

    #[inline]
    pub fn deliver(&mut self, events: &mut dyn Events, id: ClientId, delivery: Delivery<'_>) {
        self.reported = true;
        events.delivered(id, delivery);
    }

    /// Queues a change for the next poll: outside of a poll there are no [`Events`] to report it to.
    pub fn owe(&mut self, id: ClientId, change: Change) {
        self.owed.push((id, change));
    }

    /// Drops the queued changes of a client.
    pub fn forget(&mut self, id: ClientId) {
        self.owed.retain(|(owed, _)| *owed != id);
    }

    /// Reports the queued changes.
    pub fn report_owed(&mut self, events: &mut dyn Events) {
        for (id, change) in self.owed.drain(..) {
            self.reported = true;
            events.changed(id, change);
        }
    }
}

/// A fleet that is driven by the loop.
///
/// All calls are direct ones, of one type: the loop is compiled into each driver.
pub trait Driven {
    /// Its sockets.
    fn event_loop(&mut self) -> &mut EventLoop;
    /// Its reports.
    fn reports(&mut self) -> &mut Reports;
    /// The phase of a client's connection, and its marks; `None` if there is no such client.
    fn marks(&mut self, id: ClientId) -> Option<(ConnectionPhase, &mut Marks)>;
    /// The time for its timers, in milliseconds since it was opened.
    fn note_time(&mut self, now_ms: u32);
    /// When the next timer is due, in the same milliseconds.
    fn next_timer_ms(&self) -> Option<u32>;
    /// Does the work before it may sleep: write what waits, keep the timers.
    fn prepare(&mut self);
    /// TCP has connected, and the first bytes go out; or it has `failed`, and the client fails.
    fn greet(&mut self, id: ClientId, failed: bool);
    /// The socket takes bytes again.
    fn writable(&mut self, id: ClientId);
    /// Reads once from a client and reports what came. Where more may be waiting, it calls
    /// [`Driven::mark_ready`]: no other edge will come.
    fn read_once(&mut self, id: ClientId, events: &mut dyn Events);

    /// [`pubgauge_driver::Fleet::poll`].
    ///
    /// # Errors
    /// If epoll fails.
    #[inline]
    fn run(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.reports().reported = false;
        self.look_at_clock();
        loop {
            self.prepare();
            self.reports().report_owed(events);
            let wait = if self.reports().reported || !self.event_loop().queue.is_empty() {
                0
            } else {
                let timer = self.next_timer_ms();
                let timer = timer.map_or(until, |ms| self.event_loop().at_ms(ms));
                // The time of now: writing may have taken a good part of the wait.
                until.min(timer).saturating_sub(self.event_loop().now())
            };
            self.sleep(wait)?;
            let now = self.look_at_clock();
            // Each client gets one read of the shared buffer, then it is the next one's turn.
            for _ in 0..self.event_loop().queue.len() {
                let Some(id) = self.event_loop().queue.pop_front() else {
                    break;
                };
                let id = ClientId(id);
                if let Some((_, marks)) = self.marks(id) {
                    marks.queued = false;
                    self.read_once(id, events);
                }
            }
            self.reports().report_owed(events);
            if self.reports().reported || now >= until {
                return Ok(());
            }
        }
    }

    /// Sleeps up to `wait` nanoseconds and takes note of which sockets can go on.
    ///
    /// # Errors
    /// If epoll fails.
    fn sleep(&mut self, wait: Nanos) -> Result<(), DriverError> {
        let mut list = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; EVENTS];
        let n = self.event_loop().sleep(wait, &mut list)?;
        for event in &list[..n] {
            // Copied out of the packed structure before use.
            let (flags, data) = (event.flags, event.data);
            self.woken(ClientId(data.u64() as u32), flags);
        }
        Ok(())
    }

    /// Epoll has news of a client's socket.
    #[inline]
    fn woken(&mut self, id: ClientId, flags: epoll::EventFlags) {
        use epoll::EventFlags as F;
        let Some((phase, marks)) = self.marks(id) else {
            return;
        };
        if phase == ConnectionPhase::Down {
            return; // It was given up since.
        }
        if flags.intersects(F::HUP | F::RDHUP | F::ERR) {
            marks.hung_up = true;
        }
        if phase == ConnectionPhase::Connecting {
            if !flags.intersects(F::OUT | F::ERR | F::HUP) {
                return;
            }
            self.greet(id, flags.intersects(F::ERR | F::HUP));
        } else if flags.contains(F::OUT) {
            self.writable(id);
        }
        if flags.intersects(F::IN | F::RDHUP | F::HUP | F::ERR) {
            self.mark_ready(id);
        }
    }

    /// A client is to be read from, unless it is down.
    #[inline]
    fn mark_ready(&mut self, id: ClientId) {
        let Some((phase, marks)) = self.marks(id) else {
            return;
        };
        if phase != ConnectionPhase::Down && !marks.queued {
            marks.queued = true;
            self.event_loop().queue.push_back(id.0);
        }
    }

    /// The time, noted for the timers as well.
    #[inline]
    fn look_at_clock(&mut self) -> Nanos {
        let now = self.event_loop().now();
        let ms = self.event_loop().to_ms(now);
        self.note_time(ms);
        now
    }

    /// Runs until `done` or `until` and reports nothing: for [`pubgauge_driver::Fleet::close`].
    fn run_unheard(&mut self, until: Nanos, done: impl Fn(&Self) -> bool)
    where
        Self: Sized,
    {
        // An answer that is none of the seam's events ends no run.
        const LOOK: Nanos = 10_000_000;
        while !done(self) && self.event_loop().now() < until {
            let look = self.event_loop().now() + LOOK;
            if self.run(until.min(look), &mut Nobody).is_err() {
                return;
            }
        }
    }
}

/// Ignores the events of a fleet that is being closed.
struct Nobody;

impl Events for Nobody {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {}
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
    fn changed(&mut self, _: ClientId, _: Change) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{self, Io};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    /// Clients that are up from the beginning and read four bytes at a time.
    struct Reader {
        event_loop: EventLoop,
        reports: Reports,
        clients: Vec<(ConnectionPhase, Marks, Option<UnixStream>)>,
        /// Who read how many bytes; `None` is the end.
        reads: Vec<(u32, Option<usize>)>,
        greeted: Vec<(u32, bool)>,
        failed: Vec<u32>,
        writable: Vec<u32>,
        /// A timer, and when it was kept.
        timer_ms: Option<u32>,
        kept_ms: Vec<u32>,
        now_ms: u32,
        /// Preparing takes until then, in simulated time.
        prepared_at: Nanos,
    }

    impl Driven for Reader {
        fn event_loop(&mut self) -> &mut EventLoop {
            &mut self.event_loop
        }
        fn reports(&mut self) -> &mut Reports {
            &mut self.reports
        }
        fn marks(&mut self, id: ClientId) -> Option<(ConnectionPhase, &mut Marks)> {
            let (phase, marks, _) = self.clients.get_mut(id.0 as usize)?;
            Some((*phase, marks))
        }
        fn note_time(&mut self, now_ms: u32) {
            self.now_ms = now_ms;
        }
        fn next_timer_ms(&self) -> Option<u32> {
            self.timer_ms
        }
        fn prepare(&mut self) {
            self.event_loop.clock.advance_to(self.prepared_at);
            if self.timer_ms.is_some_and(|due| due <= self.now_ms) {
                self.timer_ms = None;
                self.kept_ms.push(self.now_ms);
                self.reports.owe(ClientId(0), Change::Writable);
            }
        }
        fn greet(&mut self, id: ClientId, failed: bool) {
            self.greeted.push((id.0, failed));
            self.clients[id.0 as usize].0 = ConnectionPhase::Up;
            if failed {
                self.fail(id);
            }
        }
        fn writable(&mut self, id: ClientId) {
            self.writable.push(id.0);
        }
        fn read_once(&mut self, id: ClientId, _: &mut dyn Events) {
            let Some(stream) = &self.clients[id.0 as usize].2 else {
                return;
            };
            match socket::read(stream.as_fd(), &mut [0; 4]) {
                Io::Done(0) => {
                    self.reads.push((id.0, None));
                    self.fail(id);
                }
                Io::Done(n) => {
                    self.reads.push((id.0, Some(n)));
                    self.mark_ready(id);
                }
                Io::WouldBlock => {}
                Io::Failed(errno) => panic!("{errno}"),
            }
        }
    }

    impl Reader {
        fn fail(&mut self, id: ClientId) {
            self.failed.push(id.0);
            let client = &mut self.clients[id.0 as usize];
            (client.0, client.2) = (ConnectionPhase::Down, None);
            self.reports.owe(id, Change::Closed);
        }
    }

    fn reader(phases: &[ConnectionPhase]) -> (Reader, Vec<UnixStream>) {
        let mut reader = Reader {
            event_loop: EventLoop::new(Clock::Monotonic).unwrap(),
            reports: Reports::default(),
            clients: Vec::new(),
            reads: Vec::new(),
            greeted: Vec::new(),
            failed: Vec::new(),
            writable: Vec::new(),
            timer_ms: None,
            kept_ms: Vec::new(),
            now_ms: 0,
            prepared_at: 0,
        };
        let mut others = Vec::new();
        for (n, phase) in phases.iter().enumerate() {
            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            reader.event_loop.watch(&ours, ClientId(n as u32)).unwrap();
            reader.clients.push((*phase, Marks::default(), Some(ours)));
            others.push(theirs);
        }
        (reader, others)
    }

    /// Polls until it holds, and then once more without a wait.
    #[track_caller]
    fn run(reader: &mut Reader, holds: impl Fn(&Reader) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !holds(reader) {
            assert!(Instant::now() < end, "waited in vain");
            let until = reader.event_loop.now() + 5_000_000;
            reader.run(until, &mut Nobody).unwrap();
        }
        reader.run(0, &mut Nobody).unwrap();
    }

    const LONG: Nanos = 60_000_000_000;

    #[test]
    fn clients_take_turns_to_be_read() {
        let (mut reader, mut others) = reader(&[ConnectionPhase::Up, ConnectionPhase::Up]);
        others[0].write_all(&[0; 10]).unwrap();
        others[1].write_all(&[0; 6]).unwrap();
        run(&mut reader, |r| r.reads.len() == 5);
        let mut reads = reader.reads.clone();
        reads.sort_unstable_by_key(|(id, _)| *id);
        let bytes = |n: &[usize], id| n.iter().map(move |n| (id, Some(*n))).collect::<Vec<_>>();
        assert_eq!(reads, [bytes(&[4, 4, 2], 0), bytes(&[4, 2], 1)].concat());
        // No client is read twice before each was read once.
        for round in reader.reads.chunks(2).take(2) {
            assert_ne!(round[0].0, round[1].0, "{:?}", reader.reads);
        }
        assert_eq!(
            reader.writable.len(),
            2,
            "each socket had room to begin with"
        );
    }

    #[test]
    fn last_words_are_read_before_the_end() {
        let (mut reader, mut others) = reader(&[ConnectionPhase::Up]);
        others[0].write_all(&[0; 5]).unwrap();
        drop(others);
        run(&mut reader, |r| r.reports.reported);
        assert_eq!(reader.reads, [(0, Some(4)), (0, Some(1)), (0, None)]);
        assert!(reader.clients[0].1.hung_up);
        assert!(reader.event_loop.queue.is_empty());
    }

    #[test]
    fn who_is_connecting_greets_once_and_who_is_down_is_left_alone() {
        let (mut reader, others) = reader(&[
            ConnectionPhase::Connecting,
            ConnectionPhase::Down,
            ConnectionPhase::Connecting,
        ]);
        let mut others = others.into_iter();
        let _open = others.next();
        drop(others); // Of the last two: a hang-up while connecting is a failure.
        run(&mut reader, |r| r.greeted.len() == 2);
        reader.greeted.sort_unstable();
        assert_eq!(reader.greeted, [(0, false), (2, true)]);
        assert_eq!(reader.failed, [2]);
        assert_eq!((reader.reads.len(), reader.writable.len()), (0, 0));
        assert!(!reader.clients[1].1.hung_up);
    }

    #[test]
    fn it_sleeps_until_the_timer_and_no_later_than_it_was_told() {
        let (mut reader, _others) = reader(&[ConnectionPhase::Up]);
        run(&mut reader, |r| r.writable == [0]); // The first edge is out of the way.
        let due = reader.now_ms + 10;
        reader.timer_ms = Some(due);
        let until = reader.event_loop.now() + LONG;
        reader.run(until, &mut Nobody).unwrap();
        assert_eq!(reader.kept_ms.len(), 1);
        assert!(reader.kept_ms[0] >= due, "{:?}", reader.kept_ms);
        assert!(reader.event_loop.now() < until);
        let until = reader.event_loop.now() + 5_000_000;
        reader.run(until, &mut Nobody).unwrap();
        assert!(
            reader.event_loop.now() >= until,
            "nothing to tell: it sleeps"
        );
    }

    #[test]
    fn the_time_that_writing_takes_is_not_slept_again() {
        let (mut reader, _others) = reader(&[]);
        reader.event_loop.clock = Clock::virtual_at(reader.event_loop.now());
        let until = reader.event_loop.now() + LONG;
        reader.prepared_at = until;
        let begun = Instant::now();
        reader.run(until, &mut Nobody).unwrap();
        assert!(begun.elapsed() < Duration::from_nanos(LONG), "it slept");
    }

    #[test]
    fn what_is_owed_is_told_at_once_unless_it_was_forgotten() {
        struct Heard(Vec<u32>);
        impl Events for Heard {
            fn arrived(&mut self) {}
            fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {}
            fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
            fn changed(&mut self, id: ClientId, _: Change) {
                self.0.push(id.0);
            }
        }
        let (mut reader, _others) = reader(&[]);
        for id in [1, 2, 1] {
            reader.reports.owe(ClientId(id), Change::Writable);
        }
        reader.reports.forget(ClientId(1));
        let mut heard = Heard(Vec::new());
        let until = reader.event_loop.now() + LONG;
        reader.run(until, &mut heard).unwrap();
        assert_eq!(heard.0, [2]);
        assert!(reader.event_loop.now() < until, "there is news: no sleep");
    }

    #[test]
    fn closing_ends_with_the_last_client_or_the_time() {
        let (mut reader, others) = reader(&[ConnectionPhase::Up]);
        let all_down = |r: &Reader| {
            r.clients
                .iter()
                .all(|(phase, ..)| *phase == ConnectionPhase::Down)
        };
        let now = reader.event_loop.now();
        reader.run_unheard(now + 20_000_000, all_down);
        assert!(!all_down(&reader) && reader.event_loop.now() >= now + 20_000_000);
        drop(others);
        reader.run_unheard(now + LONG, all_down);
        assert!(all_down(&reader) && reader.event_loop.now() < now + LONG);
    }
}
