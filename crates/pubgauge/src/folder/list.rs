//! The studies of a run over a folder, and how each begins: stored in its folder, so that `--resume DIR` needs no
//! other flags.

use std::path::{Component, Path, PathBuf, absolute};

use pubgauge_command::exit::Ending;
use pubgauge_place::shell::quoted;
use serde::{Deserialize, Serialize};

use crate::invocation::Invocation;
use crate::stored_json;
use crate::study_run::Ready;

/// Name of the file.
pub const FILE: &str = "studies.json";
/// Name and version of its format.
const FORMAT: &str = "pubgauge-studies/1";
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// The studies of a run, in the order in which they run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyList {
    format: String,
    pub studies: Vec<Listed>,
}

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Its folder below that of all: the name of its file without `.toml`.
    pub folder: String,
    pub name: String,
    pub file: PathBuf,
    /// The file's text.
    pub given: String,
    /// How it begins.
    pub begun: Invocation,
}

impl Listed {
    /// A study that is ready to begin.
    pub fn new(file: &Path, ready: &Ready) -> Listed {
        let stem = file.file_stem().unwrap_or_default();
        Listed {
            folder: stem.to_string_lossy().into_owned(),
            name: ready.prepared.plan.name.clone(),
            file: absolute(file).unwrap_or_else(|_| file.to_owned()),
            given: ready.prepared.given.clone(),
            begun: ready.invocation.clone(),
        }
    }
}

impl StudyList {
    /// Of these studies.
    pub fn new(studies: impl Iterator<Item = Listed>) -> StudyList {
        StudyList {
            format: FORMAT.to_owned(),
            studies: studies.collect(),
        }
    }

    /// Writes it into the folder of the run, which is created if it does not exist.
    ///
    /// # Errors
    /// The file system's error.
    pub fn write(&self, out: &Path) -> Result<(), Ending> {
        std::fs::create_dir_all(out)
            .map_err(|e| Ending::bad_input(format!("cannot make {}: {e}", out.display())))?;
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        write(&out.join(FILE), &text).map(drop)
    }

    /// The studies of the run in a folder; `None` if it has no run over several studies.
    ///
    /// # Errors
    /// If the file is damaged, or of another version.
    pub fn read(out: &Path) -> Result<Option<StudyList>, Ending> {
        let format: (&str, fn(&StudyList) -> &str) = (FORMAT, |list| &list.format);
        let hint = "each study's own folder is whole: go on with it by `pubgauge run --resume`, or start a new run";
        let list = stored_json::read(&out.join(FILE), MAX_BYTES, format, false, hint)?;
        for listed in list.iter().flat_map(|list: &StudyList| &list.studies) {
            let mut parts = Path::new(&listed.folder).components();
            let is_one = matches!(
                (parts.next(), parts.next()),
                (Some(Component::Normal(_)), None)
            );
            if !is_one || out.join(&listed.folder).is_symlink() {
                return Err(Ending::bad_input(format!(
                    "{}: {:?} is no folder in it\n  hint: {hint}",
                    out.join(FILE).display(),
                    listed.folder
                )));
            }
        }
        Ok(list)
    }
}

/// Writes the whole file or none.
pub fn write(path: &Path, text: &str) -> Result<PathBuf, Ending> {
    stored_json::write(path, text).map_err(|e| {
        Ending::not_valid(format!(
            "{e}\n  hint: what was measured is complete; make room and run: pubgauge report {}",
            quoted(path.parent().unwrap_or(path))
        ))
    })?;
    Ok(path.to_owned())
}
