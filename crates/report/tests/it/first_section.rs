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
            const value = td.querySelector('small').textContent.match(/p99 (?:≤ )?([\\d.]+) (µs|ms)/);
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
/// A *no* leads to its row alone on the course over time, at the second, and the address says so.
#[test]
fn a_no_leads_to_the_second() {
    let (mut results, logs) = sample::run(2);
    let slow = results
        .trials
        .iter_mut()
        .filter(|t| t.system.name == "rabbitmq" && t.workload.name == "fleet of meters");
    for (nth, trial) in slow.enumerate() {
        let worst = 3 + nth;
        trial.series[worst].traffic.latency_p99_ns = 900_000_000;
    }
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &logs));
    let link = browser.eval("(() => { const a = document.querySelector('#answer a.moment'); return [a.dataset.row, +a.dataset.at, a.title, a.getAttribute('href')]; })()");
    let repeat: usize = if link[2].as_str().unwrap().contains("repeat 1") {
        1
    } else {
        2
    };
    let trial = results
        .trials
        .iter()
        .find(|t| {
            t.system.name == "rabbitmq"
                && t.workload.name == "fleet of meters"
                && t.repeat as usize == repeat
        })
        .unwrap();
    assert_eq!(
        link[1].as_f64(),
        Some(trial.series[2 + repeat].traffic.t_s),
        "{link}"
    );
    assert_eq!(link[3], "#w1-series");
    browser.eval("document.querySelector('#answer a.moment').click()");
    let at = browser
        .eval("[location.hash, document.querySelectorAll('#w1-series .second line').length]");
    assert!(
        at[0].as_str().unwrap().starts_with("#w1-series&off="),
        "{at}"
    );
    assert_eq!(at[1], 4, "{at}");
    let pressed = browser.eval("[...document.querySelectorAll('#w1-series .legend [aria-pressed=true]')].map((b) => b.textContent.split(' ')[0])");
    assert_eq!(pressed, json!(["rabbitmq"]));
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}

/// Rows go off and on by the legend, the time is zoomed, and an address brings all of it back; the value under the pointer
/// is told.
#[test]
fn charts_answer_and_the_address_remembers() {
    let (results, logs) = sample::run(2);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    let html = page(&results, &logs);
    browser.open(&html);
    let ticks = "[...document.querySelectorAll('#w1-series .chart svg:last-child [aria-label=\"x-axis tick label\"] text')].map((t) => +t.textContent)";
    let lines = "document.querySelectorAll('#w1-series .chart svg:first-child [aria-label=line] path').length";
    let whole = browser.eval(ticks);
    let all = browser.eval(lines).as_u64().unwrap();
    browser.eval("document.querySelector('#w1-series .legend button').click()");
    assert_eq!(browser.eval(lines), all - 1);
    browser.eval("document.querySelector('#w1-series [data-zoom=in]').click()");
    let zoomed = browser.eval(ticks);
    let end = |ticks: &serde_json::Value| ticks.as_array().unwrap().last().unwrap().as_f64();
    assert!(end(&zoomed) < end(&whole), "{whole} {zoomed}");
    let hash = browser.eval("location.hash");
    let hash = hash.as_str().unwrap();
    assert!(hash.contains("&off=") && hash.contains("&zoom="), "{hash}");
    browser.open(&html);
    browser.eval(&format!(
        "location.hash = {hash:?}; new Promise((r) => setTimeout(r, 300))"
    ));
    assert_eq!(browser.eval(ticks), zoomed);
    assert_eq!(browser.eval(lines), all - 1);
    // Over the first dot of the percentiles.
    // Measured and pointed at in one step: the page may still scroll to the figure of the address.
    let told = browser.eval(
        "new Promise((told) => {
            const svg = document.querySelector('#w1-latency .chart svg'), dot = svg.querySelector('[aria-label=dot] circle').getBoundingClientRect();
            svg.dispatchEvent(new PointerEvent('pointermove', { clientX: dot.x + dot.width / 2, clientY: dot.y + dot.height / 2, pointerType: 'mouse' }));
            const look = () => { const words = svg.querySelector('[aria-label=tip]').textContent; words ? told(words) : setTimeout(look, 20); };
            look();
        })",
    );
    assert!(told.as_str().unwrap().contains("p50"), "{told}");
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}
