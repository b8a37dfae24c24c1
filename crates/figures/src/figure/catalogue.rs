//! Every figure of a trial: one entry for each.

use super::column::FigureColumn;
use super::scope::Scope;
use super::{
    Better::{self, Less, More},
    Figure, FigureSource, Statistic, Times, Unit,
};
use crate::distribution::Distribution;
use crate::model::{Connections, Interruption, Trial};
use crate::processor_shares::shares;
use crate::{group, on_request};

/// A figure that is not a statistic of a distribution.
struct CatalogueEntry {
    name: &'static str,
    /// Its name in `results.json`, in exports and in a stored criterion.
    recorded: &'static str,
    unit: Unit,
    better: Better,
    value: FigureSource,
    says: &'static str,
    /// It is a count, or a share of counts: it holds whatever the verdict, because a criterion on loss is about lossy
    /// trials.
    of_any_trial: bool,
    /// A trial in which the system failed does not meet a criterion that bounds it: from above where less is better
    /// (latency, loss), from below where more is (rates).
    promised: bool,
    column: Option<FigureColumn>,
}

const fn entry(
    name: &'static str,
    recorded: &'static str,
    (unit, better): (Unit, Better),
    value: FigureSource,
    says: &'static str,
) -> CatalogueEntry {
    CatalogueEntry {
        name,
        recorded,
        unit,
        better,
        value,
        says,
        of_any_trial: false,
        promised: false,
        column: None,
    }
}

impl CatalogueEntry {
    const fn of_any_trial(self) -> CatalogueEntry {
        CatalogueEntry {
            of_any_trial: true,
            ..self
        }
    }

    const fn promised(self) -> CatalogueEntry {
        CatalogueEntry {
            promised: true,
            ..self
        }
    }

    /// The table of results has it.
    const fn column(self, column: FigureColumn) -> CatalogueEntry {
        CatalogueEntry {
            column: Some(column),
            ..self
        }
    }
}

const GOOD: (Unit, Better) = (Unit::Messages, More);
const BAD: (Unit, Better) = (Unit::Messages, Less);
const GOOD_DELIVERIES: (Unit, Better) = (Unit::Deliveries, More);
const BAD_DELIVERIES: (Unit, Better) = (Unit::Deliveries, Less);
const RATE: (Unit, Better) = (Unit::PerSecond, More);
const SHARE: (Unit, Better) = (Unit::Share, Less);
const COST: (Unit, Better) = (Unit::MicrosecondsPerMessage, Less);
const CALLS: (Unit, Better) = (Unit::Count, Less);

type OfTrial = fn(&Trial) -> Option<f64>;

