//! Several studies: the page over all of them in a real browser, the table, and the table in Markdown.

use crate::chromium;
use crate::sample;

use std::collections::BTreeMap;

use chromium::{Browser, SAVED, saved};
use pubgauge_figures::claim::{ClaimCurve, ClaimPicture, ClaimPoint, ClaimVerdict};
use pubgauge_report::studies::{collect_studies, markdown, outcome, table, title};
use pubgauge_report::{Logs, index, page};
use sample::claims::{claim, picture, results, three};
use serde_json::json;

#[test]
fn the_page_over_all_draws_and_links() {
    let studies = three();
    let html = index(&studies);
    let mut browser = Browser::start();
    for (width, phone) in [(1400, false), (390, true)] {
        browser.size(width, 900, phone);
        browser.media("screen", "light");
        browser.open(&html);
        browser.picture(&format!("index-{width}"));
        let drawn = browser.eval(
            "[...document.querySelectorAll('figure')].map((f) => [f.id, f.querySelectorAll('.chart circle').length, f.querySelectorAll('.chart svg text').length > 5])",
        );
        assert_eq!(
            drawn,
            json!([
                ["p1-c1-1", 5, true],
                ["p2-c1-1", 5, true],
                ["p2-c1-2", 5, true],
                ["p2-c2-1", 5, true]
            ])
        );
        let wide = browser.eval("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(wide, false, "{width}");
    }
    assert_eq!(
        browser.eval("document.querySelector('h1').textContent"),
        "What two papers said, and what holds here"
    );
    let links = browser.eval(
        "[...document.querySelectorAll('article h3 > a')].map((a) => a.getAttribute('href'))",
    );
    assert_eq!(
        links,
        json!([
            "a/report.html#claim-C1",
            "a/report.html#claim-C2",
            "b%20second/report.html#claim-C1",
            "b%20second/report.html#claim-D-4"
        ])
    );
    let counts = browser.eval(
        "[...document.querySelectorAll('#studies tbody tr')].map((r) => [...r.children].map((c) => c.textContent))",
    );
    assert_eq!(
        counts,
        json!([
            ["a", "1", "0", "0", "0", "0", "0", "0", "1", "0"],
            ["b second", "0", "0", "0", "0", "1", "0", "1", "0", "0"],
            ["c", "–", "–", "–", "–", "–", "–", "–", "–", "0"],
            ["all", "1", "0", "0", "0", "1", "0", "1", "1", "0"]
        ])
    );
    // The picture's figures can be saved: the same ones, with their unit.
    browser.eval(SAVED);
    let csv = saved(&mut browser, "p1-c1-1", "csv");
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert_eq!(lines[0], "row,at,number,value_ns,ci_low_ns,ci_high_ns");
    assert_eq!(lines[1], "qos1,64B,64,2000000,1800000,2400000");
    assert_eq!(lines.len(), 7);
    assert!(saved(&mut browser, "p1-c1-1", "svg").contains("<circle"));
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
    assert!(
        browser.requests.iter().all(|r| !r.starts_with("http")),
        "{:?}",
        browser.requests
    );
}

/// The page of a study has the same picture beside the claim, at the place that is linked to.
#[test]
fn the_page_of_a_study_has_the_picture_beside_its_claim() {
    let results = results(
        "first",
        vec![claim("C1", ClaimVerdict::Holds, vec![picture("")])],
    );
    let mut browser = Browser::start();
    browser.size(1400, 900, false);
    browser.open(&page(&results, &Logs::new()));
    let beside = browser.eval(
        "(() => { const [words, picture] = document.querySelector('#claim-C1').children; return picture.getBoundingClientRect().left >= words.getBoundingClientRect().right && picture.querySelectorAll('#c1-1 .chart circle').length; })()",
    );
    assert_eq!(beside, 5);
    browser.size(390, 900, true);
    browser.open(&page(&results, &Logs::new()));
    let below = browser.eval(
        "(() => { const [words, picture] = document.querySelector('#claim-C1').children; return picture.getBoundingClientRect().top >= words.getBoundingClientRect().bottom; })()",
    );
    assert_eq!(below, true);
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}

/// Values of any kind are drawn: zeros, one point, names instead of numbers, very wide intervals, no interval.
#[test]
fn strange_pictures_are_drawn() {
    let point = |at: &str, number: Option<f64>, value: f64, ends: Option<(f64, f64)>| ClaimPoint {
        at: at.into(),
        number,
        value,
        low: ends.map(|e| e.0),
        high: ends.map(|e| e.1),
    };
    let drawn_of = |figure: &str, points: Vec<ClaimPoint>| ClaimPicture {
        figure: figure.into(),
        axis: "x".into(),
        sides: vec![ClaimCurve {
            side: "a".into(),
            points,
        }],
        ..ClaimPicture::default()
    };
    let pictures = vec![
        drawn_of(
            "lost",
            vec![
                point("1", Some(1.0), 0.0, Some((0.0, 0.0))),
                point("2", Some(2.0), 0.0, None),
            ],
        ),
        drawn_of(
            "delivered-rate",
            vec![point("64B", Some(64.0), 1e3, Some((1e-9, 1e15)))],
        ),
        drawn_of(
            "loss-share",
            vec![point("off", None, 0.1, None), point("on", None, 0.4, None)],
        ),
        drawn_of(
            "delivered-bytes-rate",
            vec![
                point("1", Some(0.0), -5.0, Some((-9.0, 1.0))),
                point("2", Some(9.0), 800.0, None),
            ],
        ),
        drawn_of(
            "system-cpu-per-message",
            vec![
                point("1", Some(1.0), 0.98, Some((0.97, 0.99))),
                point("2", Some(2.0), 1.01, Some((1.0, 1.02))),
            ],
        ),
    ];
    let count = pictures.len();
    let results = results("odd", vec![claim("C1", ClaimVerdict::Holds, pictures)]);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&index(&collect_studies(vec![outcome(&results, "odd")])));
    browser.picture("index-strange");
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
    let drawn = browser.eval("document.querySelectorAll('.chart svg').length");
    assert_eq!(drawn, json!(count));
    let words = browser.eval("document.body.innerText");
    let words = words.as_str().unwrap();
    for none in ["NaN", "undefined", "Infinity"] {
        assert!(!words.contains(none), "{words}");
    }
}

