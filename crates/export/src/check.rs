//! Outcomes that a gate depends on, for the programs that show them: JUnit XML for CI servers,
//! annotations for GitHub.

use std::fmt::Write as _;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

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
/// Characters that XML 1.0 excludes are left out.
pub fn junit(name: &str, checks: &[Check]) -> String {
    let mut report = Report::new(name);
    let groups = checks.chunk_by(|one, next| one.group == next.group);
    report.add_test_suites(groups.map(|checks| {
        let mut suite = TestSuite::new(checks[0].group.as_str());
        suite.add_test_cases(checks.iter().map(|check| test_case(name, check)));
        suite
    }));
    // Writing to a string cannot fail.
    report.to_string().unwrap_or_default()
}

fn test_case(name: &str, check: &Check) -> TestCase {
    let words = check.words.as_str();
    let unmet = |kind, said: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status
            .set_type(said)
            .set_message(words)
            .set_description(words);
        status
    };
    let status = match check.outcome {
        CheckOutcome::Passed => TestCaseStatus::success(),
        CheckOutcome::Failed => unmet(NonSuccessKind::Failure, "not met"),
        CheckOutcome::Undecided => unmet(NonSuccessKind::Error, "undecided"),
        CheckOutcome::Aside => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(words);
            status
        }
    };
    let mut case = TestCase::new(check.name.as_str(), status);
    case.set_classname(format!("{name}.{}", check.group));
    if check.outcome == CheckOutcome::Passed {
        case.set_system_out(words);
    }
    case
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