/// A value of a trial, a flow or a window.
const fn of_part(value: fn(&Scope<'_>) -> Option<f64>) -> FigureSource {
    FigureSource::OfPart(value)
}

/// A value of a whole trial alone.
const fn of_whole_trial(value: OfTrial) -> FigureSource {
    FigureSource::OfTrial(value)
}

/// A value of a whole trial alone that is counted where the study asks for it.
const fn on_request(value: OfTrial) -> FigureSource {
    FigureSource::OnRequest(value)
}

static ENTRIES: &[CatalogueEntry] = &[
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
    entry(
        "client-cpu",
        "client_cpu_total_s",
        (Unit::Seconds, Less),
        of_whole_trial(|t| Some(t.client_cpu_s.total())),
        "processor time of the client",
    ),
    entry(
        "system-cpu",
        "system_cpu_s",
        (Unit::Seconds, Less),
        of_part(|p| p.system_cpu_s),
        "processor time of the system's processes",
    ),
    entry(
        "client-memory",
        "client_rss_bytes",
        (Unit::Bytes, Less),
        of_whole_trial(|t| Some(t.client_rss_bytes as f64)),
        "largest resident memory of the client",
    ),
    entry(
        "system-memory",
        "system_rss_bytes",
        (Unit::Bytes, Less),
        of_whole_trial(|t| Some(t.system_rss_bytes? as f64)),
        "largest resident memory of the system's processes",
    )
    .column(FigureColumn::new("system memory", 14, ["system", "memory"], 8).from(100)),
    entry(
        "client-cpu-share",
        "client_cpu_share",
        SHARE,
        of_whole_trial(|t| Some(shares(t)?.client)),
        "processor time of the client, of what the machine has",
    ),
    entry(
        "system-cpu-share",
        "system_cpu_share",
        SHARE,
        of_whole_trial(|t| shares(t)?.system),
        "processor time of the system, of what it could have had",
    ),
    // As a number, the place in the list of verdicts: 0 is valid.
    entry(
        "verdict",
        "verdict",
        (Unit::Verdict, Less),
        of_whole_trial(|t| Some(f64::from(t.verdict.status as u8))),
        "whether the figures can be trusted",
    ),
    entry(
        "cpu-per-message",
        "cpu_per_message",
        COST,
        of_whole_trial(cpu_per_message),
        "processor time of client and system for each first delivery",
    ),
    entry(
        "client-cpu-per-message",
        "client_cpu_per_message",
        COST,
        of_whole_trial(|t| per_message(t.client_cpu_s.total(), t)),
        "processor time of publishers and subscribers with their libraries for each first delivery",
    )
    .column(FigureColumn::new("client CPU", 13, ["µs/msg", "client"], 6).has_unit()),
    entry(
        "system-cpu-per-message",
        "system_cpu_per_message",
        COST,
        of_whole_trial(|t| per_message(t.system_cpu_s?, t)),
        "processor time of the system's own processes for each first delivery; none of its own: the system works inside the client, or its processes are out of sight",
    )
    .column(FigureColumn::new("system CPU", 12, ["CPU", "system"], 6).always().has_unit()),
    entry(
        "duplicated-share",
        "duplicated_share",
        SHARE,
        of_part(|p| share(p.messages.duplicated, p.messages.delivered)),
        "repeated ones of all deliveries",
    )
    .of_any_trial()
    .promised(),
    entry(
        "reordered-share",
        "reordered_share",
        SHARE,
        of_part(|p| share(p.messages.reordered, p.messages.delivered)),
        "overtaken ones of all deliveries",
    )
    .of_any_trial(),
    entry(
        "expected",
        "expected",
        GOOD_DELIVERIES,
        of_part(|p| Some(p.messages.expected as f64)),
        "deliveries that there should be",
    )
    .of_any_trial(),
    entry(
        "delivered-bytes-rate",
        "delivered_bytes_per_s",
        (Unit::BytesPerSecond, More),
        FigureSource::Elsewhere { of_windows: true },
        "payload of first deliveries in a second",
    ),
    entry(
        "system-busiest-thread",
        "system_busiest_thread_cpu",
        (Unit::Cores, Less),
        of_whole_trial(|t| t.system_busiest_thread_cpu),
        "processors that the system's busiest thread used, mean of the busiest in each interval",
    ),
    entry(
        "publishers-cpu",
        "publishers_cpu",
        (Unit::Cores, Less),
        of_whole_trial(publishers_cpu),
        "processors that the publishing workers used",
    ),
    // Per message that the system took in the same time, whenever it was due.
    entry(
        "publishers-cpu-per-message",
        "publishers_cpu_per_message",
        COST,
        of_whole_trial(|t| ratio(1e6 * publishers_cpu(t)?, t.messages.published_msgs_per_s)),
        "processor time of the publishing workers for each message that the system took",
    ),
    entry(
        "publishers-library-cpu",
        "publishers_library_cpu",
        (Unit::Cores, Less),
        of_whole_trial(|t| ratio(t.client_cpu_s.publishers_library?, t.duration_s)),
        "processors that the libraries' own threads used beside the publishing workers'",
    ),
    entry(
        "subscribers-library-cpu",
        "subscribers_library_cpu",
        (Unit::Cores, Less),
        of_whole_trial(|t| ratio(t.client_cpu_s.subscribers_library?, t.duration_s)),
        "processors that the libraries' own threads used beside the subscribing workers'",
    ),
    entry(
        "publishers-blocked",
        "publishers_blocked",
        SHARE,
        of_whole_trial(|t| t.publishers_blocked),
        "of the measurement in which the system, or a flow's bound on what is under way, held a publisher back; mean over publishers",
    ),
    entry(
        "publishers-load",
        "publishers_load",
        SHARE,
        of_whole_trial(|t| observed(t.worker_load.publishers_running)),
        "of the measurement in which the busiest publishing worker ran on a processor",
    ),
    entry(
        "subscribers-load",
        "subscribers_load",
        SHARE,
        of_whole_trial(|t| observed(t.worker_load.subscribers_running)),
        "of the measurement in which the busiest subscribing worker ran on a processor",
    ),
    entry(
        "publishers-stalled",
        "worker_load.publishers_stalled",
        SHARE,
        of_whole_trial(|t| observed(t.worker_load.publishers_stalled)),
        "of the measurement in which a publishing worker stood still, in stretches of 5 ms and more",
    ),
    entry(
        "subscribers-stalled",
        "worker_load.subscribers_stalled",
        SHARE,
        of_whole_trial(|t| observed(t.worker_load.subscribers_stalled)),
        "of the measurement in which a subscribing worker stood still, in stretches of 5 ms and more",
    ),
    entry(
        "subscribers-cpu",
        "subscribers_cpu",
        (Unit::Cores, Less),
        of_whole_trial(|t| observed(t.client_cpu_s.subscribers / t.duration_s)),
        "processors that the subscribing workers used",
    ),
    entry(
        "publishers-waiting",
        "publishers_waiting",
        SHARE,
        of_whole_trial(|t| {
            let load = &t.worker_load;
            observed(load.publishers_running).map(|_| load.publishers_waiting)
        }),
        "of the measurement in which the busiest publishing worker was ready and had no processor",
    ),
    entry(
        "subscribers-waiting",
        "subscribers_waiting",
        SHARE,
        of_whole_trial(|t| {
            let load = &t.worker_load;
            observed(load.subscribers_running).map(|_| load.subscribers_waiting)
        }),
        "of the measurement in which the busiest subscribing worker was ready and had no processor",
    ),
    entry(
        "delivered-latency-from-send",
        "latency_from_send_ns.known_mean",
        (Unit::Nanoseconds, Less),
        of_whole_trial(|t| {
            t.messages.latency_from_send_ns
                .mean
                .or(t.messages.latency_from_send_ns.known_mean)
        }),
        "from the actual send time to arrival, mean over what was delivered alone",
    ),
    entry(
        "delivered-latency-from-send.p90",
        "latency_from_send_ns.known_p90",
        (Unit::Nanoseconds, Less),
        of_whole_trial(|t| {
            let latency = &t.messages.latency_from_send_ns;
            let of_all = latency.quotable(0.9).filter(|_| latency.censored == 0);
            Some(of_all.or(latency.known_p90)? as f64)
        }),
        "from the actual send time to arrival, 90th percentile of what was delivered alone",
    ),
    entry(
        "smallest-member-share",
        "smallest_member_share",
        (Unit::Share, More),
        of_whole_trial(|t| Some(group::extremes(&t.groups)?.0)),
        "of a group's deliveries that the member with the fewest got",
    )
    .of_any_trial(),
    entry(
        "largest-member-share",
        "largest_member_share",
        SHARE,
        of_whole_trial(|t| Some(group::extremes(&t.groups)?.1)),
        "of a group's deliveries that the member with the most got",
    )
    .of_any_trial(),
    entry(
        "connect-time",
        "connections.connect_s",
        (Unit::Seconds, Less),
        of_whole_trial(|t| connections_made(t).map(|of| of.connect_s)),
        "from the first attempt until all were connected and had subscribed",
    ),
    entry(
        "ready-time",
        "connections.ready_s",
        (Unit::Seconds, Less),
        of_whole_trial(|t| connections_made(t).map(|of| of.ready_s)),
        "from then until every subscriber was proven to receive: discovery, routes",
    ),
    entry(
        "connect-cpu",
        "connections.connect_cpu_s",
        (Unit::Seconds, Less),
        of_whole_trial(|t| connections_made(t).map(|of| of.connect_cpu_s)),
        "processor time of the client for connecting",
    ),
    entry(
        "connections-planned",
        "connections.planned",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.connections.planned as f64)),
        "connections that there should be",
    )
    .of_any_trial(),
    entry(
        "connections-made",
        "connections.made",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.connections.made as f64)),
        "connections that were made, each client's first",
    )
    .of_any_trial(),
    entry(
        "connections-refused",
        "connections.refused",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.connections.refused as f64)),
        "attempts to connect that the system turned away",
    )
    .of_any_trial(),
    entry(
        "connect-rate",
        "connections.made_per_s",
        (Unit::PerSecond, More),
        of_whole_trial(|t| t.connections.made_per_s),
        "connections made a second, from the first attempt to the last first connection",
    ),
    entry(
        "subscribe-rate",
        "connections.subscribed_per_s",
        (Unit::PerSecond, More),
        of_whole_trial(|t| t.connections.subscribed_per_s),
        "subscriptions taken a second, from when the first was asked for to when the last was taken",
    ),
    entry(
        "connections-lost",
        "connections.lost",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.connections.lost as f64)),
        "connections that ended before the end",
    )
    .of_any_trial(),
    entry(
        "connections-remade",
        "connections.remade",
        (Unit::Count, More),
        of_whole_trial(|t| Some(t.connections.remade as f64)),
        "connections that were made again",
    )
    .of_any_trial(),
    entry(
        "system-memory-per-connection",
        "system_rss_bytes_per_connection",
        (Unit::Bytes, Less),
        of_whole_trial(|t| ratio(t.system_rss_bytes? as f64, t.connections.made as f64)),
        "largest resident memory of the system's processes for each connection",
    ),
    entry(
        "system-descriptors",
        "system_descriptors",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(t.system_descriptors? as f64)),
        "open descriptors of the system's processes at the end of the measurement",
    ),
    entry(
        "client-memory-per-connection",
        "client_rss_bytes_per_connection",
        (Unit::Bytes, Less),
        of_whole_trial(|t| ratio(t.client_rss_bytes as f64, t.connections.made as f64)),
        "largest resident memory of the client for each connection",
    ),
    entry(
        "client-syscalls-per-message",
        "client_syscalls_per_message",
        CALLS,
        on_request(|t| per_delivery(on_request::client(t)?.all, t)),
        "system calls of the client for each first delivery",
    ),
    entry(
        "system-syscalls-per-message",
        "system_syscalls_per_message",
        CALLS,
        on_request(|t| per_delivery(on_request::system(t)?.all, t)),
        "system calls of the system for each first delivery",
    ),
    entry(
        "client-send-calls-per-message",
        "client_send_calls_per_message",
        CALLS,
        on_request(|t| per_delivery(on_request::client(t)?.sends?, t)),
        "system calls of the client that send, for each first delivery",
    ),
    entry(
        "client-receive-calls-per-message",
        "client_receive_calls_per_message",
        CALLS,
        on_request(|t| per_delivery(on_request::client(t)?.receives?, t)),
        "system calls of the client that receive, for each first delivery",
    ),
    entry(
        "system-sync-calls",
        "system_sync_calls",
        CALLS,
        on_request(|t| Some(on_request::system(t)?.syncs as f64)),
        "system calls of the system that sync to disk",
    ),
    entry(
        "system-sync-calls-per-message",
        "system_sync_calls_per_message",
        CALLS,
        on_request(|t| per_delivery(on_request::system(t)?.syncs, t)),
        "system calls of the system that sync to disk, for each first delivery",
    ),
    entry(
        "earlier-trials",
        "circumstances.earlier_trials",
        (Unit::Count, Less),
        of_whole_trial(|t| Some(f64::from(t.circumstances.earlier_trials))),
        "trials that the system had served since it was started",
    ),
    entry(
        "system-heap",
        "system_heap_bytes",
        (Unit::Bytes, Less),
        of_whole_trial(|t| Some(t.system_heap_bytes? as f64)),
        "largest heap in use after a collection since the system was started, as it says itself",
    ),
    entry(
        "system-memory-limit",
        "system_memory_limit_bytes",
        (Unit::Bytes, More),
        of_whole_trial(|t| Some(t.system_memory_limit_bytes? as f64)),
        "memory that the system limits itself to, as it says itself: largest heap, watermark",
    ),
    entry(
        "loss-free",
        "loss_free",
        (Unit::Share, More),
        of_part(|p| Some(f64::from(u8::from(p.lost? == 0)))),
        "1 where no delivery was lost, else 0; over trials, the share of those that lost none",
    )
    .of_any_trial(),
    entry(
        "system-written-bytes",
        "system_written_bytes",
        (Unit::Bytes, Less),
        of_whole_trial(|t| Some(t.system_written_bytes? as f64)),
        "bytes that the kernel was to write to disk for the system",
    ),
    entry(
        "interface-bytes-per-payload-byte",
        "interface_bytes_per_payload_byte",
        CALLS,
        on_request(|t| {
            let traffic = on_request::interface(t)?;
            ratio(traffic.bytes as f64, traffic.payload_bytes? as f64)
        }),
        "bytes that crossed the interface for each byte of payload",
    ),
    entry(
        "interface-packets-per-message",
        "interface_packets_per_message",
        CALLS,
        on_request(|t| per_delivery(on_request::interface(t)?.packets, t)),
        "packets that crossed the interface for each first delivery",
    ),
    // Negative where payloads cross another interface.
    entry(
        "interface-overhead-per-message",
        "interface_overhead_per_message",
        (Unit::Bytes, Less),
        on_request(|t| {
            let traffic = on_request::interface(t)?;
            ratio(
                traffic.bytes as f64 - traffic.payload_bytes? as f64,
                deliveries(t),
            )
        }),
        "bytes that crossed the interface and are not payload, for each first delivery",
    ),
    entry(
        "recorded-rate",
        "recorded_rate",
        RATE,
        FigureSource::Elsewhere { of_windows: false },
        "of a recording: readings that are sent in a second",
    ),
    entry(
        "kept-share",
        "kept_share",
        (Unit::Share, More),
        FigureSource::Elsewhere { of_windows: false },
        "of a recording: readings that are sent, because they have changed, of all",
    ),
    entry(
        "recorded-size",
        "recorded_size",
        (Unit::Bytes, Less),
        FigureSource::Elsewhere { of_windows: false },
        "of a recording: mean size of the readings that are sent",
    ),
    entry(
        "recorded-value",
        "recorded_value",
        (Unit::Count, More),
        FigureSource::Elsewhere { of_windows: false },
        "of a recording: mean of a column over all readings",
    ),
    entry(
        "limit",
        "limit",
        (Unit::Count, More),
        FigureSource::Elsewhere { of_windows: false },
        "what a search found",
    ),
    entry(
        "sustained",
        "sustained",
        (Unit::Count, More),
        FigureSource::Elsewhere { of_windows: false },
        "largest value of the axis `along` at which all repeats that tell are valid, three at least",
    ),
];

