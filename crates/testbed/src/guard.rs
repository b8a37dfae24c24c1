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
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};

use crate::realtime::cpu_set;

/// The command to start.
pub(crate) struct Spec {
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    /// No input if absent.
    pub stdin: Option<File>,
    pub stdout: File,
    pub stderr: File,
    pub bounds: Bounds,
}

/// Where a system runs, and what it may use of the machine: everything by default.
#[derive(Default)]
pub(crate) struct Bounds {
    /// The file of a network namespace to run in.
    pub network: Option<File>,
    /// The processors to stay on; all if empty.
    pub cpus: Vec<usize>,
    pub address_space_bytes: Option<u64>,
    pub open_files: Option<u64>,
    /// Whether files and folders that it makes are for this user only, whatever the umask of the user's shell.
    pub private: bool,
    /// Control groups: the folder of each, which the guard removes at its end, and the file through
    /// which the system enters it.
    pub groups: Vec<[CString; 2]>,
    /// Groups that other processes are in as well: pubgauge removes them, and where it was killed the
    /// guard does, which waits for those of the others to do the same.
    pub shared_groups: Vec<[CString; 2]>,
}

/// A report of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The system runs as this process.
    Started(i32),
    /// The system itself ended with this wait status; descendants may live on.
    Exited(i32),
    /// A signal that was asked for has been sent to every process.
    Signalled,
    /// The system and all its descendants are gone, and so is the guard.
    Gone,
}

const STARTED: u8 = 1;
const EXITED: u8 = 2;
const SIGNAL: u8 = 3;
const KILL: u8 = 4;
const SIGNALLED: u8 = 5;
const MESSAGE: usize = 5;

/// pubgauge's end of the socket to a guard.
pub(crate) struct Guard {
    child: Child,
    socket: OwnedFd,
}

impl Guard {
    /// Starts a system under a guard. The error is that of the system's `execve`.
    pub fn spawn(spec: Spec) -> io::Result<Guard> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;

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
        let (guard_end, bounds) = (theirs.as_raw_fd(), spec.bounds);
        // SAFETY: `split` only makes async-signal-safe calls.
        unsafe { command.pre_exec(move || split(guard_end, &bounds)) };
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
        let mut waiting = [PollFd::new(&self.socket, PollFlags::IN)];
        let left = Timespec::try_from(time_out.min(Duration::from_secs(60))).ok()?;
        if poll(&mut waiting, Some(&left)).ok()? == 0 {
            return None;
        }
        let mut message = [0; MESSAGE];
        let received = recv(&self.socket, &mut message[..], RecvFlags::DONTWAIT);
        let (what, value) = decode(message);
        match (received.map(|(_, length)| length), what) {
            (Ok(0) | Err(Errno::CONNRESET), _) => Some(Report::Gone),
            (Ok(MESSAGE), STARTED) => Some(Report::Started(value)),
            (Ok(MESSAGE), EXITED) => Some(Report::Exited(value)),
            (Ok(MESSAGE), SIGNALLED) => Some(Report::Signalled),
            _ => None,
        }
    }

    /// Sends a signal to the system's process group and to descendants that left it.
    pub fn signal(&self, signal: i32) {
        self.send(SIGNAL, signal);
    }

    /// Kills the system and every descendant.
    pub fn kill(&self) {
        self.send(KILL, 0);
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

    fn send(&self, what: u8, value: i32) {
        // A guard that is gone has nothing left to signal: the error can be ignored.
        let _ = send(&self.socket, &encode(what, value), SendFlags::NOSIGNAL);
    }
}

fn encode(what: u8, value: i32) -> [u8; MESSAGE] {
    let [a, b, c, d] = value.to_le_bytes();
    [what, a, b, c, d]
}

fn decode([what, a, b, c, d]: [u8; MESSAGE]) -> (u8, i32) {
    (what, i32::from_le_bytes([a, b, c, d]))
}

