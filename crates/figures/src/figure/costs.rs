//! Costs of a trial in processor time, memory and connections, and figures of its parties.

use super::column::FigureColumn;
use super::entry::{
    COST, CatalogueEntry, GOOD_DELIVERIES, SHARE, connections_made, cpu_per_message, entry,
    observed, of_part, of_whole_trial, per_message, publishers_cpu, ratio, share,
};
use super::{
    Better::{Less, More},
    FigureSource, Unit,
};
use crate::group;
use crate::processor_shares::shares;

pub(super) static ENTRIES: &[CatalogueEntry] = &[
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
        "subscriber-links-received-bytes-rate",
        "subscriber_links_received_bytes_per_s",
        (Unit::BytesPerSecond, Less),
        of_whole_trial(|t| {
            let bytes = t.network.as_ref()?.received_by("subscriber")?;
            ratio(bytes as f64, t.duration_s)
        }),
        "bytes that the subscribers' hosts received over their links in a second, with headers of Ethernet, IP and above",
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
        "applications-busy",
        "worker_load.applications_busy",
        SHARE,
        of_whole_trial(|t| observed(t.worker_load.applications_busy?)),
        "of the measurement in which the busiest subscriber's application was busy with messages, where they take their time (`subscribers-take`)",
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
];
