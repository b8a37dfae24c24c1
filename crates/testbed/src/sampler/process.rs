//! Samples a set of processes from outside.

use std::collections::BTreeMap;

use pubgauge_driver::Nanos;
use pubgauge_driver::clock::monotonic_now;
use serde::Serialize;

use super::kernel::{Switches, ThreadFiles, process_cpu_ns, tick_ns};
use crate::limits::{kept_threads, max_open_files};
use crate::procfs::{self, ProcFile, number_in};

/// Samples processes: a fixed set, or a tree of them that grows and shrinks.
///
/// CPU time is read from each process's CPU clock, to the nanosecond, threads that have ended
/// included. That of processes that have ended comes from their parents (`cutime`, `cstime` of
/// `/proc/PID/stat`), to one clock tick (10 ms) each. The sum never decreases.
///
/// Context switches are counted thread by thread: those of a thread that has ended count up to
/// the last sample in which it was seen.
///
/// A sample reads three files and a clock per process, and two files per thread (three in a tree).
#[derive(Debug)]
pub struct ProcessSampler {
    watched: Watched,
    processes: BTreeMap<i32, Process>,
    /// CPU time of processes that were seen and have ended, up to their last sample.
    gone_cpu_ns: u64,
    gone_switches: Switches,
    peak_rss_bytes: u64,
    last_cpu_ns: u64,
    /// The longest waits of threads that have ended, as in [`ProcessSample::longest_waiting_ns`].
    gone_waiting_ns: u64,
    /// Whether a sample has been taken.
    sampled: bool,
    tick_ns: u64,
    /// The largest number of threads whose files stay open between samples.
    most_kept: usize,
}

#[derive(Debug)]
enum Watched {
    DescendantsOf(i32, ProcFile),
    Only(Vec<i32>),
}

#[derive(Debug)]
struct Process {
    stat: ProcFile,
    status: ProcFile,
    io: ProcFile,
    /// Start time: distinguishes a process from a later one of the same number.
    started: u64,
    cpu_ns: u64,
    threads: BTreeMap<i32, Thread>,
}

#[derive(Debug)]
struct Thread {
    files: ThreadFiles,
    /// Whether its files stay open between samples.
    kept: bool,
    cpu_ns: u64,
    /// For how long it had waited for a processor when it was seen first, and at the last sample, ns.
    waited_at_first_ns: u64,
    waited_ns: u64,
    switches: Switches,
}

/// Figures of all watched processes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessSample {
    /// When the sample began, ns of `CLOCK_MONOTONIC`.
    pub at_ns: Nanos,
    /// CPU time since the processes began, ns.
    pub cpu_ns: u64,
    /// Resident memory now, bytes; memory shared by several processes counts in each.
    pub rss_bytes: u64,
    /// The largest of these so far: at the samples, or by the kernel's own high-water mark where
    /// there is one process.
    pub peak_rss_bytes: u64,
    /// Times a thread went to sleep.
    pub voluntary_switches: u64,
    /// Times a thread was pushed off its processor.
    pub involuntary_switches: u64,
    /// Bytes that the kernel was to write to disk for them since they began, those of ended ones whose parent
    /// is among them included; `None` where it does not tell of one.
    pub written_bytes: Option<u64>,
    /// Processes alive.
    pub processes: u32,
    /// Threads alive.
    pub threads: u32,
    /// The thread that ran longest since the last sample.
    pub busiest: Option<BusiestThread>,
    /// For how long the thread that waited most since the first sample was ready and waited for a processor, ns.
    pub longest_waiting_ns: u64,
    /// For how long the thread that waited most since the last sample was ready and waited for a processor, ns.
    pub waiting_since_last_ns: u64,
}

/// The busiest thread between two samples. At one second per second a single-threaded server is at
/// its limit, however idle the other processors are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusiestThread {
    /// Its process.
    pub pid: i32,
    pub tid: i32,
    /// Nanoseconds on a processor since the last sample (in the first: since the thread began), to
    /// one clock tick.
    pub cpu_ns: u64,
}

impl ProcessSampler {
    /// Watches all present and later descendants of `root`, without `root` itself: see
    /// [`crate::Running::root_pid`].
    pub fn descendants_of(root: i32) -> Self {
        let stat = ProcFile::new(format!("/proc/{root}/stat"), true);
        Self::new(Watched::DescendantsOf(root, stat))
    }

    /// Watches only these processes, without their descendants.
    pub fn only(pids: &[i32]) -> Self {
        Self::new(Watched::Only(pids.to_vec()))
    }

