//! Named spans of a measurement, each with its own figures.

use crate::model::Trial;
pub use crate::window_figures::WindowFigures;

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
    use crate::Messages;
    use crate::figure::{Figure, figure};
    use crate::model::{Distribution, FlowFigures, Status};

    fn window(name: &str, p99: u64, lost: Option<u64>) -> WindowFigures {
        WindowFigures {
            messages: Messages {
                expected: 100,
                delivered: 100 - lost.unwrap_or(0),
                latency_ns: Distribution {
                    count: 1000,
                    p99: Some(p99),
                    ..Distribution::default()
                },
                ..Messages::default()
            },
            name: name.into(),

            lost,

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
        let of_windows = |name| Figure::named(name).unwrap().of_windows();
        assert!(of_windows("latency.p99") && of_windows("system-cpu"));
        assert!(!of_windows("client-memory"));
    }
}
