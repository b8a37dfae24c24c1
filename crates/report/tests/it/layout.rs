//! Nothing leaves its place, runs under something else or is not words: the page at the widths of a
//! screen and a phone, by day and by night, and printed.

use crate::advice;
use crate::chromium;
use crate::sample;

use chromium::Browser;
use pubgauge_figures::{Results, Status};
use pubgauge_report::{Logs, advice_page, index, page};
use serde_json::{Value, json};

/// Words that a page must not show: numbers that are none.
const NO_NUMBERS: &str = "(() => {
    const bad = /\\bNaN\\b|\\bundefined\\b|\\bInfinity\\b|(^|[^\\w.)\\]–-])-0(\\.0+)?(?![\\w.-])|\\+-|null/;
    const all = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode;
        if (!node.parentElement.closest('script') && bad.test(node.textContent)) all.push(node.textContent);
    }
    for (const e of document.querySelectorAll('[title], [aria-label]'))
        for (const name of ['title', 'aria-label'])
            if (bad.test(e.getAttribute(name) ?? '')) all.push(e.getAttribute(name));
    return all;
})()";

/// Words of a chart that leave it, and pairs of words of which one lies over the other: in charts,
/// and in everything else that is in sight.
const PLACES: &str = "(() => {
    const found = [];
    const shown = (e) => e.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true });
    const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1.5 || b.bottom <= a.top + 1.5;
    const pairs = (where, boxes) => {
        boxes.sort((a, b) => a.box.top - b.box.top);
        for (let i = 0; i < boxes.length; i++)
            for (let j = i + 1; j < boxes.length && boxes[j].box.top < boxes[i].box.bottom; j++)
                if (boxes[i].node !== boxes[j].node && !apart(boxes[i].box, boxes[j].box)) found.push(`${where}: \"${boxes[i].words}\" over \"${boxes[j].words}\"`);
    };
    for (const svg of document.querySelectorAll('.chart svg')) {
        const where = svg.closest('figure').id, frame = svg.getBoundingClientRect();
        if (!frame.width) continue;
        const boxes = [];
        for (const text of svg.querySelectorAll('text')) {
            // A box has room for letters that are not there: half of the size above the middle line is.
            const box = text.getBoundingClientRect(), size = parseFloat(getComputedStyle(text).fontSize) * (frame.width / svg.viewBox.baseVal.width);
            const spare = Math.max(0, (box.height - size) / 2);
            const words = text.firstChild.textContent;
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top + spare < frame.top - 1 || box.bottom - spare > frame.bottom + 1) found.push(`${where}: \"${words}\" leaves the chart`);
            boxes.push({ node: text, words, box: { left: box.left, right: box.right, top: box.top + spare, bottom: box.bottom - spare } });
        }
        pairs(where, boxes);
    }
    const boxes = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode, parent = node.parentElement;
        // Parts that scroll in themselves may lie under a name that stays.
        if (!node.textContent.trim() || parent.closest('script, svg, .skip, .contents, .data') || !shown(parent)) continue;
        const scroll = parent.closest('.scroll, pre');
        const frame = scroll?.getBoundingClientRect();
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const box of range.getClientRects()) {
            if (frame && (box.left < frame.left - 1 || box.right > frame.right + 1)) continue;
            if (box.left < -1 || box.right > innerWidth + 1) found.push(`\"${node.textContent.trim()}\" leaves the page`);
            const spare = box.height * 0.15;
            boxes.push({ node, words: node.textContent.trim(), box: { left: box.left, right: box.right, top: box.top + spare, bottom: box.bottom - spare } });
        }
    }
    pairs('page', boxes);
    if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    return found;
})()";

/// Tables that are cut: wider than their frame, which does not scroll.
const CUT: &str = "[...document.querySelectorAll('table')].filter((t) => {
    const frame = t.closest('.scroll');
    return t.checkVisibility() && t.scrollWidth > frame.clientWidth + 1 && getComputedStyle(frame).overflowX !== 'auto';
}).map((t) => t.closest('.scroll').ariaLabel)";

const AXE: &str = include_str!("vendor/axe.min.js");

/// Runs that differ in what they make a page draw.
fn samples() -> Vec<(&'static str, (Results, Logs))> {
    let mut bounds = sample::run(1);
    for trial in bounds.0.trials.iter_mut().filter(|t| t.workload.flat_out) {
        trial.verdict.status = match trial.system.name.as_str() {
            "zeromq" | "reference" => Status::ClientBound,
            _ => Status::Overloaded,
        };
    }
    let mut long = sample::four(2);
    for trial in &mut long.0.trials {
        trial.settings_name = match trial.repeat {
            1 => "safe-with-a-name-that-is-rather-long".into(),
            _ => "fast".into(),
        };
        trial.cell = format!("{}/{}", trial.cell, trial.settings_name);
    }
    vec![
        ("run", sample::run(5)),
        ("grid", sample::grid(3)),
        ("bounds", bounds),
        ("long", long),
        ("nobody", nobody_listens()),
        ("searches", sample::searches::run()),
    ]
}

