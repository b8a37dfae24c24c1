//! A process of pubgauge's own, reached over its standard input and output.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::command::{describe_exit, environment};
use crate::ends::Listened;
use crate::guard::{Bounds, Guard, Report, Spec};
use crate::lock::lock;
use crate::realtime::usable_cpus;
use crate::shares::{self, HeldShare, Holding, HostShare, Share};

/// How long to wait for the end of a process that has closed its output.
const ENDING: Duration = Duration::from_secs(5);

/// Characters of its last words that are quoted.
const LONGEST_WORDS: usize = 500;

/// A process under a guard: it and its descendants end when this is dropped, or when pubgauge ends,
/// in whatever way.
pub struct Piped {
    guard: Mutex<Guard>,
    /// Never a file: a stranger's would fill the disk.
    stderr: Listened,
    share: Share,
    held: HeldShare,
    /// The guard removes the control groups; this does where the guard was killed.
    _holding: Holding,
}

/// Where a process runs, and its share of the machine.
#[derive(Clone, Debug, Default)]
pub struct Confinement<'a> {
    /// The network namespace, as `ip netns` names it or by the path of its file; the caller's if absent.
    pub namespace: Option<&'a str>,
    /// The most that it gets.
    pub share: Share,
    /// The host of a given size that it runs on, whose share it has a part of; it has none of its own then.
    pub host: Option<&'a HostShare>,
    /// The processor to which the process binds itself.
    pub bound: Option<usize>,
    /// Its number among processes that are alike, from 0: where processor time is limited by
    /// affinity, they take processors in turn.
    pub number: usize,
}

/// Both streams of a process: what is written is its input, what is read its output.
pub struct Streams {
    /// Its standard input.
    pub input: File,
    /// Its standard output.
    pub output: File,
}

impl Piped {
    /// Starts `program` with `arguments` and pubgauge's own environment, without the password of
    /// systems. The network namespace must exist.
    ///
    /// # Errors
    /// If it cannot be started, or there is no such namespace. A share that could not be limited is
    /// no error, see [`Piped::held`].
    pub fn start(
        program: &Path,
        arguments: &[&str],
        confinement: &Confinement<'_>,
    ) -> io::Result<(Piped, Streams)> {
        let file = |end: OwnedFd| File::from(end);
        let (their_input, input) = io::pipe()?;
        let (output, their_output) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let network = confinement
            .namespace
            .map(|name| {
                let path = PathBuf::from("/run/netns").join(name);
                File::open(&path).map_err(|error| {
                    let why = format!(
                        "no network namespace `{name}` ({}: {error})\n  hint: ip netns add {name}",
                        path.display()
                    );
                    io::Error::new(error.kind(), why)
                })
            })
            .transpose()?;
        let arguments = arguments.iter().map(OsString::from);
        let holding = confinement.hold(usable_cpus());
        let host = confinement.host.map(HostShare::holding);
        let cpus = host.map(|host| &host.cpus).filter(|cpus| !cpus.is_empty());
        let guard = Guard::spawn(Spec {
            argv: std::iter::once(program.into()).chain(arguments).collect(),
            env: environment(),
            directory: std::env::current_dir()?,
            stdin: Some(file(their_input.into())),
            stdout: file(their_output.into()),
            stderr: file(their_stderr.into()),
            bounds: Bounds {
                network,
                cpus: cpus.unwrap_or(&holding.cpus).clone(),
                groups: holding.names(),
                shared_groups: host.map_or(Vec::new(), Holding::names),
                ..Bounds::default()
            },
        })?;
        let piped = Piped {
            guard: Mutex::new(guard),
            stderr: Listened::start_reading(stderr)?,
            share: confinement.host.map_or(confinement.share, HostShare::share),
            held: confinement
                .host
                .map_or(&holding.held, HostShare::held)
                .clone(),
            _holding: holding,
        };
        let streams = Streams {
            input: file(input.into()),
            output: file(output.into()),
        };
        Ok((piped, streams))
    }

    /// Which limits hold.
    pub fn held(&self) -> &HeldShare {
        &self.held
    }

    /// Kills it and all its descendants.
    pub fn kill(&self) {
        lock(&self.guard).kill();
    }

    /// How it ended, with the last line of its standard error. Waits at most five seconds for the
    /// end.
    pub fn ending(&self) -> String {
        let guard = lock(&self.guard);
        let how = loop {
            match guard.report(ENDING) {
                Some(Report::Exited(status)) => {
                    let memory = self.held().words_behind_end(&self.share, status);
                    break format!("{}{memory}", describe_exit(status));
                }
                Some(Report::Started(_) | Report::Signalled) => {}
                Some(Report::Gone) => break "ended".into(),
                None => break "closed its output and lives on".into(),
            }
        };
        drop(guard);
        match self.last_line() {
            Some(line) => format!("{how}; its last words: {line}"),
            None => how,
        }
    }

    /// Its standard error: the first and the last 64 KiB, with a line that says how much is left out
    /// between them.
    pub fn standard_error(&self) -> String {
        self.stderr.text()
    }

    fn last_line(&self) -> Option<String> {
        let text = self.standard_error();
        // Lines that begin with `note: ` say how to see more of a panic.
        let mut said = text.lines().filter(|line| !line.starts_with("note: "));
        let last = said.rfind(|line| !line.trim().is_empty())?;
        Some(last.trim().chars().take(LONGEST_WORDS).collect())
    }
}

impl Confinement<'_> {
    fn hold(&self, usable: Vec<usize>) -> Holding {
        let usable = shares::in_turn(&self.share, usable, self.number);
        shares::hold(&self.share, &usable, self.bound.as_slice(), [])
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let mut guard = lock(&self.guard);
        guard.kill();
        guard.reap(Duration::from_secs(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_different_sizes_do_not_meet() {
        let of = |whole: usize, taken| {
            let usable = shares::next_processors(vec![0, 1, 2, 3], taken);
            usable[4 - whole..].to_vec()
        };
        assert_eq!(
            [of(2, 0), of(1, 2), of(1, 3)],
            [vec![2, 3], vec![1], vec![0]]
        );
    }

    #[test]
    fn several_take_processors_in_turn() {
        let taken = |cores, number| {
            let share = Share {
                cores: Some(cores),
                memory_bytes: None,
            };
            let usable = shares::in_turn(&share, vec![4, 5, 6, 7], number);
            usable[usable.len() - f64::ceil(cores) as usize..].to_vec()
        };
        let one: Vec<_> = (0..5).map(|number| taken(0.5, number)).collect();
        assert_eq!(one, [[7], [6], [5], [4], [7]]);
        let two: Vec<_> = (0..3).map(|number| taken(1.5, number)).collect();
        assert_eq!(two, [[6, 7], [4, 5], [6, 7]]);
        assert_eq!(taken(4.0, 1), [4, 5, 6, 7]);
    }
}
