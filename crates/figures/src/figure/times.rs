//! Times: each is a distribution, of which the statistics are figures.

use super::Times;
use super::scope::Scope;
use crate::distribution::Distribution;

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

/// All times of a trial.
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
