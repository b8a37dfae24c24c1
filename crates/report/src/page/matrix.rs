//! The matrix of capabilities: what every system of the run can do, in its own terms.

use std::fmt::Write;

use pubgauge_driver::{Capability, Support};
use pubgauge_results::model::{Results, SystemCapabilities};

use super::html::{END_TABLE, begin_table, escape};

/// The grid of marks, and below it the text of every cell.
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
    out.push_str("<details><summary>The matrix</summary>\n");
    grid(out, columns);
    out.push_str("</details>\n");
    for column in columns {
        words(out, column);
    }
    out.push_str("</section>\n");
}

fn grid(out: &mut String, columns: &[SystemCapabilities]) {
    let systems = columns.iter().map(|column| (column.system.as_str(), ""));
    let heads = [("capability", "")].into_iter().chain(systems);
    begin_table(out, "matrix", "Matrix of capabilities", heads);
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
    out.push_str(END_TABLE);
}

fn words(out: &mut String, column: &SystemCapabilities) {
    let system = escape(&column.system);
    let _ = writeln!(out, "<details><summary>{system} in its own terms</summary>");
    let heads = ["capability", "support", "what it is there, or why not"].map(|head| (head, ""));
    begin_table(out, "", &format!("Capabilities of {system}"), heads);
    for a in &column.answers {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"wrap\">{}</td></tr>",
            a.capability,
            mark(a.answer.support).1,
            escape(&a.answer.words)
        );
    }
    let _ = writeln!(out, "{END_TABLE}</details>");
}

fn mark(support: Support) -> (&'static str, &'static str) {
    match support {
        Support::Native => ("yes", "yes"),
        Support::Emulated => ("made", "made"),
        Support::Broken => ("broken", "broken"),
        Support::Unsupported => ("no", "no"),
    }
}
