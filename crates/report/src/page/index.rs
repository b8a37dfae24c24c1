//! One page over several studies.

use std::fmt::Write as _;

use pubgauge_results::studies::{Counts, Studies, StudyOutcome};

use super::claims::{Shown, anchor, article, data, shown};
use super::frame::{begin, embed, minute};
use super::html::{END_TABLE, begin_table, escape, row};
use crate::studies::{name, state, title};

/// Name of the page of each run, beside its results.
const PAGE: &str = "report.html";

/// The page: what papers say, and what holds here; of studies without claims, their answers. One HTML file that
/// needs no other file. It links to the pages of the studies, which are in folders beside it.
pub fn index(studies: &Studies) -> String {
    let mut out = String::with_capacity(1 << 18);
    let begun = studies.studies.iter().map(|study| study.started.as_str());
    let started = begun.filter(|s| !s.is_empty()).min().unwrap_or_default();
    let shown_start = escape(&minute(started));
    begin(&mut out, &escape(&title(studies)), &shown_start, "studies");
    let mut machines: Vec<&str> = studies.studies.iter().map(|s| s.machine.as_str()).collect();
    machines.retain(|machine| !machine.is_empty());
    machines.dedup();
    let _ = writeln!(
        out,
        "<p class=\"where\"><time datetime=\"{}\">{shown_start}</time> · {}<span id=\"file\"></span></p>\n</header>\n<main>",
        escape(started),
        escape(&machines.join("; ")),
    );
    let each = studies.studies.iter().zip(1..);
    let all: Vec<(&StudyOutcome, u32, Vec<Shown<'_>>)> = each
        .map(|(study, nth)| (study, nth, shown(&study.claims, &format!("p{nth}-"))))
        .collect();
    overview(&mut out, &all);
    contents(&mut out, &all);
    for (study, nth, claims) in &all {
        section(&mut out, study, *nth, claims);
    }
    out.push_str("</main>\n");
    embed(&mut out, data(all.iter().flat_map(|(_, _, claims)| claims)));
    out
}

type Numbered<'a> = (&'a StudyOutcome, u32, Vec<Shown<'a>>);

/// How many claims of each study have each outcome.
fn overview(out: &mut String, all: &[Numbered<'_>]) {
    out.push_str("<section id=\"studies\"><h2>Studies</h2>\n");
    let heads = [
        "study",
        "holds",
        "does not hold",
        "cannot tell",
        "not applicable",
        "trials",
    ];
    let heads = heads.map(|head| (head, ""));
    begin_table(out, "fold limits", "Studies", heads);
    let cells = |counts: Counts, trials: String| {
        let words = counts.words().map(|(word, count)| match counts.all() {
            0 => (word, "–".to_owned()),
            _ => (word, count.to_string()),
        });
        words.into_iter().chain([("trials", trials)])
    };
    for (study, nth, _) in all {
        let link = format!("<a href=\"#p{nth}\">{}</a>", escape(name(study)));
        let trials = if study.trials == study.planned_trials {
            study.trials.to_string()
        } else {
            format!("{} of {}", study.trials, study.planned_trials)
        };
        row(out, &link, cells(study.counts, trials));
    }
    if all.len() > 1 {
        let counts = Counts::of(all.iter().flat_map(|(study, _, _)| &study.claims));
        let trials: u32 = all.iter().map(|(study, _, _)| study.trials).sum();
        row(out, "all", cells(counts, trials.to_string()));
    }
    let _ = writeln!(out, "{END_TABLE}</section>");
}

fn contents(out: &mut String, all: &[Numbered<'_>]) {
    out.push_str("<nav class=\"contents\" aria-label=\"Contents\"><ul>\n<li><a href=\"#studies\">Studies</a></li>\n");
    for (study, nth, _) in all {
        let _ = writeln!(
            out,
            "<li><a href=\"#p{nth}\">{}</a></li>",
            escape(name(study))
        );
    }
    out.push_str("</ul></nav>\n");
}

/// A study: its claims with links into its own page, or its answers.
fn section(out: &mut String, study: &StudyOutcome, nth: u32, claims: &[Shown<'_>]) {
    let _ = writeln!(
        out,
        "<section id=\"p{nth}\"><h2>{}</h2>",
        escape(name(study))
    );
    if let Some(question) = &study.question {
        let _ = writeln!(out, "<p>{}</p>", escape(question));
    }
    let state = state(study);
    if !state.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"failed\" role=\"note\">{}</p>",
            escape(&state)
        );
    }
    // A study that has not begun has no page.
    let page = (!study.started.is_empty()).then(|| format!("{}/{PAGE}", in_url(&study.folder)));
    if let Some(page) = &page {
        let _ = writeln!(
            out,
            "<p class=\"where\">{} · <a href=\"{page}\">page of this study</a></p>",
            escape(&study.systems.join(", "))
        );
    }
    for shown in claims {
        let id = &shown.claim.id;
        let name = match &page {
            Some(page) => format!("<a href=\"{page}#{}\">{}</a>", anchor(id), escape(id)),
            None => escape(id),
        };
        article(out, shown, &format!("p{nth}-{}", anchor(id)), &name);
    }
    if !study.answers.is_empty() {
        out.push_str("<ul>\n");
        for answer in &study.answers {
            let _ = writeln!(out, "<li>{}</li>", escape(answer));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}

/// The name of a folder as a part of a URL, with percent-encoding (RFC 3986).
fn in_url(folder: &str) -> String {
    let mut out = String::new();
    for byte in folder.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char)
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