/// The pages of these runs, of one with claims, and that over several studies.
pub fn pages() -> Vec<(&'static str, String)> {
    let samples = samples().into_iter();
    let mut pages: Vec<(&str, String)> = samples
        .map(|(name, (results, logs))| (name, page(&results, &logs)))
        .collect();
    pages.extend(with_claims());
    let advice = advice_page(&advice::sample(), "2026-11-28T10:00:00Z", "count = 5000");
    pages.push(("advice", advice));
    pages
}

fn with_claims() -> Vec<(&'static str, String)> {
    let studies = sample::claims::three();
    let (mut results, logs) = sample::run(2);
    let [first, second, ..] = &studies.studies[..] else {
        panic!("three studies")
    };
    results.claims.clone_from(&second.claims);
    results.claims.push(first.claims[1].clone());
    vec![
        ("claims", page(&results, &logs)),
        ("studies", index(&studies)),
    ]
}

/// One workload without subscribers.
fn nobody_listens() -> (Results, Logs) {
    let (mut results, _) = sample::run(1);
    results.trials.retain(|t| t.workload.name == "periodic 1-1");
    results.study.criterion_specs.clear();
    for trial in &mut results.trials {
        trial.workload.subscribers = 0;
        (
            trial.messages.delivered,
            trial.messages.expected,
            trial.shortfall.lost,
        ) = (0, 0, 0);
        trial.messages.delivered_msgs_per_s = 0.0;
        trial.messages.latency_ns = Default::default();
        trial.messages.latency_from_send_ns = Default::default();
        trial.latency_ecdf.clear();
        trial.flows.clear();
        trial.client_cpu_s.subscribers = -0.0;
        for second in &mut trial.series {
            (second.traffic.delivered, second.traffic.backlog) = (0, 0);
            (second.traffic.latency_p50_ns, second.traffic.latency_p99_ns) = (0, 0);
        }
        trial.verdict = pubgauge_results::verdict::judge(trial);
    }
    (results, Logs::new())
}

#[test]
fn nothing_leaves_its_place_or_lies_under_something_else() {
    let mut browser = Browser::start();
    for (name, html) in pages() {
        for (width, height, phone) in [(1400, 900, false), (390, 844, true)] {
            browser.size(width, height, phone);
            browser.media("screen", "light");
            browser.open(&html);
            browser.picture(&format!("{name}-{width}"));
            let at = format!("{name} at {width}");
            assert_eq!(browser.eval(NO_NUMBERS), json!([]), "{at}");
            assert_eq!(browser.eval(PLACES), json!([]), "{at}");
            assert_eq!(browser.eval(CUT), json!([]), "{at}");
            // Unfolded too: words may stand in tables alone.
            browser.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })");
            assert_eq!(browser.eval(PLACES), json!([]), "{at}, unfolded");
            assert_eq!(browser.eval(CUT), json!([]), "{at}, unfolded");
        }
        // As wide as A4 within its margins.
        browser.size(703, 1000, false);
        browser.media("print", "light");
        browser.open(&html);
        browser.eval("dispatchEvent(new Event('beforeprint'))");
        browser.picture(&format!("{name}-print"));
        assert_eq!(browser.eval(PLACES), json!([]), "{name}, printed");
        let cut = browser.eval("[...document.querySelectorAll('table')].filter((t) => t.checkVisibility() && t.getBoundingClientRect().right > innerWidth + 1).map((t) => t.closest('.scroll').ariaLabel)");
        assert_eq!(cut, json!([]), "{name}, printed");
        assert!(browser.errors.is_empty(), "{name}: {:#?}", browser.errors);
    }
}

/// The checks find faults that were planted.
#[test]
fn the_checks_find_what_is_wrong() {
    let (results, logs) = sample::run(1);
    let mut browser = Browser::start();
    browser.size(1400, 900, false);
    browser.open(&page(&results, &logs));
    for words in [
        "NaN ms",
        "undefined",
        "-0 µs",
        "-0.00 s",
        "0/s +-NaN %",
        "(-0)",
        "Infinity",
    ] {
        let planted = browser.eval(&format!("(() => {{ const p = document.createElement('p'); p.textContent = {words:?}; document.querySelector('main').append(p); const found = {NO_NUMBERS}.length; p.remove(); return found; }})()"));
        assert_eq!(planted, 1, "{words}");
    }
    let over = format!(
        "(() => {{ const t = document.querySelector('.chart svg text'), c = t.cloneNode(true); t.after(c); const found = {PLACES}.length; c.remove(); return found; }})()"
    );
    assert_eq!(browser.eval(&over), 1);
    let outside = format!(
        "(() => {{ const t = document.querySelector('.chart svg text'), x = t.getAttribute('x'); t.setAttribute('x', 5000); const found = {PLACES}; t.setAttribute('x', x); return found.some((f) => f.includes('leaves the chart')); }})()"
    );
    assert_eq!(browser.eval(&outside), true);
    let pulled = format!(
        "(() => {{ const h = document.querySelector('#w1 h2'); h.style.marginBottom = '-40px'; const found = {PLACES}.length; h.style.marginBottom = ''; return found > 0; }})()"
    );
    assert_eq!(browser.eval(&pulled), true);
}

