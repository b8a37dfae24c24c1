//! Files that are written whole or not at all, and read again.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use pubgauge_command::exit::Ending;
use pubgauge_place::OpenFolder;
use pubgauge_results::store;
use serde::de::DeserializeOwned;

/// Writes a file; it gets its name once it is whole ([`OpenFolder::write`]).
///
/// # Errors
/// That it cannot be written, and why.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    fill(path, |file| file.write_all(bytes.as_ref()))
}

/// Stores what `fill` writes.
///
/// # Errors
/// That it cannot be written, and why.
pub fn fill(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), String> {
    let folder = OpenFolder::open(path.parent().unwrap_or(path));
    let written = folder.and_then(|place| place.fill(path.file_name().unwrap_or_default(), fill));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
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
