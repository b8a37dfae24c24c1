//! The page in a real browser: headless Chromium.

use crate::chromium;
use crate::sample;

use chromium::{Browser, SAVED, saved};
use pubgauge_figures::{Results, Status};
use pubgauge_report::charts::{self, Chart, Value as Entry};
use pubgauge_report::summary::Summary;
use pubgauge_report::{Logs, page};
use serde_json::{Value, json};

fn figures_of(results: &Results, logs: &Logs) -> Vec<Chart> {
    let summary = Summary::summarize(results);
    (0..summary.workloads.len())
        .flat_map(|at| charts::of_workload(results, &summary.workloads[at], at, logs))
        .collect()
}

#[test]
fn a_trial_that_did_not_run_has_no_memory() {
    let (mut results, logs) = sample::run(1);
    let is_memory = |figure: &Chart| figure.id.ends_with("-memory");
    assert!(figures_of(&results, &logs).iter().any(is_memory));
    for trial in &mut results.trials {
        (trial.client_rss_bytes, trial.system_rss_bytes) = (0, None);
    }
    assert!(!figures_of(&results, &logs).iter().any(is_memory));
}

#[test]
fn every_figure_is_drawn_and_saves_what_it_shows() {
    let (results, logs) = sample::run(5);
    let html = page(&results, &logs);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.media("screen", "light");
    browser.open(&html);
    browser.picture("desktop");
    browser.eval(SAVED);
    let figures = figures_of(&results, &logs);
    // Six of each workload, and one for each flow of the fleet.
    assert_eq!(figures.len(), 20);
    for figure in &figures {
        let id = &figure.id;
        let marks = browser.eval(&format!(
            "document.querySelectorAll('#{id} .chart svg :is(path, circle, line, rect, text)').length"
        ));
        assert!(marks.as_u64().unwrap() > 10, "{id}: {marks} marks");
        // Every system of the figure is named in it.
        let words = browser.eval(&format!(
            "[...document.querySelectorAll('#{id} :is(.legend, .chart)')].map((e) => e.textContent).join()"
        ));
        for label in ["mosquitto", "zeromq", "rabbitmq"] {
            // Flat out, latencies of the overloaded RabbitMQ are not quoted.
            if label == "rabbitmq" && ["w3-latency", "w3-ecdf"].contains(&id.as_str()) {
                assert!(!words.as_str().unwrap().contains(label), "{id}: {words}");
                continue;
            }
            assert!(
                words.as_str().unwrap().contains(label),
                "{id} lacks {label}: {words}"
            );
        }

        assert_same_rows(figure, &saved(&mut browser, id, "csv"));

        let svg = saved(&mut browser, id, "svg");
        assert!(
            !svg.contains("var(--"),
            "{id}: a colour of the style sheet is left"
        );
        let parsed = browser.eval(&format!(
            "(() => {{ const d = new DOMParser().parseFromString({}, 'image/svg+xml');
               return [d.querySelectorAll('parsererror').length, d.documentElement.nodeName, d.querySelector('title')?.textContent, d.querySelectorAll('text').length]; }})()",
            json!(svg)
        ));
        assert_eq!(parsed[0], 0, "{id}: {parsed}");
        assert_eq!(parsed[1], "svg");
        assert!(
            parsed[2].as_str().unwrap().starts_with(&figure.title),
            "{parsed}"
        );
        assert!(parsed[3].as_u64().unwrap() > 3, "{parsed}");
    }
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
    let outside: Vec<&String> = browser
        .requests
        .iter()
        .filter(|url| {
            !["file:", "blob:", "data:"]
                .iter()
                .any(|own| url.starts_with(own))
        })
        .collect();
    assert!(outside.is_empty(), "{outside:?}");
}

