//! Searches for a limit on the page, in a real browser.

use crate::chromium;
use crate::sample;

use chromium::{Browser, SAVED, saved};
use pubgauge_figures::search::{NoteOf, SearchNote};
use pubgauge_report::{Logs, page};
use serde_json::{Value, json};

/// Each search has its curves, with a mark of its own shape for each trial, and its table.
#[test]
fn searches_are_drawn_and_told() {
    let (results, logs) = sample::searches::run();
    let mut browser = Browser::start();
    browser.size(1400, 900, false);
    browser.media("screen", "light");
    browser.open(&page(&results, &logs));
    browser.eval(SAVED);
    let limits = browser.eval(
        "[...document.querySelectorAll('#answer .limits tbody tr')].map((tr) => [...tr.children].map((c) => c.textContent))",
    );
    assert_eq!(
        limits[0],
        json!([
            "mosquitto",
            "207k to 217k msg/s",
            "207k for 60 s",
            "thread 98.4 %",
            "4.60 µs",
            "4.60 µs"
        ])
    );
    assert_eq!(limits[1][1], "at least 960k msg/s (client)");
    assert_eq!(limits[2][1], "none: 1 msg/s was too much");
    assert_eq!(limits[2][2], "–");
    for (number, search) in (1..).zip(&results.searches) {
        let word = |trial: &pubgauge_figures::search::SearchTrial| json!(trial.finding);
        let mut told: Vec<Value> = search.trials.iter().map(word).collect();
        let shown = browser.eval(&format!(
            "[...document.querySelectorAll('#s{number} .tried tbody tr')].map((tr) => tr.children[1].textContent)"
        ));
        assert_eq!(shown, json!(told), "search {number}");
        // As many marks of each shape as trials told it; latency has none of the flat-out trial.
        let mut drawn = |figure: &str| -> Vec<Value> {
            let marks = browser.eval(&format!(
                "['within', 'beyond', 'client', 'nothing'].flatMap((finding) => [...document.querySelectorAll(`#s{number}-{figure} .chart g.${{finding}} > *`)].map((m) => [finding, m.tagName + (m.getAttribute('d') ?? '').replace(/[\\d.,-]+/g, '')]))"
            ));
            marks.as_array().unwrap().clone()
        };
        let by_word = |marks: &[Value]| -> Vec<Value> {
            let mut words: Vec<Value> = marks.iter().map(|mark| mark[0].clone()).collect();
            words.sort_by_key(|word| word.to_string());
            words
        };
        let (achieved, latency) = (drawn("achieved"), drawn("latency"));
        for mark in &achieved {
            let shape = |other: &&Value| other[1] == mark[1];
            let alike = achieved.iter().filter(shape);
            assert!(alike.clone().all(|other| other[0] == mark[0]), "{mark}");
        }
        let paced = search.trials.iter().filter(|trial| trial.load.is_some());
        let mut paced: Vec<Value> = paced.map(word).collect();
        for told in [&mut told, &mut paced] {
            told.sort_by_key(|word| word.to_string());
        }
        assert_eq!(by_word(&achieved), told, "search {number}");
        assert_eq!(by_word(&latency), paced, "search {number}");
        for figure in ["achieved", "latency"] {
            let id = format!("s{number}-{figure}");
            let limit = browser.eval(&format!(
                "['interval', 'confirmed'].map((of) => document.querySelectorAll(`#{id} .chart g.${{of}} > *`).length)"
            ));
            let interval = search.low.is_some() || search.high.is_some();
            let expected = [
                usize::from(interval),
                usize::from(search.confirmed.is_some()),
            ];
            assert_eq!(limit, json!(expected), "{id}");
            let csv = saved(&mut browser, &id, "csv");
            assert!(
                csv.starts_with("row,verdict,trial,purpose,finding,load_msgs_per_s,"),
                "{csv}"
            );
            let svg = saved(&mut browser, &id, "svg");
            assert!(!svg.contains("var(--"), "{id}");
        }
    }
    // All of their figures stand among those of every trial, none among what is compared.
    let shown =
        browser.eval("document.querySelectorAll('#trials [aria-label^=Trials] tbody tr').length");
    assert_eq!(shown, results.trials.len() as u64);
    assert_eq!(
        browser.eval("document.querySelectorAll('section[id^=w]').length"),
        0
    );
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}

/// Searches of another axis, cut off, or with trials that are gone.
#[test]
fn every_kind_of_search_is_drawn() {
    let hostile = "</script><img src=x onerror=\"window.broken=1\">";
    for axis in pubgauge_figures::search::Axis::ALL {
        let (mut results, _) = sample::searches::run();
        for search in &mut results.searches {
            search.axis = axis;
            search.settings = format!("{} {hostile}", search.system);
            let note = SearchNote::new(NoteOf::LastTrial, hostile);
            search.notes.push(note);
            search.trials[0].why.push(hostile.into());
            if let Some(way) = &mut search.gave_way {
                way.words = hostile.into();
            }
        }
        results.searches[1].trials.clear();
        results.trials.retain(|trial| trial.id != 3);
        let mut browser = Browser::start();
        browser.size(1100, 900, false);
        browser.open(&page(&results, &Logs::new()));
        assert!(browser.errors.is_empty(), "{axis}: {:#?}", browser.errors);
        let drawn = browser
            .eval("[...document.querySelectorAll('figure')].every((f) => f.querySelector('svg'))");
        assert_eq!(drawn, true, "{axis}");
        assert_eq!(browser.eval("typeof window.broken"), "undefined");
        assert_eq!(
            browser.eval("document.querySelectorAll('img').length"),
            0,
            "{axis}"
        );
        let figures = browser.eval("document.querySelectorAll('figure').length");
        assert_eq!(figures, 4, "{axis}");
    }
}
