//! Commands that pubgauge waits for: version queries, hooks, steps of an installation.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pubgauge_driver::PASSWORD_VARIABLE;

use crate::guard::{Bounds, Guard, Report, Spec};

/// The longest text that is kept of a command's output.
const TEXT_BYTES: u64 = 64 << 10;
/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// The outcome of a command.
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
    let env = if env.is_empty() {
        environment()
    } else {
        env.to_vec()
    };
    let in_time = || Instant::now() < deadline;
    // Hooks write into the folder of a system.
    let (status, mut captured) = guarded(argv, env, directory, true, Duration::ZERO, in_time)?;
    let unended = format!("did not end within {:.1} s", time_out.as_secs_f64());
    Ok(Output {
        success: status == Some(0),
        text: text_from(&mut captured, 0)?,
        end: status.map_or(unended, describe_exit),
    })
}

/// Pubgauge's own environment for other programs: without the password, which is none of theirs.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    let all = std::env::vars_os();
    all.filter(|(name, _)| name != PASSWORD_VARIABLE).collect()
}

/// Executes a command under a guard, without a time limit, with pubgauge's environment. Calls `go_on` about ten times a second; once that returns `false`, the command gets SIGTERM,
/// SIGKILL five seconds later, and the result is `None`. No process of it is left when this
/// returns.
pub(crate) fn run_watched(
    argv: &[String],
    directory: &Path,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<Option<Output>> {
    let env = environment();
    let mut goes_on = true;
    let watch = || {
        goes_on = go_on();
        goes_on
    };
    let (status, mut captured) = guarded(argv, env, directory, false, GRACE, watch)?;
    if !goes_on {
        return Ok(None);
    }
    Ok(Some(Output {
        success: status == Some(0),
        text: last_of(&mut captured)?,
        end: status.map_or("was killed".to_owned(), describe_exit),
    }))
}

/// Executes a command that nothing of pubgauge ever ends: it has a session of its own and no guard, so that neither
/// Ctrl-C, nor a closed terminal, nor pubgauge's own end reaches it. With pubgauge's environment and `env`. Calls
/// `go_on` about ten times a second; once that returns `false`, the command is left to itself, and the error is its
/// process.
pub(crate) fn run_to_its_end(
    argv: &[String],
    env: &[(&str, &str)],
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<Result<Output, u32>> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "empty command"))?;
    let mut captured = tempfile::tempfile()?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_remove(PASSWORD_VARIABLE)
        .envs(env.iter().copied())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(captured.try_clone()?)
        .stderr(captured.try_clone()?);
    // SAFETY: setsid is async-signal-safe.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ok(Output {
                success: status.success(),
                text: last_of(&mut captured)?,
                end: describe_exit(status.into_raw()),
            }));
        }
        if !go_on() {
            return Ok(Err(child.id()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Executes a command under a guard. Calls `go_on` about ten times a second; once that returns `false`, the command
/// gets SIGTERM, and SIGKILL when `grace` is over. Files that it makes are for this user only if they are to be
/// `private`. Returns its wait status if it has ended by itself, and what it has written.
fn guarded(
    argv: &[String],
    env: Vec<(OsString, OsString)>,
    directory: &Path,
    private: bool,
    grace: Duration,
    mut go_on: impl FnMut() -> bool,
) -> io::Result<(Option<i32>, File)> {
    let captured = tempfile::tempfile()?;
    let mut guard = Guard::spawn(Spec {
        argv: argv.iter().map(OsString::from).collect(),
        env,
        directory: directory.to_owned(),
        stdin: None,
        stdout: captured.try_clone()?,
        stderr: captured.try_clone()?,
        bounds: Bounds {
            private,
            ..Bounds::default()
        },
    })?;
    let mut status = None;
    let mut asked: Option<Instant> = None;
    while status.is_none() && asked.is_none_or(|at| at.elapsed() < grace) {
        match guard.report(Duration::from_millis(100)) {
            Some(Report::Exited(wait_status)) => status = Some(wait_status),
            Some(Report::Gone) => break,
            Some(Report::Started(_) | Report::Signalled) | None => {}
        }
        if asked.is_none() && !go_on() {
            guard.signal(libc::SIGTERM);
            asked = Some(Instant::now());
        }
    }
    guard.kill();
    guard.reap(Duration::from_secs(5));
    Ok((status, captured))
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
