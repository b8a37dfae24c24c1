//! Files that are written whole or not at all, and read again.

use std::io::{self, ErrorKind};
use std::path::Path;

use pubgauge_results::store;
use serde::de::DeserializeOwned;

use crate::exit::Ending;

/// Has a file beside `path` filled; it gets that name once it is whole, and is removed if it fails.
///
/// # Errors
/// That it cannot be written, and why.
pub fn write(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial"));
    let written = fill(&partial).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        format!("cannot write {}: {error}", path.display())
    })
}

/// Reads a file of JSON that says its `format` itself. `None` where there is none; also where it is damaged and a run
/// that ended early may have been about to write it.
///
/// # Errors
/// If it is damaged, of another format, or longer than `most` bytes; with the hint.
pub fn read<T: DeserializeOwned>(
    path: &Path,
    most: u64,
    (format, of): (&str, fn(&T) -> &str),
    ended_early: bool,
    hint: &str,
) -> Result<Option<T>, Ending> {
    let wrong = |why: String| Ending::bad_input(format!("{}: {why}", path.display()));
    let text = match store::read_text(path, most) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == ErrorKind::NotADirectory => return Ok(None),
        Err(e) => return Err(wrong(e.to_string())),
    };
    match serde_json::from_str::<T>(&text) {
        Ok(read) if of(&read) == format => Ok(Some(read)),
        Ok(read) => {
            let its = of(&read);
            Err(wrong(format!(
                "its format is {its:?}, and this pubgauge reads {format:?}\n  hint: {hint}"
            )))
        }
        Err(_) if ended_early => Ok(None),
        Err(e) => Err(wrong(format!("damaged: {e}\n  hint: {hint}"))),
    }
}
