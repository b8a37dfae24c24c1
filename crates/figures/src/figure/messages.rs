//! Messages and deliveries: counts, shares and rates.

use super::column::FigureColumn;
use super::entry::{
    BAD, BAD_DELIVERIES, CatalogueEntry, GOOD, GOOD_DELIVERIES, RATE, SHARE, entry, longest,
    of_part, of_whole_trial, share,
};
use super::{
    Better::{Less, More},
    Unit,
};

pub(super) static ENTRIES: &[CatalogueEntry] = &[
    entry(
        "measured-time",
        "duration_s",
        (Unit::Seconds, More),
        of_whole_trial(|t| Some(t.duration_s)),
        "length of the measurement",
    ),
    entry(
        "offered",
        "offered",
        GOOD,
        of_part(|p| Some(p.messages.offered as f64)),
        "messages that were due",
    )
    .of_any_trial(),
    entry(
        "published",
        "published",
        GOOD,
        of_part(|p| Some(p.messages.published as f64)),
        "messages that the system took",
    )
    .of_any_trial(),
    entry(
        "refused",
        "refused",
        BAD,
        of_part(|p| Some(p.messages.refused as f64)),
        "messages that the system or its client library refused",
    )
    .of_any_trial()
    .column(FigureColumn::of_failures("refused", 9, ["", "refused"])),
    entry(
        "not-connected",
        "not_connected",
        BAD,
        of_part(|p| Some(p.messages.not_connected as f64)),
        "messages that fell due while their publisher was not connected",
    )
    .of_any_trial()
    .column(FigureColumn::of_failures("not connected", 10, ["not", "conn."])),
    entry(
        "not-sent",
        "not_sent",
        BAD,
        of_part(|p| Some(p.messages.not_sent as f64)),
        "messages that were due and not handed over before the end",
    )
    .of_any_trial()
    .column(FigureColumn::of_failures("not sent", 11, ["not", "sent"])),
    entry(
        "under-way",
        "under_way",
        BAD_DELIVERIES,
        of_part(|p| Some(p.under_way? as f64)),
        "deliveries that were still coming when the trial ended: neither delivered nor lost; their latencies are not known",
    )
    .of_any_trial()
    .column(FigureColumn::of_failures("under way", 6, ["under", "way"])),
    entry(
        "delivered",
        "delivered",
        GOOD_DELIVERIES,
        of_part(|p| Some(p.messages.delivered as f64)),
        "deliveries to all subscribers, repeated ones included",
    )
    .of_any_trial(),
    entry(
        "lost",
        "lost",
        BAD_DELIVERIES,
        of_part(|p| Some(p.lost? as f64)),
        "deliveries that were due and never came",
    )
    .of_any_trial()
    .promised()
    .column(FigureColumn::new("lost", 5, ["", "lost"], 6).always()),
    entry(
        "asked",
        "asked",
        GOOD,
        of_part(|p| Some(p.questions?.asked as f64)),
        "questions that the system took, each to be answered once",
    )
    .of_any_trial(),
    entry(
        "answered",
        "answered",
        GOOD,
        of_part(|p| Some(p.questions?.answered as f64)),
        "questions whose answer came",
    )
    .of_any_trial(),
    entry(
        "answered-late",
        "answered_late",
        BAD,
        of_part(|p| Some(p.questions?.answered_late as f64)),
        "questions whose answer came after the end of the measurement",
    )
    .of_any_trial(),
    entry(
        "unanswered",
        "unanswered",
        BAD,
        of_part(|p| Some(p.questions?.unanswered as f64)),
        "questions without an answer",
    )
    .of_any_trial(),
    entry(
        "duplicated",
        "duplicated",
        BAD_DELIVERIES,
        of_part(|p| Some(p.messages.duplicated as f64)),
        "deliveries of a message that the subscriber (or group) had already",
    )
    .of_any_trial()
    .promised()
    .column(FigureColumn::of_failures("duplicated", 7, ["", "dupl."])),
    entry(
        "reordered",
        "reordered",
        BAD_DELIVERIES,
        of_part(|p| Some(p.messages.reordered as f64)),
        "deliveries that a later message of the same publisher and topic overtook",
    )
    .of_any_trial()
    .column(FigureColumn::of_failures("reordered", 8, ["re-", "ordered"])),
    entry(
        "offered-rate",
        "offered_msgs_per_s",
        RATE,
        of_part(|p| Some(p.messages.offered_msgs_per_s)),
        "messages due in a second",
    )
    .promised(),
    entry(
        "published-rate",
        "published_msgs_per_s",
        RATE,
        of_part(|p| Some(p.messages.published_msgs_per_s)),
        "messages that the system took in a second",
    )
    .promised(),
    entry(
        "delivered-rate",
        "delivered_msgs_per_s",
        RATE,
        of_part(|p| Some(p.messages.delivered_msgs_per_s)),
        "first deliveries in a second",
    )
    .promised(),
    entry(
        "carried-rate",
        "carried_msgs_per_s",
        RATE,
        of_part(|p| Some(p.messages.carried_msgs_per_s())),
        "first deliveries in a second; where nobody subscribes, messages that the system took",
    )
    .column(FigureColumn::new("delivered", 0, ["deliv.", "msgs/s"], 8).always()),
    entry(
        "away",
        "away",
        (Unit::Messages, Less),
        of_part(|p| Some(p.messages.away as f64)),
        "messages that fell due while their publisher was away, as the workload has it",
    )
    .of_any_trial(),
    entry(
        "backlog",
        "backlog",
        GOOD_DELIVERIES,
        of_part(|p| Some(p.messages.backlog as f64)),
        "first deliveries of messages that were due before their subscriber came back",
    )
    .of_any_trial(),
    entry(
        "missed",
        "missed",
        BAD_DELIVERIES,
        of_part(|p| Some(p.messages.missed as f64)),
        "deliveries that did not come because their subscriber was away, and the system keeps nothing for it",
    )
    .of_any_trial(),
    entry(
        "out-time",
        "interruptions.out_s",
        (Unit::Seconds, Less),
        of_whole_trial(|t| longest(t, |one| one.out_s)),
        "from the first lost connection until one was made again, the longest such time",
    ),
    entry(
        "back-time",
        "interruptions.back_s",
        (Unit::Seconds, Less),
        of_whole_trial(|t| longest(t, |one| one.back_s)),
        "from the first lost connection until all were made again, the longest such time",
    ),
    entry(
        "clients-left",
        "presence.left",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.presence?.left as f64)),
        "how often a client left, as the workload has it",
    )
    .of_any_trial(),
    entry(
        "clients-returned",
        "presence.returned",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.presence?.returned as f64)),
        "how often a client was back: connected, with its subscriptions",
    )
    .of_any_trial(),
    entry(
        "slow-taken",
        "slow.taken",
        GOOD_DELIVERIES,
        of_whole_trial(|t| Some(t.slow.as_ref()?.taken as f64)),
        "deliveries that slow subscribers took within the measurement",
    )
    .of_any_trial(),
    entry(
        "slow-behind",
        "slow.behind",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.slow.as_ref()?.behind as f64)),
        "deliveries that slow subscribers had not taken when the measurement ended, and that came then: they had been kept",
    )
    .of_any_trial(),
    entry(
        "slow-lost",
        "slow.lost",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.slow.as_ref()?.lost as f64)),
        "deliveries to slow subscribers that never came",
    )
    .of_any_trial(),
    entry(
        "slow-under-way",
        "slow.under_way",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.slow.as_ref()?.under_way as f64)),
        "deliveries to slow subscribers that were still coming when the trial ended",
    )
    .of_any_trial(),
    entry(
        "slow-disconnects",
        "slow.disconnects",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.slow.as_ref()?.disconnects as f64)),
        "how often the connection of a slow subscriber was ended by others",
    )
    .of_any_trial(),
    entry(
        "slow-fell-behind",
        "slow.fell_behind",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.slow.as_ref()?.fell_behind as f64)),
        "slow subscribers that were disconnected, or had not taken a hundredth of what was due to them by the end",
    )
    .of_any_trial(),
    entry(
        "late-subscribed",
        "late.subscribed",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.late.as_ref()?.subscribed as f64)),
        "late subscribers whose subscriptions the system took",
    )
    .of_any_trial(),
    entry(
        "late-last-values",
        "late.last_values",
        GOOD_DELIVERIES,
        of_whole_trial(|t| Some(t.late.as_ref()?.last_values as f64)),
        "last values that came to late subscribers, one for each topic",
    )
    .of_any_trial(),
    entry(
        "late-last-values-missing",
        "late.last_values_missing",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.late.as_ref()?.last_values_missing()? as f64)),
        "last values that were due to late subscribers and did not come",
    )
    .of_any_trial(),
    entry(
        "late-backlog",
        "late.backlog",
        GOOD_DELIVERIES,
        of_whole_trial(|t| Some(t.late.as_ref()?.backlog as f64)),
        "messages that were published before a late subscriber asked for its subscriptions and came to it, not as last values",
    )
    .of_any_trial(),
    entry(
        "late-live",
        "late.live",
        GOOD_DELIVERIES,
        of_whole_trial(|t| Some(t.late.as_ref()?.live as f64)),
        "first deliveries to late subscribers of messages that were published after they had asked for their subscriptions",
    )
    .of_any_trial(),
    entry(
        "late-lost",
        "late.lost",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.late.as_ref()?.lost as f64)),
        "messages that were due after a late subscriber had its subscriptions, and never came",
    )
    .of_any_trial(),
    entry(
        "late-duplicated",
        "late.duplicated",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.late.as_ref()?.duplicated as f64)),
        "deliveries to late subscribers of what they had",
    )
    .of_any_trial(),
    entry(
        "wills-due",
        "wills.due",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.wills.as_ref()?.due as f64)),
        "connections of devices with a will that were cut without a word, so that their will was due",
    )
    .of_any_trial(),
    entry(
        "wills-published",
        "wills.published",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.wills.as_ref()?.published as f64)),
        "of the wills that were due, those that came to a subscriber",
    )
    .of_any_trial(),
    entry(
        "wills-missing",
        "wills.missing",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.wills.as_ref()?.missing() as f64)),
        "of the wills that were due, those that came to nobody",
    )
    .of_any_trial(),
    entry(
        "will-deliveries-missing",
        "wills.deliveries_missing",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.wills.as_ref()?.deliveries_missing() as f64)),
        "deliveries that the wills that were due should have caused, and that did not come",
    )
    .of_any_trial(),
    entry(
        "wills-duplicated",
        "wills.duplicated",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.wills.as_ref()?.duplicated as f64)),
        "deliveries of wills that their subscriber had",
    )
    .of_any_trial(),
    entry(
        "wills-averted",
        "wills.averted",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.wills.as_ref()?.averted as f64)),
        "connections that were cut whose device was back before its delay had passed, so that no will was due",
    )
    .of_any_trial(),
    entry(
        "wills-after-disconnect",
        "wills.after_disconnect",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.wills.as_ref()?.after_disconnect as f64)),
        "wills that came although their connection had ended in order",
    )
    .of_any_trial(),
    entry(
        "wills-needless",
        "wills.needless",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.wills.as_ref()?.needless as f64)),
        "wills that came although their device was back before the delay had passed, or although their connection had not ended",
    )
    .of_any_trial(),
    entry(
        "missing",
        "missing",
        BAD_DELIVERIES,
        of_part(|p| Some(p.messages.missing() as f64)),
        "expected deliveries that have not come, lost or under way",
    )
    .of_any_trial(),
    entry(
        "bodies-compared",
        "odd.compared",
        GOOD_DELIVERIES,
        of_whole_trial(|t| Some(t.odd.compared as f64)),
        "deliveries of which the body was compared with the one that was published",
    )
    .of_any_trial(),
    entry(
        "bodies-compared-whole",
        "odd.compared_whole",
        GOOD_DELIVERIES,
        of_whole_trial(|t| Some(t.odd.compared_whole as f64)),
        "of these, those of which all of the body was compared; of the others its ends",
    )
    .of_any_trial(),
    entry(
        "negative",
        "odd.negative",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.odd.negative as f64)),
        "deliveries that came before they should have been sent; recorded as 1 ns",
    )
    .of_any_trial(),
    entry(
        "overflowed",
        "odd.overflowed",
        BAD_DELIVERIES,
        of_whole_trial(|t| Some(t.odd.overflowed as f64)),
        "deliveries that took longer than an hour; recorded as one hour",
    )
    .of_any_trial(),
    entry(
        "loss-share",
        "lost_share",
        SHARE,
        of_part(|p| share(p.lost?, p.messages.expected)),
        "lost of the expected deliveries",
    )
    .of_any_trial()
    .promised(),
];
