//! Checks of what a system keeps for clients that are away or late: sessions, last values, messages
//! that survive an end of the server, messages that expire, and messages that overtake a backlog.

use super::pair::Pair;
use super::proof::Proof;
use super::rig::{Heard, numbers};
use super::setup::CheckSetup;
use super::violation::Violation;
use pubgauge_driver::header::Kind;
use pubgauge_driver::seam::{Change, ClientId, ClientSpec, Publish};
use pubgauge_driver::settings::{Durability, Reliability, Settings};
use pubgauge_driver::{Nanos, ServerEnd};

pub(super) fn durable(setup: &mut CheckSetup<'_>, durability: Durability) -> Result<(), Violation> {
    match (setup.with_session(), durability) {
        (Some(session), _) => setup.settings = session,
        (None, Durability::Memory) => return forgets(setup),
        (None, _) => {
            return Err("no message can wait for somebody who is away: nothing survives".into());
        }
    }
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    setup.leave(&mut pair)?;
    pair.send_all(0, 20, 64)?;
    setup.settle(&mut pair)?;
    // SIGKILL leaves no time to save: messages in memory are lost then, synced ones survive.
    let how = match durability {
        Durability::Disk => ServerEnd::Stopped,
        Durability::Memory | Durability::DiskSynced => ServerEnd::Killed,
    };
    pair.out.fleet.disconnect(pair.senders[0].0);
    pair.out.poll(20_000_000)?;
    let server = setup
        .server
        .as_mut()
        .ok_or("there is no server to restart")?;
    server.restart(how).map_err(|error| error.to_string())?;
    setup.come_back(&mut pair)?;
    match durability {
        Durability::Memory => wait(&mut pair, 1_500_000_000)?,
        Durability::Disk | Durability::DiskSynced => {
            // The number that came is reported below.
            let _ = pair.until("20 messages", |p| {
                numbers(&p.into.seen.delivered).len() >= 20
            });
        }
    }
    let came = numbers(&pair.into.seen.delivered).len();
    match durability {
        Durability::Memory if came > 0 => Err(format!(
            "{came} of 20 messages survived a kill: they were not kept in memory only"
        )
        .into()),
        Durability::Disk | Durability::DiskSynced if came < 20 => {
            Err(format!("{came} of 20 messages survived").into())
        }
        _ => pair.close(),
    }
}

/// Where no session can wait, messages published before an end do not come after it. A system
/// without a server ends with its publisher.
fn forgets(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    pair.send_all(0, 20, 64)?;
    pair.until("20 messages", |p| p.into.seen.delivered.len() >= 20)?;
    let (publisher, _) = pair.senders[0];
    pair.into.fleet.abort(ClientId(0));
    match setup.server.as_mut() {
        Some(server) => server
            .restart(ServerEnd::Killed)
            .map_err(|error| error.to_string())?,
        None => pair.out.fleet.abort(publisher),
    }
    pair.out.poll(50_000_000)?;
    pair.into.seen.changes.clear();
    pair.out.seen.changes.clear();
    pair.into.seen.delivered.clear();
    let back = pair.out.reconnect(publisher)?;
    match back {
        // Messages at the old address are gone with it: the subscriber now connects to the new one.
        // A server comes back at its address.
        Change::Connected {
            address: Some(address),
            ..
        } if setup.server.is_none() => {
            let (client, _) = pair.into.connect(ClientSpec {
                name: setup.name("new"),
                subscribes: true,
                peers: vec![address],
                ..ClientSpec::default()
            })?;
            pair.into.subscribe(client, &setup.topic("t0"))?;
        }
        _ => {
            setup.come_back(&mut pair)?;
        }
    }
    wait(&mut pair, 1_000_000_000)?;
    let before = pair.into.seen.delivered.iter().filter(|m| m.sequence < 20);
    match before.count() {
        0 => pair.close(),
        n => Err(format!("{n} of 20 messages came again after the end").into()),
    }
}

