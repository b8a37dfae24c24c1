//! The table of searches for a limit: a row for each.

use pubgauge_figures::Results;
use pubgauge_quantities::shown;

use super::question;
use crate::searches::{self, Sought};
use crate::summary::Summary;
use crate::terminal::{plain, wrapped};

/// Headings of the columns, in two lines.
const HEADS: [[&str; 2]; 6] = [
    ["", "system"],
    ["limit", "(95 % interval)"],
    ["", "confirmed"],
    ["gave way", "first"],
    ["cost", "at 50 %"],
    ["", "at 90 %"],
];

/// Spaces between columns.
const GAP: usize = 2;

/// Writes the searches, workload by workload.
pub(super) fn section(out: &mut String, results: &Results, summary: &Summary<'_>, width: usize) {
    let all = searches::searches_of(results, summary);
    for group in searches::groups(results, &all) {
        wrapped(out, "", &plain(&group.words), width);
        let open = "How far does it go?";
        let asked = question(results, (&group.asked, group.by_default), open);
        wrapped(out, " ", &plain(&asked.unwrap_or(open.into())), width);
        rows(out, &group.members, width);
        let words =
            "Cost: processor time of the system for one delivery, at 50 % and 90 % of the limit.";
        let words = format!("{words} {}", searches::cost_words(&group.members));
        wrapped(out, " ", plain(&words).trim_end(), width);
        for note in searches::notes(&group.members) {
            wrapped(out, "  - ", &plain(&note), width);
        }
        out.push('\n');
    }
}

fn row(sought: &Sought<'_>) -> [String; HEADS.len()] {
    let or_none = |words: Option<String>| words.unwrap_or("-".to_owned());
    let cost = |share| or_none(sought.cost_ns(share).map(shown::time));
    [
        sought.row.clone(),
        sought.limit(),
        or_none(sought.confirmed()),
        or_none(sought.search.gave_way.as_ref().map(searches::gave_way)),
        cost(0.5),
        cost(0.9),
    ]
    .map(|words| plain(&words))
}

fn rows(out: &mut String, members: &[&Sought<'_>], width: usize) {
    let heads = [0, 1].map(|line| HEADS.map(|head| head[line].to_owned()));
    let rows: Vec<_> = heads
        .into_iter()
        .chain(members.iter().map(|sought| row(sought)))
        .collect();
    let widths = widths(&rows, width - 1);
    for row in rows {
        let cells: Vec<Vec<String>> = (row.iter().zip(widths))
            .map(|(words, width)| {
                let mut lines = String::new();
                wrapped(&mut lines, "", words, width);
                lines.lines().map(str::to_owned).collect()
            })
            .collect();
        for nth in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::from(" ");
            for (cell, width) in cells.iter().zip(widths) {
                let words = cell.get(nth).map_or("", String::as_str);
                line += &format!("{words:<width$}{:GAP$}", "");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Widths of the columns: their content's; where the line has no room, the widest are wrapped as
/// little as possible.
fn widths(rows: &[[String; HEADS.len()]], room: usize) -> [usize; HEADS.len()] {
    let columns: [usize; HEADS.len()] = std::array::from_fn(|column| column);
    let longest = |column: usize, of: fn(&str) -> usize, from: usize| {
        let lengths = rows[from..].iter().map(|row| of(&row[column]));
        let heads = HEADS[column].iter().map(|head| head.chars().count());
        lengths.chain(heads).max().unwrap_or(0)
    };
    let letters = |words: &str| words.chars().count();
    let word = |words: &str| {
        words
            .split(' ')
            .map(|w| w.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut widths = columns.map(|column| longest(column, letters, 0));
    // Headings and words stay whole as long as wrapping between words makes enough room.
    let least = columns.map(|column| longest(column, word, HEADS[0].len()));
    while widths.iter().sum::<usize>() + GAP * (HEADS.len() - 1) > room {
        let can = columns.into_iter().filter(|at| widths[*at] > least[*at]);
        let widest = can.max_by_key(|at| widths[*at]);
        let Some(widest) = widest.or(columns.into_iter().max_by_key(|at| widths[*at])) else {
            break;
        };
        widths[widest] -= 1;
    }
    widths
}