fn assert_same_rows(figure: &Chart, saved: &str) {
    let mut saved = csv::Reader::from_reader(saved.as_bytes());
    let head: Vec<&str> = saved.headers().unwrap().iter().collect();
    assert_eq!(head, figure.columns);
    let saved: Vec<csv::StringRecord> = saved.records().map(Result::unwrap).collect();
    assert_eq!(saved.len(), figure.rows.len(), "{}", figure.id);
    for (saved, ours) in saved.iter().zip(&figure.rows) {
        assert_eq!(saved.len(), ours.len(), "{}: {saved:?} {ours:?}", figure.id);
        for (saved, ours) in saved.iter().zip(ours) {
            // Numbers as numbers: the two languages write exponents differently.
            match ours.as_f64() {
                Some(n) => assert_eq!(saved.parse::<f64>().ok(), Some(n), "{}", figure.id),
                None => assert_eq!(saved, ours.as_str().unwrap_or_default(), "{}", figure.id),
            }
        }
    }
}

/// The data of the charts, with the rows of each.
const DATA: &str = "(() => {
    const parse = (id) => JSON.parse(document.getElementById(id).textContent);
    const rows = (id) => parse(id).flatMap(([head, rest]) => rest.map((values) => [...head, ...values]));
    const data = parse('data');
    for (const figure of data.workloads.flatMap(({ figures }) => figures)) figure.rows = rows(`${figure.id}-rows`);
    return data;
})()";

#[test]
fn figures_equal_the_results() {
    let (results, logs) = sample::run(1);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &logs));
    let data = browser.eval(DATA);
    let row_of = |kind: &str, w: usize, pick: &dyn Fn(&Value) -> bool| -> Value {
        let figures = data["workloads"][w]["figures"].as_array().unwrap();
        let figure = figures.iter().find(|f| f["kind"] == kind).unwrap();
        figure["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| pick(row))
            .unwrap()
            .clone()
    };
    for trial in &results.trials {
        let w = ["fleet of meters", "periodic 1-1", "flat out 1-1"]
            .iter()
            .position(|name| *name == trial.workload.name)
            .unwrap();
        let own = |row: &Value| row[0] == json!(trial.system.name);
        let throughput = row_of("throughput", w, &own);
        assert_eq!(
            throughput[4].as_f64(),
            Some(trial.messages.delivered_msgs_per_s)
        );
        assert_eq!(throughput[5], Value::Null, "one repeat has no interval");
        // Flat out, latencies of queues without end are not quoted.
        if !trial.workload.flat_out || trial.verdict.status == Status::Valid {
            let p99 = row_of("percentiles", w, &|row| own(row) && row[2] == "p99");
            assert_eq!(
                p99[4].as_f64(),
                trial.messages.latency_ns.p99.map(|p99| p99 as f64)
            );
        }
        let publishers = row_of("times", w, &|row| own(row) && row[2] == "publishers");
        let expected = trial.client_cpu_s.publishers * 1e6
            / (trial.messages.delivered_msgs_per_s * trial.duration_s).round();
        assert!((publishers[3].as_f64().unwrap() - expected).abs() < 1e-9 * expected);
    }
    // And what a reader sees in the table of trials.
    let shown = browser.eval(&rows_of("Trials"));
    assert_eq!(shown.as_array().unwrap().len(), results.trials.len());
    for row in shown.as_array().unwrap() {
        let found = results.trials.iter().any(|t| {
            row["system"] == json!(t.system.name)
                && row["delivered"] == json!(t.messages.delivered.to_string())
                && row["lost"] == json!(t.shortfall.lost.to_string())
        });
        assert!(found, "{row}");
    }
}

/// The rows of the tables of this kind among all trials, as the texts of their columns by heading.
fn rows_of(kind: &str) -> String {
    format!(
        "[...document.querySelectorAll('#trials [aria-label^={kind}]')].flatMap((box) => {{
            const heads = [...box.querySelectorAll('thead th')].map((th) => th.textContent);
            return [...box.querySelectorAll('tbody tr')].map((tr) =>
                Object.fromEntries([...tr.children].map((td, nth) => [heads[nth], td.textContent])));
        }})"
    )
}

