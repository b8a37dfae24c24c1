//! Processor time, user and system together.

use std::process::Child;
use std::time::Duration;

/// Of this thread so far.
pub fn of_thread() -> Duration {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `ts` is a valid, writable timespec and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut ts) };
    Duration::new(ts.tv_sec as u64, ts.tv_nsec as u32)
}

/// Of `count` messages, how many for each second that this thread has had since it had `before`.
pub fn per_second(count: u64, before: Duration) -> f64 {
    count as f64 / (of_thread() - before).as_secs_f64()
}

/// Of this process so far, with all its threads, those of libraries too, s.
pub fn of_this_process() -> f64 {
    // SAFETY: all zeros are a valid rusage, which getrusage fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &mut usage), 0);
        usage
    };
    seconds(&usage)
}

/// Of a child from its start to its end, which this waits for after closing its standard input, s.
pub fn of_ended(child: &mut Child) -> f64 {
    drop(child.stdin.take());
    let pid = child.id() as i32;
    let mut status = 0;
    // SAFETY: all zeros are a valid rusage; the child is ours and nobody else waits for it; both
    // pointers outlive the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(pid, &mut status, 0, &mut usage), pid);
        usage
    };
    assert!(status == 0, "a process ended with status {status}");
    seconds(&usage)
}

fn seconds(usage: &libc::rusage) -> f64 {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Of another process so far, with all its threads, to the kernel's tick of mostly 10 ms, s.
pub fn of_process(pid: i32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let (_, fields) = stat.rsplit_once(") ").expect("the name in brackets");
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
    // SAFETY: sysconf has no preconditions.
    let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    (ticks(11) + ticks(12)) / per_s
}

/// Of another process's first thread so far, to the nanosecond.
pub fn of_first_thread(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"));
    let text = text.expect("the process runs");
    let (ns, _) = text.split_once(' ').expect("figures");
    Duration::from_nanos(super::parse(ns))
}
