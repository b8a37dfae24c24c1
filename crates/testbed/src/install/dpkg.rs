//! Whether Debian's package manager can install anything now.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::file::SystemFile;
use crate::find::on_path;
use crate::package_manager::manager_tool;

/// Where dpkg keeps its state, unless the variable says otherwise.
const STATE: (&str, &str) = ("DPKG_ADMINDIR", "/var/lib/dpkg");
/// Statuses of a package between two that dpkg leaves by itself: met while nothing works on it, it was interrupted.
const BETWEEN: [&str; 5] = [
    "half-installed",
    "unpacked",
    "half-configured",
    "triggers-awaited",
    "triggers-pending",
];

/// Why Debian's package manager installs nothing now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// It is at work.
    #[error(
        "the package manager is at work: process {process} has locked {}\n  hint: repeat this when it has ended", lock.display()
    )]
    AtWork {
        /// The process that has the lock.
        process: i32,
        /// The locked file.
        lock: PathBuf,
    },
    /// It was interrupted.
    #[error(
        "dpkg was interrupted earlier and installs nothing before it is mended: {what}\n  hint: as root: dpkg --configure -a; apt-get install -f -y"
    )]
    Interrupted {
        /// Packages with their statuses, or what else shows it.
        what: String,
    },
}

/// Checks that Debian's package manager is idle and whole, if one of these systems would be installed by it here.
///
/// # Errors
/// [`Unsound`], with what mends it. What cannot be asked for want of rights or tools is not checked.
pub fn sound(systems: &[SystemFile]) -> Result<(), Unsound> {
    let by_apt = systems.iter().any(|system| !system.install.apt.is_empty());
    if !by_apt || on_path(manager_tool("apt")).is_none() || on_path("dpkg-query").is_none() {
        return Ok(());
    }
    let state = std::env::var_os(STATE.0).map_or_else(|| STATE.1.into(), PathBuf::from);
    for lock in ["lock-frontend", "lock"].map(|name| state.join(name)) {
        if let Some(process) = locked_by(&lock) {
            return Err(Unsound::AtWork { process, lock });
        }
    }
    let interrupted = |what: String| Err(Unsound::Interrupted { what });
    let format = "--showformat=${db:Status-Status} ${db:Status-Eflag} ${binary:Package}\n";
    let output = Command::new("dpkg-query").args(["--show", format]).output();
    let statuses = output.map(|output| output.stdout).unwrap_or_default();
    let between = half_installed(&String::from_utf8_lossy(&statuses));
    if !between.is_empty() {
        return interrupted(between.join(", "));
    }
    // dpkg's journal: it adds to it at each step, and removes it when it ends.
    let journal = state.join("updates");
    let is_number = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
    let left = journal.read_dir().into_iter().flatten().flatten();
    let left = left.filter(|entry| is_number(entry.file_name().as_encoded_bytes()));
    match left.count() {
        0 => Ok(()),
        count => interrupted(format!("{count} notes in {}", journal.display())),
    }
}

/// The packages that are in none of the statuses that dpkg leaves by itself.
fn half_installed(statuses: &str) -> Vec<String> {
    let lines = statuses.lines().filter_map(|line| {
        let (status, rest) = line.split_once(' ')?;
        let (flag, package) = rest.split_once(' ')?;
        (flag != "ok" || BETWEEN.contains(&status)).then(|| format!("{package} is {status}"))
    });
    lines.collect()
}

/// The process that has locked the file, if there is one and the file may be read.
fn locked_by(lock: &Path) -> Option<i32> {
    let file = File::open(lock).ok()?;
    let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
    // 0 stands for a process outside this namespace.
    Some(held.pid.map_or(0, |pid| pid.as_raw_nonzero().get()))
}