#[test]
fn flows_stand_below_their_trials() {
    let (results, logs) = sample::run(1);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &logs));
    let shown = browser.eval(&rows_of("Flows"));
    let shown = shown.as_array().unwrap();
    let several = results.trials.iter().filter(|t| t.flows.len() > 1);
    let mut expected = 0;
    for trial in several {
        for flow in &trial.flows {
            expected += 1;
            let row = shown.iter().find(|row| {
                row["system"] == json!(trial.system.name) && row["flow"] == json!(flow.name)
            });
            let row = row.unwrap_or_else(|| panic!("no row of {}", flow.name));
            assert_eq!(row["published"], json!(flow.messages.published.to_string()));
            assert_eq!(row["delivered"], json!(flow.messages.delivered.to_string()));
            assert_eq!(row["lost"], json!(flow.shortfall.lost.to_string()));
        }
    }
    // A trial of one flow has nothing to add to its own row.
    assert!(expected > 0);
    assert_eq!(shown.len(), expected);
}

#[test]
fn a_phone_needs_no_sideways_scrolling() {
    let (results, logs) = sample::run(5);
    let mut browser = Browser::start();
    browser.size(360, 740, true);
    browser.media("screen", "light");
    browser.open(&page(&results, &logs));
    browser.picture("phone");
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 360);
    let wide = browser.eval(
        "[...document.querySelectorAll('.chart svg text')].filter((t) => { const r = t.getBoundingClientRect(); return r.width > 0 && (r.right > 361 || r.left < -1); }).map((t) => t.closest('figure').id + ': ' + t.textContent)",
    );
    assert_eq!(wide, json!([]), "words that leave the screen");
    let small = browser.eval(
        "[...document.querySelectorAll('button')].filter((b) => b.getBoundingClientRect().height < 24).length",
    );
    assert_eq!(small, 0, "buttons too small for a finger");
    // Turned on its side it is drawn again.
    browser.size(740, 360, true);
    let wider = browser.eval(
        "new Promise((r) => setTimeout(() => r(document.querySelector('.chart svg').viewBox.baseVal.width), 500))",
    );
    assert!(wider.as_f64().unwrap() > 600.0, "{wider}");
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 740);
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}

