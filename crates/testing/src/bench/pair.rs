//! A bench of publishers and subscribers: a driver beside a plain program on the same library, or
//! another way of the driver's.
//!
//! Publisher and subscriber are processes of their own: the bench again, with the words `publish`
//! or `subscribe`, the kind of program and what else it needs. They and the bench speak by lines:
//! the publisher waits for `go`, and says at the end what processor time it took ([`tell_cpu`]); the
//! subscriber says `ready`, and at the end how long all messages took to arrive, and its processor
//! time ([`tell_time`]). Both count it from [`mark_start`].

use std::cell::Cell;
use std::time::Duration;

use hdrhistogram::Histogram;
use pubgauge_driver::{
    Acknowledgement, Change, ClientId, Clock, Delivery, Events, Filler, Fleet, Header, Nanos,
    Payload, Publish, TopicId,
};

use super::process::{Process, report};
use super::{MARK, PAYLOAD, Rounds, cpu, header, parse, poll};

/// Messages published between two looks at the fleet.
const BURST: usize = 64;

/// Figures of one repeat, in messages.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Per second between the first and the last that arrived.
    pub per_second: f64,
    /// Per second of the publisher's processor time.
    pub per_publisher_cpu_second: f64,
    /// Per second of the subscriber's.
    pub per_subscriber_cpu_second: f64,
}

/// One repeat: a publisher and a subscriber, started and ready.
pub struct Repeat {
    /// Waits for `go`.
    pub publisher: Process,
    /// Has said `ready`.
    pub subscriber: Process,
    /// How many messages there will be.
    pub count: u32,
}

impl Repeat {
    fn finish(mut self) -> Figures {
        let received: Vec<f64> = self.subscriber.line().split(' ').map(parse).collect();
        let sent: f64 = parse(&self.publisher.line());
        self.publisher.wait();
        self.subscriber.wait();
        let count = f64::from(self.count);
        Figures {
            per_second: (count - 1.0) / received[0],
            per_publisher_cpu_second: count / sent,
            per_subscriber_cpu_second: count / received[1],
        }
    }
}

/// Which two kinds of program are compared, and how.
pub struct Pairs<'a> {
    /// Names of both: a, b.
    pub kinds: [&'a str; 2],
    /// At the same time, so that they share whatever the machine has to give; else in turn.
    pub side_by_side: bool,
    /// Time for a publisher and its subscriber to find each other.
    pub settle: Duration,
    /// Pairs of repeats.
    pub count: usize,
}

impl Pairs<'_> {
    /// Runs and prints all pairs. `start` gets the kind and a number that repeats which run at the
    /// same time do not share, below 3; `shown` is what is printed of each repeat.
    pub fn compare(&self, start: impl Fn(&str, u32) -> Repeat, shown: impl Fn(&Figures) -> String) {
        let rounds = Rounds::run(self.count, |pair| {
            // Who goes first changes, so that drift of the machine favours neither.
            let order = if pair % 2 == 1 { [1, 0] } else { [0, 1] };
            let [a, b] = if self.side_by_side {
                self.at_once(order, &start)
            } else {
                self.in_turn(order, &start)
            };
            let ratio = b.per_second / a.per_second;
            println!("  a {}   b {}   b/a {ratio:.3}", shown(&a), shown(&b));
            [a, b]
        });
        let [a, b] = rounds.medians(|f| f.per_second);
        println!("  median   a {a:.0}/s, b {b:.0}/s");
        println!(
            "  median b/a:  msgs/s {:.3}   msgs per publisher CPU-s {:.3}   per subscriber CPU-s {:.3}",
            rounds.ratio(|f| f.per_second).median,
            rounds.ratio(|f| f.per_publisher_cpu_second).median,
            rounds.ratio(|f| f.per_subscriber_cpu_second).median
        );
    }

    fn in_turn(&self, order: [usize; 2], start: impl Fn(&str, u32) -> Repeat) -> [Figures; 2] {
        let mut both = order.map(|which| {
            let mut repeat = start(self.kinds[which], 0);
            std::thread::sleep(self.settle);
            repeat.publisher.send("go");
            (which, repeat.finish())
        });
        both.sort_by_key(|(which, _)| *which);
        both.map(|(_, figures)| figures)
    }

    fn at_once(&self, order: [usize; 2], start: impl Fn(&str, u32) -> Repeat) -> [Figures; 2] {
        let [a, b] = self.kinds;
        let mut repeats = [start(a, 1), start(b, 2)];
        std::thread::sleep(self.settle);
        for which in order {
            repeats[which].publisher.send("go");
        }
        repeats.map(Repeat::finish)
    }
}

thread_local! {
    static CPU_AT_START: Cell<f64> = const { Cell::new(0.0) };
}

