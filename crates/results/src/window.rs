//! Named spans of a measurement, each with its own figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Distribution, Trial};

/// The figures of one window of the measurement, of all flows or of one.
///
/// A message belongs to the window that it was due in, and so do its deliveries, its loss and its times,
/// whenever they came. Only two rates count what happened during the window: `published_msgs_per_s` and
/// `delivered_msgs_per_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WindowFigures {
    /// Its name.
    pub name: String,
    /// Its beginning, seconds from the start of the measurement.
    pub from_s: f64,
    /// Its end; earlier than planned where the measurement was cut off.
    pub to_s: f64,
    /// Messages due in it.
    pub offered: u64,
    /// Of these, messages that the system took, whenever that was.
    pub published: u64,
    /// Of these, messages that the system or its client library refused. One that was rejected after it
    /// had been taken belongs to the window that it was sent in.
    pub refused: u64,
    /// Of these, messages that could not be handed over before the end of the measurement.
    pub not_sent: u64,
    /// Deliveries that the published messages should cause.
    pub expected: u64,
    /// Deliveries of these messages, duplicates included, whenever they came.
    pub delivered: u64,
    /// Of these, deliveries of a message that the same subscriber (or group) had already got.
    pub duplicated: u64,
    /// Deliveries overtaken by a later message of the same stream (RFC 4737).
    pub reordered: u64,
    /// Expected deliveries that have not come: `expected - (delivered - duplicated)`.
    pub missing: u64,
    /// Of the missing ones, those that never come. Absent where the drain was cut short and left
    /// both lost messages and messages under way: which are which is not told apart by window.
    pub lost: Option<u64>,
    /// Of the missing ones, those that were still on their way; absent where `lost` is.
    pub under_way: Option<u64>,
    /// Messages due per second of the window.
    pub offered_msgs_per_s: f64,
    /// Messages that the system took during the window, per second.
    pub published_msgs_per_s: f64,
    /// First deliveries that arrived during the window, per second.
    pub delivered_msgs_per_s: f64,
    /// From the intended send time to arrival.
    pub latency_ns: Distribution,
    /// From the actual send time to arrival.
    pub latency_from_send_ns: Distribution,
    /// From the intended to the actual send time.
    pub send_lag_ns: Distribution,
    /// From the actual send time to the system's acknowledgement, of messages sent in the window; absent
    /// where the system does not acknowledge.
    pub acknowledgement_ns: Option<Distribution>,
    /// Round trip of ping-pong flows, of questions asked in the window.
    pub round_trip_ns: Option<Distribution>,
    /// Half of each round trip.
    pub half_round_trip_ns: Option<Distribution>,
    /// Processor seconds of the system's processes during the window; of all flows together only. They
    /// are read at both ends; absent where a reading was so late that the span differs by more than 2 %
    /// of the window, and where the system is no process of its own or out of sight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_cpu_s: Option<f64>,
}

impl WindowFigures {
    /// First deliveries of the messages that were due in it.
    pub fn unique(&self) -> u64 {
        self.delivered.saturating_sub(self.duplicated)
    }

    /// Its length in seconds.
    pub fn length_s(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// Splits a figure's name: `latency.p99@during` is `latency.p99` in the window `during`.
pub fn split(figure: &str) -> (&str, Option<&str>) {
    match figure.split_once('@') {
        Some((figure, window)) => (figure, Some(window)),
        None => (figure, None),
    }
}

/// The window of that name, of all flows or of one. A trial of a single flow keeps that flow's windows as
/// its own.
pub fn in_window<'a>(
    trial: &'a Trial,
    flow: Option<&str>,
    name: &str,
) -> Option<&'a WindowFigures> {
    let named = |windows: &'a [WindowFigures]| windows.iter().find(|w| w.name == name);
    let Some(flow) = flow else {
        return named(&trial.windows);
    };
    let of_flow = trial.flows.iter().find(|f| f.name == flow)?;
    match trial.flows.len() {
        1 => named(&trial.windows),
        _ => named(&of_flow.windows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::{
        Comparison, CriterionSpec, Filter, evaluate, figure, is_figure, recorded_name,
    };
    use crate::model::{FlowFigures, Status};

    fn window(name: &str, p99: u64, lost: Option<u64>) -> WindowFigures {
        WindowFigures {
            name: name.into(),
            expected: 100,
            delivered: 100 - lost.unwrap_or(0),
            lost,
            latency_ns: Distribution {
                count: 1000,
                p99: Some(p99),
                ..Distribution::default()
            },
            ..WindowFigures::default()
        }
    }

    fn trial() -> Trial {
        let flow = |name: &str, p99| FlowFigures {
            name: name.into(),
            windows: vec![window("during", p99, Some(0))],
            ..FlowFigures::default()
        };
        let mut trial = Trial {
            windows: vec![window("before", 5, Some(0)), window("during", 70, Some(4))],
            flows: vec![flow("meters", 80), flow("burst", 60)],
            ..Trial::default()
        };
        trial.verdict.status = Status::Valid;
        trial
    }

    #[test]
    fn figures_of_windows_are_named_with_their_window() {
        let trial = trial();
        assert_eq!(recorded_name("latency.p99@during"), "latency_ns.p99@during");
        assert_eq!(figure(&trial, None, "latency_ns.p99@before"), Some(5.0));
        assert_eq!(figure(&trial, None, "latency_ns.p99@during"), Some(70.0));
        assert_eq!(
            figure(&trial, Some("meters"), "latency_ns.p99@during"),
            Some(80.0)
        );
        assert_eq!(figure(&trial, None, "lost_share@during"), Some(0.04));
        assert_eq!(figure(&trial, None, "latency_ns.p99@after"), None);
        assert_eq!(figure(&trial, None, "verdict@during"), None);
        // A trial of one flow keeps the windows of that flow as its own.
        let mut single = trial.clone();
        single.flows.truncate(1);
        assert_eq!(
            figure(&single, Some("meters"), "latency_ns.p99@during"),
            Some(70.0)
        );
        assert!(is_figure("latency_ns.p99@during") && is_figure("system_cpu_s@x"));
        assert!(!is_figure("client_rss_bytes@during"));
    }

    #[test]
    fn criteria_bear_on_windows() {
        let criterion = |name: &str, value| CriterionSpec {
            text: name.into(),
            figure: name.into(),
            comparison: Comparison::AtMost,
            value,
            filter: Filter::default(),
        };
        let met = |trial: Trial, name: &str, value| evaluate(&[trial], &criterion(name, value)).met;
        assert_eq!(met(trial(), "latency_ns.p99@during", 69.0), Some(false));
        assert_eq!(met(trial(), "latency_ns.p99@before", 69.0), Some(true));
        // A count is compared whatever the verdict.
        let mut lossy = trial();
        lossy.verdict.status = Status::Lossy;
        assert_eq!(met(lossy.clone(), "lost@during", 4.0), Some(true));
        assert_eq!(met(lossy, "lost@during", 3.0), Some(false));
        let mut untold = trial();
        untold.windows[1] = window("during", 70, None);
        assert_eq!(met(untold, "lost@during", 4.0), None);
    }
}
