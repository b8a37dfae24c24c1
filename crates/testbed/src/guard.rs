//! A process that is started so that none of its descendants can outlive pubgauge.
//!
//! Between pubgauge and the system stands a *guard*: a fork of pubgauge that never executes
//! anything, only waits. It is the *child subreaper* of the system, so every descendant, also one
//! that made itself a daemon with a session of its own, becomes its child sooner or later and can
//! be signalled and waited for. It holds one end of a socket; when pubgauge dies, however
//! suddenly, the socket closes and the guard kills everything. Should the guard itself be killed,
//! the system gets SIGKILL by its parent-death signal (which is bound to the *thread* that
//! forked: the guard has only one, which is why it forks and not a worker of pubgauge).
//!
//! After a fork in a process with threads only async-signal-safe calls are allowed: the guard
//! allocates nothing and uses bare system calls. It sleeps until a child ends or pubgauge sends a
//! message, so it costs the measurement only the copy of each page that pubgauge writes to for the
//! first time after the start.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What to start.
pub(crate) struct Spec {
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    /// No input if absent.
    pub stdin: Option<File>,
    pub stdout: File,
    pub stderr: File,
    /// The file of a network namespace to run in.
    pub network: Option<File>,
    pub cpus: Vec<usize>,
    pub address_space_bytes: Option<u64>,
    pub open_files: Option<u64>,
    /// Whether files and folders that it makes are for this user only, whatever the umask of the user's shell.
    pub private: bool,
    /// Control groups: the folder of each, which the guard removes at its end, and the file through
    /// which the system enters it.
    pub groups: Vec<[CString; 2]>,
}

/// What the guard reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The system runs as this process.
    Started(i32),
    /// The system itself ended with this wait status; descendants may live on.
    Exited(i32),
    /// The system and all its descendants are gone, and so is the guard.
    Gone,
}

const STARTED: u8 = 1;
const EXITED: u8 = 2;
const SIGNAL: u8 = 3;
const KILL: u8 = 4;
const MESSAGE: usize = 5;

/// pubgauge's end of the socket to a guard.
pub(crate) struct Guard {
    child: Child,
    socket: OwnedFd,
}

impl Guard {
    /// Starts a system under a guard. The error is that of the system's `execve`.
    pub fn spawn(spec: Spec) -> io::Result<Guard> {
        let mut ends = [0 as RawFd; 2];
        // SAFETY: `ends` has room for the two descriptors.
        let made = unsafe {
            libc::socketpair(
                libc::AF_UNIX,
                libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC,
                0,
                ends.as_mut_ptr(),
            )
        };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are new and ours.
        let (ours, theirs) =
            unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };

        let (program, arguments) = spec
            .argv
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "empty command"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(spec.env)
            .current_dir(&spec.directory)
            .stdin(spec.stdin.map_or(Stdio::null(), Stdio::from))
            .stdout(spec.stdout)
            .stderr(spec.stderr);
        let confinement = Confinement {
            network: spec.network,
            groups: spec.groups,
            private: spec.private,
            ..Confinement::new(&spec.cpus, spec.address_space_bytes, spec.open_files)
        };
        let guard_end = theirs.as_raw_fd();
        // SAFETY: `split` only makes async-signal-safe calls.
        unsafe { command.pre_exec(move || split(guard_end, &confinement)) };
        let child = command.spawn()?;
        Ok(Guard {
            child,
            socket: ours,
        })
    }

    /// The guard's process, the parent of the system.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits for the next report, at most `time_out`.
    pub fn report(&self, time_out: Duration) -> Option<Report> {
        let mut poll = libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let millis = time_out.as_millis().min(60_000) as i32;
        // SAFETY: one valid pollfd.
        if unsafe { libc::poll(&mut poll, 1, millis) } <= 0 {
            return None;
        }
        let mut message = [0u8; MESSAGE];
        // SAFETY: the buffer is ours and as long as said.
        let n = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                message.as_mut_ptr().cast(),
                MESSAGE,
                libc::MSG_DONTWAIT,
            )
        };
        let value = i32::from_le_bytes([message[1], message[2], message[3], message[4]]);
        match (n, message[0]) {
            (0, _) => Some(Report::Gone),
            (5, STARTED) => Some(Report::Started(value)),
            (5, EXITED) => Some(Report::Exited(value)),
            _ => match n < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECONNRESET)
            {
                true => Some(Report::Gone),
                false => None,
            },
        }
    }

    /// Sends a signal to the system's process group and to descendants that left it.
    pub fn signal(&self, signal: i32) {
        self.tell(SIGNAL, signal);
    }

    /// Kills the system and every descendant.
    pub fn kill(&self) {
        self.tell(KILL, 0);
    }

    /// Reaps the guard, which has ended or is about to; `false` if it takes longer than `time_out`.
    pub fn reap(&mut self, time_out: Duration) -> bool {
        let deadline = Instant::now() + time_out;
        loop {
            match self.child.try_wait() {
                Ok(Some(_)) | Err(_) => return true,
                Ok(None) if Instant::now() >= deadline => return false,
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn tell(&self, what: u8, value: i32) {
        let mut message = [what, 0, 0, 0, 0];
        message[1..].copy_from_slice(&value.to_le_bytes());
        // A guard that is gone has nothing left to signal: the error can be ignored.
        // SAFETY: the buffer is ours and as long as said.
        unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                message.as_ptr().cast(),
                MESSAGE,
                libc::MSG_NOSIGNAL,
            )
        };
    }
}

