//! Checks of messages between a call and the network, and of what a driver reports of itself.

use std::collections::BTreeMap;

use super::pair::Pair;
use super::rig::{PATIENCE, Rig};
use super::setup::CheckSetup;
use super::violation::Violation;
use pubgauge_driver::Nanos;
use pubgauge_driver::header::Kind;
use pubgauge_driver::seam::{Change, ClientId, ClientSpec, Publish};
use pubgauge_driver::settings::{Reliability, Settings};

const SECOND: Nanos = 1_000_000_000;

/// An accepted message is sent without a further call ([`Publish::Accepted`]): an orderly end of its client does
/// not take it back. Under exactly once it may: a system delivers when the client has answered, and
/// [`Fleet::unsettled`](pubgauge_driver::Fleet::unsettled) says what is still unanswered.
pub(super) fn disconnect(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    survives_end(setup, "disconnect", |out, client| {
        out.fleet.disconnect(client);
        let closed = |c: &Change| *c == Change::Closed;
        out.await_change(client, "disconnect", closed).map(|_| ())
    })
}

/// Checks the end of the whole fleet.
pub(super) fn close(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    survives_end(setup, "close", |out, _| {
        out.fleet.close(out.clock.now() + 2 * SECOND);
        Ok(())
    })
}

fn survives_end(
    setup: &mut CheckSetup<'_>,
    how: &str,
    end: impl FnOnce(&mut Rig, ClientId) -> Result<(), Violation>,
) -> Result<(), Violation> {
    if setup.settings.reliability == Some(Reliability::ExactlyOnce) {
        return Ok(());
    }
    let Pair {
        mut out,
        mut into,
        senders,
    } = setup.pair(1, 1, &setup.topic("t0"))?;
    let (client, topic) = senders[0];
    // As many messages as are taken without a poll, so that they are still to be written.
    let before = into.fleet.wire_bytes().received;
    let mut accepted = 0;
    while accepted < 50 && out.send(client, topic, 0, 64, Kind::Measured)? == Publish::Accepted {
        accepted += 1;
    }
    end(&mut out, client)?;
    let start = into.clock.now();
    while into.seen.delivered.len() < accepted {
        if into.clock.now() - start > PATIENCE {
            return Err(format!(
                "{} of {accepted} messages came that were accepted before {how}; {} B came over the wire",
                into.seen.delivered.len(),
                into.fleet.wire_bytes().received - before
            ).into());
        }
        into.poll(20_000_000)?;
    }
    for rig in [&mut out, &mut into] {
        rig.fleet.close(rig.clock.now() + 2 * SECOND);
    }
    Ok(())
}

/// A fleet's bytes on the wire are at least those of the messages.
pub(super) fn bytes(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let (sent, received) = carried(setup)?;
    for (what, bytes) in [("sent", sent), ("received", received)] {
        if bytes < MESSAGES * LEN as u64 {
            return Err(format!(
                "{MESSAGES} messages of {LEN} B, and {bytes} B were counted as {what}"
            )
            .into());
        }
    }
    Ok(())
}

/// Properties that are asked for are sent with every message.
pub(super) fn user_properties(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    const PROPERTY: usize = 500;
    let with = Settings {
        user_properties: Some(BTreeMap::from([("site".to_owned(), "x".repeat(PROPERTY))])),
        ..setup.settings.clone()
    };
    if setup.driver.resolve(&with, setup.target).is_err() {
        return Ok(());
    }
    let (without, _) = carried(setup)?;
    setup.settings = with;
    setup.next();
    let (sent, _) = carried(setup)?;
    if sent < without + MESSAGES * PROPERTY as u64 {
        return Err(format!(
            "{MESSAGES} messages took {sent} B with a property of {PROPERTY} B, and {without} B without"
        ).into());
    }
    Ok(())
}

/// Number of messages that [`carried`] sends.
const MESSAGES: u64 = 100;
const LEN: usize = 1000;

/// Bytes that the publisher sent and the subscriber received for [`MESSAGES`] messages.
fn carried(setup: &mut CheckSetup<'_>) -> Result<(u64, u64), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let wire = |p: &Pair| (p.out.fleet.wire_bytes(), p.into.fleet.wire_bytes());
    let before = wire(&pair);
    pair.send_all(0, MESSAGES as u32, LEN)?;
    pair.until("the messages", |p| {
        p.into.seen.delivered.len() as u64 >= MESSAGES
    })?;
    let after = wire(&pair);
    pair.close()?;
    Ok((
        after.0.sent - before.0.sent,
        after.1.received - before.1.received,
    ))
}

/// A message that a lost connection cut off does not become part of the next connection's data.
pub(super) fn clean_start(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    const LONG: usize = 400_000;
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    for _ in 0..4 {
        pair.send_all(0, 4, LONG)?;
        // Mostly some messages have come, and one in part.
        pair.out.poll(2_000_000)?;
        pair.into.poll(0)?;
        pair.into.fleet.abort(ClientId(0));
        pair.into.seen.changes.clear();
        pair.into.reconnect(ClientId(0))?;
        pair.into.subscribe(ClientId(0), &setup.topic("t0"))?;
        pair.into.seen.delivered.clear();
        pair.hears_again()?;
    }
    pair.close()
}

/// Idle clients keep their connections for three times the keep-alive time, after which the other side may close
/// them.
pub(super) fn idle(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    setup.settings.keep_alive_s = Some(1);
    if setup.driver.resolve(&setup.settings, setup.target).is_err() {
        setup.settings.keep_alive_s = None;
    }
    // A machine that stalls for half a second is rightly considered dead.
    let mut last = Ok(());
    for _ in 0..3 {
        last = idles(setup);
        if last.is_ok() {
            break;
        }
        setup.next();
    }
    setup.settings.keep_alive_s = None;
    last
}

fn idles(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut pair = setup.pair(1, 1, &setup.topic("t0"))?;
    let until = pair.out.clock.now() + 3 * SECOND;
    while pair.out.clock.now() < until {
        pair.out.poll(100_000_000)?;
        pair.into.poll(100_000_000)?;
    }
    for rig in [&pair.out, &pair.into] {
        for (_, change) in &rig.seen.changes {
            if let Change::Failed(failure) = change {
                return Err(format!("an idle client lost its connection: {failure}").into());
            }
        }
    }
    pair.hears_again()?;
    pair.close()
}

/// [`Change::Subscribed`] is the system's answer: none can come from a stopped server.
pub(super) fn subscribed(setup: &mut CheckSetup<'_>) -> Result<(), Violation> {
    let mut rig = setup.open(1)?;
    let (client, _) = rig.connect(ClientSpec {
        name: setup.name("asks"),
        subscribes: true,
        ..ClientSpec::default()
    })?;
    let server = setup.server.as_mut().ok_or("there is no server to stop")?;
    let stopped = server.pause(true);
    // On a busy machine the signal takes time to arrive.
    rig.poll(SECOND / 2)?;
    let asked = rig.ask(client, &setup.topic("asked"), None);
    let until = rig.clock.now() + SECOND / 2;
    while asked.is_ok() && rig.clock.now() < until {
        rig.poll(50_000_000)?;
    }
    let told = (rig.seen.changes.iter()).any(|(_, change)| *change == Change::Subscribed);
    if let Some(server) = setup.server.as_mut() {
        let _ = server.pause(false);
    }
    asked?;
    if told && stopped {
        return Err("a subscription was reported as taken while the server was stopped".into());
    }
    rig.await_change(client, "subscribe", |c| *c == Change::Subscribed)?;
    rig.fleet.close(rig.clock.now() + 2 * SECOND);
    Ok(())
}