/// Times that are promised, are those of a delivery, and of a trial, its flows and windows.
const fn times(
    name: &'static str,
    recorded: &'static str,
    distribution: for<'a> fn(&Scope<'a>) -> Option<&'a Distribution>,
    says: &'static str,
) -> Times {
    Times {
        name,
        recorded,
        distribution,
        says,
        promised: true,
        of_parts: true,
        from_due: false,
        of_delivery: true,
    }
}

impl Times {
    /// They count from when a message was due.
    const fn counted_from_due(self) -> Times {
        Times {
            from_due: true,
            ..self
        }
    }

    /// They are not those of a delivery.
    const fn not_of_delivery(self) -> Times {
        Times {
            of_delivery: false,
            ..self
        }
    }

    /// They are not the system's: it promises nothing of them.
    const fn not_promised(self) -> Times {
        Times {
            promised: false,
            ..self.not_of_delivery()
        }
    }

    /// A trial alone has them.
    const fn of_trial(self) -> Times {
        Times {
            of_parts: false,
            ..self
        }
    }
}

pub(super) const TIMES: [Times; 16] = [
    times(
        "latency",
        "latency_ns",
        |p| Some(&p.messages.latency_ns),
        "from the intended send time to arrival",
    )
    .counted_from_due(),
    times(
        "latency-from-send",
        "latency_from_send_ns",
        |p| Some(&p.messages.latency_from_send_ns),
        "from the actual send time to arrival",
    ),
    times(
        "send-lag",
        "send_lag_ns",
        |p| Some(&p.messages.send_lag_ns),
        "from the intended to the actual send time",
    )
    .not_promised(),
    times(
        "round-trip",
        "round_trip_ns",
        |p| p.messages.round_trip_ns.as_ref(),
        "from the intended send time of a question to its answer",
    )
    .counted_from_due(),
    times(
        "acknowledgement",
        "acknowledgement_ns",
        |p| p.messages.acknowledgement_ns.as_ref(),
        "from the actual send time to the system's acknowledgement",
    )
    .not_of_delivery(),
    times(
        "half-round-trip",
        "half_round_trip_ns",
        |p| p.messages.half_round_trip_ns.as_ref(),
        "half of each round trip",
    )
    .counted_from_due(),
    times(
        "time-to-connect",
        "connections.time_to_connect_ns",
        |p| p.trial?.connections.time_to_connect_ns.as_ref(),
        "from the beginning of the attempt by which a client was first connected to the system's answer to its login",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "time-to-reconnect",
        "connections.time_to_reconnect_ns",
        |p| p.trial?.connections.time_to_reconnect_ns.as_ref(),
        "likewise of connections that were made again",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "time-to-first-message",
        "presence.first_message_ns",
        |p| p.trial?.presence.as_ref()?.first_message_ns.as_ref(),
        "from when a subscriber was back to the first delivery to it after that",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "backlog-time",
        "presence.backlog_ns",
        |p| p.trial?.presence.as_ref()?.backlog_ns.as_ref(),
        "from when a subscriber was back to each delivery of a message that was due before",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "slow-latency",
        "slow.latency_ns",
        |p| p.trial?.slow.as_ref()?.latency_ns.as_ref(),
        "from when a message was due until a slow subscriber took it, of those taken within the measurement",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "late-time-to-subscribe",
        "late.subscribe_ns",
        |p| p.trial?.late.as_ref()?.subscribe_ns.as_ref(),
        "from when a late subscriber asked for its subscriptions until the system had taken all of them",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "late-time-to-last-values",
        "late.last_values_ns",
        |p| p.trial?.late.as_ref()?.last_values_ns.as_ref(),
        "from when a late subscriber asked for its subscriptions until the last of its last values had come, one time for each",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "late-time-to-backlog",
        "late.backlog_ns",
        |p| p.trial?.late.as_ref()?.backlog_ns.as_ref(),
        "likewise until the last of the messages that had been published before",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "will-time",
        "wills.time_ns",
        |p| p.trial?.wills.as_ref()?.time_ns.as_ref(),
        "from when a connection was cut without a word to the first delivery of its will to each subscriber, the will's delay included",
    )
    .not_of_delivery()
    .of_trial(),
    times(
        "machine-noise",
        "noise_ns",
        |p| Some(&p.trial?.noise_ns),
        "how late a thread that only sleeps 1 ms at a time woke up",
    )
    .not_promised()
    .of_trial(),
];

