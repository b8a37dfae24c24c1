//! Outcomes that a gate depends on, for the programs that show them: JUnit XML for CI servers,
//! annotations for GitHub.

use std::fmt::Write as _;

/// One outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its group, for example `criteria`.
    pub group: String,
    /// The requirement, for example `latency.p99 below 10ms`.
    pub name: String,
    pub outcome: CheckOutcome,
    /// The figures that decided, or why none could.
    pub words: String,
}

/// The outcome of a check. A gate passes if all are [`CheckOutcome::Passed`] or [`CheckOutcome::Aside`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// It cannot be decided.
    Undecided,
    /// For information only: it never fails a gate.
    Aside,
}

/// The checks as JUnit XML in the form that CI servers share: a `testsuite` for each group;
/// `failure` for failed ones, `error` for undecided ones, `skipped` for [`CheckOutcome::Aside`].
pub fn junit(name: &str, checks: &[Check]) -> String {
    let count = |of: &[&Check], outcome| of.iter().filter(|c| c.outcome == outcome).count();
    let totals = |of: &[&Check]| {
        format!(
            "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
            of.len(),
            count(of, CheckOutcome::Failed),
            count(of, CheckOutcome::Undecided),
            count(of, CheckOutcome::Aside)
        )
    };
    let all: Vec<&Check> = checks.iter().collect();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n",
        xml(name),
        totals(&all)
    );
    let mut groups: Vec<&str> = all.iter().map(|check| check.group.as_str()).collect();
    groups.dedup();
    for group in groups {
        let own: Vec<&Check> = all.iter().filter(|c| c.group == group).copied().collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" {}>",
            xml(group),
            totals(&own)
        );
        for check in own {
            write_check(&mut out, name, check);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn write_check(out: &mut String, name: &str, check: &Check) {
    let words = xml(&check.words);
    let of = |element, kind| {
        format!("<{element} type=\"{kind}\" message=\"{words}\">{words}</{element}>")
    };
    let body = match check.outcome {
        CheckOutcome::Passed => format!("<system-out>{words}</system-out>"),
        CheckOutcome::Failed => of("failure", "not met"),
        CheckOutcome::Undecided => of("error", "undecided"),
        CheckOutcome::Aside => format!("<skipped message=\"{words}\"/>"),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "    <testcase classname=\"{}.{}\" name=\"{}\">{body}</testcase>",
        xml(name),
        xml(&check.group),
        xml(&check.name)
    );
}

/// Text for XML 1.0, which excludes control characters, even escaped ones.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The checks that did not pass as workflow commands of GitHub Actions, one per line: `error` for
/// failed and undecided ones, `notice` for [`CheckOutcome::Aside`]. `file` is the file that they refer
/// to, relative to the repository.
pub fn github(name: &str, file: Option<&str>, checks: &[Check]) -> String {
    let mut out = String::new();
    for check in checks {
        let (command, said) = match check.outcome {
            CheckOutcome::Passed => continue,
            CheckOutcome::Failed => ("error", "not met: "),
            CheckOutcome::Undecided => ("error", "undecided: "),
            CheckOutcome::Aside => ("notice", ""),
        };
        let file = file.map_or(String::new(), |file| format!("file={},", property(file)));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "::{command} {file}title={}::{said}{}: {}",
            property(&format!("pubgauge {name}")),
            data(&check.name),
            data(&check.words)
        );
    }
    out
}

/// Text of a workflow command, as the runner unescapes it (actions/runner, `ActionCommand`).
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
