//! A TCP proxy that injects known faults: it relays between a client and a real server at a known
//! rate, delays packets by a known time, duplicates or drops them, and counts what passes.
//!
//! ```no_run
//! use std::time::Duration;
//! use pubgauge_testing::proxy::{Direction, Proxy, Rate};
//!
//! let proxy = Proxy::to("127.0.0.1:1883".parse().unwrap())
//!     .rate(Direction::ToServer, Rate::MessagesPerS(10_000.0))
//!     .delay(Direction::ToClient, Duration::from_millis(5))
//!     .start()?;
//! println!("clients connect to {}", proxy.address());
//! proxy.freeze(Duration::from_secs(2));
//! let passed = proxy.counts().total(Direction::ToServer).passed;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Connections share a *link*: each direction has one FIFO queue with its [`Rules`]. All
//! connections share one link, except those for which [`ProxyBuilder::rules`] adds another, for
//! example one slow client among many. Within a connection and direction the order is always kept.
//!
//! Rules about bytes and time hold for any protocol over TCP. Rules about messages hold for MQTT
//! 3.1.1 and 5 without TLS; a connection that speaks something else is ended then, and its
//! [`ConnectionCounts::problem`] says so, as it does if lost or late packets would change what a
//! topic alias means.
//!
//! Nothing passes early, by `CLOCK_MONOTONIC`. What passes late shows in [`Traffic::latest_ns`],
//! and packet by packet in [`Proxy::trace`]; a rate catches up at once, but never for time in which
//! the link was idle. Packets due within 50 us pass together.
//!
//! # What it costs
//!
//! By `cargo bench -p pubgauge-testing --bench proxy_cost -- 3` on two processors that others used as
//! well; MQTT 3.1.1, QoS 0, payloads of 64 bytes:
//!
//! - Flat out one way, it passes 10 million messages per second, 85 ns of processor time each; 10
//!   million in single file at a rate (93 ns); 12 million of which half are duplicates (75 ns).
//! - A round trip of one message takes 98 us instead of 55 us (median), 0.94 ms instead of 0.52 ms (99th
//!   percentile).
//! - Messages pass later than they are due by:
//!
//! | | median | p99 | processor time |
//! |---|---|---|---|
//! | a queue, 1,000/s | 26 us | 66 us | 2.9 % of one |
//! | a queue, 10,000/s | 4 us | 8 us | 10.5 % |
//! | a queue, 50,000/s | 27 us | 61 us | 22.5 % |
//! | delay 5 ms, 1,000/s | 21 us | 0.18 ms | 2.4 % |
//! | delay 5 ms, 10,000/s | 12 us | 1.9 ms | 10.9 % |
//! | delay 5 ms, 50,000/s | 33 us | 8.0 ms | 13.1 % |
//!
//! The last two are the machine's load, not the proxy's: with [`ProxyBuilder::realtime`] the 99th
//! percentile was 18 to 63 us in all six, and 8 to 56 us with four threads beside it that never sleep,
//! against 5.7 to 10 ms without it.

mod connection;
mod counts;
mod event_loop;
mod intake;
mod link;
mod mqtt;
mod pacer;
mod rules;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pubgauge_driver::clock::monotonic_now;
use rustix::event::{EventfdFlags, eventfd};

use event_loop::{Command, EventLoop, Setup};
use link::Link;

pub use counts::{Amount, ConnectionCounts, Counts, Cut, Freeze, Passed, SLOT_NS, Slot, Traffic};
pub use rules::{Action, Direction, Duplicate, Rate, Rules, Select};

/// A proxy that is to be started.
#[derive(Clone, Debug)]
pub struct ProxyBuilder {
    server: SocketAddr,
    listen: SocketAddr,
    links: Vec<(Select, [Rules; 2])>,
    schedule: Vec<(Duration, Action)>,
    seed: u64,
    trace: bool,
    realtime: Option<u8>,
}

impl ProxyBuilder {
    /// Listens there instead of on a free port of 127.0.0.1.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Rate of the link that connections share by default: [`Rules::rate`].
    pub fn rate(mut self, direction: Direction, rate: Rate) -> Self {
        self.of_all(direction).rate = Some(rate);
        self
    }

    /// Delay of the default link: [`Rules::delay`].
    pub fn delay(mut self, direction: Direction, delay: Duration) -> Self {
        self.of_all(direction).delay = delay;
        self
    }

    /// Buffer of the default link, in bytes: [`Rules::buffer_bytes`].
    pub fn buffer(mut self, direction: Direction, bytes: usize) -> Self {
        self.of_all(direction).buffer_bytes = Some(bytes);
        self
    }

    /// Duplicates of the default link: [`Rules::duplicate`].
    pub fn duplicate(mut self, direction: Direction, duplicate: Duplicate) -> Self {
        self.of_all(direction).duplicate = Some(duplicate);
        self
    }

    /// Loss of the default link, a share of 0 to 1: [`Rules::lose`].
    pub fn lose(mut self, direction: Direction, share: f64) -> Self {
        self.of_all(direction).lose = share;
        self
    }

    fn of_all(&mut self, direction: Direction) -> &mut Rules {
        &mut self.links[0].1[direction as usize]
    }

    /// Gives some connections a link of their own, whose other direction passes everything at once
    /// unless it gets rules too. A connection that several links select gets the first.
    pub fn rules(mut self, select: Select, direction: Direction, rules: Rules) -> Self {
        let same = self.links.iter().position(|(other, _)| *other == select);
        let at = same.unwrap_or_else(|| {
            self.links.push((select, Default::default()));
            self.links.len() - 1
        });
        self.links[at].1[direction as usize] = rules;
        self
    }

