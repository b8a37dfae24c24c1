//! The checks of the suite.

use std::collections::{HashMap, HashSet};

use super::pair::Pair;
use super::promises;
use super::rig::{LARGEST, PATIENCE};
use super::setup::CheckSetup;
use super::violation::Violation;
use pubgauge_driver::clock::Clock;
use pubgauge_driver::header::Kind;
use pubgauge_driver::seam::{Change, ClientId, ClientSpec, Publish, Refusal};
use pubgauge_driver::settings::{Reliability, Settings};
use pubgauge_driver::{Check, ServerEnd};

/// Finds out whether a system passes; the error says how it behaved otherwise.
type CheckFn = fn(&mut CheckSetup<'_>) -> Result<(), Violation>;

/// Runs a check.
pub(super) fn run(check: Check, setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let run: CheckFn = match check {
        Check::ResolveAnswers => resolve_answers,
        Check::RefusesBeforeConnected => refuses_before_connected,
        Check::DeliversInOrder => delivers_in_order,
        Check::Sizes => sizes,
        Check::OtherTopics => other_topics,
        Check::Many => many_clients,
        Check::ManySubscriptions => many_subscriptions,
        Check::LateSubscriber => late_subscriber,
        Check::BackPressure => back_pressure,
        Check::Acknowledges => acknowledges,
        Check::PollKeepsTime => poll_keeps_time,
        Check::PublisherCrash => publisher_crash,
        Check::SubscriberCrash => subscriber_crash,
        Check::Closes => closes,
        Check::Disconnect => promises::disconnect,
        Check::Close => promises::close,
        Check::WireBytes => promises::bytes,
        Check::UserProperties => promises::user_properties,
        Check::CleanStart => promises::clean_start,
        Check::Idle => promises::idle,
        Check::Subscribed => promises::subscribed,
        Check::Killed => killed,
    };
    run(setup)
}

fn resolve_answers(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let answers = setup
        .driver
        .resolve(&setup.settings, setup.target)
        .map_err(|u| format!("refuses its own settings: {u:?}"))?;
    let missing: Vec<&str> = Settings::NAMES
        .into_iter()
        .filter(|name| !answers.iter().any(|a| a.setting == *name))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("no answer for {}", missing.join(", ")).into())
    }
}

fn refuses_before_connected(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut rig = setup.open(1)?;
    let spec = ClientSpec {
        name: setup.name("early"),
        publishes: true,
        ..ClientSpec::default()
    };
    let (client, _) = rig.connect(spec)?;
    let topic = rig.fleet.advertise(client, &setup.topic("early"))?;
    rig.fleet.abort(client);
    match rig.send(client, topic, 0, 64, Kind::Measured)? {
        Publish::Refused(Refusal::NotConnected) => {
            rig.fleet.close(rig.clock.now());
            Ok(())
        }
        other => Err(format!("publishing without a connection gave {other:?}").into()),
    }
}

fn delivers_in_order(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    // Many, but no more than a slow system takes in a few seconds.
    let start = pair.out.clock.now();
    let mut sent = 0;
    while sent < 20_000 && pair.out.clock.now() - start < 4_000_000_000 {
        pair.send_all(0, 100, 64)?;
        sent += 100;
    }
    pair.until("all messages", |p| p.into.seen.delivered.len() >= sent)?;
    for (n, heard) in pair.into.seen.delivered.iter().enumerate() {
        if heard.sequence != n as u32 {
            return Err(format!("message {} came in place of {n}", heard.sequence).into());
        }
    }
    setup.check_names(&pair)?;
    pair.close()
}

fn sizes(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let sizes = [
        16, 17, 28, 29, 33, 64, 127, 128, 250, 251, 255, 256, 1000, 1024, 8191, 8192, 16_383,
        16_384, 65_536, 300_000, LARGEST,
    ];
    for (n, len) in sizes.into_iter().enumerate() {
        pair.send_all(0, 1, len)?;
        pair.until("one message", |p| p.into.seen.delivered.len() > n)?;
        let got = pair.into.seen.delivered[n].len;
        if got != len {
            return Err(format!("{len} B were sent and {got} B came").into());
        }
    }
    pair.close()
}

fn other_topics(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    // The subscriber subscribes to `t0` only; the second publisher's topic has the same prefix.
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let (client, _) = pair.senders[0];
    let other = pair.out.fleet.advertise(client, &setup.topic("t0x"))?;
    pair.out.send(client, other, 7, 64, Kind::Measured)?;
    pair.send_all(0, 1, 64)?;
    pair.until("the wanted message", |p| !p.into.seen.delivered.is_empty())?;
    pair.quiet()?;
    if pair.into.seen.delivered.len() != 1 {
        return Err("a message of a topic that was not subscribed to came".into());
    }
    pair.close()
}

