//! One workload: its rows, and its figures.

use std::fmt::Write as _;

use super::{END_TABLE, Page, answer, badge, begin_table, escape};
use crate::columns::columns;
use crate::figures::{Figure, Kind, Value};
use crate::summary::Workload;
use crate::{counted, crowd, hosts, network, shares, units, words, workload_words};

/// Rows of a figure's readable table; longer ones are cut with a note. The CSV has all.
const TABLE_ROWS: usize = 40;

/// Number of columns beyond which a table of results is set more closely.
const MANY: usize = 9;

/// Writes the section.
pub(super) fn section(out: &mut String, page: &Page<'_>, at: usize) {
    let workload = &page.summary.workloads[at];
    let words = workload_words(workload);
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
        answer::demands(out, page.results, &page.answers[at], "");
        answer::reasons(out, &page.answers[at], workload);
    }
    if !answer::wins_on_top(page) {
        out.push_str("<h3>Who wins at what</h3>\n");
        answer::wins(out, &page.answers[at]);
    }
    rows(out, workload);
    let shares = workload.cells.iter().filter_map(shares::sentence);
    let counted = workload.cells.iter().filter_map(counted::sentence);
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
    let heads = [("system", ""), ("verdict", words::figure("verdict"))];
    let heads = heads
        .into_iter()
        .chain(columns.iter().map(|c| (c.name, words::figure(c.name))));
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
            let some = match valid > 0 && valid < all {
                true => format!(" {valid} of {all}"),
                false => String::new(),
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
                let gone_wrong = column.counts.is_some() || column.name == "lost";
                let figure = (column.show)(cell);
                let class = if gone_wrong && figure != "0" {
                    "n bad"
                } else {
                    "n"
                };
                let figure = if figure == "-" {
                    "–".to_owned()
                } else {
                    figure
                };
                let _ = write!(
                    out,
                    "<td class=\"{class}\" data-name=\"{}\">{}</td>",
                    column.name,
                    escape(&figure)
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

pub(super) fn one_figure(out: &mut String, figure: &Figure, workload: &str, flat_out: bool) {
    let (id, title) = (&figure.id, escape(&figure.title));
    let class = match (figure.wide, figure.kind) {
        (true, _) => " class=\"wide\"",
        // Other tables show it already: that of percentiles, and that of results.
        (_, Kind::Ecdf | Kind::Throughput) => " class=\"screen\"",
        // Latency flat out is that of queues, the less important figure.
        (_, Kind::Percentiles) if flat_out => " class=\"screen\"",
        _ => "",
    };
    let described = escape(&figure.description);
    let of = escape(workload);
    let _ = write!(
        out,
        "<figure id=\"{id}\"{class} aria-labelledby=\"{id}-title\">\n<h3 id=\"{id}-title\">{title}</h3>\n\
         <div class=\"chart\" role=\"img\" aria-label=\"{title} of {of}: {described}\"></div>\n\
         <figcaption>{described}</figcaption>\n\
         <details class=\"data\"><summary>Data</summary>\n\
         <p class=\"tools\"><button type=\"button\" data-save=\"svg\" aria-label=\"Save SVG: {title} of {of}\">Save SVG</button> \
         <button type=\"button\" data-save=\"csv\" aria-label=\"Save CSV: the data of {title} of {of}\">Save CSV</button></p>\n",
    );
    begin_table(
        out,
        "",
        &format!("Data of {} of {workload}", figure.title),
        figure.columns.iter().map(|column| (*column, "")),
    );
    for row in figure.rows.iter().take(TABLE_ROWS) {
        out.push_str("<tr>");
        for value in row {
            let _ = match value {
                Value::Text(text) => write!(out, "<td>{}</td>", escape(text)),
                Value::Number(number) => {
                    write!(out, "<td class=\"n\">{}</td>", number_words(*number))
                }
                Value::None => write!(out, "<td class=\"n\">–</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str(END_TABLE);
    if figure.rows.len() > TABLE_ROWS {
        let left = figure.rows.len() - TABLE_ROWS;
        let _ = write!(out, "<p>{left} more rows stand in the CSV.</p>");
    }
    out.push_str("</details>\n</figure>\n");
}

/// A number of a figure as its table shows it.
fn number_words(number: f64) -> String {
    match number {
        whole if whole.fract() == 0.0 => format!("{:.0}", whole + 0.0),
        number => units::digits(number),
    }
}