    fn new(watched: Watched) -> Self {
        ProcessSampler {
            watched,
            processes: BTreeMap::new(),
            gone_cpu_ns: 0,
            gone_switches: Switches::default(),
            peak_rss_bytes: 0,
            last_cpu_ns: 0,
            gone_waiting_ns: 0,
            sampled: false,
            tick_ns: tick_ns(),
            most_kept: kept_threads(max_open_files()),
        }
    }

    /// Takes a sample. Processes and threads may begin and end meanwhile.
    pub fn sample(&mut self) -> ProcessSample {
        let pids = match &self.watched {
            Watched::DescendantsOf(root, _) => {
                let mut pids = procfs::descendants(*root);
                // The kernel may leave a child out while another ends. One that lives would be counted twice later: as
                // one that has ended, and from its beginning.
                for (pid, process) in &mut self.processes {
                    let lives = |process: &mut Process| {
                        read_stat(&mut process.stat)
                            .is_some_and(|stat| stat.started == process.started)
                    };
                    if !pids.contains(pid) && lives(process) {
                        pids.push(*pid);
                    }
                }
                pids
            }
            Watched::Only(pids) => pids.clone(),
        };
        let mut sample = ProcessSample {
            at_ns: monotonic_now(),
            written_bytes: Some(0),
            ..ProcessSample::default()
        };
        let threads = self.processes.values().flat_map(|p| p.threads.values());
        let mut kept = threads.filter(|thread| thread.kept).count();
        let mut reaped_ns = 0;
        let mut high_water = 0;
        let mut seen = Vec::with_capacity(pids.len());
        for pid in pids {
            let Some(stat) = self.refresh(pid) else {
                continue;
            };
            let process = self
                .processes
                .get_mut(&pid)
                .expect("refresh has put it there");
            seen.push(pid);
            // A process that has just ended has no clock any more: its last reading is kept.
            process.cpu_ns = process_cpu_ns(pid).unwrap_or(0).max(process.cpu_ns);
            sample.cpu_ns += process.cpu_ns;
            if matches!(self.watched, Watched::DescendantsOf(..)) {
                reaped_ns += stat.reaped_ticks * self.tick_ns;
            }
            let mut buffer = [0; 4096];
            let status = process.status.read(&mut buffer).unwrap_or_default();
            let kib = |name| number_in(status, name).unwrap_or(0) * 1024;
            sample.rss_bytes += kib("VmRSS:");
            high_water = kib("VmHWM:").max(high_water);
            let io = process.io.read(&mut buffer).unwrap_or_default();
            let written = number_in(io, "write_bytes:");
            sample.written_bytes = sample.written_bytes.zip(written).map(|(a, b)| a + b);
            sample.processes += 1;
            let (most, began) = (self.most_kept, self.sampled);
            let gone = (&mut self.gone_switches, &mut self.gone_waiting_ns);
            process.sample_threads(pid, (most, &mut kept), began, gone, &mut sample);
        }
        self.sampled = true;
        self.forget_all_but(&seen);
        sample.longest_waiting_ns = sample.longest_waiting_ns.max(self.gone_waiting_ns);
        if let Watched::DescendantsOf(_, stat) = &mut self.watched {
            reaped_ns += read_stat(stat).map_or(0, |stat| stat.reaped_ticks) * self.tick_ns;
        }
        // The time of an ended process is known in two ways: exactly up to its last sample, and to
        // a clock tick from its parent.
        sample.cpu_ns += reaped_ns.max(self.gone_cpu_ns);
        self.last_cpu_ns = self.last_cpu_ns.max(sample.cpu_ns);
        sample.cpu_ns = self.last_cpu_ns;
        sample.voluntary_switches += self.gone_switches.voluntary;
        sample.involuntary_switches += self.gone_switches.involuntary;
        self.peak_rss_bytes = self.peak_rss_bytes.max(sample.rss_bytes).max(high_water);
        sample.peak_rss_bytes = self.peak_rss_bytes;
        sample
    }

