//! A place of its own for each test, in which a program runs and must leave nothing behind.

mod started;

use std::fs::File;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub use started::{Started, listens_at};

/// Longest time that one run of a program may take in a test. Only a run that hangs needs it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// A folder that holds all that a program may touch: where it works, its home, its scratch.
///
/// The folder's path stands in the environment of every process that is started here, which tells
/// them from those of other tests.
pub struct Place {
    program: &'static str,
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Done {
    /// The exit code; minus the signal's number if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The arguments of a command line; none of them has a space in it.
pub fn argv(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

impl Done {
    /// Asserts the exit code, showing what was said otherwise.
    #[track_caller]
    pub fn exits(self, code: i32) -> Done {
        assert_eq!(
            self.code, code,
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.out, self.err
        );
        self
    }

    /// Asserts that it ran to its end. A machine that is busy with other tests may make a trial invalid (2), and no
    /// more.
    #[track_caller]
    pub fn ran_to_its_end(&self) -> &Done {
        assert!(
            [0, 2].contains(&self.code),
            "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code,
            self.out,
            self.err
        );
        self
    }

    /// Asserts that standard error holds a text.
    #[track_caller]
    pub fn assert_says(self, text: &str) -> Done {
        assert!(
            self.err.contains(text),
            "standard error lacks {text:?}:\n{}",
            self.err
        );
        self
    }
}

impl Place {
    /// A folder for `program`, empty but for the folders that every program has.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(program: &'static str) -> Place {
        let folder = tempfile::Builder::new()
            .prefix("pubgauge-test-")
            .tempdir()
            .unwrap();
        for part in ["work", "home", "state", "tmp"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        Place { program, folder }
    }

    /// A path in the folder in which the program works.
    pub fn path_to(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    /// Writes a file into that folder.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path_to(path);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Makes a command run here.
    pub fn run_here(&self, command: &mut Command) {
        let part = |name: &str| self.folder.path().join(name);
        command
            .current_dir(part("work"))
            .env("HOME", part("home"))
            .env("XDG_STATE_HOME", part("state"))
            .env("TMPDIR", part("tmp"))
            .env_remove("PUBGAUGE_PASSWORD")
            .env_remove("PUBGAUGE_SYSTEMS")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null());
    }

    /// The program with these arguments, not started yet.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(self.program);
        command.args(args);
        self.run_here(&mut command);
        command
    }

    /// The program with these arguments, after a line of shell.
    pub fn command_after<S: AsRef<std::ffi::OsStr>>(&self, line: &str, args: &[S]) -> Command {
        self.command_apart(&[], line, args)
    }

    /// The program after a line of shell, in namespaces of its own: those of these flags of `unshare`.
    pub fn command_apart<S: AsRef<std::ffi::OsStr>>(
        &self,
        flags: &[&str],
        line: &str,
        args: &[S],
    ) -> Command {
        let mut command = match flags {
            [] => Command::new("sh"),
            flags => {
                let mut command = Command::new("unshare");
                command.arg("--map-root-user").args(flags).arg("sh");
                command
            }
        };
        command.args(["-c", &format!("{line} && exec \"$0\" \"$@\"")]);
        command.arg(self.program).args(args);
        self.run_here(&mut command);
        command
    }

    /// Runs the program to its end, which must come.
    #[track_caller]
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Done {
        self.finish(self.command(args))
    }

    /// Runs a command to its end, which must come.
    #[track_caller]
    pub fn finish(&self, command: Command) -> Done {
        let output = assert_cmd::Command::from_std(command)
            .timeout(PATIENCE)
            .output()
            .unwrap();
        Done {
            code: code(output.status),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts the program.
    pub fn start<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Started<'_> {
        self.spawn(self.command(args))
    }

    pub fn spawn(&self, mut command: Command) -> Started<'_> {
        let file = |name: &str| std::fs::File::create(self.folder.path().join(name)).unwrap();
        command.stderr(file("stderr"));
        self.spawn_with_stderr(command)
    }

    /// The same, with the command's own standard error.
    pub fn spawn_with_stderr(&self, mut command: Command) -> Started<'_> {
        let out = std::fs::File::create(self.folder.path().join("stdout")).unwrap();
        let child = command.stdout(out).spawn().unwrap();
        Started { place: self, child }
    }

    /// Processes that live here, as (id, command line); this test's own process is none of them.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let tag = self.folder.path().to_str().unwrap();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.parse::<i32>().ok()) else {
                continue;
            };
            let text = |file: &str| {
                let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let line = text("cmdline");
            if pid != std::process::id() as i32
                && (line.contains(tag) || text("environ").contains(tag) || cwd.starts_with(tag))
            {
                found.push((pid, line));
            }
        }
        found
    }

    /// Asserts that no process and no scratch folder is left.
    #[track_caller]
    pub fn is_clean(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "processes are left: {left:?}");
        let scratch: Vec<_> = std::fs::read_dir(self.folder.path().join("tmp"))
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .collect();
        assert!(scratch.is_empty(), "scratch is left: {scratch:?}");
    }

    /// Asserts that no process is left a moment after the program was killed.
    #[track_caller]
    pub fn has_no_process_soon(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.processes().is_empty() {
            let left = self.processes();
            assert!(Instant::now() < end, "processes are left: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The names of all files here but the program's scratch, for tests that nothing was changed.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                found.push(entry.path());
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    /// Whether a text stands in any file here, or in a file's name.
    pub fn mentions(&self, secret: &str) -> Option<PathBuf> {
        let holds = |path: &PathBuf| {
            path.to_string_lossy().contains(secret)
                || std::fs::read(path).is_ok_and(|bytes| {
                    bytes
                        .windows(secret.len())
                        .any(|part| part == secret.as_bytes())
                })
        };
        self.files().into_iter().find(holds)
    }
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| -status.signal().unwrap_or_default())
}

/// The largest resident memory of any child that has ended, bytes.
pub fn most_memory() -> u64 {
    // SAFETY: the call writes to a valid local structure.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    usage.ru_maxrss as u64 * 1024
}

/// Sends a signal to a process of this test.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes no pointers; the id is that of a process this test has started or found
    // in its own place.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "process {pid}");
}

/// A terminal: its far end, where what is written shows, and the near end, where a program writes.
pub fn terminal() -> [File; 2] {
    let (mut far, mut near) = (0, 0);
    let nothing = std::ptr::null_mut();
    // SAFETY: both numbers are valid places; names and sizes are not asked for.
    let opened = unsafe {
        libc::openpty(
            &raw mut far,
            &raw mut near,
            nothing,
            nothing.cast(),
            nothing.cast(),
        )
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both are open and nobody else's.
    unsafe { [far, near].map(|end| File::from_raw_fd(end)) }
}

/// The near end of a terminal whose far end is gone: each write to it fails.
pub fn closed_terminal() -> File {
    let [_, near] = terminal();
    near
}
