//! Checks of limits: rates, windows and queues.

use super::pair::Pair;
use super::proof::Proof;
use super::rig::PATIENCE;
use super::setup::CheckSetup;
use super::violation::Violation;
use pubgauge_driver::header::Kind;
use pubgauge_driver::seam::Publish;
use pubgauge_driver::settings::{Batching, OnFull};

/// Messages for the check of the rate that [`Capability::requesting_settings`](pubgauge_driver::Capability::requesting_settings)
/// asks for.
const MESSAGES: u32 = 400;
const BYTES: usize = 1000;

pub(super) fn rate(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let limit = setup
        .settings
        .rate_limit_bytes_per_s
        .ok_or("no rate was asked for")?;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let start = pair.out.clock.now();
    pair.send_all(0, MESSAGES, BYTES)?;
    pair.until("400 messages", |p| {
        p.into.seen.delivered.len() >= MESSAGES as usize
    })?;
    let took = (pair.out.clock.now() - start) as f64 / 1e9;
    let least = f64::from(MESSAGES) * BYTES as f64 / limit as f64;
    // The first burst may pass at once; headers are not counted here.
    if took < least * 0.8 {
        return Err(
            format!("400 kB at {limit} B/s came within {took:.2} s, not {least:.2} s").into(),
        );
    }
    if took > least * 2.5 {
        return Err(format!("400 kB at {limit} B/s took {took:.2} s, not {least:.2} s").into());
    }
    pair.close()
}

pub(super) fn in_flight(setup: &mut CheckSetup<'_>) -> Result<Proof, Violation> {
    let window = setup.settings.in_flight.ok_or("no window was asked for")?;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    if pair.out.fleet.has_threads() {
        return Ok(Proof::Unseen(
            "the client library takes acknowledgements in threads of its own",
        ));
    }
    let (client, topic) = pair.senders[0];
    pair.until("nothing unsettled", |p| p.out.fleet.unsettled() == 0)?;
    let mut accepted = 0;
    // Without a poll no acknowledgement is seen.
    while accepted < 10_000
        && pair.out.send(client, topic, 0, 64, Kind::Measured)? == Publish::Accepted
    {
        accepted += 1;
    }
    if accepted != window {
        return Err(format!(
            "{accepted} messages were taken before the first was acknowledged, not {window}"
        )
        .into());
    }
    pair.until("the release", |p| p.out.fleet.unsettled() == 0)?;
    pair.send_all(0, 1, 64)?;
    pair.close().map(|()| Proof::Shown)
}

/// Messages to three subscribers, each in a fleet of its own, are sent once for all; as the control, once for
/// each without the setting. Heartbeats add datagrams, the more the longer the messages take on a busy machine:
/// one of three attempts must show it.
pub(super) fn multicast(setup: &mut CheckSetup<'_>) -> Result<Proof, Violation> {
    (0..2)
        .find_map(|_| multicast_once(setup).ok())
        .map_or_else(|| multicast_once(setup), Ok)
}

fn multicast_once(setup: &mut CheckSetup<'_>) -> Result<Proof, Violation> {
    const COUNT: u64 = 100;
    let mut writes = [0; 2];
    for (asked, writes) in [true, false].into_iter().zip(&mut writes) {
        setup.settings.multicast = asked.then_some(true);
        setup.next();
        let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
        let mut others = Vec::new();
        for who in ["s1", "s2"] {
            let mut rig = setup.open(1)?;
            let joined = setup.client(&mut rig, who, false)?;
            rig.subscribe(joined.client, &setup.topic("t0"))?;
            others.push(rig);
        }
        // Each subscriber receives before datagrams are counted.
        let start = pair.out.clock.now();
        while others.iter().any(|rig| rig.seen.delivered.is_empty()) {
            if pair.out.clock.now() - start > PATIENCE {
                return Err("three subscribers were not all reached within 10 s".into());
            }
            pair.send_all(0, 1, 1000)?;
            pair.out.poll(20_000_000)?;
            pair.into.poll(1_000_000)?;
            for rig in &mut others {
                rig.poll(1_000_000)?;
            }
        }
        pair.quiet()?;
        let Some(before) = pair.out.fleet.writes() else {
            return Ok(Proof::Unseen(
                "how often a message was transmitted shows on the wire only",
            ));
        };
        for _ in 0..COUNT {
            // One by one, so that no two share a datagram.
            pair.send_all(0, 1, 1000)?;
            pair.out.poll(2_000_000)?;
            pair.into.poll(0)?;
            for rig in &mut others {
                rig.poll(0)?;
            }
        }
        *writes = pair.out.fleet.writes().unwrap_or(before) - before;
        for rig in &mut others {
            rig.fleet.close(rig.clock.now() + 1_000_000_000);
        }
        pair.close()?;
    }
    let [once, each] = writes;
    if each < 5 * COUNT / 2 || 8 * once > 5 * each {
        return Err(format!(
            "{COUNT} messages to 3 subscribers went out in {once} datagrams, and in {each} without multicast"
        ).into());
    }
    Ok(Proof::Shown)
}

