//! What a system writes to standard output and error: to files, never through pipes, because a
//! busy pubgauge that reads late would hold the system up; of bounded size, because some systems
//! write without end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// A file beyond this size is emptied; its beginning and end are kept in memory.
const LIMIT: u64 = 4 << 20;
/// How much is kept of the beginning, and of the end before an emptying.
const KEEP: usize = 32 << 10;

/// The log of one stream.
pub(crate) struct Log {
    file: File,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The beginning, once the file was emptied for the first time.
    head: Vec<u8>,
    /// What came before the present content of the file.
    tail: Vec<u8>,
    /// Bytes that were in the file before its last emptying.
    emptied: u64,
}

impl Log {
    /// An empty log; what an earlier life of the system wrote there goes.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        file.set_len(0)?;
        Ok(Log {
            file,
            kept: Mutex::default(),
        })
    }

    /// A descriptor for the system; it appends, so that emptying the file works.
    pub fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Empties the file if it has grown too long.
    pub fn trim(&self) {
        let Ok(size) = self.file.metadata().map(|meta| meta.len()) else {
            return;
        };
        if size <= LIMIT {
            return;
        }
        let mut kept = self.kept();
        if kept.head.is_empty() {
            kept.head = self.read(0, KEEP);
        }
        kept.tail = self.read(size - KEEP as u64, KEEP);
        if self.file.set_len(0).is_ok() {
            kept.emptied += size;
        }
    }

    /// All that is kept, with a note where something is missing.
    pub fn text(&self) -> String {
        let kept = self.kept();
        let size = self.file.metadata().map_or(0, |meta| meta.len());
        let present = self.read(0, size.min(LIMIT) as usize);
        let mut bytes = kept.head.clone();
        if kept.emptied > 0 {
            let note = format!(
                "\n[... of {} bytes, the middle is not kept ...]\n",
                kept.emptied
            );
            bytes.extend_from_slice(note.as_bytes());
        }
        bytes.extend_from_slice(&kept.tail);
        bytes.extend_from_slice(&present);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn read(&self, from: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let n = self.file.read_at(&mut bytes, from).unwrap_or(0);
        bytes.truncate(n);
        bytes
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The last lines of several logs, for an error message; indented.
pub(crate) fn last_lines(texts: &[String], count: usize) -> String {
    let lines: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(count)..];
    if last.is_empty() {
        return "it wrote nothing".to_owned();
    }
    let shown = last.iter().map(|line| {
        let cut: String = line.chars().take(300).collect();
        format!("\n    {cut}")
    });
    format!("its last lines:{}", shown.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_without_end_keeps_its_beginning_and_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(&folder.path().join("log")).unwrap();
        let mut writer = log.writer().unwrap();
        writeln!(writer, "the first line").unwrap();
        for _ in 0..3 {
            writer.write_all(&b"x".repeat(5 << 20)).unwrap();
            log.trim();
        }
        writeln!(writer, "\nthe last line").unwrap();
        let text = log.text();
        assert!(text.starts_with("the first line"));
        assert!(text.ends_with("the last line\n"));
        assert!(text.contains("the middle is not kept"));
        assert!(text.len() < 100_000);
        assert!(folder.path().join("log").metadata().unwrap().len() < 100);
    }

    #[test]
    fn the_last_lines_are_quoted() {
        let texts = ["a\n\nb\n".to_owned(), "c".to_owned()];
        assert_eq!(last_lines(&texts, 2), "its last lines:\n    b\n    c");
        assert_eq!(last_lines(&[String::new()], 2), "it wrote nothing");
    }
}
