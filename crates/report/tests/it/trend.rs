//! Several runs in the order of time: the text for the terminal, and the page in a real browser.

use crate::chromium;

use chromium::{Browser, SAVED, saved};
use pubgauge_conclusions::compare::trend::{NamedRun, Trend, trend};
use pubgauge_figures::model::{Machine, Results, StudyInfo};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_report::{trend_page, trend_text};
use serde_json::json;

/// A run of two systems with four repeats, of which `b` takes `times` as long as planned.
fn run(nth: u32, cores: u32, times: f64) -> NamedRun {
    let trials = (0..8).map(|id| {
        let (system, repeat) = (["a", "b"][id as usize % 2], id / 2 + 1);
        let times = if system == "b" { times } else { 1.0 };
        let near = 1.0 + 0.01 * f64::from((repeat * 7 + nth * 3) % 5);
        TrialBuilder::periodic(1_000.0, 10.0)
            .id(id)
            .system(system)
            .cell(system)
            .workload("meters <b>")
            .repeat(repeat)
            .times((100e3 * times * near) as u64, (500e3 * times * near) as u64)
            .cpu(0.3 * near, 0.1, 0.4)
            .build()
    });
    let results = Results {
        trials: trials.collect(),
        study: StudyInfo {
            name: "nightly".into(),
            started: format!("2026-11-0{nth}T10:00:00Z"),
            planned_trials: 8,
            ..StudyInfo::default()
        },
        machine: Machine {
            cores,
            ..Machine::default()
        },
        ..Results::default()
    };
    NamedRun {
        name: format!("results/{nth}"),
        results,
    }
}

/// Five runs: `b` becomes slower by half in the third, the fourth is on another machine.
fn five() -> Trend {
    let runs = vec![
        run(1, 4, 1.0),
        run(2, 4, 1.0),
        run(3, 4, 1.5),
        run(4, 8, 1.5),
        run(5, 4, 1.5),
    ];
    trend(runs, &[], 0.05)
}

#[test]
fn the_terminal_says_what_changed() {
    let text = trend_text(&five(), 80);
    insta::assert_snapshot!("trend", text);
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(80), "{text}");
}

#[test]
fn the_page_marks_what_changed() {
    let links = [Some("1/report.html".to_owned()), None, None, None, None];
    let html = trend_page(&five(), &links);
    let mut browser = Browser::start();
    for (width, phone) in [(1400, false), (390, true)] {
        browser.size(width, 900, phone);
        browser.media("screen", "light");
        browser.open(&html);
        browser.picture(&format!("trend-{width}"));
        // The ring of the third run alone: the fifth is like it.
        let drawn = browser.eval(
            "[...document.querySelectorAll('figure')].map((f) => [f.id, f.querySelectorAll('.changed circle').length, f.querySelectorAll('.chart circle').length > 9])",
        );
        assert_eq!(
            drawn,
            json!([
                ["t1-latency-p50", 1, true],
                ["t1-latency-p99", 1, true],
                ["t1-delivered-rate", 0, true],
                ["t1-cpu-per-message", 0, true]
            ]),
            "{width}"
        );
        let wide = browser.eval("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wide, false, "{width}");
    }
    let marked = browser
        .eval("[...document.querySelectorAll('#changes .changes li')].map((li) => li.textContent)");
    let marked: Vec<String> = serde_json::from_value(marked).unwrap();
    assert_eq!(marked.len(), 2, "{marked:?}");
    assert!(
        marked[0].starts_with("worse b, meters <b>: latency.p50 "),
        "{marked:?}"
    );
    let rows = browser.eval(
        "[...document.querySelectorAll('#runs tbody tr')].map((r) => [r.children[1].innerHTML, r.children[5].textContent])",
    );
    assert_eq!(
        rows[0],
        json!(["<a href=\"1/report.html\">results/1</a>", "–"])
    );
    let differs = rows[3][1].as_str().unwrap();
    assert_eq!(
        differs,
        "not compared with run 3: the number of processors differs: 8, 4 in run 3"
    );
    browser.eval(SAVED);
    let csv = saved(&mut browser, "t1-latency-p99", "csv");
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(
        lines[0],
        "row,at,number,verdict,value_ns,ci_low_ns,ci_high_ns,repeats,change,not_compared"
    );
    let third = lines.iter().find(|line| line.starts_with("b,run 3,3,"));
    assert!(third.is_some_and(|line| line.contains("worse: +")), "{csv}");
    // The run on another machine is hollow.
    let hollow = browser.eval(
        "[...document.querySelectorAll('#t1-latency-p50 .chart circle')].filter((c) => c.getAttribute('fill') === 'var(--paper)').length",
    );
    assert_eq!(hollow, 2, "one of each row");
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
    assert!(
        browser.requests.iter().all(|r| !r.starts_with("http")),
        "{:?}",
        browser.requests
    );
}

/// Runs that have nothing in common, and a single one.
#[test]
fn runs_without_anything_to_compare_are_told() {
    let mut other = run(2, 4, 1.0);
    for trial in &mut other.results.trials {
        trial.system.name = "c".into();
    }
    for runs in [vec![run(1, 4, 1.0), other], vec![run(1, 4, 1.0)]] {
        let trend = trend(runs, &[], 0.05);
        assert_eq!(trend.intervals, 0);
        let html = trend_page(&trend, &[]);
        assert!(html.contains("Nothing could be compared."));
        assert!(!trend_text(&trend, 80).contains("Nothing changed"));
    }
}
