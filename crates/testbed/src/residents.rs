//! Ends the processes of a system whose guard is gone: those with its mark in their environment.
//!
//! A guard that is killed takes the system's own process with it (parent-death signal), but not what that process
//! had started: Erlang's port mapper, a shell around a server. These keep the environment that they began with.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Environment variable of every process of a system: the system's folder.
pub(crate) const MARK: &str = "PUBGAUGE_FOLDER";

/// How long SIGKILL may take; beyond that something is wrong with the machine.
pub(crate) const KILL_TIME: Duration = Duration::from_secs(10);

/// Kills the processes whose mark names `folder` or a folder below it. Whether none is left.
pub(crate) fn end_residents(folder: &Path) -> bool {
    let deadline = Instant::now() + KILL_TIME;
    // The mark holds a canonical path.
    let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    loop {
        let killed = kill_residents(folder);
        if killed == 0 || Instant::now() >= deadline {
            return killed == 0;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills those that exist now and returns their number.
fn kill_residents(folder: &Path) -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let numbers = processes.flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = std::process::id() as i32;
    numbers
        .filter(|&number| number != own && kill_resident(number, folder))
        .count()
}

/// Kills a process if its mark names `folder` or a folder below it. Whether it was killed.
fn kill_resident(number: i32, folder: &Path) -> bool {
    // The number may pass to another process; the descriptor keeps meaning this one.
    let Some(process) =
        Pid::from_raw(number).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return false;
    };
    home(number).is_some_and(|home| home.starts_with(folder))
        && pidfd_send_signal(&process, Signal::KILL).is_ok()
}

/// The folder that a process's mark names. A process that has ended, and one of another user, has none.
fn home(number: i32) -> Option<PathBuf> {
    let environment = std::fs::read(format!("/proc/{number}/environ")).ok()?;
    let mark = format!("{MARK}=");
    let mut words = environment.split(|byte| *byte == 0);
    let home = words.find_map(|word| word.strip_prefix(mark.as_bytes()))?;
    Some(PathBuf::from(String::from_utf8_lossy(home).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_who_lives_there_is_ended() {
        let place = tempfile::tempdir().unwrap();
        let sleeper = |mark: &Path| {
            let mut command = Command::new("sleep");
            command.arg("60").env(MARK, mark).spawn().unwrap()
        };
        let beside = place.path().with_extension("beside");
        let mut inside = [sleeper(place.path()), sleeper(&place.path().join("deep"))];
        let mut others = [sleeper(&beside), sleeper(Path::new("/"))];
        let mut unmarked = Command::new("sleep")
            .arg("60")
            .env_remove(MARK)
            .current_dir(place.path())
            .spawn()
            .unwrap();
        assert!(end_residents(place.path()));
        for one in &mut inside {
            assert!(!one.wait().unwrap().success());
        }
        for one in others.iter_mut().chain([&mut unmarked]) {
            assert!(one.try_wait().unwrap().is_none());
            one.kill().unwrap();
            one.wait().unwrap();
        }
    }
}