const STATISTICS: [(&str, &str, Statistic); 8] = [
    ("min", "min", Statistic::Min),
    ("mean", "mean", Statistic::Mean),
    ("p50", "p50", Statistic::Quantile(0.5)),
    ("p90", "p90", Statistic::Quantile(0.9)),
    ("p99", "p99", Statistic::Quantile(0.99)),
    ("p99.9", "p99_9", Statistic::Quantile(0.999)),
    ("p99.99", "p99_99", Statistic::Quantile(0.9999)),
    ("max", "max", Statistic::Max),
];

/// The columns of latency, by statistic.
const OF_LATENCY: [(&str, FigureColumn); 4] = [
    (
        "p50",
        FigureColumn::new("p50", 1, ["latency", "p50"], 7).always(),
    ),
    ("p99", FigureColumn::new("p99", 2, ["", "p99"], 7).always()),
    ("p99.9", FigureColumn::new("p99.9", 3, ["", "p99.9"], 7)),
    (
        "p99.99",
        FigureColumn::new("p99.99", 4, ["", "p99.99"], 7).from(120),
    ),
];

/// Percentiles of latency without a field of their own.
const OF_ECDF: [(&str, &str, OfTrial); 2] = [
    ("latency.p70", "latency_ns.p70", |t| quantile(t, 0.7)),
    ("latency.p97", "latency_ns.p97", |t| quantile(t, 0.97)),
];

