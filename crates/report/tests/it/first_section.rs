//! The first section of the page: the matrix with its bars, and what leads on from it.

use crate::chromium;
use crate::sample;

use chromium::Browser;
use pubgauge_figures::Status;
use pubgauge_report::page;
use serde_json::json;

/// The place of a figure between the least and its limit, on one log scale for all rows.
#[test]
fn bars_show_how_much_of_the_limit_is_used() {
    let (results, logs) = sample::run(2);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &logs));
    let bars = browser.eval(
        "[...document.querySelectorAll('#answer .overview td:nth-child(2)')].map((td) => {
            const [bar, limit] = [td.querySelector('.bar i'), td.querySelector('.bar b')].map((e) => e.getBoundingClientRect());
            const value = td.querySelector('small').textContent.match(/p99 (?:at most )?([\\d.]+) (µs|ms)/);
            return [td.closest('tr').querySelector('th').textContent, bar.width, limit.left - bar.left, value[1] * (value[2] === 'ms' ? 1000 : 1)];
        })",
    );
    let bars = bars.as_array().unwrap();
    assert_eq!(bars.len(), 5);
    // As far from the limit as the figure is, by the logarithm: 5 ms are asked for.
    let decade = |bar: &serde_json::Value| {
        let [width, limit, micros] = [1, 2, 3].map(|at| bar[at].as_f64().unwrap());
        ((limit - width), (5_000.0 / micros).log10())
    };
    let (first, first_decades) = decade(&bars[0]);
    for bar in bars {
        let (pixels, decades) = decade(bar);
        let expected = first / first_decades * decades;
        assert!(
            (pixels - expected).abs() < 4.0,
            "{bar}: {pixels} {expected}"
        );
    }
    // RabbitMQ's is beyond its limit.
    let over = browser.eval("[...document.querySelectorAll('.bar.over')].map((e) => e.closest('tr').querySelector('th').textContent)");
    assert_eq!(over, json!(["rabbitmq"]));
    assert_eq!(
        browser
            .eval("[...document.querySelectorAll('.bar')].every((e) => e.ariaHidden === 'true')"),
        true
    );
}

/// Headroom is of load alone; a figure of one repeat says that it is; what is not decided is said once, in a line.
#[test]
fn two_values_of_one_figure_say_what_each_is() {
    let (results, logs) = sample::run(2);
    let mut browser = Browser::start();
    browser.open(&page(&results, &logs));
    let words = browser.eval("document.body.innerText");
    assert!(!words.as_str().unwrap().contains("headroom"), "{words}");
    let said = browser.eval("document.querySelector('#answer').innerText");
    let said = said.as_str().unwrap();
    for part in [
        "worst of 2",
        "Means over valid repeats",
        "why not the others",
        "more repeats would tell",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("no clear winner"), "{said}");
    // Two repeats have no interval: both values stand there.
    let figures = browser
        .eval("[...document.querySelectorAll('.wins dd')].map((dd) => dd.textContent).join()");
    let figures = figures.as_str().unwrap();
    assert!(
        !figures.contains('±') && figures.contains(" µs and "),
        "{figures}"
    );
}

/// Each cause by which cells say nothing is told once, whatever their number.
#[test]
fn a_cause_stands_once_under_the_matrix() {
    let (mut results, logs) = sample::run(2);
    for trial in results.trials.iter_mut().filter(|t| !t.workload.flat_out) {
        let reason =
            pubgauge_figures::Reason::new(pubgauge_figures::Rule::TooShort, "a reason of our own");
        trial.verdict.status = Status::TooShort;
        trial.verdict.reasons = vec![reason];
    }
    let html = page(&results, &logs);
    let mut browser = Browser::start();
    browser.open(&html);
    let said = browser.eval("document.querySelector('#answer').innerText");
    let said = said.as_str().unwrap();
    assert_eq!(said.matches("a reason of our own").count(), 1, "{said}");
    assert!(said.contains("more for this reason"), "{said}");
}
