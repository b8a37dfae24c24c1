//! Readings from `/proc`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// All descendants of a process that are alive, nearest first, without the process itself.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut all = children(pid);
    let mut next = 0;
    while next < all.len() {
        for child in children(all[next]) {
            // A process may move in the tree while we look.
            if !all.contains(&child) {
                all.push(child);
            }
        }
        next += 1;
    }
    all
}

/// The children of all threads of a process.
fn children(pid: i32) -> Vec<i32> {
    let mut all = Vec::new();
    for thread in threads(pid) {
        // A thread that has ended has none.
        let file = format!("/proc/{pid}/task/{thread}/children");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let numbers = text.split_whitespace();
        all.extend(numbers.filter_map(|pid| pid.parse::<i32>().ok()));
    }
    all
}

/// The threads of a process; empty if it is gone.
pub fn threads(pid: i32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let ids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.collect()
}

/// The number behind `name` in a text of lines such as `Threads: 5`.
pub(crate) fn number_in(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// A small file of `/proc` that is read repeatedly, with `keep` through one descriptor.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: PathBuf,
    file: Option<File>,
    keep: bool,
}

impl ProcFile {
    /// A file that is opened at its first reading and, with `keep`, stays open.
    pub fn new(path: impl Into<PathBuf>, keep: bool) -> Self {
        ProcFile {
            path: path.into(),
            file: None,
            keep,
        }
    }

    /// Reads the beginning of the file into `buffer` as text.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<&'b str> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let read = file.read_at(buffer, 0);
        // Also of a process that is gone: its number may pass to another.
        self.file = Some(file).filter(|_| self.keep);
        std::str::from_utf8(&buffer[..read?])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}
