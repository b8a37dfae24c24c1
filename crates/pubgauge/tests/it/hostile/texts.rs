//! Texts of strangers in a run's folder and in a system's file: what the page, the exports, the terminal and the
//! package manager make of them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use pubgauge_testing::hostile::{Dice, ended_well, files_below, reads};

use super::short_run;
use crate::common::*;

/// Sequences that pages, spreadsheets, terminals, shells, paths and other forms obey.
const TEXTS: [&str; 34] = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "<!--<script>",
    "]]><script>alert(1)</script>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "<a href=javascript:alert(1)>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<meta http-equiv=refresh content=0;url=//x.example>",
    "<base href=//x.example>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#x3c;script&#x3e;",
    "\u{2028}\u{2029}",
    "\u{202e}txt.exe\u{202c}",
    "\u{feff}<script>",
    "=cmd|'/c calc'!A1",
    "+1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{9b}31m",
    "\r\n# HELP x y\nx 1",
    "{le=\"0\"} 1\nx",
    "../../../../work/escaped",
    "/tmp/escaped",
    "trials/../../escaped",
    "$(touch escaped)`touch escaped`;touch escaped",
    "%n%s%x",
    "\0",
];

/// Puts texts in place of some of those in a JSON document; how many.
fn exchange(value: &mut Value, dice: &mut Dice, one_in: usize) -> usize {
    match value {
        Value::String(text) if dice.below(one_in) == 0 => {
            let other = dice.one_of(&TEXTS);
            *text = match dice.below(3) {
                0 => other.to_owned(),
                1 => format!("{text}{other}"),
                _ => format!("{other}{text}"),
            };
            1
        }
        Value::Array(items) => items.iter_mut().map(|v| exchange(v, dice, one_in)).sum(),
        Value::Object(items) => items
            .iter_mut()
            .map(|(_, v)| exchange(v, dice, one_in))
            .sum(),
        _ => 0,
    }
}

/// Parts of a page that execute or fetch: its elements that can, with what they hold, attributes that are handlers, and
/// addresses.
fn active(page: &str) -> BTreeSet<String> {
    let page = scraper::Html::parse_document(page);
    let mut found = BTreeSet::new();
    for node in page.tree.nodes() {
        let Some(element) = node.value().as_element() else {
            continue;
        };
        const ACTIVE: [&str; 8] = [
            "script", "iframe", "object", "embed", "meta", "base", "link", "form",
        ];
        if ACTIVE.contains(&element.name()) {
            let texts = node.children().filter_map(|child| child.value().as_text());
            // Data that a script holds differ with the run.
            let is_data = element.attr("type").is_some_and(|of| of.contains("json"));
            let text: String = texts.filter(|_| !is_data).map(|t| &**t).collect();
            let attributes: Vec<_> = element.attrs().collect();
            found.insert(format!("{} {attributes:?} {text}", element.name()));
        }
        for (name, value) in element.attrs() {
            let leads = matches!(name, "href" | "src" | "srcdoc" | "action" | "xlink:href");
            // Places within the page.
            if name.starts_with("on") || leads && !value.starts_with('#') {
                found.insert(format!("{name}={value}"));
            }
        }
    }
    found
}

fn page(place: &Place) -> Option<String> {
    std::fs::read_to_string(place.path_to("run/report.html")).ok()
}

/// Every cell of a table in CSV that a spreadsheet would execute.
fn formulas(path: &Path) -> Vec<String> {
    let mut table = csv::Reader::from_path(path).unwrap();
    let cells = table.records().flat_map(|record| {
        let record = record.unwrap();
        let cells = record.iter().map(str::to_owned);
        cells.collect::<Vec<_>>()
    });
    let executes = |cell: &String| {
        cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err()
    };
    cells.filter(executes).collect()
}

#[track_caller]
fn is_xml(text: &str) {
    let mut reader = quick_xml::Reader::from_str(text);
    while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
}

/// A folder of a stranger: its texts are obeyed nowhere.
pub(super) fn in_results(dice: &mut Dice) {
    let place = Place::new();
    place.run(&short_run("simulated"));
    reads(&place, &["report", "run"]);
    let before = active(&page(&place).unwrap());
    let one_in = 1 + dice.below(12);
    let mut exchanged = 0;
    for file in files_below(&place.path_to("run")) {
        if file.extension().is_none_or(|of| of != "json") || dice.below(3) == 0 {
            continue;
        }
        let mut content: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        exchanged += exchange(&mut content, dice, one_in);
        std::fs::write(&file, serde_json::to_vec(&content).unwrap()).unwrap();
    }
    let known: BTreeSet<_> = files_below(&place.path_to("")).into_iter().collect();
    reads(&place, &["report", "run"]);
    let after = active(&page(&place).unwrap());
    let more: Vec<_> = after.difference(&before).collect();
    assert!(more.is_empty(), "{exchanged} texts: {more:?}");
    for form in ["csv", "json", "parquet", "openmetrics", "junit", "claims"] {
        reads(&place, &["export", "run", "--format", form, "--out", "out"]);
    }
    reads(&place, &["compare", "run", "run"]);
    reads(&place, &["run", "--resume", "run"]);
    for path in files_below(&place.path_to("")) {
        let inside =
            path.starts_with(place.path_to("run")) || path.starts_with(place.path_to("out"));
        assert!(
            inside || known.contains(&path),
            "{} appeared",
            path.display()
        );
        match path.extension().and_then(|of| of.to_str()) {
            Some("csv") => assert_eq!(formulas(&path), [""; 0], "{}", path.display()),
            Some("xml") => is_xml(&std::fs::read_to_string(&path).unwrap()),
            _ => {}
        }
    }
}

/// A stranger's system file, whose commands nobody agreed to: they are shown and not executed, by no verb that only
/// looks.
pub(super) fn in_system_files(dice: &mut Dice) {
    let place = Place::new();
    let mut text = || {
        let own = format!(
            "{} touch {}",
            dice.one_of(&TEXTS),
            place.path_to("executed").display()
        );
        serde_json::to_string(&own).unwrap()
    };
    let file = format!(
        "name = \"strange\"\ndriver = \"mqtt\"\ndescription = {}\nkind = \"broker\"\nendpoints = [\"mqtt://127.0.0.1:1\"]\n\
         [install]\nnote = {}\napt = [{}]\ndnf = [{}]\n[find]\nexecutables = [\"sh\"]\n[run]\ncommand = [\"sh\", \"-c\", {}]\n[version]\ncommand = [\"sh\", \"-c\", {}]\n",
        text(),
        text(),
        text(),
        text(),
        text(),
        text(),
    );
    std::fs::create_dir(place.path_to("own")).unwrap();
    place.write("own/strange.toml", file);
    let all: [&[&str]; 5] = [
        &["systems"],
        &["systems", "--json"],
        &["systems", "--on", "strange"],
        &["systems", "--install", "strange"],
        &["plan", "--on", "strange", "--rate", "1/s"],
    ];
    for args in all {
        let done = place.run(&[args, &["--systems", "own"]].concat());
        ended_well(&done);
        assert!(!place.path_to("executed").exists(), "{args:?}: {done:?}");
    }
}