impl Bounds {
    /// Applies them to the calling process. Async-signal-safe.
    fn apply(&self) -> io::Result<()> {
        if let Some(network) = &self.network {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        }
        if self.private {
            // SAFETY: it takes no pointer and always succeeds.
            unsafe { libc::umask(0o077) };
        }
        for [_, procs] in self.groups.iter().chain(&self.shared_groups) {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::open(procs.as_c_str(), flags, Mode::empty())?;
            // 0 is who writes.
            rustix::io::write(&file, b"0")?;
        }
        if !self.cpus.is_empty() {
            sched_setaffinity(None, &cpu_set(&self.cpus))?;
        }
        for (resource, limit) in [
            (Resource::As, self.address_space_bytes),
            (Resource::Nofile, self.open_files),
        ] {
            if limit.is_some() {
                let (current, maximum) = (limit, limit);
                setrlimit(resource, Rlimit { current, maximum })?;
            }
        }
        Ok(())
    }
}

/// Splits the forked child in two: the guard, which does not return, and the system, which does,
/// to be executed.
fn split(socket: RawFd, bounds: &Bounds) -> io::Result<()> {
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
                bounds.apply()
            }
            system => {
                libc::setpgid(system, system);
                watch(socket, system, bounds)
            }
        }
    }
}

/// The guard's event loop.
unsafe fn watch(socket: RawFd, system: i32, bounds: &Bounds) -> ! {
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
        send_raw(STARTED, system);

        let mut polls = [0, children].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let mut lives = true;
        loop {
            while reap(system, &mut lives, bounds, libc::WNOHANG) {}
            libc::poll(polls.as_mut_ptr(), 2, -1);
            if polls[1].revents != 0 {
                let mut sink = [0u8; 1024];
                libc::read(children, sink.as_mut_ptr().cast(), sink.len());
            }
            if polls[0].revents != 0 {
                let mut message = [0u8; MESSAGE];
                let n = libc::recv(0, message.as_mut_ptr().cast(), MESSAGE, 0);
                let (what, value) = decode(message);
                match (n, what) {
                    (5, SIGNAL) => {
                        signal_all(system, lives, value);
                        // A stopped process would take no notice.
                        if value != libc::SIGSTOP {
                            signal_all(system, lives, libc::SIGCONT);
                        }
                        send_raw(SIGNALLED, value);
                    }
                    // Also when pubgauge is gone: `recv` then gives 0 or an error.
                    _ => kill_all(system, lives, bounds),
                }
            }
        }
    }
}

unsafe fn send_raw(what: u8, value: i32) {
    let message = encode(what, value);
    // SAFETY: the buffer is as long as said.
    unsafe { libc::send(0, message.as_ptr().cast(), MESSAGE, libc::MSG_NOSIGNAL) };
}

/// Reaps a child that ended, and waits for one unless the options are `WNOHANG`: `false` if there is none then.
/// Ends the guard when no child is left.
unsafe fn reap(system: i32, lives: &mut bool, bounds: &Bounds, options: i32) -> bool {
    let mut status = 0;
    // SAFETY: `status` is writable.
    unsafe {
        match libc::waitpid(-1, &mut status, options) {
            0 => return false,
            -1 if *libc::__errno_location() == libc::EINTR => {}
            -1 => end_guard(bounds),
            pid if pid == system => {
                *lives = false;
                send_raw(EXITED, status);
            }
            _ => {}
        }
    }
    true
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
unsafe fn kill_all(system: i32, mut lives: bool, bounds: &Bounds) -> ! {
    // SAFETY: as in `signal_all`.
    unsafe {
        loop {
            if lives {
                libc::kill(-system, libc::SIGKILL);
            }
            for_each_child(|pid| {
                libc::kill(pid, libc::SIGKILL);
            });
            reap(system, &mut lives, bounds, 0);
        }
    }
}

/// Ends the guard, once nothing is left, and removes the control groups.
unsafe fn end_guard(bounds: &Bounds) -> ! {
    // SAFETY: bare system calls with paths that end in NUL, and a buffer of our own.
    unsafe {
        let mut byte = 0u8;
        let peeked = libc::recv(
            0,
            std::ptr::from_mut(&mut byte).cast(),
            1,
            libc::MSG_PEEK | libc::MSG_DONTWAIT,
        );
        let is_alone = peeked == 0;
        let shared = bounds.shared_groups.iter().filter(|_| is_alone);
        for [folder, _] in bounds.groups.iter().chain(shared) {
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
