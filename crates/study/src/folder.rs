//! The studies of a folder.

use std::path::{Path, PathBuf};

use pubgauge_strict_toml::InvalidInput;

use crate::study::Study;

/// The studies in a folder, not in folders below it: files that end in `.toml` and have a `name` at the top, by
/// their file names without that ending.
///
/// # Errors
/// If the folder cannot be read, or such a file is not TOML.
pub fn studies_in(folder: &Path) -> Result<Vec<PathBuf>, InvalidInput> {
    let shown = folder.display().to_string();
    let unreadable = |error: std::io::Error| {
        InvalidInput::plain(&shown, format!("cannot be read: {error}"), None)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_toml = path.extension().is_some_and(|ending| ending == "toml");
        if is_toml && path.is_file() && Study::open(&path)?.tree.get("name").is_some() {
            files.push(path);
        }
    }
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    Ok(files)
}
