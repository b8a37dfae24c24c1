//! What the library's receive thread takes for the fleet's thread: all of it, once, in order,
//! whichever of the two is the slower.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Rig, SECOND, prove, run, settings, target};
use pubgauge_driver::{Change, ClientId, Clock, Kind, Publish, TopicId};
use pubgauge_driver_fastdds::FastddsDriver;
use serde_json::json;

/// The longest payload that the fleets are told of: short enough to be taken at once.
const SMALL: usize = 100;

/// What may wait between the two threads.
const INBOX: u32 = 1024;

/// What a reader may hold by itself with the preset `tuned`, and a writer.
const HISTORIES: u32 = 1000 + 400;

fn open(scratch: &tempfile::TempDir, json: serde_json::Value, worker: u32) -> Rig {
    Rig::open_for(
        &FastddsDriver,
        &target(scratch),
        &settings(json),
        worker,
        SMALL,
    )
}

/// Sends until nothing has been accepted for a while; returns how many were. While not even the
/// inbox can be full, the while is longer than a heartbeat of the default preset.
fn fill(out: &mut Rig, client: ClientId, topic: TopicId) -> u32 {
    let mut next = 0;
    let mut accepted_at = Instant::now();
    loop {
        assert!(next < 100_000, "nothing holds the publisher back");
        match out.try_send(client, topic, next) {
            Publish::Accepted => {
                next += 1;
                accepted_at = Instant::now();
            }
            Publish::Blocked => {
                let patience = if next <= INBOX { 5000 } else { 500 };
                if accepted_at.elapsed() > Duration::from_millis(patience) {
                    return next;
                }
                out.poll(10_000_000);
            }
            Publish::Refused(why) => panic!("{why:?}"),
        }
    }
}

#[test]
fn a_reader_that_is_not_read_from_holds_its_publisher_back_and_loses_nothing() {
    for json in [
        json!({}),
        json!({"native": {"fastdds": {"preset": "default"}}}),
        json!({"transport": "shared-memory"}),
    ] {
        let scratch = tempfile::tempdir().expect("a folder");
        let mut out = open(&scratch, json.clone(), 1);
        let (client, topic) = out.publisher("full/t");
        let mut into = open(&scratch, json.clone(), 2);
        into.subscriber("full/t");
        prove(&mut out, &mut into, client, topic);

        let sent = fill(&mut out, client, topic);
        // More than the histories hold, so that samples waited in each place there is.
        assert!(sent > INBOX, "{json}: {sent}");
        assert!(sent <= HISTORIES + 2 * INBOX, "{json}: {sent}");
        run(&mut out, &mut into, 20 * SECOND, |_, into| {
            into.seen.got.len() as u32 >= sent
        });
        run(&mut out, &mut into, SECOND / 5, |_, _| false);
        assert_eq!(into.seen.got, (0..sent).collect::<Vec<u32>>(), "{json}");
        assert_eq!(into.seen.damaged, 0);
    }
}

#[test]
fn a_flood_arrives_in_order_and_wakes_the_reader() {
    const COUNT: u32 = 60_000;
    let scratch = tempfile::tempdir().expect("a folder");
    let mut into = open(&scratch, json!({}), 2);
    into.subscriber("flood/t");
    let heard = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut out = open(&scratch, json!({}), 1);
            let (client, topic) = out.publisher("flood/t");
            while !heard.load(Ordering::Relaxed) {
                out.put(client, topic, 0, Kind::Sentinel);
                std::thread::sleep(Duration::from_millis(20));
            }
            let mut next = 0;
            while next < COUNT {
                if out.try_send(client, topic, next) == Publish::Accepted {
                    next += 1;
                    // Now and then the reader catches up, and sleeps.
                    if next.is_multiple_of(1000) {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                } else {
                    out.poll(SECOND);
                }
            }
            out.fleet.close(Clock::Monotonic.now() + 10 * SECOND);
        });
        while into.seen.got.len() < COUNT as usize {
            let before = into.seen.all;
            into.poll(10 * SECOND);
            assert!(
                into.seen.all > before || before == 0,
                "not woken for 10 s after {before}"
            );
            heard.store(into.seen.sentinels > 0, Ordering::Relaxed);
        }
    });
    assert!(into.seen.got.iter().copied().eq(0..COUNT));
}

#[test]
fn readers_come_and_go_while_messages_flow() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut into = open(&scratch, json!({}), 2);
    let stays = into.subscriber("go/t");
    let mut out = open(&scratch, json!({}), 1);
    let (client, topic) = out.publisher("go/t");
    prove(&mut out, &mut into, client, topic);
    let goes = into.subscriber("go/t");
    let mut next = 0;
    for round in 0..40 {
        for _ in 0..200 {
            if out.try_send(client, topic, next) == Publish::Accepted {
                next += 1;
            } else {
                common::step(&mut out, &mut into);
            }
        }
        // In the middle of what arrives.
        if round % 2 == 0 {
            into.fleet.abort(goes);
        } else {
            into.fleet.reconnect(goes).expect("reconnects");
            into.poll(0);
            into.subscribe(goes, "go/t");
        }
        into.poll(0);
    }
    let of = |rig: &Rig, who| {
        let seen = rig.seen.got.iter().zip(&rig.seen.who);
        let of_it = seen.filter(|(_, client)| **client == who);
        of_it.map(|(sequence, _)| *sequence).collect::<Vec<u32>>()
    };
    run(&mut out, &mut into, 20 * SECOND, |_, into| {
        of(into, stays).len() as u32 >= next
    });
    assert!(of(&into, stays).iter().copied().eq(0..next));
    // And the other got what it got in order.
    let other = of(&into, goes);
    assert!(other.is_sorted_by(|a, b| a < b));
    let connected =
        |(c, change): &&(_, Change)| *c == goes && matches!(change, Change::Connected { .. });
    assert_eq!(into.seen.changes.iter().filter(connected).count(), 21);
}
