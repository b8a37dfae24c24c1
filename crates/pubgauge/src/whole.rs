//! Files that are written whole or not at all.

use std::io;
use std::path::Path;

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
