//! The page: one HTML file that needs no other file, and no scripts for its text and tables.

use maud::{Markup, html};
use pubgauge_figures::Results;
use pubgauge_figures::model::StudyInfo;
use pubgauge_quantities::shown;

use crate::LatencyLogs;
use crate::answers;
use crate::charts;
use crate::searches::Sought;
use crate::summary::{Cell, Summary};

mod advice;
mod answer;
mod asked;
mod chart;
mod claims;
mod comparisons;
mod content;
mod drawn;
mod facts;
mod frame;
mod html;
mod index;
mod matrix;
mod moment;
mod network;
mod per_trial;
mod scale;
mod searches;
mod trend;
mod trials;
mod windows;
mod wins;
mod workload;

pub use advice::advice_page;
pub use index::{in_url, index};
pub use trend::trend_page;

use claims::ShownClaim;
use content::Page;
use drawn::{Drawn, DrawnCell};
use frame::Document;

/// The page of a run. `logs` make the distribution functions exact over repeats; without them
/// the points stored in `results.json` are drawn.
pub fn page(results: &Results, logs: &dyn LatencyLogs) -> String {
    let summary = Summary::summarize(results);
    let each = || summary.workloads.iter().enumerate();
    let searches = crate::searches::searches_of(results, &summary);
    let page = Page {
        results,
        searched: searches.iter().map(Sought::workload).collect(),
        search_figures: (searches.iter())
            .map(|sought| charts::searches::of_search(results, sought))
            .collect(),
        searches,
        answers: each()
            .map(|(_, w)| answers::of_workload(results, w))
            .collect(),
        figures: each()
            .map(|(at, w)| charts::of_workload(results, w, at, logs))
            .collect(),
        summary,
    };
    let study = &results.study;
    let claims = claims::with_figures(&results.claims, "");
    let document = Document {
        name: &heading(study),
        started: &study.started,
        first: "answer",
        header: header(results),
        sections: sections(&page),
        drawn: drawn(&page, &claims),
    };
    document.text()
}

/// The name of the study, with its scale.
fn heading(study: &StudyInfo) -> String {
    let name = html::non_empty(&study.name).unwrap_or("run");
    match &study.scale {
        Some(scale) => format!("{name}, at scale {scale}"),
        None => name.to_owned(),
    }
}

fn header(results: &Results) -> Markup {
    let (study, machine) = (&results.study, &results.machine);
    let (trials, planned) = (results.trials.len() as u64, u64::from(study.planned_trials));
    html! {
        @if let Some(question) = &study.question { p class="question" { (question) } }
        p class="where" {
            (frame::time(&study.started)) " · " (shown::so_many(trials, "trial"))
            @if trials != planned { " of " (planned) }
            " · " (machine.number_of_processors()) ", " (machine.cpu_model)
            span id="file" {}
        }
    }
}

fn sections(page: &Page<'_>) -> Markup {
    let results = page.results;
    html! {
        @if results.study.cut_off {
            p class="notice" role="note" { "The run was cut off: this page shows what was measured until then." }
        }
        (answer::section(page))
        (contents(page))
        (comparisons::section(results))
        (facts::doubts(page))
        (facts::criteria(results))
        (claims::section(results))
        @for sought in &page.searches { (searches::section(page, sought)) }
        @for at in 0..page.summary.workloads.len() { (workload::section(page, at)) }
        (network::section(results))
        (facts::settings(page))
        (facts::unsupported(results))
        (matrix::section(results))
        (trials::section(page))
        (facts::machine(results))
        (facts::reading(page))
    }
}

/// The table of contents.
fn contents(page: &Page<'_>) -> Markup {
    let results = page.results;
    let study = &results.study;
    let searches = page.searches.iter().map(|sought| {
        let words = format!("How far: {}", sought.label);
        (format!("s{}", sought.number + 1), words)
    });
    let workloads = page.summary.workloads.iter().zip(1..);
    let workloads = workloads.map(|(workload, nth)| (format!("w{nth}"), workload.name.clone()));
    let not_possible = !(study.unsupported.is_empty() && results.not_measured.is_empty());
    let link = |shown: bool, id: &str, words: &str| {
        html! {
            @if shown { li { a href={ "#" (id) } { (words) } } }
        }
    };
    html! {
        nav class="contents" aria-label="Contents" {
            ul {
                (link(true, "answer", "The answer"))
                (link(!results.comparisons.is_empty(), "compared", "Compared"))
                (link(true, "validity", "What is not valid"))
                (link(!study.criteria.is_empty(), "criteria", "Criteria"))
                (link(!results.claims.is_empty(), "claims", "Claims"))
                @for (id, words) in searches.chain(workloads) { (link(true, &id, &words)) }
                (link(!results.networks.is_empty(), "network", "Network"))
                (link(true, "settings", "Settings"))
                (link(not_possible, "unsupported", "Not possible"))
                (link(!study.capabilities.is_empty(), "matrix", "Capabilities"))
                (link(true, "trials", "Every trial"))
                (link(true, "machine", "Machine and versions"))
                (link(true, "reading", "How to read this"))
            }
        }
    }
}

/// The charts of workloads, searches and claims.
fn drawn<'a>(page: &'a Page<'a>, claims: &'a [ShownClaim<'a>]) -> Vec<Drawn<'a>> {
    let workloads = page.summary.workloads.iter().zip(&page.figures);
    let workloads = workloads.map(|(workload, figures)| {
        let cell = |cell: &'a Cell<'a>| DrawnCell {
            label: &cell.label,
            row: &cell.row,
            point: cell.point,
            colour: cell.system_index,
            reference: cell.reference,
        };
        Drawn {
            cells: workload.cells.iter().map(cell).collect(),
            figures: figures.iter().collect(),
            flat_out: workload.flat_out,
        }
    });
    // A search is drawn like a workload of one row.
    let searches = page.searches.iter().zip(&page.search_figures);
    let searches = searches.map(|(sought, figures)| Drawn {
        cells: vec![DrawnCell {
            label: &sought.label,
            row: &sought.label,
            point: 0,
            colour: sought.system_index,
            reference: sought.reference,
        }],
        figures: figures.iter().collect(),
        flat_out: false,
    });
    let claims = claims::drawn(claims);
    workloads.chain(searches).chain(claims).collect()
}
