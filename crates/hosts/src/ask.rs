//! The conductor's end: questions for a host's clock, before, during and after trials.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::{Course, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Band, ClockError, ClockExchange};
use crate::lock;
use crate::packet::{EchoKey, EchoPacket, LEN};

/// Time from one question to the next, on average; each differs from it by up to a quarter, so that they are not in step
/// with the traffic.
const GAP: Duration = Duration::from_millis(20);
/// Questions in quick succession at the start, and the time from one of them to the next.
const BURST: u32 = 100;
const BURST_GAP: Duration = Duration::from_millis(3);
/// How long to wait for answers that are needed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Questions whose answers are waited for; those before are lost.
const OPEN: usize = 256;
/// Exchanges that are kept: 2.7 h of them. Beyond that the slower of each two is forgotten.
const MOST: usize = 500_000;
/// Age from which exchanges are not used for the next trial, ns: 120 s.
const OLD: Nanos = 120_000_000_000;

/// Asks for the clock of one host on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct ClockWatch {
    shared: Arc<WatchState>,
    port: u16,
    clock: fn() -> Nanos,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct WatchState {
    seen: Mutex<ObservedClock>,
    has_changed: Condvar,
}

#[derive(Debug, Default)]
struct ObservedClock {
    exchanges: Vec<ClockExchange>,
    /// Questions of the burst that are still to be sent.
    burst: u32,
    is_over: bool,
}

impl ClockWatch {
    /// Asks the echo at `host`, reading `clock` at this end.
    ///
    /// # Errors
    /// No socket, no route, no thread.
    pub fn start(host: SocketAddr, key: EchoKey, clock: fn() -> Nanos) -> io::Result<ClockWatch> {
        let own: SocketAddr = match host {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(own)?;
        // The kernel drops what comes from elsewhere.
        socket.connect(host)?;
        socket.set_nonblocking(true)?;
        let shared = Arc::<WatchState>::default();
        lock(&shared.seen).burst = BURST;
        let asking = Asking {
            socket,
            key,
            clock,
            asked: 0,
            open: VecDeque::with_capacity(OPEN),
            shared: shared.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("clock".into())
            .spawn(move || asking.run())?;
        Ok(ClockWatch {
            shared,
            port: host.port(),
            clock,
            thread: Some(thread),
        })
    }

    /// The host's clock from now on, for the workers of a trial.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn begin(&self) -> Result<Course, ClockError> {
        self.forget((self.clock)().saturating_sub(OLD));
        let burst_is_over = |seen: &ObservedClock| seen.burst == 0;
        let band = match self.band(burst_is_over) {
            // The clock was set since the last trial or during it: only later exchanges can be used.
            Err(ClockError::Set { .. }) => {
                self.forget(Nanos::MAX);
                lock(&self.shared.seen).burst = BURST;
                self.band(burst_is_over)
            }
            known => known,
        };
        band.map(|band| band.course())
    }

    /// The largest error of the readings that the workers of a trial have converted by `course` until now, ns.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn largest_error(&self, course: &Course) -> Result<Nanos, ClockError> {
        let now = (self.clock)();
        let is_later =
            |seen: &ObservedClock| seen.exchanges.last().is_some_and(|one| one.sent >= now);
        let band = self.band(is_later)?;
        Ok(band.error_of(course) + band.growth_until(now, course))
    }

    /// The bounds once `enough` holds, or after [`PATIENCE`].
    fn band(&self, enough: impl Fn(&ObservedClock) -> bool) -> Result<Band, ClockError> {
        let until = Instant::now() + PATIENCE;
        let mut seen = lock(&self.shared.seen);
        while !enough(&seen) {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                break;
            }
            let waited = self.shared.has_changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Band::from_exchanges(&seen.exchanges, self.port)
    }

    /// Forgets the exchanges before `asker` (this end's clock, ns).
    fn forget(&self, asker: Nanos) {
        let mut seen = lock(&self.shared.seen);
        seen.exchanges.retain(|one| one.sent >= asker);
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        lock(&self.shared.seen).is_over = true;
        if let Some(thread) = self.thread.take() {
            // It has no reason to panic, and no result.
            let _ = thread.join();
        }
    }
}

struct Asking {
    socket: UdpSocket,
    key: EchoKey,
    clock: fn() -> Nanos,
    /// Questions so far.
    asked: u64,
    /// Number and time of questions that are not answered, in order.
    open: VecDeque<(u64, Nanos)>,
    shared: Arc<WatchState>,
}

