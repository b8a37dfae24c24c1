//! One check for each capability: it fails if a system that claims the capability does not have it.

use std::collections::BTreeMap;

use super::pair::Pair;
use super::proof::Proof;
use super::rig::{Heard, numbers};
use super::setup::CheckSetup;
use super::violation::Violation;
use super::{limits, retention};
use pubgauge_driver::capability::{Capability, Filtering};
use pubgauge_driver::header::Kind;
use pubgauge_driver::seam::{ClientId, ClientSpec, Publish, Target};
use pubgauge_driver::settings::{MessagingPattern, OnFull, Reliability, Settings};
use pubgauge_driver::{Driver, Lifecycle};

/// Tries a capability that a system claims. `server` lets the check end the system's server, which
/// durability needs.
///
/// # Errors
/// How the system behaved otherwise.
pub fn prove<'a>(
    driver: &'a dyn Driver,
    target: &'a Target,
    capability: Capability,
    server: Option<&'a mut dyn Lifecycle>,
) -> Result<Proof, Violation> {
    let settings = capability.settings(driver, target).unwrap_or_default();
    let mut setup = CheckSetup::new(driver, target, settings);
    setup.next();
    let shown = |()| Proof::Shown;
    match capability {
        Capability::Pattern(MessagingPattern::PublishSubscribe) => {
            publish_subscribe(&mut setup).map(shown)
        }
        Capability::Pattern(MessagingPattern::PointToPoint) => {
            point_to_point(&mut setup).map(shown)
        }
        Capability::Pattern(MessagingPattern::RequestReply) => request_reply(&mut setup).map(shown),
        Capability::Filter(filter) => filters(&mut setup, filter).map(shown),
        Capability::Group => group(&mut setup).map(shown),
        Capability::Reliability(reliability) => reliable(&mut setup, reliability).map(shown),
        Capability::Durability(durability) => {
            setup.server = server;
            retention::durable(&mut setup, durability).map(shown)
        }
        Capability::DurableSession => retention::durable_session(&mut setup).map(shown),
        Capability::LastValue => retention::last_value(&mut setup).map(shown),
        Capability::Lifespan => retention::lifespan(&mut setup),
        Capability::Priority => retention::priority(&mut setup),
        Capability::Multicast => limits::multicast(&mut setup),
        Capability::BatchingOff | Capability::BatchingFixed | Capability::BatchingAdaptive => {
            limits::batching(&mut setup)
        }
        Capability::RateLimit => limits::rate(&mut setup).map(shown),
        Capability::InFlight => limits::in_flight(&mut setup),
        Capability::QueueLimit => limits::queue(&mut setup, None).map(shown),
        Capability::OnFull(what) => {
            // There must be a limit that can be reached.
            let limited = Settings {
                queue_limit: Some(100),
                ..setup.settings.clone()
            };
            if driver.resolve(&limited, target).is_ok() {
                setup.settings = limited;
            } else if what == OnFull::Drop {
                let window = Settings {
                    in_flight: Some(8),
                    ..setup.settings.clone()
                };
                if driver.resolve(&window, target).is_ok() {
                    setup.settings = window;
                }
            }
            // Without a limit of its own a fast server would take everything: its processes are
            // stopped.
            setup.server = server.filter(|_| setup.settings.queue_limit.is_none());
            limits::queue(&mut setup, Some(what)).map(shown)
        }
        Capability::Topology(_) => Ok(Proof::Unseen("clients see addresses only")),
        Capability::PayloadAgnostic | Capability::BinaryPayload => payloads(&mut setup).map(shown),
    }
}

fn publish_subscribe(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 2, &setup.topic("t0"))?;
    pair.send_all(0, 50, 64)?;
    pair.until("50 messages for each of 2", |p| {
        p.into.seen.delivered.len() >= 100
    })?;
    for client in [0, 1] {
        let own = |m: &&Heard| m.client == ClientId(client);
        if pair.into.seen.delivered.iter().filter(own).count() != 50 {
            return Err("the subscribers did not get 50 messages each".into());
        }
    }
    pair.close()
}