/// Limits, made ready before the fork.
struct Confinement {
    cpus: Option<libc::cpu_set_t>,
    address_space: Option<u64>,
    open_files: Option<u64>,
    network: Option<File>,
    private: bool,
    groups: Vec<[CString; 2]>,
}

impl Confinement {
    fn new(cpus: &[usize], address_space: Option<u64>, open_files: Option<u64>) -> Self {
        // SAFETY: a cpu_set_t is a plain bit set, for which zero is the empty one.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for &cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            // SAFETY: `cpu` lies within the set.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        Confinement {
            cpus: (!cpus.is_empty()).then_some(set),
            address_space,
            open_files,
            network: None,
            private: false,
            groups: Vec::new(),
        }
    }

    /// Applies the limits to the calling process. Async-signal-safe.
    fn apply(&self) -> io::Result<()> {
        let check = |result: i32| match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        if let Some(network) = &self.network {
            // SAFETY: a descriptor of our own.
            check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })?;
        }
        if self.private {
            // SAFETY: it takes no pointer and always succeeds.
            unsafe { libc::umask(0o077) };
        }
        for [_, procs] in &self.groups {
            // SAFETY: a path that ends in NUL; the buffer is as long as said. 0 is who writes.
            unsafe {
                let file = libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                check(if file < 0 { -1 } else { 0 })?;
                let entered = libc::write(file, c"0".as_ptr().cast(), 1) == 1;
                let error = io::Error::last_os_error();
                libc::close(file);
                if !entered {
                    return Err(error);
                }
            }
        }
        if let Some(cpus) = &self.cpus {
            // SAFETY: a valid set of its own size.
            check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) })?;
        }
        for (resource, limit) in [
            (libc::RLIMIT_AS, self.address_space),
            (libc::RLIMIT_NOFILE, self.open_files),
        ] {
            if let Some(limit) = limit {
                let limit = libc::rlimit {
                    rlim_cur: limit,
                    rlim_max: limit,
                };
                // SAFETY: a valid limit.
                check(unsafe { libc::setrlimit(resource, &limit) })?;
            }
        }
        Ok(())
    }
}

/// Splits the forked child in two: the guard, which does not return, and the system, which does,
/// to be executed.
fn split(socket: RawFd, confinement: &Confinement) -> io::Result<()> {
    // SAFETY: async-signal-safe calls on our own process.
    unsafe {
        // Its own session: Ctrl-C reaches pubgauge alone, which stops systems in order.
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        let guard = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::setpgid(0, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                if libc::getppid() != guard {
                    libc::_exit(127);
                }
                confinement.apply()
            }
            system => {
                libc::setpgid(system, system);
                watch(socket, system, &confinement.groups)
            }
        }
    }
}