#[test]
fn the_answer_is_within_the_first_screen() {
    let mut browser = Browser::start();
    for (width, height, phone) in [(1400, 900, false), (390, 844, true)] {
        browser.size(width, height, phone);
        for (name, (results, logs)) in [("four", sample::four(3)), ("grid", sample::grid(2))] {
            browser.open(&page(&results, &logs));
            let end = browser.eval("document.querySelector('#answer :is(table, .reasons)').getBoundingClientRect().bottom");
            assert!(
                end.as_f64().unwrap() <= f64::from(height),
                "{name} at {width}: {end}"
            );
            let said = browser
                .eval("[...document.querySelectorAll('#answer .mark')].map((m) => m.textContent)");
            let said = said.as_array().unwrap();
            assert!(said.len() >= 8, "{said:?}");
            assert!(
                said.iter()
                    .all(|s| ["yes", "no", "cannot tell"].contains(&s.as_str().unwrap()))
            );
            let titled = browser.eval("[...document.querySelectorAll('.mark, .badge, .rows thead th + th')].every((e) => e.title.length > 15)");
            assert_eq!(titled, true, "explained on hover");
        }
    }
}

/// Words in charts with less contrast to the page than 4.5 (WCAG 2.1, 1.4.3).
const PALE: &str = "(() => {
    const rgb = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const paper = light(rgb(getComputedStyle(document.body).backgroundColor));
    return [...document.querySelectorAll('.chart svg text')].filter((t) => {
        const own = light(rgb(getComputedStyle(t).fill)), opacity = +getComputedStyle(t).opacity;
        const [high, low] = own > paper ? [own, paper] : [paper, own];
        return opacity < 1 || (high + 0.05) / (low + 0.05) < 4.5;
    }).map((t) => `${t.closest('figure').id}: ${t.textContent}`);
})()";

#[test]
fn four_systems_print_on_six_pages() {
    let mut browser = Browser::start();
    for (name, (results, logs)) in [("four", sample::four(3)), ("one repeat", sample::four(1))] {
        browser.media("", "light");
        browser.open(&page(&results, &logs));
        let pdf = browser.pdf();
        let count = |what: &[u8]| pdf.windows(what.len()).filter(|w| *w == what).count();
        let pages = count(b"/Type /Page") - count(b"/Type /Pages");
        assert!((2..=6).contains(&pages), "{name}: {pages} pages");
    }
    // Parts that are folded on the screen for want of room stand in print.
    browser.media("print", "light");
    let words = browser.eval("document.querySelector('#reading').innerText");
    for part in [
        "overloaded",
        "p99",
        "Every repeat met everything that was asked.",
    ] {
        assert!(words.as_str().unwrap().contains(part), "{part}: {words}");
    }
    let title = browser.eval("document.title");
    assert!(
        title.as_str().unwrap().starts_with("first look 2026-11-2"),
        "{title}"
    );
    let file: Value =
        browser.eval("document.getElementById('file').textContent.endsWith('page.html')");
    assert_eq!(file, true);
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn axe_finds_nothing() {
        let mut browser = Browser::start();
        let runs = [
            ("run", sample::run(2)),
            ("grid", sample::grid(2)),
            ("searches", sample::searches::run()),
        ];
        let pages = runs.map(|(name, (results, logs))| (name, page(&results, &logs)));
        for (name, html) in pages.into_iter().chain(with_claims()) {
            for (width, phone, scheme) in [
                (1400, false, "light"),
                (1400, false, "dark"),
                (390, true, "light"),
            ] {
                browser.size(width, 900, phone);
                browser.media("screen", scheme);
                browser.open(&html);
                browser.eval(
                    "document.querySelectorAll('details').forEach((d) => { d.open = true; })",
                );
                browser.eval(&format!("{AXE}; true"));
                let found = browser.eval("axe.run(document, { resultTypes: ['violations'] }).then((r) => [r.passes.some((p) => p.id === 'color-contrast'), r.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 5).map((n) => n.html.slice(0, 160) + ' ' + n.failureSummary).join(' | ')}`)])");
                assert_eq!(found, json!([true, []]), "{name} at {width}, {scheme}");
                // In charts axe looks at no colours: words are measured here.
                let pale = browser.eval(PALE);
                assert_eq!(pale, json!([]), "{name} at {width}, {scheme}");
            }
        }
    }
}
