//! Open files: the limit that decides how many clients fit into one process.

use std::io;

/// Descriptors that pubgauge needs beside its clients: files of the run, `/proc`, libraries.
const RESERVE: u64 = 64;

/// Raises the soft limit of open files to the hard one and returns the limit that then holds.
///
/// # Errors
/// If the system refuses to tell or to raise it.
pub fn raise_nofile() -> io::Result<u64> {
    let mut limit = nofile()?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: a valid limit.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

/// The soft limit of open files of this process.
///
/// # Errors
/// If the system refuses to tell.
pub fn max_open_files() -> io::Result<u64> {
    Ok(nofile()?.rlim_cur)
}

/// Checks that `clients` more sockets can be opened in this process, beside what is open now and
/// a reserve. Call [`raise_nofile`] first.
///
/// # Errors
/// Says which limit is needed, which one holds, and how many clients would fit.
pub fn check_descriptors(clients: u64) -> Result<(), TooFewDescriptors> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    // A limit that cannot be read cannot be checked: opening will tell.
    let limit = max_open_files().unwrap_or(u64::MAX);
    fit(clients, open, limit)
}

fn fit(clients: u64, open: u64, limit: u64) -> Result<(), TooFewDescriptors> {
    let beside = open + RESERVE;
    let needed = clients.saturating_add(beside);
    if needed <= limit {
        return Ok(());
    }
    Err(TooFewDescriptors {
        clients,
        needed,
        limit,
        fit: limit.saturating_sub(beside),
    })
}

/// More clients than this process may open sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{clients} clients need {needed} open files, but this process may open {limit}: {fit} clients would fit\n  hint: plan at most {fit} clients, or raise the hard limit before starting: `ulimit -Hn {needed}` as root, or a line `* hard nofile {needed}` in /etc/security/limits.conf and a new login"
)]
pub struct TooFewDescriptors {
    /// Clients planned.
    pub clients: u64,
    /// The limit of open files that they need.
    pub needed: u64,
    /// The limit that holds.
    pub limit: u64,
    /// Clients that would fit.
    pub fit: u64,
}

fn nofile() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is writable.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_said() {
        assert_eq!(fit(900, 36, 1000), Ok(()));
        let error = fit(901, 36, 1000).unwrap_err();
        assert_eq!((error.needed, error.fit), (1001, 900));
        assert_eq!(fit(error.fit, 36, 1000), Ok(()));
        let text = error.to_string();
        for part in [
            "901 clients need 1001",
            "may open 1000",
            "900 clients would fit",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(fit(1, 36, 10).unwrap_err().fit, 0);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise_nofile().unwrap();
        let now = nofile().unwrap();
        assert_eq!((now.rlim_cur, now.rlim_max), (limit, limit));
        assert_eq!(check_descriptors(1), Ok(()));
        assert_eq!(check_descriptors(limit).unwrap_err().limit, limit);
    }
}