pub(super) fn all() -> Vec<Figure> {
    let time = |name: String, recorded: String, says, promised, value| Figure {
        name,
        recorded,
        unit: Unit::Nanoseconds,
        better: Less,
        says,
        of_any_trial: false,
        promised,
        has_lateness: false,
        of_delivery: true,
        column: None,
        of_parts: true,
        value,
    };
    let mut all = Vec::new();
    for times in TIMES {
        all.extend(STATISTICS.map(|(name, field, statistic)| {
            let value = FigureSource::Time(times.distribution, statistic);
            let plain = time(
                format!("{}.{name}", times.name),
                format!("{}.{field}", times.recorded),
                times.says,
                times.promised,
                value,
            );
            Figure {
                has_lateness: times.from_due,
                of_delivery: times.of_delivery,
                of_parts: times.of_parts,
                column: OF_LATENCY
                    .iter()
                    .find(|(statistic, _)| times.name == "latency" && *statistic == name)
                    .map(|(_, column)| *column),
                ..plain
            }
        }));
    }
    let latency = TIMES[0].says;
    all.extend(OF_ECDF.map(|(name, recorded, value)| {
        time(
            name.into(),
            recorded.into(),
            latency,
            true,
            of_whole_trial(value),
        )
    }));
    let plain = ENTRIES.iter().map(|entry| Figure {
        name: entry.name.into(),
        recorded: entry.recorded.into(),
        unit: entry.unit,
        better: entry.better,
        says: entry.says,
        of_any_trial: entry.of_any_trial,
        promised: entry.promised,
        has_lateness: false,
        of_delivery: false,
        column: entry.column,
        of_parts: true,
        value: entry.value,
    });
    all.extend(plain);
    all
}

