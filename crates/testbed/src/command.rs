//! Short commands that pubgauge waits for: version queries and hooks.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::guard::{Guard, Report, Spec};

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
    let mut captured = tempfile::tempfile()?;
    let deadline = Instant::now() + time_out;
    let env = match env.is_empty() {
        true => std::env::vars_os().collect(),
        false => env.to_vec(),
    };
    let mut guard = Guard::spawn(Spec {
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
        // Hooks write into the folder of a system.
        private: true,
        groups: Vec::new(),
    })?;
    let mut status = None;
    while status.is_none() {
        let left = deadline.saturating_duration_since(Instant::now());
        match guard.report(left.max(Duration::from_millis(1))) {
            Some(Report::Exited(wait_status)) => status = Some(wait_status),
            Some(Report::Gone) => break,
            Some(Report::Started(_)) => {}
            None if left.is_zero() => break,
            None => {}
        }
    }
    guard.kill();
    guard.reap(Duration::from_secs(5));
    let text = text_of(&mut captured)?;
    Ok(Output {
        success: status == Some(0),
        text,
        end: match status {
            Some(status) => describe_exit(status),
            None => format!("did not end within {:.1} s", time_out.as_secs_f64()),
        },
    })
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
    let mut captured = tempfile::tempfile()?;
    let more = env.iter().map(|(name, value)| (name.into(), value.into()));
    let mut guard = Guard::spawn(Spec {
        argv: argv.iter().map(OsString::from).collect(),
        env: std::env::vars_os().chain(more).collect(),
        directory: directory.to_owned(),
        stdin: None,
        network: None,
        stdout: captured.try_clone()?,
        stderr: captured.try_clone()?,
        cpus: Vec::new(),
        address_space_bytes: None,
        open_files: None,
        // Package managers install for everybody.
        private: false,
        groups: Vec::new(),
    })?;
    let mut status = None;
    let mut asked: Option<Instant> = None;
    while status.is_none() {
        match guard.report(Duration::from_millis(100)) {
            Some(Report::Exited(wait_status)) => status = Some(wait_status),
            Some(Report::Gone) => break,
            Some(Report::Started(_)) | None => {}
        }
        match asked {
            None if !go_on() => {
                guard.signal(libc::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(at) if at.elapsed() > Duration::from_secs(5) => break,
            _ => {}
        }
    }
    guard.kill();
    guard.reap(Duration::from_secs(5));
    if asked.is_some() {
        return Ok(None);
    }
    Ok(Some(Output {
        success: status == Some(0),
        text: last_of(&mut captured)?,
        end: match status {
            Some(status) => describe_exit(status),
            None => "was killed".to_owned(),
        },
    }))
}

/// The last 64 KiB.
pub(crate) fn last_of(file: &mut File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(64 << 10)))?;
    let mut bytes = Vec::new();
    file.take(64 << 10).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn text_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(64 << 10).read_to_end(&mut bytes)?;
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
