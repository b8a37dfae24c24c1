//! Short commands that pubgauge waits for: version queries and hooks.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::guard::{Guard, Report, Spec};

/// The longest text that is kept of a command's output.
const TEXT_BYTES: u64 = 64 << 10;

/// What a command did.
pub(crate) struct Output {
    /// Whether it ended with 0 in time.
    pub success: bool,
    /// Standard output and error, at most 64 KiB.
    pub text: String,
    /// Its exit status or signal in words, or that it took too long.
    pub end: String,
}

/// Executes a command under a guard and waits for it; no process of it is left when this returns.
///
/// With no `env` the command inherits pubgauge's environment.
pub(crate) fn run(
    argv: &[String],
    env: &[(OsString, OsString)],
    directory: &Path,
    time_out: Duration,
) -> io::Result<Output> {
    let deadline = Instant::now() + time_out;
    let env = match env.is_empty() {
        true => std::env::vars_os().collect(),
        false => env.to_vec(),
    };
    // Hooks write into the folder of a system.
    let mut command = Started::new(argv, env, directory, true)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if !command.lives(left.max(Duration::from_millis(1))) || left.is_zero() {
            break;
        }
    }
    let unended = format!("did not end within {:.1} s", time_out.as_secs_f64());
    command.end(|file| text_from(file, 0), unended)
}

/// Executes a command under a guard, without a time limit, with pubgauge's environment and `env`.
/// Calls `go_on` about ten times a second; once that returns `false`, the command gets SIGTERM,
/// SIGKILL five seconds later, and the result is `None`. No process of it is left when this
/// returns.
pub(crate) fn run_watched(
    argv: &[String],
    env: &[(&str, &str)],
    directory: &Path,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<Option<Output>> {
    let more = env.iter().map(|(name, value)| (name.into(), value.into()));
    let env = std::env::vars_os().chain(more).collect();
    // Package managers install for everybody.
    let mut command = Started::new(argv, env, directory, false)?;
    let mut asked: Option<Instant> = None;
    while command.lives(Duration::from_millis(100)) {
        match asked {
            None if !go_on() => {
                command.guard.signal(libc::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(at) if at.elapsed() > Duration::from_secs(5) => break,
            _ => {}
        }
    }
    let output = command.end(last_of, "was killed".to_owned())?;
    Ok(asked.is_none().then_some(output))
}

/// A command under a guard.
struct Started {
    guard: Guard,
    /// What it writes.
    captured: File,
    /// How it ended, once it has.
    status: Option<i32>,
}

impl Started {
    /// Starts it; files that it makes are for this user only if they are to be `private`.
    fn new(
        argv: &[String],
        env: Vec<(OsString, OsString)>,
        directory: &Path,
        private: bool,
    ) -> io::Result<Self> {
        let captured = tempfile::tempfile()?;
        let guard = Guard::spawn(Spec {
            argv: argv.iter().map(OsString::from).collect(),
            env,
            directory: directory.to_owned(),
            stdin: None,
            network: None,
            stdout: captured.try_clone()?,
            stderr: captured.try_clone()?,
            cpus: Vec::new(),
            address_space_bytes: None,
            open_files: None,
            private,
            groups: Vec::new(),
        })?;
        Ok(Started {
            guard,
            captured,
            status: None,
        })
    }

    /// Waits for its end, at most `time_out`; whether it may live on.
    fn lives(&mut self, time_out: Duration) -> bool {
        match self.guard.report(time_out) {
            Some(Report::Exited(status)) => {
                self.status = Some(status);
                false
            }
            Some(Report::Gone) => false,
            Some(Report::Started(_)) | None => true,
        }
    }

    /// Kills what is left of it. `text` reads what it has written; `unended` says what became of it
    /// where it has not ended by itself.
    fn end(
        mut self,
        text: impl FnOnce(&mut File) -> io::Result<String>,
        unended: String,
    ) -> io::Result<Output> {
        self.guard.kill();
        self.guard.reap(Duration::from_secs(5));
        Ok(Output {
            success: self.status == Some(0),
            text: text(&mut self.captured)?,
            end: self.status.map_or(unended, describe_exit),
        })
    }
}

/// The last 64 KiB.
pub(crate) fn last_of(file: &mut File) -> io::Result<String> {
    let length = file.metadata()?.len();
    text_from(file, length.saturating_sub(TEXT_BYTES))
}

/// At most 64 KiB from this place on.
fn text_from(file: &mut File, start: u64) -> io::Result<String> {
    file.seek(io::SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A wait status in words.
pub(crate) fn describe_exit(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        let name = match signal {
            libc::SIGKILL => "SIGKILL (killed by hand, or by the kernel for want of memory)",
            libc::SIGTERM => "SIGTERM",
            libc::SIGINT => "SIGINT",
            libc::SIGSEGV => "SIGSEGV (a crash)",
            libc::SIGABRT => "SIGABRT (a crash)",
            libc::SIGBUS => "SIGBUS (a crash)",
            _ => return format!("was ended by signal {signal}"),
        };
        return format!("was ended by {name}");
    }
    format!("ended with exit code {}", libc::WEXITSTATUS(status))
}
