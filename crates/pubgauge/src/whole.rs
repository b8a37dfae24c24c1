//! Files that are written whole or not at all.

use std::io;
use std::path::Path;

/// Has a file beside `path` filled; it gets that name once it is whole, and is removed if it fails.
///
/// # Errors
/// The file system's.
pub fn write(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial"));
    fill(&partial)
        .and_then(|()| std::fs::rename(&partial, path))
        .inspect_err(|_| drop(std::fs::remove_file(&partial)))
}