impl Asking {
    fn run(mut self) {
        loop {
            let burst = {
                let mut seen = lock(&self.shared.seen);
                if seen.is_over {
                    return;
                }
                seen.burst = seen.burst.saturating_sub(1);
                seen.burst
            };
            if burst > 0 {
                self.ask(BURST_GAP);
            } else {
                self.shared.has_changed.notify_all();
                // The golden ratio spreads any number of turns evenly.
                let share = (self.asked as f64 * 0.618_033_988_749_895).fract();
                self.ask(GAP.mul_f64(0.75 + share / 2.0));
            }
        }
    }

    /// Sends a question and takes answers for so long.
    fn ask(&mut self, time: Duration) {
        self.asked += 1;
        let until = Instant::now() + time;
        let sent = (self.clock)();
        let question = EchoPacket {
            is_answer: false,
            number: self.asked,
            sent,
            received: 0,
            answered: 0,
        };
        // A question that cannot be sent is a lost one.
        if self.socket.send(&question.encode(&self.key)).is_ok() {
            if self.open.len() == OPEN {
                self.open.pop_front();
            }
            self.open.push_back((self.asked, sent));
        }
        loop {
            self.take();
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return;
            }
            let mut waiting = [PollFd::new(&self.socket, PollFlags::IN)];
            let left = Timespec::try_from(left).ok();
            // A wait that a signal ended is a wait that found nothing.
            let _ = poll(&mut waiting, left.as_ref());
        }
    }

    /// Takes the answers that have come.
    fn take(&mut self) {
        // One byte more, so that a longer packet is not taken for a whole one.
        let mut bytes = [0; LEN + 1];
        // An error is told once: what came after it is taken with the next question.
        while let Ok(length) = self.socket.recv(&mut bytes) {
            let heard = (self.clock)();
            let packet = EchoPacket::decode(&bytes[..length], &self.key);
            let Some(answer) = packet.filter(|packet| packet.is_answer) else {
                continue;
            };
            let asked = (answer.number, answer.sent);
            let Some(place) = self.open.iter().position(|open| *open == asked) else {
                continue;
            };
            self.open.remove(place);
            lock(&self.shared.seen).keep(ClockExchange {
                sent: answer.sent,
                received: answer.received,
                answered: answer.answered,
                heard,
            });
            self.shared.has_changed.notify_all();
        }
    }
}

impl ObservedClock {
    fn keep(&mut self, exchange: ClockExchange) {
        if self.exchanges.len() == MOST {
            let faster =
                |two: &[ClockExchange]| two.iter().min_by_key(|one| one.under_way()).copied();
            self.exchanges = self.exchanges.chunks(2).filter_map(faster).collect();
        }
        self.exchanges.push(exchange);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::echo::serve;

    use pubgauge_driver::monotonic_now;
    use pubgauge_engine::link::frames;

    use crate::Hello;

    /// A host whose clock is 1,000 s ahead, on a thread: over its own streams it is found, and over UDP asked.
    #[test]
    fn a_clock_ahead_is_found_to_within_its_bound() {
        const AHEAD: Nanos = 1_000_000_000_000;
        let (their_input, mut input) = io::pipe().unwrap();
        let (mut output, their_output) = io::pipe().unwrap();
        let here = Ipv4Addr::LOCALHOST.into();
        let host = std::thread::spawn(move || {
            serve(here, their_input, their_output, || monotonic_now() + AHEAD)
        });
        let key = EchoKey::random().unwrap();
        frames::write(&mut input, key.bytes()).unwrap();
        let hello: Hello = frames::read(&mut output).unwrap().unwrap();
        let address = (hello.address, hello.port).into();

        let stranger =
            ClockWatch::start(address, EchoKey::from_bytes([7; 32]), monotonic_now).unwrap();
        let port = hello.port;
        assert_eq!(stranger.begin(), Err(ClockError::NoExchange { port }));
        drop(stranger);

        let watch = ClockWatch::start(address, key, monotonic_now).unwrap();
        let course = watch.begin().unwrap();
        let error = watch.largest_error(&course).unwrap();
        let host_now = monotonic_now() + AHEAD;
        let wrong = course.far_reading(host_now).abs_diff(host_now - AHEAD);
        assert!(wrong <= error, "{wrong} ns, bound {error} ns");
        drop(watch);
        drop(input);
        host.join().unwrap().unwrap();
        // Beats may have come, and the end.
        while frames::read::<()>(&mut output).unwrap().is_some() {}
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut seen = ObservedClock::default();
        let exchange = |n: u64, round_trip| ClockExchange {
            sent: n,
            received: n,
            answered: n,
            heard: n + round_trip,
        };
        for n in 0..=MOST as u64 {
            seen.keep(exchange(n, 100 + n % 2));
        }
        assert_eq!(seen.exchanges.len(), MOST / 2 + 1);
        let slow = seen.exchanges.iter().filter(|one| one.under_way() > 100);
        assert_eq!(slow.count(), 0);
    }
}
