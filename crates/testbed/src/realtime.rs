//! Timer slack, real-time priority and pinning of the calling thread; idle processors that poll.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

/// Sets how late the kernel may wake the calling thread to save power, in nanoseconds (the
/// kernel's default is 50,000). 1 makes a sleep end some 5 µs late instead of 55 µs, at no cost.
///
/// # Errors
/// If the kernel refuses, which it does not for any value above 0.
pub fn set_timer_slack(ns: u64) -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(ns))?)
}

/// Gives the calling thread a real-time priority from 1 to 99 (`SCHED_FIFO`), so that it runs as
/// soon as it is ready. 10 is enough. Never for a thread that spins: its processor would run
/// nothing else.
///
/// # Errors
/// Usually because this process lacks the right; the hint says how to get it.
pub fn set_realtime(priority: u8) -> Result<(), SchedulingError> {
    let Err(error) = schedule(libc::SCHED_FIFO, i32::from(priority)) else {
        return Ok(());
    };
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => {
            "allow it with `setcap cap_sys_nice+ep` on the program, a line `USER - rtprio 99` in \
             /etc/security/limits.conf, or run as root"
        }
        Some(libc::EINVAL) => "a priority is a number from 1 to 99",
        _ => "run without real-time priority",
    };
    Err(SchedulingError {
        what: format!("no real-time priority {priority}: {error}"),
        hint: hint.to_owned(),
    })
}

/// Lets the calling thread run only when a processor has nothing else to do (`SCHED_IDLE`).
///
/// # Errors
/// If the system does not allow it.
pub fn only_when_idle() -> io::Result<()> {
    schedule(libc::SCHED_IDLE, 0)
}

/// Gives the calling thread a scheduling policy. In musl `sched_setscheduler` always fails.
fn schedule(policy: i32, priority: i32) -> io::Result<()> {
    // SAFETY: parameters of zeros are valid, and the calling thread lives.
    let error = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::pthread_setschedparam(libc::pthread_self(), policy, &parameters)
    };
    match error {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// As long as it lives, idle processors of this machine poll for work instead of sleeping.
#[derive(Debug)]
pub struct IdlePolling {
    /// The kernel forgets the wish when the file is closed.
    _wish: File,
}

/// Has idle processors of this machine poll for work: a processor that sleeps takes longer to begin what it is woken
/// for, under a hypervisor tens of microseconds. It is the wish for a wake-up latency of 0 (the kernel's
/// `Documentation/power/pm_qos_interface.rst`), in the place of all programs' wishes.
///
/// # Errors
/// Usually because this process lacks the right, or because a container lacks the device; the hint says so.
pub fn poll_when_idle() -> Result<IdlePolling, SchedulingError> {
    let device = "/dev/cpu_dma_latency";
    let wish = || {
        let mut file = File::options().read(true).write(true).open(device)?;
        file.write_all(&0i32.to_ne_bytes())?;
        let mut now = [0; 4];
        file.read_exact(&mut now)?;
        match i32::from_ne_bytes(now) {
            0 => Ok(IdlePolling { _wish: file }),
            other => Err(io::Error::other(format!("the kernel says {other} us"))),
        }
    };
    wish().map_err(|error| SchedulingError {
        what: format!("idle processors cannot be kept awake by {device}: {error}"),
        hint: "run as root on a kernel with CONFIG_CPU_IDLE, in a container with this device; or leave \
               poll-when-idle out"
            .to_owned(),
    })
}

/// Pins the calling thread to one processor.
///
/// # Errors
/// If there is no such processor, or this process may not use it; the hint names those it may use.
pub fn pin_to(cpu: usize) -> Result<(), SchedulingError> {
    let usable = usable_cpus();
    let refused = |why: String| SchedulingError {
        what: format!("the thread cannot be pinned to processor {cpu}: {why}"),
        hint: format!("usable here are: {}", list(&usable)),
    };
    if !usable.contains(&cpu) {
        return Err(refused("it is not usable".to_owned()));
    }
    sched_setaffinity(None, &cpu_set(&[cpu])).map_err(|error| refused(error.to_string()))
}

/// The processors that the calling thread may run on, by number.
pub fn usable_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    let all = 0..CpuSet::MAX_CPU;
    all.filter(|cpu| set.is_set(*cpu)).collect()
}

/// Those of these processors that the kernel can have, as it takes them.
pub(crate) fn cpu_set(cpus: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
        set.set(*cpu);
    }
    set
}

/// Processors in words.
pub(crate) fn list(cpus: &[usize]) -> String {
    cpus.iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Why a thread cannot be scheduled as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  hint: {hint}")]
pub struct SchedulingError {
    /// The request that was refused.
    pub what: String,
    pub hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own: the test runner's threads stay as they are.
    fn apart<T: Send>(test: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap())
    }

    #[test]
    fn a_pinned_thread_may_use_one_processor() {
        apart(|| {
            let last = *usable_cpus().last().unwrap();
            pin_to(last).unwrap();
            assert_eq!(usable_cpus(), [last]);
        });
        let error = pin_to(1000).unwrap_err().to_string();
        assert!(
            error.contains("processor 1000") && error.contains("usable here are: "),
            "{error}"
        );
    }

    #[test]
    fn timer_slack_is_set() {
        apart(|| {
            set_timer_slack(1).unwrap();
            // SAFETY: this option takes nothing and returns the number.
            assert_eq!(
                unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) },
                1
            );
        });
    }

    #[test]
    fn an_idle_thread_is_known_to_the_kernel_as_one() {
        let policy = apart(|| {
            only_when_idle().unwrap();
            std::fs::read_to_string("/proc/thread-self/stat").unwrap()
        });
        // Field 41, counted from behind the name (proc_pid_stat(5)).
        let (_, fields) = policy.rsplit_once(')').unwrap();
        let idle = libc::SCHED_IDLE.to_string();
        assert_eq!(fields.split_whitespace().nth(38), Some(idle.as_str()));
    }

    #[test]
    fn an_impossible_priority_is_refused_with_a_hint() {
        let error = apart(|| set_realtime(100)).unwrap_err().to_string();
        assert!(
            error.contains("from 1 to 99") || error.contains("cap_sys_nice"),
            "{error}"
        );
    }
}