    /// Open descriptors of the processes that the last sample saw; `None` where they may not be counted, or none is alive. A
    /// look at each descriptor: not for every sample.
    pub fn count_descriptors(&self) -> Option<u64> {
        let of_process = |pid: &i32| match std::fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(all) => Some(all.count() as u64),
            // It has ended since.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(0),
            Err(_) => None,
        };
        let counts: Option<Vec<u64>> = self.processes.keys().map(of_process).collect();
        counts
            .map(|counts| counts.iter().sum())
            .filter(|all| *all > 0)
    }

    /// Makes sure that `pid` is among the processes, as the process that now has this number.
    fn refresh(&mut self, pid: i32) -> Option<Stat> {
        if let Some(process) = self.processes.get_mut(&pid) {
            let stat = read_stat(&mut process.stat);
            if let Some(stat) = stat.filter(|stat| stat.started == process.started) {
                return Some(stat);
            }
            self.forget(pid);
        }
        let mut file = ProcFile::new(format!("/proc/{pid}/stat"), true);
        let stat = read_stat(&mut file)?;
        self.processes.insert(
            pid,
            Process {
                stat: file,
                status: ProcFile::new(format!("/proc/{pid}/status"), true),
                io: ProcFile::new(format!("/proc/{pid}/io"), false),
                started: stat.started,
                cpu_ns: 0,
                threads: BTreeMap::new(),
            },
        );
        Some(stat)
    }

    fn forget_all_but(&mut self, seen: &[i32]) {
        let known: Vec<i32> = self.processes.keys().copied().collect();
        for pid in known.into_iter().filter(|pid| !seen.contains(pid)) {
            self.forget(pid);
        }
    }

    fn forget(&mut self, pid: i32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.gone_cpu_ns += process.cpu_ns;
            for thread in process.threads.values() {
                self.gone_switches.add(thread.switches);
                self.gone_waiting_ns = self.gone_waiting_ns.max(thread.waited());
            }
        }
    }
}

impl Thread {
    /// For how long it has waited for a processor since it was seen first, ns.
    fn waited(&self) -> u64 {
        self.waited_ns.saturating_sub(self.waited_at_first_ns)
    }
}

impl Process {
    /// `began`: whether there was a sample before, so that a thread that is not known has begun since.
    fn sample_threads(
        &mut self,
        pid: i32,
        (most_kept, kept): (usize, &mut usize),
        began: bool,
        (gone, gone_waiting_ns): (&mut Switches, &mut u64),
        sample: &mut ProcessSample,
    ) {
        let tids = procfs::threads(pid);
        self.threads.retain(|tid, thread| {
            let lives = tids.contains(tid);
            if !lives {
                gone.add(thread.switches);
                *gone_waiting_ns = thread.waited().max(*gone_waiting_ns);
            }
            lives
        });
        for tid in tids {
            let mut seen_first = false;
            let thread = self.threads.entry(tid).or_insert_with(|| {
                seen_first = true;
                let keep = *kept < most_kept;
                *kept += usize::from(keep);
                Thread {
                    files: ThreadFiles::new(pid, tid, keep),
                    kept: keep,
                    cpu_ns: 0,
                    waited_at_first_ns: 0,
                    waited_ns: 0,
                    switches: Switches::default(),
                }
            });
            sample.threads += 1;
            if let Some(switches) = thread.files.switches() {
                thread.switches = switches;
            }
            sample.voluntary_switches += thread.switches.voluntary;
            sample.involuntary_switches += thread.switches.involuntary;
            let Some((cpu_ns, waited_ns)) = thread.files.run_and_wait() else {
                continue;
            };
            let ran = cpu_ns.saturating_sub(thread.cpu_ns);
            thread.cpu_ns = cpu_ns;
            if seen_first && !began {
                thread.waited_at_first_ns = waited_ns;
                thread.waited_ns = waited_ns;
            }
            let waited = waited_ns.saturating_sub(thread.waited_ns);
            thread.waited_ns = waited_ns;
            sample.waiting_since_last_ns = waited.max(sample.waiting_since_last_ns);
            sample.longest_waiting_ns = thread.waited().max(sample.longest_waiting_ns);
            if sample
                .busiest
                .as_ref()
                .is_none_or(|busiest| ran > busiest.cpu_ns)
            {
                sample.busiest = Some(BusiestThread {
                    pid,
                    tid,
                    cpu_ns: ran,
                });
            }
        }
    }
}

impl Switches {
    fn add(&mut self, other: Switches) {
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
    }
}

struct Stat {
    started: u64,
    /// User and system time of its ended descendants that were waited for.
    reaped_ticks: u64,
}

fn read_stat(file: &mut ProcFile) -> Option<Stat> {
    let mut buffer = [0; 1024];
    let text = file.read(&mut buffer).ok()?;
    // The name in parentheses may hold any character, parentheses included.
    let (_, rest) = text.rsplit_once(") ")?;
    // From field 3, the state, on.
    let mut fields = rest.split_ascii_whitespace();
    let cutime: u64 = fields.nth(13)?.parse().ok()?;
    let cstime: u64 = fields.next()?.parse().ok()?;
    let started = fields.nth(4)?.parse().ok()?;
    Some(Stat {
        started,
        reaped_ticks: cutime + cstime,
    })
}