fn point_to_point(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let receiver = |setup: &CheckSetup<'_>, pair: &mut Pair, who: &str| {
        let (client, _) = pair.into.connect(ClientSpec {
            name: setup.name(who),
            subscribes: true,
            // Without these addresses it would receive nothing in any case.
            peers: pair.out.addresses.clone(),
            ..ClientSpec::default()
        })?;
        Ok::<_, Violation>(client)
    };
    // A second receiver at the same address gets some of the messages, or is not let in.
    let second = receiver(setup, &mut pair, "second")?;
    let shares = pair.into.subscribe(second, &setup.topic("t0")).is_ok();
    // A receiver at another address gets none of them.
    let other = receiver(setup, &mut pair, "other")?;
    pair.into.subscribe(other, &setup.topic("t1"))?;
    pair.quiet()?;
    pair.into.seen.delivered.clear();
    pair.send_all(0, 50, 64)?;
    pair.until("50 messages", |p| p.into.seen.delivered.len() >= 50)?;
    pair.quiet()?;
    let heard = &pair.into.seen.delivered;
    if heard.len() != 50 {
        return Err(format!(
            "50 messages to one address arrived {} times{}",
            heard.len(),
            if shares { " at its two receivers" } else { "" }
        )
        .into());
    }
    if heard.iter().any(|m| m.client == other) {
        return Err("a message reached another address than it was sent to".into());
    }
    pair.close()
}

fn request_reply(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut there = setup.pair(1, 1, &setup.topic("t0"))?;
    // The reverse path: the requester subscribes to answers, the responder publishes them.
    setup.next();
    let mut back = setup.pair(1, 1, &setup.topic("t0"))?;
    for n in 0..20 {
        there.send_all(0, 1, 64)?;
        there.until("a question", |p| p.into.seen.delivered.len() > n)?;
        let asked = there.into.seen.delivered[n].sequence;
        back.send_all(0, 1, 64)?;
        back.until("an answer", |p| p.into.seen.delivered.len() > n)?;
        if back.into.seen.delivered[n].sequence != asked {
            return Err(format!("question {asked} got another question's answer").into());
        }
    }
    there.close()?;
    back.close()
}

fn filters(setup: &mut CheckSetup<'_>, filter: Filtering) -> Result<(), Violation> {
    let base = setup.base();
    let (asked, inside, outside): (String, &[&str], &[&str]) = match filter {
        Filtering::Exact => (setup.topic("t0"), &["t0"], &["t0x", "t", "t0/a"]),
        Filtering::Prefix => (
            format!("{base}/t0/#"),
            &["t0/a", "t0/b/c"],
            &["t0x", "t1/a"],
        ),
        Filtering::PerLevel => (
            format!("{base}/+/t0"),
            &["a/t0", "b/t0"],
            &["a/t1", "a/b/t0", "t0"],
        ),
        Filtering::Content => return Err("no subscription asks for content".into()),
    };
    let mut out = setup.open(1)?;
    let publisher = setup.client(&mut out, "p", true)?;
    let mut topics = Vec::new();
    for topic in inside.iter().chain(outside) {
        let id = out.fleet.advertise(publisher.client, &setup.topic(topic));
        topics.push(id?);
    }
    let mut into = setup.open(1)?;
    let (client, _) = into.connect(ClientSpec {
        name: setup.name("s"),
        subscribes: true,
        peers: publisher.address.into_iter().collect(),
        ..ClientSpec::default()
    })?;
    into.subscribe(client, &asked)?;
    let mut pair = Pair {
        out,
        into,
        senders: vec![(publisher.client, topics[0])],
    };
    pair.prove(1)?;
    // Paths open one by one in some systems: every wanted topic must be received, after several
    // attempts if needed, and no unwanted one ever.
    let start = pair.out.clock.now();
    let heard = |p: &Pair, n: usize| p.into.seen.delivered.iter().any(|m| m.stream == n as u32);
    while !(0..inside.len()).all(|n| heard(&pair, n)) {
        if pair.out.clock.now() - start > crate::rig::PATIENCE {
            return Err(format!("{asked} did not bring all of {inside:?}").into());
        }
        for (n, topic) in topics.iter().enumerate() {
            pair.out
                .send(publisher.client, *topic, n as u32, 64, Kind::Measured)?;
        }
        pair.out.poll(5_000_000)?;
        pair.into.poll(50_000_000)?;
    }
    pair.quiet()?;
    match (inside.len()..topics.len()).find(|n| heard(&pair, *n)) {
        Some(n) => Err(format!("{asked} brought {} too", outside[n - inside.len()]).into()),
        None => pair.close(),
    }
}

