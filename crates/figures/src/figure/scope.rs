//! The values that a trial, one of its flows and a window of either have alike.

use crate::distribution::Distribution;
use crate::model::{FlowFigures, Trial};
use crate::window::WindowFigures;

/// The counts, rates and times of a trial, of one of its flows or of a window. `None`: that part does not have it, or
/// it was not observed.
pub(super) struct Scope<'a> {
    pub published: u64,
    pub refused: u64,
    pub not_connected: u64,
    pub not_sent: u64,
    pub expected: u64,
    pub delivered: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub lost: Option<u64>,
    pub under_way: Option<u64>,
    pub offered_per_s: Option<f64>,
    pub published_per_s: Option<f64>,
    pub delivered_per_s: f64,
    pub system_cpu_s: Option<f64>,
    pub latency: &'a Distribution,
    pub latency_from_send: &'a Distribution,
    pub send_lag: &'a Distribution,
    pub acknowledgement: Option<&'a Distribution>,
    pub round_trip: Option<&'a Distribution>,
    pub half_round_trip: Option<&'a Distribution>,
}

/// The fields that all three name alike, and those of its own.
macro_rules! scope {
    ($of:ident, $($own:tt)*) => {
        Scope {
            published: $of.published,
            refused: $of.refused,
            not_connected: $of.not_connected,
            not_sent: $of.not_sent,
            expected: $of.expected,
            delivered: $of.delivered,
            duplicated: $of.duplicated,
            reordered: $of.reordered,
            delivered_per_s: $of.delivered_msgs_per_s,
            latency: &$of.latency_ns,
            latency_from_send: &$of.latency_from_send_ns,
            send_lag: &$of.send_lag_ns,
            round_trip: $of.round_trip_ns.as_ref(),
            $($own)*
        }
    };
}

impl<'a> From<&'a Trial> for Scope<'a> {
    fn from(of: &'a Trial) -> Self {
        scope! { of,
            lost: Some(of.lost),
            under_way: Some(of.under_way),
            offered_per_s: Some(of.offered_msgs_per_s),
            published_per_s: Some(of.published_msgs_per_s),
            system_cpu_s: of.system_cpu_s,
            acknowledgement: of.acknowledgement_ns.as_ref(),
            half_round_trip: of.half_round_trip_ns.as_ref(),
        }
    }
}

impl<'a> From<&'a FlowFigures> for Scope<'a> {
    fn from(of: &'a FlowFigures) -> Self {
        scope! { of,
            lost: Some(of.lost),
            under_way: Some(of.under_way),
            offered_per_s: None,
            published_per_s: of.published_msgs_per_s,
            system_cpu_s: None,
            acknowledgement: None,
            half_round_trip: None,
        }
    }
}

impl<'a> From<&'a WindowFigures> for Scope<'a> {
    fn from(of: &'a WindowFigures) -> Self {
        scope! { of,
            lost: of.lost,
            under_way: of.under_way,
            offered_per_s: Some(of.offered_msgs_per_s),
            published_per_s: Some(of.published_msgs_per_s),
            system_cpu_s: of.system_cpu_s,
            acknowledgement: of.acknowledgement_ns.as_ref(),
            half_round_trip: of.half_round_trip_ns.as_ref(),
        }
    }
}
