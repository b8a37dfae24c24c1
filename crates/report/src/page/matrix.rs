//! The matrix of capabilities: what every system of the run can do, in its own terms.

use maud::{Markup, html};
use pubgauge_driver::{Capability, Support};
use pubgauge_figures::model::{Results, SystemCapabilities};

use super::html::table;

/// The grid of marks, and below it the text of every cell.
pub(super) fn section(results: &Results) -> Markup {
    let columns = &results.study.capabilities;
    html! {
        @if !columns.is_empty() {
            section id="matrix" {
                h2 { "What each system can do" }
                p {
                    b { "yes" } ": the system has it; "
                    b { "made" } ": the driver makes it from what the system has; "
                    b { "broken" } ": promised, and measured not to hold; "
                    b { "no" } ": cannot be had. What each cell is in the system's own terms stands below."
                }
                details { summary { "The matrix" } (grid(columns)) }
                @for column in columns { (explanation(column)) }
            }
        }
    }
}

fn grid(columns: &[SystemCapabilities]) -> Markup {
    let systems = columns.iter().map(|column| column.system.as_str());
    let heads = ["capability"].into_iter().chain(systems);
    let rows = html! {
        @for capability in Capability::ALL {
            tr {
                th scope="row" { (capability) }
                @for column in columns {
                    @match column.answers.iter().find(|a| a.capability == capability) {
                        Some(a) => {
                            td class=(mark(a.answer.support)) title=(a.answer.words) { (mark(a.answer.support)) }
                        }
                        None => td { "–" },
                    }
                }
            }
        }
    };
    table("matrix", "Matrix of capabilities", heads, rows)
}

fn explanation(column: &SystemCapabilities) -> Markup {
    let system = &column.system;
    let heads = ["capability", "support", "what it is there, or why not"];
    let rows = html! {
        @for a in &column.answers {
            tr {
                td { (a.capability) }
                td { (mark(a.answer.support)) }
                td class="wrap" { (a.answer.words) }
            }
        }
    };
    html! {
        details {
            summary { (system) " in its own terms" }
            (table("", &format!("Capabilities of {system}"), heads, rows))
        }
    }
}

/// The word of a cell, which is its CSS class as well.
fn mark(support: Support) -> &'static str {
    match support {
        Support::Native => "yes",
        Support::Emulated => "made",
        Support::Broken => "broken",
        Support::Unsupported => "no",
    }
}
