//! A test that runs under limits of its own, in a process of its own.

use std::os::fd::AsRawFd;
use std::process::Command;

use crate::this_test;

/// Set in a process that was started for one test.
const VARIABLE: &str = "PUBGAUGE_CONFINED_TEST";

/// Number of a user and group that nothing else uses.
const ACCOUNT: libc::uid_t = 54_321;

/// Resources that a test may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Open files (`RLIMIT_NOFILE`).
    pub files: Option<u64>,
    /// Local ports, first and last: the test gets a network namespace of its own in which only the
    /// loopback interface is up.
    pub ports: Option<(u16, u16)>,
    /// Whether [`leave_threads`] is to be called: the test gets a user of its own, so that no other
    /// threads count.
    pub account: bool,
}

/// Runs `body` under `limits`: the test that calls this is started again as a process of its own, in which `body`
/// runs.
///
/// # Panics
/// If `body` panics, with its output; if the limits cannot be set (a network namespace or a user of
/// its own needs root, or user namespaces).
#[track_caller]
pub fn confined(limits: Limits, body: impl FnOnce()) {
    if std::env::var_os(VARIABLE).is_some() {
        limits.apply();
        body();
        return;
    }
    let name = this_test();
    let program = std::env::current_exe().expect("this program");
    // SAFETY: geteuid cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let namespaces: &[&str] = match (limits.ports, limits.account) {
        (Some(_), _) if root => &["--net"],
        (Some(_), _) => &["--net", "--map-root-user"],
        (None, true) if !root => &["--user"],
        (None, _) => &[],
    };
    let mut command = match namespaces {
        [] => Command::new(program),
        namespaces => {
            let mut unshare = Command::new("unshare");
            unshare.args(namespaces).arg(program);
            unshare
        }
    };
    command.args([&*name, "--exact", "--nocapture", "--test-threads=1"]);
    let done = command.env(VARIABLE, "1").output().expect("starts");
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && out.contains("1 passed"),
        "{name}, confined: {}\n{out}{}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
}

impl Limits {
    fn apply(self) {
        if let Some((first, last)) = self.ports {
            loopback_up();
            let range = "/proc/sys/net/ipv4/ip_local_port_range";
            std::fs::write(range, format!("{first} {last}")).expect(range);
        }
        if let Some(files) = self.files {
            let limit = libc::rlimit {
                rlim_cur: files,
                rlim_max: files,
            };
            // SAFETY: a valid limit.
            let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
            assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
        }
    }
}

fn loopback_up() {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
    // SAFETY: all zeros are an empty request; the kernel reads and writes no more than it.
    let set = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Lowers this process's limit of open files, or raises it again, so that exactly `more` can be
/// opened. For a body that runs [`confined`].
///
/// # Panics
/// If the limit cannot be set.
pub fn leave_files(more: u64) {
    // Listing the open files takes a descriptor too.
    all_files();
    let entries = std::fs::read_dir("/proc/self/fd").expect("/proc");
    let mut open: Vec<u64> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    open.retain(|fd| std::fs::symlink_metadata(format!("/proc/self/fd/{fd}")).is_ok());
    open.sort_unstable();
    // The limit bounds the numbers of descriptors, and inherited ones may be high: find the limit
    // below which `more` are free.
    let mut limit = more;
    for fd in open {
        limit += u64::from(fd <= limit);
    }
    set_soft(libc::RLIMIT_NOFILE, Some(limit));
}

/// Lets this process have `more` threads in addition, by the limit of processes (`RLIMIT_NPROC`).
/// The limit does not bind root, so root becomes a user that nothing else uses. For a body that
/// runs [`confined`] with [`Limits::account`].
///
/// # Panics
/// If the limit or the account cannot be set.
pub fn leave_threads(more: u64) {
    // SAFETY: plain numbers; the process is the test's own.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setgid(ACCOUNT), 0);
            assert_eq!(libc::setuid(ACCOUNT), 0);
        }
    }
    set_soft(libc::RLIMIT_NPROC, Some(threads() + more));
}

/// Threads of this process.
///
/// # Panics
/// Without `/proc`.
pub fn threads() -> u64 {
    let entries = std::fs::read_dir("/proc/self/task").expect("/proc");
    entries.count() as u64
}

/// Lets this process open as many files as it may, and says how many that are.
///
/// # Panics
/// If the limit cannot be set.
pub fn all_files() -> u64 {
    set_soft(libc::RLIMIT_NOFILE, None)
}

/// Sets a limit that the process may raise again; `None` is the hard limit. Gives the limit.
fn set_soft(resource: libc::__rlimit_resource_t, soft: Option<u64>) -> u64 {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limits` is writable, then a valid limit.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &mut limits), 0);
        limits.rlim_cur = soft.unwrap_or(limits.rlim_max);
        assert_eq!(libc::setrlimit(resource, &limits), 0);
    }
    limits.rlim_cur
}