pub(super) fn durable_session(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    setup.settings = setup.with_session().ok_or("no settings keep a session")?;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    setup.leave(&mut pair)?;
    pair.send_all(0, 50, 64)?;
    setup.settle(&mut pair)?;
    let present = setup.come_back(&mut pair)?;
    pair.until("50 messages sent meanwhile", |p| {
        numbers(&p.into.seen.delivered).len() >= 50
    })?;
    if !present {
        return Err("what was missed came, but the client was told that it had no session".into());
    }
    pair.close()
}

/// Time after which a system has dropped what an early subscriber had to acknowledge, ns.
const ACKNOWLEDGED: Nanos = 3_000_000_000;

pub(super) fn last_value(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let topic = setup.topic("t0");
    let mut pair = setup.pair(1, 1, &topic)?;
    pair.send_all(0, 3, 64)?;
    // A slow system may not have taken in the values yet, and a subscriber that joins then rightly
    // gets them one by one. A subscriber that has received the last one shows that all are there.
    pair.until("the last of 3 messages", |p| {
        p.into.seen.delivered.iter().any(|m| m.sequence == 2)
    })?;
    setup.settle(&mut pair)?;
    // A system may keep earlier values for the early subscriber until it has acknowledged them, and give them to a new
    // one too: allowed for a while.
    let until = pair.out.clock.now() + ACKNOWLEDGED;
    let mut early = None;
    loop {
        let mut late = setup.open(1)?;
        let (client, _) = late.connect(ClientSpec {
            name: setup.name("late"),
            subscribes: true,
            peers: pair.out.addresses.clone(),
            ..ClientSpec::default()
        })?;
        late.subscribe(client, &topic)?;
        // The early subscriber stays connected: with its end the topic itself may go (a node of XMPP).
        let before = std::mem::replace(&mut pair.into, late);
        early.get_or_insert(before);
        pair.until("the last value", |p| {
            p.into.seen.delivered.iter().any(|m| m.sequence == 2)
        })?;
        pair.quiet()?;
        match pair.into.seen.delivered[..] {
            [
                Heard {
                    sequence: 2,
                    retained: true,
                    ..
                },
            ] => break,
            [Heard { sequence: 2, .. }] => {
                return Err("the last value came, but not marked as one that was kept".into());
            }
            _ if pair.out.clock.now() < until => {}
            ref other => {
                let numbers: Vec<u32> = other.iter().map(|m| m.sequence).collect();
                return Err(format!("a late subscriber got {numbers:?} in place of [2]").into());
            }
        }
    }
    // A message published now is not an old value.
    pair.send_all(0, 1, 64)?;
    pair.until("a new message", |p| p.into.seen.delivered.len() > 1)?;
    if pair.into.seen.delivered[1].retained {
        return Err("a message published just now is marked as one that was kept".into());
    }
    if let Some(mut early) = early {
        early.fleet.close(early.clock.now() + 2_000_000_000);
    }
    pair.close()
}

/// Longer than the lifespan that is asked for, 1 s, plus the time of a system that checks once a
/// second; ns.
const EXPIRED: u64 = 2_600_000_000;

