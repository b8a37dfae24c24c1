//! Named spans of the measurement: a line for each in the terminal, a table and shaded spans on the page.

use pubgauge_figures::Trial;
use pubgauge_figures::window::{WindowFigures, in_window};
use pubgauge_quantities::shown;

use crate::summary::Cell;

/// A sentence for each window of a cell, over its repeats; where the workload has several flows, with the
/// figures of each flow.
pub(crate) fn sentences(cell: &Cell<'_>) -> Vec<String> {
    // The first trial may have been cut off before its windows.
    let typical = cell.typical();
    let flows: Vec<Option<&str>> = match &typical.flows[..] {
        [] | [_] => vec![None],
        several => several.iter().map(|flow| Some(&*flow.name)).collect(),
    };
    let line = |window: &WindowFigures| {
        let of_flow = |flow: &Option<&str>| {
            let figures = describe_window(cell, *flow, &window.name);
            match flow {
                Some(flow) => format!("{flow} {figures}"),
                None => figures,
            }
        };
        let each: Vec<String> = flows.iter().map(of_flow).collect();
        format!("{}, {}: {}", cell.row, span(window), each.join("; "))
    };
    typical.windows.iter().map(line).collect()
}

/// Its name and span: `during (30 to 40 s)`.
fn span(window: &WindowFigures) -> String {
    let (from, to) = (
        shown::three_decimals(window.from_s),
        shown::three_decimals(window.to_s),
    );
    format!("{} ({from} to {to} s)", window.name)
}

/// Rates and times as means over the repeats that can be quoted, losses over all repeats.
fn describe_window(cell: &Cell<'_>, flow: Option<&str>, name: &str) -> String {
    let estimate = |of: &dyn Fn(&WindowFigures) -> Option<f64>| {
        let figure = |trial: &Trial| of(in_window(trial, flow, name)?);
        cell.estimate(figure).map(|estimate| estimate.mean)
    };
    let time = |quantile: f64| {
        let of = |w: &WindowFigures| Some(w.messages.latency_ns.quotable(quantile)? as f64);
        estimate(&of).map_or("-".to_owned(), shown::time)
    };
    let all = || {
        cell.trials
            .iter()
            .filter_map(move |t| in_window(t, flow, name))
    };
    let rate = estimate(&|w| Some(w.messages.delivered_msgs_per_s));
    let mut words = rate.map_or("-".to_owned(), shown::rate);
    if cell.quotes_latency() && all().any(|w| w.messages.latency_ns.count > 0) {
        words.push_str(&format!(
            ", p50 {}, p99 {}, p99.9 {}",
            time(0.5),
            time(0.99),
            time(0.999)
        ));
    }
    let missing: u64 = all().map(|w| w.messages.missing()).sum();
    let lost: Option<u64> = all().map(|w| w.lost).sum();
    match (missing, lost) {
        (0, _) => words.push_str(", none lost"),
        (_, Some(lost)) => words.push_str(&format!(", {} lost", shown::count(lost))),
        (missing, None) => {
            let missing = shown::count(missing);
            words.push_str(&format!(", {missing} lost or under way"));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use pubgauge_figures::{Distribution, FlowFigures, Results, Status};

    use super::*;
    use crate::summary::Summary;
    use pubgauge_figures::Messages;
    use pubgauge_fixtures::TrialBuilder;

    fn window(p50: u64, missing: u64, lost: Option<u64>) -> WindowFigures {
        WindowFigures {
            messages: Messages {
                expected: missing,
                delivered_msgs_per_s: 1526.0,
                latency_ns: Distribution {
                    count: 15_260,
                    p50: Some(p50),
                    p99: Some(9_000_000),
                    p99_9: Some(20_000_000),
                    ..Distribution::default()
                },
                ..Messages::default()
            },
            name: "during".into(),
            from_s: 30.0,
            to_s: 40.0,
            lost,
            ..WindowFigures::default()
        }
    }

    fn said(trial: Trial) -> Vec<String> {
        let results = Results {
            format: String::new(),
            machine: Default::default(),
            study: Default::default(),
            trials: vec![trial],
            searches: Vec::new(),
            not_measured: Vec::new(),
            claims: Vec::new(),
            comparisons: Vec::new(),
            networks: Vec::new(),
        };
        let summary = Summary::summarize(&results);
        summary.workloads[0]
            .cells
            .iter()
            .flat_map(sentences)
            .collect()
    }

    #[test]
    fn a_window_has_a_line() {
        let mut trial = TrialBuilder::periodic(1_526.0, 10.0).system("nats").build();
        trial.windows = vec![window(1_000_000, 0, Some(0))];
        let words = said(trial.clone());
        assert!(
            words.len() == 1 && words[0].starts_with("nats, during (30"),
            "{words:?}"
        );
        assert!(words[0].ends_with("none lost"), "{words:?}");
        assert!(
            words[0].contains("1.53 k/s, p50 1.00 ms, p99 9.00 ms, "),
            "{words:?}"
        );
        // Latencies of an overloaded system are those of queues without end.
        trial.verdict.status = Status::Overloaded;
        let words = said(trial.clone());
        assert!(words[0].contains("1.53 k/s, none lost"), "{words:?}");
        trial.verdict.status = Status::Valid;
        // With several flows, each of them; deliveries whose loss is not known are not called lost.
        let flow = |name: &str, lost| FlowFigures {
            name: name.into(),
            windows: vec![window(2_000_000, 7, lost)],
            ..FlowFigures::default()
        };
        trial.flows = vec![flow("meters", Some(7)), flow("burst", None)];
        let words = said(trial);
        assert_eq!(words.len(), 1);
        assert!(words[0].contains("meters 1"), "{words:?}");
        assert!(words[0].contains(" 7 lost; burst"), "{words:?}");
        assert!(words[0].ends_with("7 lost or under way"), "{words:?}");
    }

    /// A repeat that never began has no windows; those of the others are told.
    #[test]
    fn a_broken_first_repeat_hides_no_window() {
        let valid = TrialBuilder::periodic(1_526.0, 10.0).id(1).repeat(2);
        let mut valid = valid.build();
        valid.windows = vec![window(1_000_000, 0, Some(0))];
        let broken = TrialBuilder::periodic(1_526.0, 10.0)
            .status(Status::Broken)
            .build();
        let results = Results {
            trials: vec![broken, valid],
            ..Results::default()
        };
        let summary = Summary::summarize(&results);
        assert_eq!(sentences(&summary.workloads[0].cells[0]).len(), 1);
    }
}
