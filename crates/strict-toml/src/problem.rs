//! Errors in a text, each with its position and a hint.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use pubgauge_driver::shortened;

/// A text that problems point into: a file, or a flag that changes it.
#[derive(Clone, Debug)]
struct SourceText {
    /// File name, or the flag with its value.
    name: String,
    text: Arc<str>,
    is_flag: bool,
}

/// The texts that a tree of values was made from: a file, and flags that change it. Spans are offsets into them, as if
/// joined in this order.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<SourceText>);

impl Sources {
    /// Adds a text; returns the offset at which its spans begin.
    pub fn add(&mut self, name: &str, text: &str, is_flag: bool) -> usize {
        let base = self.0.iter().map(|source| source.text.len() + 1).sum();
        self.0.push(SourceText {
            name: name.into(),
            text: text.into(),
            is_flag,
        });
        base
    }

    /// Makes a problem at `span`.
    pub fn problem(
        &self,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Problem {
        let first = self.0.first().map_or("", |source| &source.name);
        let mut problem = Problem::without_position(first, message.into(), hint);
        let Some(span) = span else {
            return problem;
        };
        let mut base = 0;
        for source in &self.0 {
            if span.start > base + source.text.len() {
                base += source.text.len() + 1;
                continue;
            }
            problem.source = source.name.clone();
            if source.is_flag {
                break;
            }
            let start = floor(&source.text, span.start - base);
            let end = floor(
                &source.text,
                (span.end.max(span.start) - base).min(source.text.len()),
            );
            let line_start = source.text[..start].rfind('\n').map_or(0, |i| i + 1);
            let line_end = source.text[start..]
                .find('\n')
                .map_or(source.text.len(), |i| start + i);
            let line = source.text[line_start..line_end].trim_end_matches('\r');
            let column = source.text[line_start..start].chars().count();
            let width = source.text[start..end.clamp(start, line_end)]
                .chars()
                .count();
            problem.line = Some(source.text[..start].matches('\n').count() + 1);
            problem.column = Some(column + 1);
            (problem.source_line, problem.caret) = window(line, column, width.max(1));
            break;
        }
        problem
    }
}

/// The part of a long line around the caret, control characters made harmless.
fn window(line: &str, column: usize, width: usize) -> (String, Range<usize>) {
    const SHOWN: usize = 100;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let count = line.chars().count();
    if count <= SHOWN {
        return (line.chars().map(clean).collect(), column..column + width);
    }
    let from = column.saturating_sub(SHOWN / 2).min(count - SHOWN);
    let part: String = line.chars().skip(from).take(SHOWN).map(clean).collect();
    let start = column - from;
    (part, start..(start + width).min(SHOWN).max(start + 1))
}

/// The nearest character boundary at or before `index`.
fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// One error in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File, or the flag.
    pub source: String,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// The line of the error, shortened around it if long.
    pub source_line: String,
    /// The place in `source_line`, in characters.
    pub caret: Range<usize>,
    /// The error, and what was expected.
    pub message: String,
    /// The next step for the user.
    pub hint: Option<String>,
}

impl Problem {
    fn without_position(source: &str, message: String, hint: Option<String>) -> Problem {
        Problem {
            source: source.to_owned(),
            line: None,
            column: None,
            source_line: String::new(),
            caret: 0..0,
            message: shortened(message),
            hint,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(line) = self.line
            && !self.source_line.is_empty()
        {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            write!(f, "\n{margin} |\n{number} | {}", self.source_line)?;
            let width = self.caret.end - self.caret.start;
            write!(
                f,
                "\n{margin} | {}{}",
                " ".repeat(self.caret.start),
                "^".repeat(width)
            )?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// All errors found in a file and in the flags that change it; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidInput {
    /// The problems, in the order of the file.
    pub problems: Vec<Problem>,
}

impl InvalidInput {
    /// A single problem.
    pub fn single(problem: Problem) -> Self {
        InvalidInput {
            problems: vec![problem],
        }
    }

    /// A problem at a byte of a file that is not valid text.
    pub(crate) fn at_byte(
        source: &str,
        bytes: &[u8],
        at: usize,
        message: impl Into<String>,
        hint: Option<&str>,
    ) -> Self {
        let before = &bytes[..at.min(bytes.len())];
        let line_start = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |n| n + 1);
        let column = String::from_utf8_lossy(&before[line_start..])
            .chars()
            .count();
        let mut error = InvalidInput::plain(source, message, hint);
        for problem in &mut error.problems {
            problem.line = Some(before.iter().filter(|b| **b == b'\n').count() + 1);
            problem.column = Some(column + 1);
        }
        error
    }

    /// A problem without a position in a text.
    pub fn plain(source: &str, message: impl Into<String>, hint: Option<&str>) -> Self {
        let hint = hint.map(str::to_string);
        InvalidInput::single(Problem::without_position(source, message.into(), hint))
    }
}

impl std::error::Error for InvalidInput {}

impl fmt::Display for InvalidInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                f.write_str("\n\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}
