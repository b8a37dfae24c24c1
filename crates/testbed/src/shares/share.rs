//! A share, and how it is held.

use std::path::PathBuf;

use serde::Serialize;

use pubgauge_quantities::Share;

/// Length of the periods in which a share of processor time is given, in microseconds.
pub const PERIOD_US: u64 = 10_000;

/// The usable processors, with those at the end that the `number`th of several with this share is to take.
pub(crate) fn in_turn(share: &Share, usable: Vec<usize>, number: usize) -> Vec<usize> {
    let whole = share.cores.map_or(0, |cores| cores.ceil() as usize);
    next_processors(usable, number.saturating_mul(whole))
}

/// The usable processors, with those at the end that come next where others have taken so many.
pub(crate) fn next_processors(mut usable: Vec<usize>, taken: usize) -> Vec<usize> {
    let turn = taken % usable.len().max(1);
    usable.rotate_right(turn);
    usable
}

/// How a share is held.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeldShare {
    /// How processor time is held, in words; `None` if it is not.
    pub cores_by: Option<String>,
    /// Whether the kernel holds it as a quota.
    pub cores_by_quota: bool,
    /// How memory is held, in words; `None`: it is not.
    pub memory_by: Option<String>,
    /// Limits that could not be held as asked for, and why.
    pub not_held: Vec<String>,
    /// The control groups.
    #[serde(skip)]
    pub groups: Vec<PathBuf>,
}

impl HeldShare {
    /// Words to append to how a process with this share and wait status ended. They are empty unless it was
    /// killed and its memory was limited: the kernel kills where memory is at its limit.
    pub(crate) fn words_behind_end(&self, share: &Share, status: i32) -> String {
        let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        let limited = share.memory_bytes.filter(|_| self.memory_by.is_some());
        limited.filter(|_| killed).map_or(String::new(), |bytes| {
            let mib = bytes >> 20;
            format!(" (perhaps by the kernel: its memory is limited to {mib} MiB)")
        })
    }

    /// Notes why a part is not held by the kernel; returns the `ways` in which it is held instead, in words, if
    /// there are any.
    pub(super) fn instead(&mut self, why: String, ways: &[String]) -> Option<String> {
        let ways = (!ways.is_empty()).then(|| ways.join(", "));
        self.not_held.push(match &ways {
            Some(ways) => format!("{why}; instead {ways}"),
            None => why,
        });
        ways
    }
}