/// The connections of a trial in which any was made.
fn connections_made(trial: &Trial) -> Option<&Connections> {
    Some(&trial.connections).filter(|connections| connections.made > 0)
}

/// The longest of a trial's interruptions; `None` without any, or if one did not end.
fn longest(trial: &Trial, length: fn(&Interruption) -> Option<f64>) -> Option<f64> {
    let each: Option<Vec<f64>> = trial.interruptions.iter().map(length).collect();
    each?.into_iter().reduce(f64::max)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then_some(part / whole)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    ratio(part as f64, whole as f64)
}

/// A share of the measurement; `None` where it was not observed.
fn observed(share: f64) -> Option<f64> {
    (share > 0.0).then_some(share)
}

/// First deliveries that came during the measurement, those to slow and late subscribers among them.
fn deliveries(trial: &Trial) -> f64 {
    let slow = trial.slow.as_ref().map_or(0, |slow| slow.taken);
    let late = trial.late.as_ref().map_or(0, |late| late.within);
    (trial.messages.delivered_msgs_per_s * trial.duration_s).round() + (slow + late) as f64
}

fn per_delivery(count: u64, trial: &Trial) -> Option<f64> {
    ratio(count as f64, deliveries(trial))
}

/// Microseconds of processor time per first delivery, both of the measurement alone; without subscribers, per message
/// taken.
pub fn per_message(seconds: f64, trial: &Trial) -> Option<f64> {
    let messages = if trial.messages.expected > 0 {
        deliveries(trial)
    } else {
        trial.messages.published as f64
    };
    ratio(seconds * 1e6, messages)
}

/// Of client and system together. A broker out of sight would seem to cost nothing: there is no figure then. A
/// brokerless system works inside the client and has no time of its own.
fn cpu_per_message(trial: &Trial) -> Option<f64> {
    let inside = trial.system_in_client().then_some(0.0);
    per_message(
        trial.client_cpu_s.total() + trial.system_cpu_s.or(inside)?,
        trial,
    )
}

fn publishers_cpu(trial: &Trial) -> Option<f64> {
    observed(trial.client_cpu_s.publishers / trial.duration_s)
}

/// The next larger latency whose share of the distribution function is stored exactly, of some 200 points spread evenly
/// over the logarithm of the value. Deliveries that were still under way count as later ones. `None` where no value
/// lies beyond it.
fn quantile(trial: &Trial, share: f64) -> Option<f64> {
    if trial.messages.latency_ns.check_count(share).is_err() {
        return None;
    }
    let mut reached = trial.latency_ecdf.iter().filter(|(_, at)| *at >= share);
    let found = reached.next().map(|(ns, _)| *ns as f64);
    // Between hosts with clocks of their own as the other percentiles.
    found.filter(|ns| trial.one_way.is_none_or(|one_way| one_way.quotes(*ns)))
}
