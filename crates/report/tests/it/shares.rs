//! Loads that are shares of limits, and cells without a load, in table and page.

use crate::sample;

use pubgauge_figures::Results;
use pubgauge_figures::search::{LimitShare, NotMeasured};
use pubgauge_report::{Logs, page, table};

/// Two rates each in the sample's own words, as shares of what `limit` carries.
fn results() -> (Results, Logs) {
    let (mut results, logs) = sample::grid(1);
    for trial in &mut results.trials {
        let Some(axis) = trial
            .axes
            .iter_mut()
            .find(|axis| axis.name.ends_with("rate"))
        else {
            continue;
        };
        let share = match axis.value.as_str() {
            "1k/s" => 0.5,
            "10k/s" => 0.9,
            _ => 1.5,
        };
        axis.value = format!("{}% of limit", share * 100.0);
        trial.limit_share = Some(LimitShare {
            of: "limit".into(),
            share,
            axis: pubgauge_figures::search::Axis::Rate,
            end: 12_340.0,
            load: share * 12_340.0,
            at_least: trial.system.name == "mosquitto",
        });
    }
    results.not_measured = vec![NotMeasured {
        cell: "nats / default / meters / rate=400% of <limit>".into(),
        system: "nats".into(),
        workload: "meters".into(),
        reason: "no load is 400% of limit".into(),
        ..NotMeasured::default()
    }];
    (results, logs)
}

#[test]
fn each_row_says_what_its_load_is_a_share_of() {
    let (results, logs) = results();
    let shown = table(&results, 100);
    let words: Vec<&str> = shown.split_whitespace().collect();
    let words = words.join(" ");
    // Limits differ, so that the line over all rows names no rate.
    assert!(
        words.contains("rate at 50 % of limit | 90 % of limit | 150 % of limit"),
        "{shown}"
    );
    assert!(!words.contains("100k/s,"), "{shown}");
    assert!(
        words.contains("rate = 50% of limit, payload = 64 B: 6.17k msg/s is 50 % of what limit carries, 12.3k msg/s (the lower end of its limit)"),
        "{shown}"
    );
    assert!(
        words.contains("is 150 % of what limit carries, 12.3k msg/s (the upper end of its limit)"),
        "{shown}"
    );
    assert!(
        words.contains("is 90 % of what limit carries, 12.3k msg/s (its limit is that or more)"),
        "{shown}"
    );
    // Shares are in the order of their numbers, not of their letters.
    let at = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    assert!(
        at("rate = 50% of limit, payload = 64 B:") < at("rate = 150% of limit, payload = 64 B:")
    );
    assert!(words.contains("Not measured: - nats / default / meters / rate=400% of <limit>: no load is 400% of limit"), "{shown}");
    let page = page(&results, &logs);
    assert!(page.contains("6.17k msg/s is 50 % of what limit carries"));
    assert!(page.contains("<strong>nats / default / meters / rate=400% of &lt;limit&gt;</strong>: not measured: no load is 400% of limit"));
}
