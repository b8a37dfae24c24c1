//! A figure with its readable table.

use std::fmt::Write as _;

use super::html::{END_TABLE, begin_table, escape};
use crate::figures::{Figure, Kind};
use crate::units;

/// Rows of a figure's readable table; longer ones are cut with a note. The CSV has all.
const TABLE_ROWS: usize = 40;

/// Writes a figure of a workload.
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
        figure.columns.iter().map(|column| (column.as_str(), "")),
    );
    for row in figure.rows.iter().take(TABLE_ROWS) {
        out.push_str("<tr>");
        for value in row {
            let _ = match (value.as_str(), value.as_f64()) {
                (Some(text), _) => write!(out, "<td>{}</td>", escape(text)),
                (None, Some(number)) => {
                    write!(out, "<td class=\"n\">{}</td>", number_words(number))
                }
                (None, None) => write!(out, "<td class=\"n\">–</td>"),
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
