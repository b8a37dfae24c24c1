//! The beginning and the end of a page, with its style and its script.

use std::fmt::Write as _;

use serde_json::json;

use crate::figures::NOISE;

const STYLE: &str = include_str!("../../assets/page.css");

const SCRIPT: &str = include_str!("../../assets/page.js");

/// The beginning of a page up to its heading. `name` and `started` are HTML, `first` is the id of the main
/// section.
pub(super) fn begin(out: &mut String, name: &str, started: &str, first: &str) {
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">\n\
         <title>{name} {started} pubgauge</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#{first}\">Skip to the answer</a>\n<header>\n<p class=\"brand\">pubgauge</p>\n<h1>{name}</h1>\n",
    );
}

/// A time in words: here in UTC; the script replaces it by the reader's local time.
pub(super) fn minute(started: &str) -> String {
    match (started.get(..16), started.ends_with('Z')) {
        (Some(minute), true) => format!("{} UTC", minute.replace('T', " ")),
        _ => started.to_owned(),
    }
}

/// Writes the data of charts and the script that draws them.
pub(super) fn embed(out: &mut String, workloads: Vec<serde_json::Value>) {
    let text = serde_json::to_string(&json!({ "workloads": workloads, "noise": NOISE }))
        .expect("figures are plain data");
    out.push_str("<script type=\"application/json\" id=\"data\">");
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    let _ = writeln!(out, "</script>\n<script>{SCRIPT}</script>");
    out.push_str("</body>\n</html>\n");
}