/// Many messages in a row, and the number of system calls for them.
pub(super) fn batching(setup: &mut CheckSetup<'_>) -> Result<Proof, Violation> {
    const ROW: u32 = 50;
    const ROWS: u32 = 40;
    const COUNT: u32 = ROW * ROWS;
    const LEN: usize = 100;
    // Adaptive batches depend on the rate, which a busy machine lowers: 677 and 1308 calls were seen on one.
    const TRIES: u32 = 5;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let mut tries = 1;
    loop {
        let Some(before) = pair.out.fleet.writes() else {
            return Ok(Proof::Unseen(
                "the client library writes by itself: how messages were gathered shows on the wire only",
            ));
        };
        let bytes = pair.out.fleet.wire_bytes().sent;
        // In rows that no window of unacknowledged messages splits: a message that waited for an
        // acknowledgement has no other to share a batch with.
        let first = pair.into.seen.delivered.len();
        for row in 1..=ROWS {
            pair.send_all(0, ROW, LEN)?;
            pair.until("a row of messages", |p| {
                p.into.seen.delivered.len() >= first + (row * ROW) as usize
            })?;
        }
        let writes = pair.out.fleet.writes().unwrap_or(before) - before;
        let bytes = pair.out.fleet.wire_bytes().sent - bytes;
        let (fine, is_adaptive) = match setup.settings.batching {
            Some(Batching::Off) => (writes >= u64::from(COUNT), false),
            // No message waits for a batch to fill: the last batch of a row may be smaller, and so may
            // one that acknowledgements ended.
            Some(Batching::Bytes(size)) => {
                let least = bytes / (u64::from(size) + 2 * LEN as u64);
                ((least..=u64::from(COUNT) / 4).contains(&writes), false)
            }
            _ => (writes <= u64::from(COUNT) / 2, true),
        };
        if fine {
            return pair.close().map(|()| Proof::Shown);
        }
        if !is_adaptive || tries == TRIES {
            return Err(
                format!("{COUNT} messages ({bytes} B) went out in {writes} system calls").into(),
            );
        }
        tries += 1;
    }
}

/// Messages of 2000 B: more bytes than sockets hold, so only the system's own limit can act.
const FLOOD: u32 = 30_000;

/// The publisher's side of messages that nobody read.
#[derive(Default)]
struct Flood {
    accepted: usize,
    blocked: u32,
    dropped: u32,
}

/// Sends until the limit was reached fifty times, 30,000 messages were taken, or 8 s passed.
fn flood(pair: &mut Pair) -> Result<Flood, Violation> {
    let (client, topic) = pair.senders[0];
    let mut flood = Flood::default();
    let start = pair.out.clock.now();
    while flood.accepted < FLOOD as usize
        && flood.blocked + flood.dropped < 50
        && pair.out.clock.now() - start < 8_000_000_000
    {
        match pair.out.send(client, topic, 0, 2000, Kind::Measured)? {
            Publish::Accepted => flood.accepted += 1,
            Publish::Blocked => {
                flood.blocked += 1;
                pair.out.poll(5_000_000)?;
            }
            Publish::Refused(_) => flood.dropped += 1,
        }
        if flood.accepted.is_multiple_of(64) {
            pair.out.poll(0)?;
        }
    }
    Ok(flood)
}

/// The subscriber does not read: the limit must be reached, and the system then do `what`.
pub(super) fn queue(setup: &mut CheckSetup<'_>, what: Option<OnFull>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let mut pause = |paused| {
        if let Some(server) = setup.server.as_mut() {
            let _ = server.pause(paused);
        }
    };
    pause(true);
    let flood = flood(&mut pair);
    pause(false);
    let Flood {
        accepted,
        blocked,
        dropped,
    } = flood?;
    // Now the subscriber reads. Dropped messages never come; a busy server may be slow with others.
    let mut progress = (pair.out.clock.now(), 0);
    while pair.into.seen.delivered.len() < accepted {
        pair.out.poll(1_000_000)?;
        pair.into.poll(5_000_000)?;
        let (now, came) = (pair.out.clock.now(), pair.into.seen.delivered.len());
        if came != progress.1 {
            progress = (now, came);
        } else if now - progress.0 > 4_000_000_000 {
            break;
        }
    }
    let before = pair.into.seen.delivered.len();
    let lost = accepted - before.min(accepted);
    match what {
        None if blocked == 0 && dropped == 0 && lost == 0 => Err(format!(
            "{accepted} messages were taken and delivered although nobody read: there is no limit"
        ).into()),
        Some(OnFull::Block) if blocked == 0 || lost > 0 || dropped > 0 => Err(format!(
            "of {accepted} messages {lost} were lost, {dropped} were refused, and the publisher was held back {blocked} times"
        ).into()),
        Some(OnFull::Drop) if lost == 0 && dropped == 0 => Err(format!(
            "none of {accepted} messages was dropped, and the publisher was held back {blocked} times"
        ).into()),
        _ => pair.close(),
    }
}
