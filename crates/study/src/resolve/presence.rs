//! Devices that come and go, from the study file to plain data.

use std::ops::RangeInclusive;

use pubgauge_workload::presence::{Between, Presence};
use pubgauge_workload::{Device, LastWill, SECOND};

use crate::clash::Clashes;
use crate::file::{FirstLeave, LeaveFile, PresenceFile, PresenceOf, SpanRange};

impl From<SpanRange> for Between {
    fn from(range: SpanRange) -> Between {
        Between {
            least: range.least.0,
            most: range.most.0,
        }
    }
}

/// As plain data, of a flow of this kind.
pub(super) fn presence(file: &PresenceFile, flow: FlowKind, clashes: &mut Clashes<'_>) -> Presence {
    let of = file.of.unwrap_or(PresenceOf::All);
    let (publishers, subscribers) = (of != PresenceOf::Subscribers, of != PresenceOf::Publishers);
    let mut below = clashes.below(&["presence"]);
    for (key, range) in [("online", file.online), ("offline", file.offline)] {
        if range.least.0 == 0 || range.most < range.least {
            below.add(
                key,
                "expected a time above 0, or two of which the second is longer",
            );
        }
        let fixed = range.least == range.most;
        if file.back_within.is_some() && !fixed {
            below.add(
                key,
                "with `back-within` all keep to one clock: give one time, not a range",
            );
        }
    }
    if file
        .back_within
        .is_some_and(|within| within >= file.online.least)
    {
        below.add(
            "back-within",
            "expected less than `online`: else some would leave before they are back",
        );
    }
    if file.back_within.is_some() && file.first == Some(FirstLeave::Spread) {
        below.add("first", "with `back-within` all leave together");
    }
    if flow.unscheduled && publishers {
        below.add(
                "of",
                "publishers that come and go need a schedule: give the flow a `rate` (not \"max\"), or say of = \"subscribers\"",
            );
    }
    if flow.shared && subscribers {
        below.add(
                "of",
                "members of a group share what comes: who is away misses nothing; say of = \"publishers\"",
            );
    }
    Presence {
        publishers,
        subscribers,
        online: file.online.into(),
        offline: file.offline.into(),
        spread: file.first != Some(FirstLeave::Together),
        back_within: file.back_within.map(|within| within.0),
        vanishes: file.leave == Some(LeaveFile::Vanish),
    }
}

/// Wills from 16 B, which say whose they are, to what MQTT can carry.
const SIZES_OF_WILLS: RangeInclusive<u64> = 16..=65_535;
/// Size of a will where the study names none, bytes.
const USUAL_WILL: u64 = 32;

/// Gives those of a flow's devices that come and go their will. Each side has its devices in the order of its clients.
pub(super) fn give_wills(
    file: &PresenceFile,
    sides: [Vec<u32>; 2],
    devices: &mut [Device],
    clashes: &mut Clashes<'_>,
) {
    let Some(will) = &file.will else { return };
    let mut below = clashes.below(&["presence", "will"]);
    let found = below.found.len();
    let bytes = will.payload.map_or(USUAL_WILL, |size| size.0);
    if !SIZES_OF_WILLS.contains(&bytes) {
        below.add("payload", "expected 16 B to 65,535 B");
    }
    if will.qos.is_some_and(|qos| qos > 2) {
        below.add("qos", "expected 0, 1 or 2");
    }
    let delay = will.delay.map_or(0, |delay| delay.0);
    if !delay.is_multiple_of(SECOND) || delay / SECOND > u64::from(u32::MAX) {
        below.add("delay", "expected whole seconds, such as \"5s\"");
    }
    let rest = will.topic.replace("{n}", "");
    if rest.contains(['{', '}']) {
        below.add(
            "topic",
            "expected no placeholder but `{n}`, the device's number",
        );
    }
    if below.found.len() > found {
        return;
    }
    let of = file.of.unwrap_or(PresenceOf::All);
    let [publishers, subscribers] = sides;
    let each = [
        (of != PresenceOf::Subscribers).then_some(publishers),
        (of != PresenceOf::Publishers).then_some(subscribers),
    ];
    for (n, device) in each.into_iter().flatten().flat_map(|side| (0..).zip(side)) {
        let n: u32 = n;
        let own = Box::new(LastWill {
            topic: will.topic.replace("{n}", &n.to_string()),
            bytes: bytes as u32,
            retain: will.retain == Some(true),
            qos: will.qos,
            delay_s: (delay / SECOND) as u32,
        });
        let device = &mut devices[device as usize];
        let known = device.will.get_or_insert_with(|| own.clone());
        if *known != own {
            let message = format!("connection `{}` has two wills; it has one", device.name);
            let hint = "give the will of shared connections (`publish-as`, `subscribe-as`) once";
            return below.hinted("topic", message, Some(hint.into()));
        }
    }
}

/// The facts of a flow that decide which of its devices can come and go.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowKind {
    /// It sends as fast as it can, or bursts that wait for one another.
    pub unscheduled: bool,
    /// Its subscribers share.
    pub shared: bool,
}
