//! One workload: its rows, and its figures.

use std::fmt::Write as _;

use super::content::Page;
use super::figure::one_figure;
use super::html::{END_TABLE, badge, begin_table, escape};
use super::{answer, asked};
use crate::columns::columns;
use crate::summary::Workload;
use crate::{crowd, glossary, hosts, network, on_request, shares, workload};

/// Number of columns beyond which a table of results is set more closely.
const MANY: usize = 9;

/// Writes the section.
pub(super) fn section(out: &mut String, page: &Page<'_>, at: usize) {
    let workload = &page.summary.workloads[at];
    let words = workload::words(workload);
    // The heading has the name already.
    let words = words.strip_prefix(&workload.name).unwrap_or(&words).trim();
    let words = words.trim_start_matches('(').trim_end_matches(')');
    let _ = writeln!(
        out,
        "<section id=\"w{}\"><h2>{}</h2>\n<p class=\"where\">{}</p>",
        at + 1,
        escape(&workload.name),
        escape(words).replace("-&gt;", "→"),
    );
    if !answer::in_one_list(page) {
        asked::demands(out, page.results, &page.answers[at], "");
        answer::reasons(out, &page.answers[at], workload);
    }
    if !answer::wins_on_top(page) {
        out.push_str("<h3>Who wins at what</h3>\n");
        answer::wins(out, &page.answers[at]);
    }
    rows(out, workload);
    let shares = workload.cells.iter().filter_map(shares::sentence);
    let counted = workload.cells.iter().filter_map(on_request::sentence);
    let on_network =
        (workload.cells.iter()).filter_map(|cell| network::sentence(page.results, cell));
    let on_hosts = workload.cells.iter().filter_map(hosts::sentence);
    let crowd = crowd::sentence(workload);
    let all = shares.chain(counted).chain(on_network).chain(on_hosts);
    for sentence in all.chain(crowd) {
        let _ = writeln!(out, "<p>{}</p>", escape(&sentence));
    }
    if workload.points.len() > 1 {
        let _ = write!(
            out,
            "<p class=\"points\" role=\"group\" aria-label=\"What the figures of {} show\">Figures show ",
            escape(&workload.name)
        );
        for (nth, point) in workload.points.iter().enumerate() {
            let _ = write!(
                out,
                "<button type=\"button\" data-workload=\"{at}\" data-point=\"{nth}\" aria-pressed=\"{}\">{}</button> ",
                nth == 0,
                escape(&point.label)
            );
        }
        out.push_str("</p>\n");
    }
    out.push_str("<div class=\"figures\">\n");
    for figure in &page.figures[at] {
        one_figure(out, figure, &workload.name, workload.flat_out);
    }
    out.push_str("</div></section>\n");
}

/// The table of results.
fn rows(out: &mut String, workload: &Workload<'_>) {
    let columns = columns(workload);
    let heads = [("system", ""), ("verdict", glossary::figure("verdict"))];
    let heads = heads
        .into_iter()
        .chain(columns.iter().map(|c| (c.name, glossary::figure(c.name))));
    let class = if columns.len() > MANY {
        "rows fold many"
    } else {
        "rows fold"
    };
    begin_table(out, class, &format!("Results of {}", workload.name), heads);
    for (nth, point) in workload.points.iter().enumerate() {
        if !point.label.is_empty() {
            let _ = writeln!(
                out,
                "<tr class=\"for\"><th colspan=\"{}\" scope=\"colgroup\">{}</th></tr>",
                columns.len() + 2,
                escape(&point.label)
            );
        }
        for cell in workload.at(nth) {
            let (valid, all) = (cell.valid().count(), cell.trials.len());
            let some = if valid > 0 && valid < all {
                format!(" {valid} of {all}")
            } else {
                String::new()
            };
            let _ = write!(
                out,
                "<tr><th scope=\"row\"{}>{}</th><td>{}{some}</td>",
                if cell.row.chars().count() > 30 {
                    " class=\"wrap\""
                } else {
                    ""
                },
                escape(&cell.row),
                badge(cell.status())
            );
            for column in &columns {
                let figure = column.show(cell);
                let class = if column.is_of_failures() && figure != "0" {
                    "n bad"
                } else {
                    "n"
                };
                let figure = match &figure[..] {
                    "-" => "–",
                    figure => figure,
                };
                let _ = write!(
                    out,
                    "<td class=\"{class}\" data-name=\"{}\">{}</td>",
                    column.name,
                    escape(figure)
                );
            }
            out.push_str("</tr>\n");
        }
    }
    out.push_str(END_TABLE);
    let repeats = workload
        .cells
        .iter()
        .map(|cell| cell.trials.len())
        .max()
        .unwrap_or(0);
    let over = match repeats {
        1 => "One repeat: nothing is known of chance.".to_owned(),
        n => format!("Means of the valid ones of {n} repeats; counts over all."),
    };
    let _ = writeln!(
        out,
        "<p class=\"where\">{over} Processor time in µs for one delivery.</p>"
    );
}