pub(super) fn lifespan(setup: &mut CheckSetup<'_>) -> Result<Proof, Violation> {
    if let Some(session) = setup.with_session() {
        setup.settings = session;
        let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
        setup.leave(&mut pair)?;
        pair.send_all(0, 5, 64)?;
        wait(&mut pair, EXPIRED)?;
        // The control: younger messages are kept.
        pair.send_all(0, 5, 64)?;
        pair.out.poll(50_000_000)?;
        setup.come_back(&mut pair)?;
        pair.until("the messages that live", |p| {
            p.into.seen.delivered.len() >= 5
        })?;
        pair.quiet()?;
        // In which order is a matter of another check: a server that sweeps its queue meanwhile may change it.
        let mut came: Vec<u32> = pair
            .into
            .seen
            .delivered
            .iter()
            .map(|m| m.sequence)
            .collect();
        came.sort_unstable();
        if came != [5, 6, 7, 8, 9] {
            return Err(
                format!("of messages 0 to 9, of which 0 to 4 expired, {came:?} came").into(),
            );
        }
        return pair.close().map(|()| Proof::Shown);
    }
    let kept = [
        None,
        Some(Reliability::Reliable),
        Some(Reliability::AtLeastOnce),
    ]
    .map(|reliability| Settings {
        last_value: Some(true),
        reliability: reliability.or(setup.settings.reliability),
        ..setup.settings.clone()
    })
    .into_iter()
    .find(|s| setup.driver.resolve(s, setup.target).is_ok());
    let Some(kept) = kept else {
        return Ok(Proof::Unseen(
            "messages wait for nobody, so none can expire",
        ));
    };
    setup.settings = kept;
    for (late, expected) in [(false, 1), (true, 0)] {
        setup.next();
        let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
        pair.send_all(0, 1, 64)?;
        pair.until("the message itself", |p| !p.into.seen.delivered.is_empty())?;
        if late {
            wait(&mut pair, EXPIRED)?;
        }
        pair.into.seen.delivered.clear();
        let late_one = setup.client(&mut pair.into, "late", false)?;
        if let Some(address) = late_one.address {
            let _ = pair.into.fleet.add_peer(late_one.client, &address);
        }
        pair.into.subscribe(late_one.client, &setup.topic("t0"))?;
        let start = pair.out.clock.now();
        let patience = if late { 800_000_000 } else { 900_000_000 };
        while pair.out.clock.now() - start < patience
            && pair.into.seen.delivered.len() < expected.max(1)
        {
            pair.out.poll(5_000_000)?;
            pair.into.poll(20_000_000)?;
        }
        let came = pair.into.seen.delivered.len();
        pair.close()?;
        if came != expected {
            return Err(if late {
                "a message that had expired reached a late subscriber".into()
            } else {
                "a message that had not expired did not reach a late subscriber".into()
            });
        }
    }
    Ok(Proof::Shown)
}

fn wait(pair: &mut Pair, ns: u64) -> Result<(), Violation> {
    let until = pair.out.clock.now() + ns;
    while pair.out.clock.now() < until {
        pair.out.poll(20_000_000)?;
        pair.into.poll(1_000_000)?;
    }
    Ok(())
}

pub(super) fn priority(setup: &mut CheckSetup<'_>) -> Result<Proof, Violation> {
    let Some(session) = setup.with_session() else {
        return Ok(Proof::Unseen(
            "no backlog can be made that a message could overtake",
        ));
    };
    setup.settings = Settings {
        priority: Some(-5),
        ..session
    };
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    setup.leave(&mut pair)?;
    pair.send_all(0, 200, 64)?;
    setup.settle(&mut pair)?;
    setup.settings.priority = Some(9);
    let mut urgent = setup.open(1)?;
    let publisher = setup.client(&mut urgent, "urgent", true)?;
    let topic = urgent
        .fleet
        .advertise(publisher.client, &setup.topic("t0"))?;
    for _ in 0..5 {
        while urgent.send(publisher.client, topic, 77, 64, Kind::Measured)? != Publish::Accepted {
            urgent.poll(5_000_000)?;
        }
        urgent.poll(50_000_000)?;
    }
    setup.come_back(&mut pair)?;
    pair.until("205 messages", |p| p.into.seen.delivered.len() >= 205)?;
    let overtook = |m: &Heard| m.stream == 77;
    let first = pair.into.seen.delivered[..5]
        .iter()
        .filter(|m| overtook(m))
        .count();
    urgent.fleet.close(urgent.clock.now() + 1_000_000_000);
    if first != 5 {
        return Err(
            format!("{first} of 5 messages of high priority overtook a backlog of 200").into(),
        );
    }
    pair.close().map(|()| Proof::Shown)
}
