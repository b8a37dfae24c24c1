//! A figure with its readable table.

use maud::{Markup, html};
use serde_json::Value;

use pubgauge_quantities::shown;

use super::html::table;
use crate::charts::{Chart, ChartKind};

/// Rows of a figure's readable table; longer ones are cut with a note. The CSV has all.
const TABLE_ROWS: usize = 40;

/// A figure of a workload.
pub(super) fn one_chart(figure: &Chart, workload: &str, flat_out: bool) -> Markup {
    let Chart { id, title, .. } = figure;
    let class = match (figure.wide, figure.kind) {
        (true, _) => Some("wide"),
        // Other tables show it already: that of percentiles, and that of results.
        (_, ChartKind::Ecdf | ChartKind::Throughput) => Some("screen"),
        // Latency flat out is that of queues, the less important figure.
        (_, ChartKind::Percentiles) if flat_out => Some("screen"),
        _ => None,
    };
    let of = format!("{title} of {workload}");
    let heads = figure.columns.iter().map(String::as_str);
    let rows = html! {
        @for row in figure.rows.iter().take(TABLE_ROWS) {
            tr { @for value in row { (entry(value)) } }
        }
    };
    html! {
        figure id=(id) class=[class] data-kind=(figure.kind.name()) aria-labelledby={ (id) "-title" } {
            h3 id={ (id) "-title" } { (title) }
            div class="chart" role="img" aria-label={ (of) ": " (figure.description) } {}
            figcaption { (figure.description) }
            details class="data" {
                summary { "Data" }
                p class="tools" {
                    button type="button" data-save="svg" aria-label={ "Save SVG: " (of) } { "Save SVG" }
                    " "
                    button type="button" data-save="csv" aria-label={ "Save CSV: the data of " (of) } { "Save CSV" }
                }
                (table("", &format!("Data of {of}"), heads, rows))
                @if figure.rows.len() > TABLE_ROWS {
                    p { (figure.rows.len() - TABLE_ROWS) " more rows stand in the CSV." }
                }
            }
        }
    }
}

/// An entry of its table.
fn entry(value: &Value) -> Markup {
    html! {
        @match (value.as_str(), value.as_f64()) {
            (Some(text), _) => td { (text) },
            (None, Some(number)) => td class="n" { (number_words(number)) },
            (None, None) => td class="n" { "–" },
        }
    }
}

/// A number of a figure as its table shows it.
fn number_words(number: f64) -> String {
    match number {
        whole if whole.fract() == 0.0 => format!("{:.0}", whole + 0.0),
        number => shown::digits(number),
    }
}
