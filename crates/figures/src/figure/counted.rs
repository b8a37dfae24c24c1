//! Counts that a study asks for, and figures of recordings and searches.

use super::entry::{
    CALLS, CatalogueEntry, RATE, deliveries, entry, of_part, of_whole_trial, on_request,
    per_delivery, ratio,
};
use super::{
    Better::{Less, More},
    FigureSource, Unit,
};
use crate::on_request;

pub(super) static ENTRIES: &[CatalogueEntry] = &[
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