#[test]
fn paper() {
    let (results, logs) = sample::run(5);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    // Somebody who reads in the dark still prints on white.
    browser.media("print", "dark");
    browser.open(&page(&results, &logs));
    assert_eq!(
        browser.eval("getComputedStyle(document.querySelector('.tools')).display"),
        "none"
    );
    assert_eq!(
        browser.eval("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    browser.size(718, 1000, false);
    let wide = browser
        .eval("document.documentElement.scrollWidth")
        .as_u64()
        .unwrap();
    browser.picture("print");
    assert!(wide <= 718, "wider than A4 within its margins: {wide}");
    browser.call("Emulation.clearDeviceMetricsOverride", json!({}));
    browser.media("", "light");
    let pdf = browser.pdf();
    assert!(pdf.starts_with(b"%PDF-"));
    let pages = pdf.windows(11).filter(|w| *w == b"/Type /Page").count()
        - pdf.windows(12).filter(|w| *w == b"/Type /Pages").count();
    assert!((2..=8).contains(&pages), "{pages} pages");
}

#[test]
fn dark_and_light_have_contrast() {
    let (results, logs) = sample::run(1);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    let html = page(&results, &logs);
    for scheme in ["light", "dark"] {
        browser.media("screen", scheme);
        browser.open(&html);
        browser.picture(scheme);
        // WCAG 2.1: 4.5 for words, 3 for lines and marks.
        let worst = browser.eval(
            "(() => {
                const style = getComputedStyle(document.documentElement);
                const rgb = (name) => { const p = document.createElement('i'); p.style.color = `var(${name})`; document.body.append(p); const c = getComputedStyle(p).color.match(/[\\d.]+/g).map(Number); p.remove(); return c; };
                const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
                const contrast = (a, b) => { const [x, y] = [lum(rgb(a)), lum(rgb(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
                const bad = [];
                for (const [a, b, least] of [['--ink', '--paper', 7], ['--soft', '--paper', 4.5], ['--soft', '--panel', 4.5], ['--link', '--paper', 4.5], ['--warn', '--warn-bg', 4.5], ['--bad', '--bad-bg', 4.5], ['--good', '--good-bg', 4.5], ['--reference', '--paper', 4.5],
                    ...[0,1,2,3,4,5,6,7].map((i) => [`--s${i}`, '--paper', 3])])
                    if (contrast(a, b) < least) bad.push(`${a} on ${b}: ${contrast(a, b).toFixed(2)}`);
                return bad;
            })()",
        );
        assert_eq!(worst, json!([]), "{scheme}");
    }
    let dark = browser.eval("getComputedStyle(document.body).backgroundColor");
    assert_eq!(dark, "rgb(20, 24, 28)");
}

#[test]
fn hostile_names_do_not_break_out() {
    let (results, logs) = sample::hostile();
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &logs));
    browser.picture("hostile");
    assert_eq!(browser.eval("typeof window.broken"), "undefined");
    assert_eq!(
        browser.eval("document.querySelectorAll('img, iframe, object').length"),
        0
    );
    assert_eq!(
        browser.eval("document.querySelector('h1').textContent"),
        json!(results.study.name)
    );
    // Names come through to the data unchanged.
    let names = browser.eval(
        "JSON.parse(document.getElementById('data').textContent).workloads[0].cells.map((c) => c.label)",
    );
    let mut expected: Vec<&str> = results.trials[..5]
        .iter()
        .map(|t| t.system.name.as_str())
        .collect();
    expected.sort();
    assert_eq!(names, json!(expected));
    browser.eval(SAVED);
    let csv = saved(&mut browser, "w1-throughput", "csv");
    assert!(csv.contains("\"x, \"\"y\"\"\r\nz"), "{csv}");
    let svg = saved(&mut browser, "w1-throughput", "svg");
    let parsed = browser.eval(&format!(
        "(() => {{ const d = new DOMParser().parseFromString({}, 'image/svg+xml'); return [d.querySelectorAll('parsererror').length, d.querySelectorAll('script, img').length]; }})()",
        json!(svg)
    ));
    assert_eq!(parsed, json!([0, 0]));
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
    assert_eq!(browser.requests.len(), 1, "{:?}", browser.requests);
}

#[test]
fn everybody_can_read_it() {
    let (results, logs) = sample::run(5);
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &logs));
    assert_eq!(browser.eval("document.documentElement.lang"), "en");
    assert_eq!(browser.eval("document.querySelectorAll('h1').length"), 1);
    let jumps = browser.eval(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => +h.tagName[1]).filter((level, i, all) => i > 0 && level > all[i - 1] + 1).length",
    );
    assert_eq!(jumps, 0, "headings that skip a level");
    let figures = browser.eval(
        "[...document.querySelectorAll('figure')].map((f) => [f.querySelector('[role=img]').ariaLabel.length > 30, f.querySelectorAll('details table tbody tr').length > 0, !!document.getElementById(f.getAttribute('aria-labelledby')), f.querySelectorAll('button[aria-label]').length])",
    );
    for figure in figures.as_array().unwrap() {
        assert_eq!(*figure, json!([true, true, true, 2]));
    }
    assert_eq!(
        browser.eval("[...document.querySelectorAll('table')].every((t) => t.querySelector('thead th[scope=col]'))"),
        true
    );
    let ids = browser.eval("(() => { const all = [...document.querySelectorAll('[id]')].map((e) => e.id); return all.length - new Set(all).size; })()");
    assert_eq!(ids, 0, "identifiers used twice");
    // With the keyboard alone: unfold, to the button, press it, a file comes out.
    browser.eval(SAVED);
    browser.eval(
        "window.out = new Promise((resolve) => { const original = URL.createObjectURL; URL.createObjectURL = (blob) => { blob.text().then(resolve); return original.call(URL, blob); }; }); HTMLAnchorElement.prototype.click = () => {}; true",
    );
    let key = json!({"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"});
    browser.eval("document.querySelector('#w1-cpu summary').focus()");
    browser.call("Input.dispatchKeyEvent", key.clone());
    browser.call(
        "Input.dispatchKeyEvent",
        json!({"type": "keyUp", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}),
    );
    let open = browser.eval("document.querySelector('#w1-cpu details').open");
    assert_eq!(open, true, "unfolded by Enter");
    browser.eval("document.querySelector('#w1-cpu button[data-save=csv]').focus()");
    browser.call("Input.dispatchKeyEvent", key);
    let csv = browser.eval("out");
    assert!(
        csv.as_str()
            .unwrap()
            .starts_with("row,verdict,part,cpu_us_per_msg"),
        "{csv}"
    );
}

