//! The tables of comparisons: a change in each cell, its interval below it.

use pubgauge_figures::Results;

use crate::comparisons::{Board, ComparisonRow, boards, legend};
use crate::terminal::{plain, wrapped};

/// Spaces between columns.
const GAP: usize = 2;
/// Longest name of a row; longer ones are wrapped.
const NAME: usize = 24;

/// Writes all comparisons of a run.
pub(super) fn section(out: &mut String, results: &Results, width: usize) {
    let boards = boards(results);
    for board in &boards {
        wrapped(out, "", &plain(&board.title), width);
        // As many columns side by side as there is room for.
        let names = board.rows.iter().map(|(name, _)| name.chars().count());
        let first = names.max().unwrap_or(0).clamp(board.corner.len(), NAME);
        let widths: Vec<usize> = (0..board.heads.len()).map(|at| column(board, at)).collect();
        let mut from = 0;
        while from < widths.len() {
            let mut room = width.saturating_sub(1 + first);
            let fits = widths[from..].iter().take_while(|wide| {
                let enough = room >= *wide + GAP;
                room = room.saturating_sub(*wide + GAP);
                enough
            });
            let to = from + fits.count().max(1);
            block(out, board, first, &widths, from..to);
            from = to;
        }
        for note in &board.notes {
            wrapped(out, "  - ", &plain(note), width);
        }
    }
    if !boards.is_empty() {
        wrapped(out, " ", &legend(results), width);
        out.push('\n');
    }
}

fn lines(told: &Option<ComparisonRow>) -> [String; 2] {
    match told {
        Some(told) => [
            plain(&format!("{} {}", told.change, told.words)),
            plain(&told.interval),
        ],
        None => ["-".to_owned(), String::new()],
    }
}

/// Width of a column.
fn column(board: &Board, at: usize) -> usize {
    let cells = board.rows.iter().flat_map(|(_, cells)| lines(&cells[at]));
    let all = cells.chain([plain(&board.heads[at])]);
    all.map(|words| words.chars().count()).max().unwrap_or(0)
}

fn block(
    out: &mut String,
    board: &Board,
    first: usize,
    widths: &[usize],
    columns: std::ops::Range<usize>,
) {
    let mut line = |name: &str, cells: Vec<String>| {
        let mut line = format!(" {name:<first$}");
        for (words, width) in cells.iter().zip(&widths[columns.clone()]) {
            line += &format!("{:GAP$}{words:<width$}", "");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    };
    let heads = board.heads[columns.clone()].iter();
    line(board.corner, heads.map(|head| plain(head)).collect());
    for (name, cells) in &board.rows {
        let mut names = String::new();
        wrapped(&mut names, "", &plain(name), first);
        let names: Vec<&str> = names.lines().collect();
        for nth in 0..names.len().max(2) {
            let of =
                |told: &Option<ComparisonRow>| lines(told).get(nth).cloned().unwrap_or_default();
            let cells = cells[columns.clone()].iter().map(of).collect();
            line(names.get(nth).unwrap_or(&""), cells);
        }
    }
}
