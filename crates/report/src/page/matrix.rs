//! The matrix of capabilities: what every system of the run can do, in its own terms.

use std::fmt::Write;

use pubgauge_driver::{Capability, Support};
use pubgauge_results::model::{Results, SystemCapabilities};

use super::escape;

/// The grid of marks, and below it the words of every cell.
pub(super) fn section(out: &mut String, results: &Results) {
    let columns = &results.study.capabilities;
    if columns.is_empty() {
        return;
    }
    out.push_str(
        "<section id=\"matrix\"><h2>What each system can do</h2>\n<p>\
        <b>yes</b>: the system has it; <b>made</b>: the driver makes it from what the system has; \
        <b>broken</b>: promised, and measured not to hold; <b>no</b>: cannot be had. \
        What each cell is in the system's own terms stands below.</p>\n",
    );
    grid(out, columns);
    for column in columns {
        words(out, column);
    }
    out.push_str("</section>\n");
}

fn grid(out: &mut String, columns: &[SystemCapabilities]) {
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Matrix of capabilities\"><table class=\"matrix\">\n<thead><tr><th scope=\"col\">capability</th>");
    for column in columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&column.system));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for capability in Capability::ALL {
        let _ = write!(out, "<tr><th scope=\"row\">{capability}</th>");
        for column in columns {
            let answer = column.answers.iter().find(|a| a.capability == capability);
            let _ = match answer {
                Some(a) => {
                    let (class, mark) = mark(a.answer.support);
                    write!(
                        out,
                        "<td class=\"{class}\" title=\"{}\">{mark}</td>",
                        escape(&a.answer.words)
                    )
                }
                None => write!(out, "<td>–</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn words(out: &mut String, column: &SystemCapabilities) {
    let _ = write!(
        out,
        "<details><summary>{0} in its own terms</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Capabilities of {0}\"><table>\n<thead><tr><th scope=\"col\">capability</th><th scope=\"col\">support</th><th scope=\"col\">what it is there, or why not</th></tr></thead><tbody>\n",
        escape(&column.system)
    );
    for a in &column.answers {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"wrap\">{}</td></tr>",
            a.capability,
            mark(a.answer.support).1,
            escape(&a.answer.words)
        );
    }
    out.push_str("</tbody></table></div></details>\n");
}

fn mark(support: Support) -> (&'static str, &'static str) {
    match support {
        Support::Native => ("yes", "yes"),
        Support::Emulated => ("made", "made"),
        Support::Broken => ("broken", "broken"),
        Support::Unsupported => ("no", "no"),
    }
}
