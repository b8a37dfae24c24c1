use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use super::*;

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

/// The names of all samples.
fn sample_names() -> BTreeSet<String> {
    let of = |metric: &Metric| -> Vec<String> {
        let suffixes = match metric.kind {
            MetricType::Histogram => &["_bucket", "_count", "_sum"][..],
            _ => &[metric.suffix()],
        };
        let name = |suffix| format!("{}{suffix}", metric.name);
        suffixes.iter().map(name).collect()
    };
    METRICS.iter().flat_map(of).collect()
}

/// The names of samples that a text asks for.
fn asked_for(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let names = words.filter(|word| word.starts_with("pubgauge_collect_"));
    names.map(str::to_owned).collect()
}

/// The table of the documentation, as it has to be.
fn table() -> String {
    let mut table = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for metric in &METRICS {
        let kind = match metric.kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::Info => "info",
            other => panic!("{}: {other:?}", metric.name),
        };
        let labels = match metric.value {
            Value::Info => "`pubgauge_version`".to_owned(),
            Value::Each(label, _) => format!("`{label}`"),
            Value::OfBroker(_) => "`broker`".to_owned(),
            Value::One(_) | Value::Histogram(..) => String::new(),
        };
        let (name, help) = (metric.name, metric.help);
        table += &format!(
            "| `{name}{}` | {kind} | {labels} | {help} |\n",
            metric.suffix()
        );
    }
    table
}

#[test]
fn the_documentation_has_every_metric_and_no_other() {
    let text = document("collect.md");
    let rows = |text: &str| -> Vec<String> {
        let is_row = |line: &&str| line.starts_with("| `pubgauge_collect");
        text.lines().filter(is_row).map(str::to_owned).collect()
    };
    let table = table();
    assert_eq!(
        rows(&text),
        rows(&table),
        "the table in docs/collect.md has to be:\n{table}"
    );
    // What is said elsewhere in it.
    let known = |name: &String| {
        let is_it = |metric: &&Metric| metric.name == name;
        sample_names().contains(name) || METRICS.iter().any(|metric| is_it(&metric))
    };
    let unknown: Vec<_> = asked_for(&text)
        .into_iter()
        .filter(|name| !known(name))
        .collect();
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn names_and_units_are_those_of_openmetrics() {
    let mut seen = BTreeSet::new();
    for metric in &METRICS {
        assert!(
            seen.insert(metric.name),
            "{} is declared twice",
            metric.name
        );
        assert!(metric.help.ends_with('.'), "{}", metric.help);
        for reserved in ["_total", "_info", "_bucket", "_count", "_sum", "_created"] {
            assert!(!metric.name.ends_with(reserved), "{}", metric.name);
        }
    }
}

#[test]
fn alert_rules_and_dashboard_ask_for_metrics_that_there_are() {
    let there = sample_names();
    for (name, least) in [("collect-alerts.yaml", 14), ("collect-dashboard.json", 17)] {
        let asked = asked_for(&document(name));
        assert!(asked.len() >= least, "{name}: {} names", asked.len());
        let unknown: Vec<_> = asked.difference(&there).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{name}");
    }
}

#[test]
fn the_dashboard_shows_what_an_operator_asks_for() {
    let dashboard: Json = serde_json::from_str(&document("collect-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len());
    let mut asked = BTreeSet::new();
    for panel in panels {
        let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            let expr = target["expr"].as_str().unwrap();
            let names = asked_for(expr);
            assert!(
                !names.is_empty() && expr.contains("{instance=~\"$instance\"}"),
                "{expr}"
            );
            for name in &names {
                // A rate of counts has no unit of the counter's.
                let expected = match name.rsplit('_').find(|part| *part != "bucket") {
                    Some("seconds") => "s",
                    Some("bytes") => "bytes",
                    _ => "short",
                };
                assert_eq!(unit, expected, "{expr}");
            }
            asked.extend(names);
        }
    }
    for name in [
        "broker_messages_total",
        "acknowledged_messages_total",
        "commit_seconds_bucket",
        "log_bytes",
        "disk_free_bytes",
        "oldest_segment_seconds",
        "broker_silent_seconds",
        "dead_letters_total",
        "uploaded_files_total",
    ] {
        assert!(
            asked.contains(&format!("pubgauge_collect_{name}")),
            "{name}"
        );
    }
}

#[test]
fn a_histogram_counts_all_values_in_its_last_bucket() {
    let status = Status::default();
    let text = text(&status, Instant::now());
    assert!(text.ends_with("# EOF\n"));
    let start = "pubgauge_collect_commit_seconds";
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(start))
        .collect();
    assert_eq!(
        lines[0],
        "pubgauge_collect_commit_seconds_bucket{le=\"0.0001\"} 0"
    );
    let last = lines.len() - 3;
    assert_eq!(
        lines[last - 1],
        "pubgauge_collect_commit_seconds_bucket{le=\"10.0\"} 0"
    );
    assert_eq!(
        lines[last],
        "pubgauge_collect_commit_seconds_bucket{le=\"+Inf\"} 0"
    );
    assert!(
        text.contains("# TYPE pubgauge_collect_commit_seconds histogram\n"),
        "{text}"
    );
    assert!(
        text.contains("# UNIT pubgauge_collect_commit_bytes bytes\n"),
        "{text}"
    );
    // Without a data folder there is no disk to tell of.
    assert!(!text.contains("pubgauge_collect_log_bytes"), "{text}");
}