/// The words and tables stand in the page itself, for those who run no scripts.
#[test]
fn answers_stand_in_the_page_without_scripts() {
    let (results, logs) = sample::run(5);
    let html = page(&results, &logs);
    let before_scripts = &html[..html.find("<script type=\"application/json\"").unwrap()];
    for part in [
        "The answer",
        "What is not valid, and why",
        "no clear winner among zeromq",
        "the backlog grew",
        "Every trial",
    ] {
        assert!(before_scripts.contains(part), "{part}");
    }
    for figure in figures_of(&results, &logs) {
        for value in &figure.rows[0] {
            if let Entry::String(text) = value {
                assert!(before_scripts.contains(text.as_str()), "{text}");
            }
        }
    }
}

/// Limits of systems, and those that could not be held, are told once for each.
#[test]
fn limits_of_systems_stand_in_the_page() {
    let (mut results, logs) = sample::run(5);
    assert!(!page(&results, &logs).contains("each instance had"));
    let name = results.trials[0].system.name.clone();
    for trial in results.trials.iter_mut().filter(|t| t.system.name == name) {
        trial.limits = Some(pubgauge_figures::model::HeldLimits {
            cores: Some(0.5),
            cores_by: Some("a quota".into()),
            memory_bytes: Some(64 << 20),
            not_held: vec!["64 MiB of memory: <why>".into()],
            ..Default::default()
        });
        trial.client_limits = Some(pubgauge_figures::model::HeldLimits {
            cores: Some(1.0),
            ..Default::default()
        });
    }
    let html = page(&results, &logs);
    let of_client = "each worker process had 1 cores (not held) at most.</p>";
    let words = "each instance had 0.5 cores (a quota) and 64.0 MiB of memory (not held) at most; \
                 not held as asked: 64 MiB of memory: &lt;why&gt;.</p>";
    let workloads: std::collections::BTreeSet<_> =
        results.trials.iter().map(|t| &t.workload.name).collect();
    assert_eq!(html.matches(words).count(), workloads.len(), "{words}");
    assert_eq!(html.matches(of_client).count(), workloads.len());
}

#[test]
fn every_cell_of_the_matrix_is_there_and_in_words() {
    let (results, logs) = sample::run(2);
    let html = page(&results, &logs);
    let mut browser = Browser::start();
    browser.open(&html);
    let columns = &results.study.capabilities;
    let cells = columns.len() * columns[0].answers.len();
    let marks = browser.eval("document.querySelectorAll('#matrix .matrix td').length");
    assert_eq!(marks, cells as u64);
    let words = browser.eval("[...document.querySelectorAll('#matrix details tbody tr')].filter(r => r.children[2].textContent.startsWith('what ')).length");
    assert_eq!(words, cells as u64);
}

#[test]
fn nothing_measured_is_a_page_too() {
    let (mut results, _) = sample::run(1);
    results.trials.clear();
    results.study.cut_off = true;
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &Logs::new()));
    let words = browser.eval("document.body.innerText");
    assert!(
        words
            .as_str()
            .unwrap()
            .contains("No trial has been measured."),
        "{words}"
    );
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}

/// A broken trial without a single figure is drawn beside good ones.
#[test]
fn empty_trials_are_drawn() {
    let (mut results, _) = sample::run(1);
    for trial in results
        .trials
        .iter_mut()
        .filter(|t| t.system.name == "mosquitto")
    {
        let (system, workload, cell) = (
            trial.system.clone(),
            trial.workload.clone(),
            trial.cell.clone(),
        );
        *trial = pubgauge_figures::Trial {
            id: trial.id,
            system,
            workload,
            cell,
            repeat: 1,
            ..Default::default()
        };
    }
    let mut browser = Browser::start();
    browser.size(1100, 900, false);
    browser.open(&page(&results, &Logs::new()));
    browser.picture("empty");
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}
