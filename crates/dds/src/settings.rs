//! Settings that every DDS library answers in the same way.

use pubgauge_driver::{
    MessagingPattern, Reliability, Resolution, Session, Settings, becomes, cannot,
};

/// Whether messages are sent again until each reader has them.
pub fn is_reliable(settings: &Settings) -> bool {
    !matches!(
        settings.reliability,
        Some(Reliability::AtMostOnce | Reliability::BestEffort)
    )
}

/// Decides pattern, reliability, sessions and user properties, for which DDS itself has the answer.
pub fn decide_common(answer: &mut Resolution, settings: &Settings) {
    answer.decide("pattern", settings.pattern, |p| match p {
        None | Some(MessagingPattern::PublishSubscribe) => {
            becomes("DDS topic `pubgauge`; the topic is the publisher's PARTITION")
        }
        Some(MessagingPattern::PointToPoint) => cannot(
            "DDS has no queues: every matching reader gets every message; use \
             publish-subscribe with a topic for each receiver",
        ),
        Some(MessagingPattern::RequestReply) => cannot(
            "DDS-RPC is not built in; use a ping-pong workload, which asks and answers on two \
             topics",
        ),
    });
    answer.decide("reliability", settings.reliability, |r| {
        becomes(match r {
            Some(Reliability::AtMostOnce | Reliability::BestEffort) => {
                "RELIABILITY BEST_EFFORT: sequence numbers keep order and exclude duplicates, \
                 nothing is sent again"
            }
            None | Some(Reliability::Reliable) => {
                "RELIABILITY RELIABLE: sent again until each matched reader has it"
            }
            Some(Reliability::AtLeastOnce) => {
                "RELIABILITY RELIABLE: sent again until each matched reader has it (and never \
                 twice), while writer and reader live"
            }
            Some(Reliability::ExactlyOnce) => {
                "RELIABILITY RELIABLE: sent again until each matched reader has it, duplicates \
                 excluded by sequence numbers; once while writer and reader live, as nothing \
                 survives either"
            }
        })
    });
    answer.decide("session", settings.session, |s| match s {
        None | Some(Session::Clean) => becomes("a reader that goes is forgotten"),
        Some(_) => cannot(
            "DDS keeps nothing for a reader that has gone; last-value = true gives a late one \
             the last message of each writer",
        ),
    });
    answer.absent(
        "session-expiry-s",
        &settings.session_expiry_s,
        "no sessions",
        "DDS has no sessions; leave it out",
    );
    answer.absent(
        "user-properties",
        &settings.user_properties.as_ref().filter(|p| !p.is_empty()),
        "none",
        "a DDS message has the fields of its type only; leave them out",
    );
}