/// The guard's event loop.
unsafe fn watch(socket: RawFd, system: i32, groups: &[[CString; 2]]) -> ! {
    // SAFETY: async-signal-safe calls with valid arguments throughout; buffers live on this stack.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"pubgauge-guard".as_ptr(), 0, 0, 0);
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut signals);
        libc::sigprocmask(libc::SIG_SETMASK, &signals, std::ptr::null_mut());
        // The guard closes every other descriptor it inherited, above all the other end of its own
        // socket or of another guard's.
        if socket != 0 {
            libc::dup2(socket, 0);
        }
        if libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) != 0 {
            // Kernels before 5.9.
            for fd in 1..libc::sysconf(libc::_SC_OPEN_MAX) as i32 {
                libc::close(fd);
            }
        }
        libc::chdir(c"/".as_ptr());
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, libc::SIGCHLD);
        let children = libc::signalfd(-1, &signals, 0);
        say(STARTED, system);

        let mut polls = [0, children].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let mut lives = true;
        loop {
            reap_ended(system, &mut lives, groups);
            libc::poll(polls.as_mut_ptr(), 2, -1);
            if polls[1].revents != 0 {
                let mut sink = [0u8; 1024];
                libc::read(children, sink.as_mut_ptr().cast(), sink.len());
            }
            if polls[0].revents != 0 {
                let mut message = [0u8; MESSAGE];
                let n = libc::recv(0, message.as_mut_ptr().cast(), MESSAGE, 0);
                let value = i32::from_le_bytes([message[1], message[2], message[3], message[4]]);
                match (n, message[0]) {
                    (5, SIGNAL) => {
                        signal_all(system, lives, value);
                        // A stopped process would take no notice.
                        if value != libc::SIGSTOP {
                            signal_all(system, lives, libc::SIGCONT);
                        }
                    }
                    // Also when pubgauge is gone: `recv` then gives 0 or an error.
                    _ => kill_all(system, lives, groups),
                }
            }
        }
    }
}

unsafe fn say(what: u8, value: i32) {
    let mut message = [what, 0, 0, 0, 0];
    message[1..].copy_from_slice(&value.to_le_bytes());
    // SAFETY: the buffer is as long as said.
    unsafe { libc::send(0, message.as_ptr().cast(), MESSAGE, libc::MSG_NOSIGNAL) };
}

/// Reaps every child that ended; ends the guard when none is left.
unsafe fn reap_ended(system: i32, lives: &mut bool, groups: &[[CString; 2]]) {
    let mut status = 0;
    // SAFETY: `status` is writable.
    unsafe {
        loop {
            match libc::waitpid(-1, &mut status, libc::WNOHANG) {
                0 => return,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                -1 => end(groups),
                pid if pid == system => {
                    *lives = false;
                    say(EXITED, status);
                }
                _ => {}
            }
        }
    }
}

/// Signals the system's group, while the system lives and so holds the group's number, and all
/// direct children.
unsafe fn signal_all(system: i32, lives: bool, signal: i32) {
    // SAFETY: signals go to children of this process and to the group of one of them.
    unsafe {
        if lives {
            libc::kill(-system, signal);
        }
        for_each_child(|pid| {
            if !(lives && libc::getpgid(pid) == system) {
                libc::kill(pid, signal);
            }
        });
    }
}

/// Kills until nothing is left. Orphans of the killed become children of the guard, so each round
/// reaches one generation more.
unsafe fn kill_all(system: i32, mut lives: bool, groups: &[[CString; 2]]) -> ! {
    let mut status = 0;
    // SAFETY: as in `signal_all`.
    unsafe {
        loop {
            if lives {
                libc::kill(-system, libc::SIGKILL);
            }
            for_each_child(|pid| {
                libc::kill(pid, libc::SIGKILL);
            });
            match libc::waitpid(-1, &mut status, 0) {
                -1 if *libc::__errno_location() == libc::EINTR => {}
                -1 => end(groups),
                pid if pid == system => {
                    lives = false;
                    say(EXITED, status);
                }
                _ => {}
            }
        }
    }
}

/// Ends the guard, once nothing is left, and removes the control groups.
unsafe fn end(groups: &[[CString; 2]]) -> ! {
    // SAFETY: bare system calls with paths that end in NUL.
    unsafe {
        for [folder, _] in groups {
            // The kernel may need a moment to let go of those that have just ended.
            for _ in 0..500 {
                if libc::rmdir(folder.as_ptr()) == 0 || *libc::__errno_location() != libc::EBUSY {
                    break;
                }
                libc::poll(std::ptr::null_mut(), 0, 2);
            }
        }
        libc::_exit(0)
    }
}

/// Calls `each` for every child of the guard. A kernel without `/proc/*/children` shows none:
/// then only the system and its process group can be reached.
unsafe fn for_each_child(mut each: impl FnMut(i32)) {
    // SAFETY: bare system calls on a descriptor and a buffer of our own.
    unsafe {
        let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY);
        if fd < 0 {
            return;
        }
        let mut buffer = [0u8; 4096];
        let mut pid = 0;
        loop {
            let n = libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len());
            if n <= 0 {
                break;
            }
            for &byte in &buffer[..n as usize] {
                if byte.is_ascii_digit() {
                    pid = pid * 10 + i32::from(byte - b'0');
                } else if pid != 0 {
                    each(pid);
                    pid = 0;
                }
            }
        }
        libc::close(fd);
    }
}
