//! Standard output and error of a system. They go to files, never through pipes: a busy
//! pubgauge that reads late would block the system. The files are of bounded size: some systems
//! write without end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use crate::lock::lock;

/// Size in bytes beyond which a file is emptied; its beginning and end are kept in memory.
const LIMIT: u64 = 4 << 20;
/// Bytes that are kept of the beginning, and of the end before it is emptied.
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
    /// The text before the present content of the file.
    tail: Vec<u8>,
    /// Bytes that were in the file before its last emptying.
    emptied: u64,
}

impl Log {
    /// An empty log; removes what an earlier start of the system wrote there.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
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

    /// Empties the file if it is longer than 4 MiB.
    pub fn trim(&self) {
        let Ok(size) = self.file.metadata().map(|meta| meta.len()) else {
            return;
        };
        if size <= LIMIT {
            return;
        }
        let mut kept = lock(&self.kept);
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
        let kept = lock(&self.kept);
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
}

/// The text that a system has written to a log file of its own after the first `skip` bytes; all of it if the file is
/// shorter than that, because the system has begun it anew. Of more than 8 MiB only the first and the last 4 MiB,
/// with a line break between them.
///
/// # Errors
/// If it cannot be read, or is no regular file: a device may never end, a pipe have no writer.
pub(crate) fn fresh(path: &Path, skip: u64) -> io::Result<String> {
    let file = open_file(path)?;
    let size = file.metadata()?.len();
    let from = if skip > size { 0 } else { skip };
    let part = |from: u64| {
        let mut bytes = Vec::new();
        let mut at = &file;
        at.seek(io::SeekFrom::Start(from))?;
        at.take(LIMIT).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let head: io::Result<String> = part(from);
    if size.saturating_sub(from) > LIMIT {
        Ok(head? + "\n" + &part((size - LIMIT).max(from + LIMIT))?)
    } else {
        head
    }
}

/// Opens a regular file for reading. A device or a pipe is an error: opening a pipe would wait for a
/// writer.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a device, a pipe or a folder, not a file",
        ))
    }
}

/// The last `count` lines of several logs, indented, for an error message.
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
    fn a_log_file_is_read_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let missing = fresh(&path, 0).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "old\nnew\n").unwrap();
        assert_eq!(fresh(&path, 4).unwrap(), "new\n");
        assert_eq!(fresh(&path, 9).unwrap(), "old\nnew\n", "begun anew");
        let long = [b"first\n", &b"x".repeat(20 << 20)[..], b"\nlast\n"].concat();
        std::fs::write(&path, long).unwrap();
        let text = fresh(&path, 0).unwrap();
        assert!(text.len() < 9 << 20);
        assert!(text.starts_with("first\n") && text.ends_with("\nlast\n"));
        std::fs::write(&path, "y".repeat(5 << 20)).unwrap();
        assert_eq!(fresh(&path, 0).unwrap().len(), (5 << 20) + 1);
    }

    #[test]
    fn what_has_no_end_is_no_log_file() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: a path that ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [Path::new("/dev/zero"), &pipe, folder.path()] {
            let error = fresh(path, 0).unwrap_err();
            assert!(error.to_string().contains("not a file"), "{error}");
        }
    }

    #[test]
    fn the_last_lines_are_quoted() {
        let texts = ["a\n\nb\n".to_owned(), "c".to_owned()];
        assert_eq!(last_lines(&texts, 2), "its last lines:\n    b\n    c");
        assert_eq!(last_lines(&[String::new()], 2), "it wrote nothing");
    }
}