fn many_clients(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(3, 2, &format!("{}/#", setup.base()))?;
    for sender in 0..3 {
        pair.send_all(sender, 500, 64)?;
    }
    pair.until("3 x 500 messages for each of 2", |p| {
        p.into.seen.delivered.len() >= 3000
    })?;
    pair.quiet()?;
    let mut next: HashMap<(ClientId, u32), u32> = HashMap::new();
    for heard in &pair.into.seen.delivered {
        let expected = next.entry((heard.client, heard.stream)).or_default();
        if heard.sequence != *expected {
            return Err(format!(
                "stream {}: message {} came in place of {expected}",
                heard.stream, heard.sequence
            )
            .into());
        }
        *expected += 1;
    }
    if next.len() != 6 || next.values().any(|n| *n != 500) {
        return Err(format!("unequal shares: {:?}", next.values().collect::<Vec<_>>()).into());
    }
    setup.check_names(&pair)?;
    pair.close()
}

/// Subscriptions of one client: as many as a gateway or a dashboard has. Servers have limits for what a session may
/// have under way over all of them.
const SUBSCRIPTIONS: usize = 200;

/// One client subscribes to each topic by its name, where the system can with QoS 1 if a reliability was asked for at
/// all, and gets a message of each.
fn many_subscriptions(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let asked = setup.settings.clone();
    let acknowledged = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..asked.clone()
    };
    if asked.reliability.is_some() && setup.driver.resolve(&acknowledged, setup.target).is_ok() {
        setup.settings = acknowledged;
    }
    let outcome = subscribed_to_many(setup);
    setup.settings = asked;
    outcome
}

fn subscribed_to_many(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let topics: Vec<String> = (0..SUBSCRIPTIONS)
        .map(|n| setup.topic(&format!("t{n}")))
        .collect();
    let mut pair = setup.pair(1, 1, &topics[0])?;
    let (publisher, _) = pair.senders[0];
    for topic in &topics[1..] {
        let advertised = pair.out.fleet.advertise(publisher, topic);
        pair.senders.push((publisher, advertised?));
    }
    for (nth, topic) in topics.iter().enumerate().skip(1) {
        let asked = pair.into.ask(ClientId(0), topic, None);
        asked.map_err(|why| format!("subscription {} of one client: {why}", nth + 1))?;
    }
    for nth in 1..SUBSCRIPTIONS {
        let subscribed = pair.into.subscribed(ClientId(0));
        subscribed.map_err(|why| format!("subscription {} of one client: {why}", nth + 1))?;
    }
    pair.prove(1)?;
    for sender in 0..SUBSCRIPTIONS {
        pair.send_all(sender, 1, 64)?;
    }
    let streams = |p: &Pair| {
        let streams: HashSet<u32> = p.into.seen.delivered.iter().map(|m| m.stream).collect();
        streams.len()
    };
    pair.until("a message of each of 200 subscriptions", |p| {
        streams(p) == SUBSCRIPTIONS
    })?;
    setup.check_names(&pair)?;
    pair.close()
}

fn late_subscriber(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    // `pair` publishes sentinels before and after the subscription: those before it must not
    // prevent the delivery of those after it, and all later messages arrive.
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    pair.send_all(0, 100, 64)?;
    pair.until("100 messages", |p| p.into.seen.delivered.len() >= 100)?;
    let first = pair.into.seen.delivered[0].sequence;
    if first != 0 {
        return Err(
            format!("the first message after readiness was lost: {first} came first").into(),
        );
    }
    pair.close()
}

fn back_pressure(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    if !setup.driver.traits(&setup.settings).back_pressure {
        return Ok(());
    }
    // The subscriber pauses; then everything must arrive and the publisher be notified.
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let (client, topic) = pair.senders[0];
    let start = pair.out.clock.now();
    let mut sent = 0usize;
    let mut blocked = false;
    while pair.out.clock.now() - start < 3_000_000_000 && !blocked && sent < 4_000 {
        match pair.out.send(client, topic, 0, 100_000, Kind::Measured)? {
            Publish::Accepted => sent += 1,
            Publish::Blocked => {
                blocked = true;
                for _ in 0..50 {
                    pair.out.poll(2_000_000)?;
                }
            }
            Publish::Refused(why) => return Err(format!("refused: {why:?}").into()),
        }
    }
    pair.until("everything that was accepted", |p| {
        p.into.seen.delivered.len() >= sent
    })?;
    if blocked {
        let writable = |p: &Pair| {
            p.out
                .seen
                .changes
                .iter()
                .any(|(c, change)| *c == client && *change == Change::Writable)
        };
        pair.until("word that a blocked publisher may go on", writable)?;
        pair.send_all(0, 1, 64)?;
        pair.until("a message after the release", |p| {
            p.into.seen.delivered.len() > sent
        })?;
    }
    pair.close()
}

fn acknowledges(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let promised = setup.driver.traits(&setup.settings).acknowledges;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    pair.send_all(0, 300, 64)?;
    pair.until("300 messages", |p| p.into.seen.delivered.len() >= 300)?;
    if promised {
        pair.until("300 acknowledgements", |p| {
            p.out.seen.acknowledged.len() >= 300
        })?;
        pair.until("nothing unsettled", |p| p.out.fleet.unsettled() == 0)?;
    }
    let mut tags: Vec<u64> = pair
        .out
        .seen
        .acknowledged
        .iter()
        .map(|(_, tag, _)| *tag)
        .collect();
    tags.sort_unstable();
    let expected: Vec<u64> = if promised {
        (0..300).collect()
    } else {
        Vec::new()
    };
    if tags != expected {
        return Err(format!(
            "{} acknowledgements with other tags than were given",
            tags.len()
        )
        .into());
    }
    pair.close()
}

