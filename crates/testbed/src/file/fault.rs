//! Errors in a system file, with line and column.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::spelling::spelling_hint;

/// Where `near` is in `text`, preferably at the start of a line.
fn place_of(near: &str, text: &str) -> Option<usize> {
    let starts = text.match_indices(near).map(|(at, _)| at);
    starts
        .clone()
        .find(|at| {
            text[..*at]
                .chars()
                .next_back()
                .is_none_or(|before| before == '\n')
        })
        .or_else(|| starts.clone().next())
}

/// An error in a system file, before its line and column are known.
pub(super) struct FileFault {
    what: String,
    hint: String,
    near: String,
}

impl FileFault {
    /// An error near a text of the file, and what to do; `hint` may be empty.
    pub(super) fn new(what: impl Into<String>, hint: impl Into<String>, near: &str) -> Self {
        FileFault {
            what: what.into(),
            hint: hint.into(),
            near: near.to_owned(),
        }
    }
}

/// Refuses a file in which something is `wrong`, with [`Fault::new`].
pub(super) fn refuse_if(
    wrong: bool,
    what: impl Into<String>,
    hint: &str,
    near: &str,
) -> Result<(), FileFault> {
    if wrong {
        Err(FileFault::new(what, hint, near))
    } else {
        Ok(())
    }
}

/// Refuses a number that does not lie `within` its bounds, which are `bounds` in words.
pub(super) fn check_number<T: PartialOrd + Display>(
    key: &str,
    number: T,
    within: RangeInclusive<T>,
    bounds: &str,
) -> Result<(), FileFault> {
    let what = format!("{key} = {number} is not a number {bounds}");
    refuse_if(!within.contains(&number), what, "", key)
}

/// A system file that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}{}", hint.as_ref().map(|h| format!("\n  hint: {h}")).unwrap_or_default())]
pub struct FileError {
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error.
    pub what: String,
    pub hint: Option<String>,
}

impl FileError {
    /// The error for a fault in `text`.
    pub(super) fn of_fault(fault: FileFault, text: &str, file: &str) -> Self {
        let offset = place_of(&fault.near, text).unwrap_or(0);
        let hint = Some(fault.hint).filter(|hint| !hint.is_empty());
        FileError::at_offset(file, text, offset, fault.what, hint)
    }

    /// The error at this offset of `text`.
    pub(super) fn at_offset(
        file: &str,
        text: &str,
        offset: usize,
        what: String,
        hint: Option<String>,
    ) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        FileError {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what,
            hint,
        }
    }

    /// The error for what the TOML reader says.
    pub(super) fn of_toml(error: &toml::de::Error, text: &str, file: &str) -> Self {
        let message = error.message().trim();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let offset = error.span().map_or(0, |span| span.start);
        let unknown =
            message.starts_with("unknown field") || message.starts_with("unknown variant");
        match (unknown, quoted.as_slice()) {
            (true, [wrong, known @ ..]) => {
                let what = if message.starts_with("unknown field") {
                    format!("there is no key `{wrong}` here")
                } else {
                    format!("`{wrong}` is not possible here")
                };
                Self::at_offset(file, text, offset, what, Some(spelling_hint(wrong, known)))
            }
            _ => Self::at_offset(file, text, offset, message.replace('\n', "; "), None),
        }
    }
}