    /// Carries out an action this long after the start.
    pub fn after(mut self, time: Duration, action: Action) -> Self {
        self.schedule.push((time, action));
        self
    }

    /// Seed of all draws, 1 by default. The n-th PUBLISH of the m-th connection is drawn alike in
    /// each run with the same seed and rules.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Keeps a record of everything that passes, for [`Proxy::trace`]: some 80 bytes for each packet.
    pub fn traced(mut self) -> Self {
        self.trace = true;
        self
    }

    /// Gives the proxy's thread a real-time priority, 1 to 99; 10 is enough. On a machine with busy
    /// processors it keeps the proxy on time.
    pub fn realtime(mut self, priority: u8) -> Self {
        self.realtime = Some(priority);
        self
    }

    /// Listens and accepts connections from now on.
    ///
    /// # Errors
    /// If a rule is outside its range, the address cannot be listened on, there are no more
    /// descriptors or threads, or the real-time priority is not allowed.
    pub fn start(self) -> io::Result<Proxy> {
        for rules in self.links.iter().flat_map(|(_, rules)| rules) {
            let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
            rules.check().map_err(invalid)?;
        }
        let links = self.links.into_iter();
        let setup = Setup {
            listen: self.listen,
            server: self.server,
            links: links
                .map(|(select, rules)| Link::new(select, rules))
                .collect(),
            seed: self.seed,
            trace: self.trace,
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (commands, inbox) = channel();
        let mut event_loop = EventLoop::new(setup, inbox, &wake)?;
        let address = event_loop.address()?;
        let start = monotonic_now();
        for (time, action) in self.schedule {
            event_loop.schedule(start + time.as_nanos() as u64, action);
        }
        let (ready, is_ready) = sync_channel(1);
        let run = move || {
            pubgauge_testbed::set_timer_slack(1).expect("a thread may set its timer slack");
            let priority = self.realtime.map_or(Ok(()), pubgauge_testbed::set_realtime);
            let go = priority.is_ok();
            ready.send(priority).expect("the starting thread waits");
            if go {
                event_loop.run();
            }
        };
        let thread = std::thread::Builder::new()
            .name("proxy".into())
            .spawn(run)?;
        let priority = is_ready.recv().expect("the thread says so");
        priority.map_err(io::Error::other)?;
        Ok(Proxy {
            address,
            commands,
            wake,
            thread: Some(thread),
        })
    }
}

/// A running proxy. Dropping it ends its connections, its sockets and its thread.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    commands: Sender<Command>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Builds a proxy to this server, which by default passes everything at once.
    pub fn to(server: SocketAddr) -> ProxyBuilder {
        ProxyBuilder {
            server,
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            links: vec![(Select::All, Default::default())],
            schedule: Vec::new(),
            seed: 1,
            trace: false,
            realtime: None,
        }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the rules of a link that was set up at the start, [`Select::All`] being that of all.
    /// They apply when this returns: the rate to packets that wait already, the other rules to
    /// those that the proxy reads from then on.
    ///
    /// # Panics
    /// If there is no such link, or a rule is outside its range.
    #[track_caller]
    pub fn change(&self, select: &Select, direction: Direction, edit: impl FnOnce(&mut Rules)) {
        let wanted = select.clone();
        let found = self.ask(move |event_loop| {
            let at = event_loop.links.iter().position(|l| l.select == wanted)?;
            Some((at, event_loop.links[at].lane(direction).rules))
        });
        let (at, mut rules) = found.unwrap_or_else(|| panic!("no link was set up for {select:?}"));
        edit(&mut rules);
        rules.check().unwrap_or_else(|why| panic!("{why}"));
        self.ask(move |event_loop| {
            let now = event_loop.link_time();
            event_loop.links[at].lane(direction).change(rules, now);
        });
    }

    /// Freezes all links for `span`; the connections stay open. See [`Action::Freeze`].
    pub fn freeze(&self, span: Duration) {
        self.ask(move |event_loop| event_loop.freeze(span.as_nanos() as u64));
    }

    /// Ends these connections, and returns how many they were. See [`Action::Cut`].
    pub fn cut(&self, select: Select) -> usize {
        self.ask(move |event_loop| event_loop.cut(&select))
    }

    /// Carries out an action at a time, in nanoseconds of `CLOCK_MONOTONIC`; at once if it has
    /// passed.
    pub fn schedule(&self, at_ns: u64, action: Action) {
        self.ask(move |event_loop| event_loop.schedule(at_ns, action));
    }

    /// What was counted and injected so far.
    pub fn counts(&self) -> Counts {
        self.ask(|event_loop| event_loop.counts())
    }

    /// Takes the record of what has passed since the last call, in order for each direction of a
    /// connection; empty unless [`ProxyBuilder::traced`].
    pub fn trace(&self) -> Vec<Passed> {
        self.ask(|event_loop| {
            event_loop
                .trace
                .as_mut()
                .map(std::mem::take)
                .unwrap_or_default()
        })
    }

    /// Runs `what` in the event loop between two turns.
    fn ask<R: Send + 'static>(&self, what: impl FnOnce(&mut EventLoop) -> R + Send + 'static) -> R {
        let (answer, answered) = sync_channel(1);
        self.tell(Box::new(move |event_loop| {
            // It fails if the caller has panicked and no longer waits.
            let _ = answer.send(what(event_loop));
        }));
        answered.recv().expect("the proxy's event loop runs")
    }

    fn tell(&self, command: Command) {
        // It fails when the loop has panicked, which the caller or the drop finds out.
        let _ = self.commands.send(command);
        // It fails when the counter is full: then the loop wakes anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tell(Box::new(|event_loop| event_loop.stop = true));
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
