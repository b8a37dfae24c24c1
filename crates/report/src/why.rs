//! Why answers are *no* or cannot be told, each cause once, and which contests are open: for terminal and page alike.

use pubgauge_quantities::lists::{grouped, names, unique};

use crate::answers::{Carries, RowAnswer, WorkloadAnswer};
use crate::summary::{Cell, WorkloadCells};
use crate::wins::Outcome;

/// One entry of the matrix with its place.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) workload: &'a str,
    pub(crate) cell: &'a Cell<'a>,
    pub(crate) row: &'a RowAnswer,
}

impl Entry<'_> {
    /// Its name, unique in the matrix.
    pub(crate) fn name(&self) -> String {
        format!("{}, {}", self.cell.label, self.workload)
    }

    /// Why it is *no*, with the figure that decided.
    pub(crate) fn refusal(&self) -> String {
        let parts = [Some(&self.row.decided_by), self.row.reason.as_ref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        format!("{}: {}", self.name(), parts.join(": "))
    }
}

/// All entries of the matrix.
pub(crate) fn entries<'a>(
    workloads: &'a [WorkloadCells<'a>],
    answers: &'a [WorkloadAnswer],
) -> Vec<Entry<'a>> {
    let each = workloads.iter().zip(answers);
    let entries = each.flat_map(|(workload, answer)| {
        let rows = workload.cells.iter().zip(&answer.rows);
        rows.map(|(cell, row)| Entry {
            workload: &workload.name,
            cell,
            row,
        })
    });
    entries.collect()
}

/// The entries that are *no*.
pub(crate) fn refused<'a>(entries: &[Entry<'a>]) -> Vec<Entry<'a>> {
    let is_no = |entry: &&Entry<'_>| entry.row.carries == Some(Carries::No);
    entries.iter().filter(is_no).copied().collect()
}

/// A cause by which entries say nothing.
pub(crate) struct Cause {
    /// Whether they are answers that cannot be told; else they are rates.
    pub(crate) is_answer: bool,
    /// The first of them, how many others there are, the reason, and what helps.
    pub(crate) words: String,
}

/// The causes by which entries say nothing, without what other programs spoilt: of that a sentence tells once
/// ([`crate::crowd::spoilt_trials`]).
pub(crate) fn causes(entries: &[Entry<'_>]) -> Vec<Cause> {
    let open = entries
        .iter()
        .filter(|entry| entry.cell.says_nothing(entry.row.carries))
        .filter(|entry| !entry.cell.is_spoilt(entry.row.carries));
    let causes = grouped(open.map(|entry| (entry.cell.cause().map(|reason| reason.rule), entry)));
    let cause = |(_, alike): (_, Vec<&Entry<'_>>)| {
        let entry = alike[0];
        let others = match alike.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more for this reason)"),
        };
        let (why, advice) = match entry.cell.cause() {
            Some(reason) => (reason.text.as_str(), reason.rule.advice()),
            None => (entry.row.decided_by.as_str(), ""),
        };
        let stop = if why.ends_with(['.', '?']) { "" } else { "." };
        let words = format!("{}{others}: {why}{stop} {advice}", entry.name());
        Cause {
            is_answer: entry.row.carries.is_some(),
            words: words.trim_end().to_owned(),
        }
    };
    causes.into_iter().map(cause).collect()
}

/// The contests that more repeats would decide, in one line; `None` without any, or where a single row ran.
pub(crate) fn open_contests(answers: &[WorkloadAnswer]) -> Option<String> {
    let several = answers.len() > 1;
    let wins = answers
        .iter()
        .flat_map(|answer| answer.wins.iter().map(move |win| (answer, win)));
    let open = wins.filter(|(_, win)| win.outcome == Outcome::Open);
    let open = grouped(open.map(|(answer, win)| (win.what, (answer, win.repeats_to_tell))));
    let named = open.into_iter().map(|(what, of)| {
        let workloads = unique(of.iter().map(|(answer, _)| answer.workload.as_str()));
        let words = if several {
            format!("{what} ({})", names(workloads))
        } else {
            what.to_owned()
        };
        // Of one without a number nothing says how many it takes.
        let repeats: Option<Vec<u32>> = of.into_iter().map(|(_, repeats)| repeats).collect();
        (repeats.and_then(|repeats| repeats.into_iter().max()), words)
    });
    let parts = grouped(named).into_iter().map(|(repeats, contests)| {
        let contests = contests.join("; ");
        match repeats {
            Some(repeats) => {
                format!("{contests}: about {repeats} repeats would tell (--repeats {repeats})")
            }
            None => format!("{contests}: more repeats would tell (--repeats)"),
        }
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