#[test]
fn the_table_fits_80_columns() {
    let text = table(&three(), 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("studies", text);
    let none = collect_studies(vec![outcome(&results("third", Vec::new()), "c")]);
    assert_eq!(title(&none), "What one study answers");
}

#[test]
fn every_claim_has_a_line_in_markdown() {
    let mut studies = three();
    let text = markdown(&studies, &BTreeMap::new());
    let all = studies.studies.iter().flat_map(|study| &study.claims);
    for claim in all.clone() {
        assert!(
            text.contains(&format!("\n| {} | ", claim.id)),
            "{}: {text}",
            claim.id
        );
    }
    assert_eq!(all.count(), 4);
    assert!(text.starts_with(
        "| paper | claims | outcomes |\n|---|---|---|\n| first | 2 | holds 1, not applicable 1 |\n"
    ));
    // Without words of its own a claim has its reason, else its figures; both as sentences.
    let line = "| C1 | QoS 1 costs \\| more than \\<QoS 0\\>, says C1. | **holds** | Qos1/qos0 at 64B: 2 (1.9 to 2.1). |";
    assert!(text.contains(line), "{text}");
    let words = BTreeMap::from([("first C1".to_owned(), "It costs twice as much.".to_owned())]);
    let text = markdown(&studies, &words);
    assert!(
        text.contains("| **holds** | It costs twice as much. |"),
        "{text}"
    );
    // A stand-in, and a rule that is later than its trials, stand beside them; days are told at the end.
    let claim = &mut studies.studies[0].claims[0];
    claim.outcome = ClaimVerdict::StandInHolds;
    claim.stand_in = "a for A".to_owned();
    claim.rule_is_later = true;
    let second = &mut studies.studies[1].claims[0];
    second.kept_from = "2026-11-20".to_owned();
    let text = markdown(&studies, &words);
    assert!(
        text.contains("| **stand-in holds** | Stand-in: a for A. It costs twice as much. The rule is later than its trials. |"),
        "{text}"
    );
    for end in [
        "(Measured on 2026-11-20, by trials that were not kept: second C1.)",
        "(Measured on 2026-11-21, by trials that are kept here: first C1.)",
        "(Machine: 2 processors, Some Processor, 8.00 GiB of memory, Debian 12, Linux 6.1.2.)",
    ] {
        assert!(text.contains(&format!("\n{end}\n")), "{end}: {text}");
    }
    assert_eq!(
        markdown(&collect_studies(Vec::new()), &words),
        "No paper's study has claims.\n"
    );
}

#[test]
fn a_reason_and_what_would_tell_are_sentences() {
    let mut studies = three();
    let claim = &mut studies.studies[0].claims[1];
    claim.reason = "it cannot be had; would tell: a machine of its own".to_owned();
    let text = markdown(&studies, &BTreeMap::new());
    let line = "| It cannot be had. Would tell: a machine of its own. |";
    assert!(text.contains(line), "{text}");
}
