//! The message path allocates nothing: what is allocated does not grow with the messages.

#[path = "it/common/mod.rs"]
mod common;

use std::cell::Cell;

use common::peer::*;
use common::*;
use pubgauge_driver::*;
use pubgauge_testing::allocator::ReportingAllocator;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count(taken: usize, _: usize) {
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + u64::from(taken > 0)));
}

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator(count);

const MESSAGES: u64 = 20_000;

/// Allocations of this thread while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn publishing_with_confirms_allocates_nothing() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener);
        peer.welcome(0);
        peer.publisher();
        for n in 1..=3 * MESSAGES {
            peer.published();
            if n % 100 == 0 {
                peer.send(1, confirm(n, true));
            }
        }
        peer.until_closed();
    });
    let mut rig = on(port, reliable());
    rig.seen.acknowledged.reserve(4 * MESSAGES as usize);
    rig.seen.writable.reserve(4 * MESSAGES as usize);
    let client = rig.named_publisher("p");
    let topic = rig.fleet.advertise(client, "a/b").unwrap();
    let body = [7; 48];
    let mut round = |first: u64| {
        let mut sent = 0;
        while sent < MESSAGES {
            let head = head(first + sent);
            let payload = Payload {
                head: &head,
                body: &body,
            };
            match rig.fleet.publish(client, topic, payload, first + sent) {
                Publish::Accepted => sent += 1,
                Publish::Blocked => {
                    let soon = clock::monotonic_now() + 10_000_000;
                    rig.fleet.poll(soon, &mut rig.seen).unwrap();
                }
                Publish::Refused(why) => panic!("{why:?}"),
            }
        }
        let done = (first + MESSAGES) as usize;
        rig.until("confirms", |s| s.acknowledged.len() == done);
    };
    round(0); // Buffers grow to their size.
    let again = allocations(|| round(MESSAGES));
    let once_more = allocations(|| round(2 * MESSAGES));
    // A frame of the server's that is cut by the end of a read costs one or two, and windows and
    // timers may still grow: far from one for each message.
    assert!(again.max(once_more) < 200, "{again}, {once_more}");
    drop(rig);
    server.join().unwrap();
}

#[test]
fn consuming_allocates_nothing() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener);
        peer.welcome(0);
        peer.consumer();
        let mut tag = 0;
        for _ in 0..3 * MESSAGES / 1000 {
            let mut batch = Vec::new();
            for _ in 0..1000 {
                tag += 1;
                batch.extend(delivery(tag, "a.b", &[9; 64], 4096));
            }
            peer.raw(&batch);
        }
        peer.until_closed();
    });
    let mut rig = on(port, reliable());
    rig.seen.count_only = true;
    let client = rig.client(&ClientSpec {
        name: "c".into(),
        ..ClientSpec::default()
    });
    rig.subscribe(client, "a/b");
    let third = MESSAGES as usize;
    rig.until("the first third", |s| s.delivered >= third);
    let rest = allocations(|| rig.until("the rest", |s| s.delivered == 3 * third));
    // A message that a read cuts is kept until the next: a few for each read, none for a message.
    assert!(rest < 2 * MESSAGES / 20, "{rest}");
    drop(rig);
    server.join().unwrap();
}