/// Processor time counts from here; a plain program may call it.
pub extern "C" fn mark_start() {
    CPU_AT_START.set(cpu::of_this_process());
}

/// Waits for the bench's word.
pub fn wait_for_go() {
    let read = std::io::stdin().read_line(&mut String::new());
    read.expect("readable");
}

/// Waits for the bench's word, from which processor time counts; a plain program may call it.
pub extern "C" fn go() {
    wait_for_go();
    mark_start();
}

/// The publisher's last word. Until here, so that what a library still had to send is counted.
pub fn tell_cpu() {
    report(&format!("{}", cpu::of_this_process() - CPU_AT_START.get()));
}

/// The subscriber's last word: what time there was between the first message and the last.
pub fn tell_time(seconds: f64) {
    assert!(seconds > 0.0, "the subscriber failed");
    let cpu = cpu::of_this_process() - CPU_AT_START.get();
    report(&format!("{seconds} {cpu}"));
}

/// Publishes flat out as the engine does, with a header for each message and one time for a burst,
/// then closes.
pub fn publish(
    fleet: &mut dyn Fleet,
    client: ClientId,
    topic: TopicId,
    filler: &Filler,
    count: u32,
) {
    let clock = Clock::Monotonic;
    let mut writable = Writable(false);
    let epoch = clock.now();
    let mut sequence = 0;
    while sequence < count {
        let now = clock.now() - epoch;
        let mut blocked = false;
        for _ in 0..BURST.min((count - sequence) as usize) {
            let payload = Payload {
                head: &header(now, sequence),
                body: filler.body(0, sequence, PAYLOAD),
            };
            match fleet.publish(client, topic, payload, 0) {
                Publish::Accepted => sequence += 1,
                Publish::Blocked => {
                    blocked = true;
                    break;
                }
                Publish::Refused(why) => panic!("{why:?}"),
            }
        }
        writable.0 = false;
        let wait = if blocked { 1_000_000_000 } else { 0 };
        poll(fleet, &mut writable, wait);
        assert!(!blocked || writable.0, "blocked for good");
    }
    fleet.close(clock.now() + 20_000_000_000);
}

/// Whether a writer that was held back may go on. The publisher ends when it has sent everything;
/// whether all came is checked by its subscriber.
struct Writable(bool);

impl Events for Writable {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {}
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
    fn changed(&mut self, _: ClientId, change: Change) {
        self.0 |= change == Change::Writable;
    }
}

/// Does with each message what the engine does: checks header and sequence, stamps, and adds to a
/// histogram.
pub struct Sink<C> {
    now: Nanos,
    first: Nanos,
    received: u32,
    delays: Histogram<u64>,
    from_first: bool,
    check: C,
    /// The client has connected.
    pub connected: bool,
    /// Where it can be reached, in a system without brokers.
    pub address: Option<String>,
}

impl<C: Fn(&Header, &[u8])> Sink<C> {
    /// `check` gets each message's header and payload. With `from_first` processor time counts
    /// from the first message.
    pub fn new(from_first: bool, check: C) -> Self {
        Sink {
            now: 0,
            first: 0,
            received: 0,
            delays: Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds"),
            from_first,
            check,
            connected: false,
            address: None,
        }
    }

    /// Polls until so many messages have come, the next of them within 30 s; gives the seconds from
    /// the first to the last.
    pub fn receive(&mut self, fleet: &mut dyn Fleet, count: u32) -> f64 {
        while self.received < count {
            let before = self.received;
            poll(fleet, self, 30_000_000_000);
            assert!(
                self.received > before,
                "nothing came for 30 s after {before} messages"
            );
        }
        assert_eq!(self.delays.len(), u64::from(count));
        (self.now - self.first) as f64 * 1e-9
    }
}

impl<C: Fn(&Header, &[u8])> Events for Sink<C> {
    fn arrived(&mut self) {
        self.now = Clock::Monotonic.now();
    }

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        let header = Header::decode(delivery.payload, MARK).expect("a header of ours");
        assert_eq!(header.sequence, self.received, "lost or out of order");
        (self.check)(&header, delivery.payload);
        if self.received == 0 {
            if self.from_first {
                mark_start();
                self.now = Clock::Monotonic.now();
            }
            self.first = self.now;
        }
        self.received += 1;
        // Not a latency: publisher and subscriber count from different epochs. The cost of
        // recording one is the same.
        let delay = self.now.wrapping_sub(header.intended) % 3_600_000_000_000;
        self.delays.record(delay.max(1)).expect("within bounds");
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, _: ClientId, change: Change) {
        if let Change::Connected { address, .. } = change {
            self.connected = true;
            self.address = address;
        }
    }
}