fn group(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut out = setup.open(1)?;
    let publisher = setup.client(&mut out, "p", true)?;
    let topic = out.fleet.advertise(publisher.client, &setup.topic("t0"))?;
    let mut into = setup.open(2)?;
    for member in ["m0", "m1"] {
        let (client, _) = into.connect(ClientSpec {
            name: setup.name(member),
            subscribes: true,
            peers: publisher.address.clone().into_iter().collect(),
            ..ClientSpec::default()
        })?;
        into.subscribe_in(client, &setup.topic("t0"), Some("g"))?;
    }
    let mut pair = Pair {
        out,
        into,
        senders: vec![(publisher.client, topic)],
    };
    pair.quiet()?;
    let mut times: BTreeMap<u32, u32> = BTreeMap::new();
    let mut members: BTreeMap<ClientId, u32> = BTreeMap::new();
    // Some servers give a whole batch to one member: the next may go to the other.
    let mut sent = 0;
    while sent < 4000 && members.len() < 2 {
        pair.send_all(0, 200, 64)?;
        sent += 200;
        pair.until("200 messages", |p| p.into.seen.delivered.len() >= sent)?;
        pair.quiet()?;
        times.clear();
        for heard in &pair.into.seen.delivered {
            *times.entry(heard.sequence).or_default() += 1;
            *members.entry(heard.client).or_default() += 1;
        }
    }
    if times.values().any(|n| *n != 1) || times.len() != sent {
        return Err("a message did not go to exactly one member of the group".into());
    }
    if members.len() != 2 {
        return Err(format!("one member of the group got all of {sent} messages").into());
    }
    pair.close()
}

fn reliable(setup: &mut CheckSetup<'_>, reliability: Reliability) -> Result<(), Violation> {
    let lossless = !setup.settings.may_lose();
    // Where sessions can be kept, the promise must outlive the subscriber's connection. A session
    // of another reliability does not show it.
    let same = |s: &Settings| lossless && s.reliability == setup.settings.reliability;
    let session = setup.with_session().filter(same);
    let away = session.is_some();
    if let Some(session) = session {
        setup.settings = session;
    }
    if reliability == Reliability::Reliable {
        unread(setup)?;
        setup.next();
    }
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let promised = setup.driver.traits(&setup.settings).acknowledges;
    let mut sent = 0;
    for _ in 0..10 {
        pair.send_all(0, 100, 64)?;
        sent += 100;
        if away {
            // Some messages are under way, some delivered and not yet acknowledged.
            pair.out.poll(2_000_000)?;
            pair.into.poll(2_000_000)?;
            pair.into.fleet.abort(ClientId(0));
            setup.come_back(&mut pair)?;
        }
    }
    if lossless {
        let all = |p: &Pair| numbers(&p.into.seen.delivered).len() >= sent;
        pair.until("every message", all)?;
    }
    pair.quiet()?;
    if lossless && promised {
        pair.until("every acknowledgement", |p| p.out.fleet.unsettled() == 0)?;
    }
    let repeated = pair.into.seen.delivered.len() - numbers(&pair.into.seen.delivered).len();
    if repeated > 0 && reliability != Reliability::AtLeastOnce {
        return Err(format!("{repeated} of {sent} messages came twice").into());
    }
    pair.close()
}

/// While both ends live each message arrives, also at a subscriber that does not read for a while: more than the
/// 64 MB after which servers give up on one that is slow.
fn unread(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    const LEN: usize = 100_000;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let (client, topic) = pair.senders[0];
    let start = pair.out.clock.now();
    let mut sent = 0;
    while sent < 1000 && pair.out.clock.now() - start < 2_000_000_000 {
        match pair.out.send(client, topic, 0, LEN, Kind::Measured)? {
            Publish::Accepted => sent += 1,
            Publish::Blocked => pair.out.poll(5_000_000)?,
            Publish::Refused(why) => return Err(format!("refused: {why:?}").into()),
        }
        pair.out.poll(0)?;
    }
    pair.until("every message to a subscriber that was slow", |p| {
        p.into.seen.delivered.len() >= sent
    })?;
    pair.close()
}

fn payloads(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    // 64 KiB of the filler hold every value of a byte; the setup compares each with what was sent.
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    pair.send_all(0, 20, 65_536)?;
    pair.until("20 messages", |p| p.into.seen.delivered.len() >= 20)?;
    pair.close()
}