fn poll_keeps_time(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    // A crowded machine may delay either, but not each time.
    let mut last = Ok(());
    for _ in 0..4 {
        last = keeps_time(&mut pair);
        if last.is_ok() {
            break;
        }
    }
    last?;
    pair.close()
}

/// Compares the median lateness of polls with that of plain sleeps, the machine's own noise.
fn keeps_time(pair: &mut Pair) -> Result<(), Violation> {
    let (mut late, mut noise) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let until = pair.out.clock.now() + 1_500_000;
        while pair.out.clock.now() < until {
            pair.out.fleet.poll(until, &mut pair.out.seen)?;
        }
        late.push(pair.out.clock.now() - until);
        let until = pair.out.clock.now() + 1_500_000;
        std::thread::sleep(std::time::Duration::from_nanos(1_500_000));
        noise.push(pair.out.clock.now().saturating_sub(until));
    }
    late.sort_unstable();
    noise.sort_unstable();
    // A driver that rounds to whole milliseconds is late by 0.5 ms at the median.
    if late[20] > noise[20] + 400_000 {
        return Err(format!(
            "the median wake-up was {} us late, and that of a plain sleep {} us",
            late[20] / 1000,
            noise[20] / 1000
        )
        .into());
    }
    Ok(())
}

fn publisher_crash(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let (client, topic) = pair.senders[0];
    pair.out.fleet.abort(client);
    pair.out.poll(50_000_000)?;
    pair.out.seen.changes.clear();
    // A brokerless publisher may have a new address.
    let address = match pair.out.reconnect(client)? {
        Change::Connected { address, .. } => address,
        _ => None,
    };
    let tell = |pair: &mut Pair| {
        if let Some(address) = &address {
            let _ = pair.into.fleet.add_peer(ClientId(0), address);
        }
    };
    tell(&mut pair);
    let start = pair.out.clock.now();
    while pair.into.seen.delivered.is_empty() {
        // Its peers may be slow to notice that it is back.
        if pair.out.clock.now() - start > 3 * PATIENCE {
            return Err("nothing came from a publisher that had crashed and come back".into());
        }
        pair.out.send(client, topic, 0, 64, Kind::Measured)?;
        pair.out.poll(5_000_000)?;
        pair.into.poll(20_000_000)?;
        // One that notices only now that it was away gives up what it was told meanwhile.
        let is_loss = |(_, change): (ClientId, Change)| matches!(change, Change::Failed(_));
        if pair.into.seen.changes.drain(..).any(is_loss) {
            tell(&mut pair);
        }
    }
    pair.close()
}

fn subscriber_crash(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    pair.send_all(0, 10, 64)?;
    pair.until("10 messages", |p| p.into.seen.delivered.len() >= 10)?;
    pair.into.fleet.abort(ClientId(0));
    pair.into.poll(50_000_000)?;
    pair.into.seen.changes.clear();
    resubscribe(setup, &mut pair)?;
    pair.into.seen.delivered.clear();
    pair.hears_again()?;
    pair.close()
}

fn killed(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let (client, _) = pair.senders[0];
    pair.send_all(0, 10, 64)?;
    pair.until("10 messages", |p| p.into.seen.delivered.len() >= 10)?;
    let server = setup.server.as_mut().ok_or("there is no server to kill")?;
    server
        .restart(ServerEnd::Killed)
        .map_err(|error| error.to_string())?;
    for rig in [&mut pair.out, &mut pair.into] {
        let start = rig.clock.now();
        let noticed = |c: &(ClientId, Change)| matches!(c.1, Change::Failed(_));
        while !rig.seen.changes.iter().any(noticed) {
            if rig.clock.now() - start > PATIENCE {
                return Err(
                    "a client did not notice within 10 s that its server was killed".into(),
                );
            }
            rig.poll(20_000_000)?;
        }
        rig.seen.changes.clear();
    }
    pair.out.reconnect(client)?;
    resubscribe(setup, &mut pair)?;
    pair.into.seen.delivered.clear();
    pair.hears_again()?;
    pair.close()
}

/// Subscribes to `t0` again.
fn resubscribe(setup: &CheckSetup<'_>, pair: &mut Pair) -> Result<(), Violation> {
    let client = ClientId(0);
    pair.into.reconnect(client)?;
    pair.into.subscribe(client, &setup.topic("t0"))
}

fn closes(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let pair = setup.pair(2, 2, &format!("{}/#", setup.base()))?;
    let start = pair.out.clock.now();
    pair.close()?;
    let took = Clock::Monotonic.now() - start;
    if took > 5_000_000_000 {
        Err(format!("closing took {} ms", took / 1_000_000).into())
    } else {
        Ok(())
    }
}
