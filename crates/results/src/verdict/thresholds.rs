//! The limits of the rules. Changing one changes verdicts of all later runs: note it in the change
//! log.

/// Share of time for which the busiest worker may run in a paced trial. ScalAgent 2015
/// accepts clients up to 70 % of their processors.
pub const PACED_RUNNING: f64 = 0.70;
/// Share of time for which the busiest worker may run in a flat-out trial; above it the
/// worker itself is what cannot go faster.
pub const FLAT_OUT_RUNNING: f64 = 0.90;
/// Share of time for which a worker may be ready and wait for a processor.
pub const WAITING: f64 = 0.20;
/// Cores in use from which a system has at least one thread that is never idle.
pub const SYSTEM_BUSY_CORES: f64 = 0.90;
/// Cores in use up to which a system can be limited by one single thread.
pub const SINGLE_THREAD_CORES: f64 = 1.05;
/// Share of all processors, client and system together, from which the machine is full.
pub const MACHINE_BUSY: f64 = 0.95;
/// Share of all processors that other programs may keep busy on a machine that is almost full.
pub const OTHERS_BUSY: f64 = 0.25;
/// Share of all processors, those that other programs use included, from which a machine is almost full.
/// Time spent in interrupts is not included.
pub const MACHINE_CROWDED: f64 = 0.85;
/// Median send lag as a share of median latency from which the median says more about the
/// client than about the system.
pub const LAG_SHARE: f64 = 0.10;
/// Median send lag up to which it is ignored, in nanoseconds.
pub const LAG_FLOOR_NS: u64 = 100_000;
/// 99th percentile of send lag up to which it is ignored, in nanoseconds.
pub const LAG_TAIL_FLOOR_NS: u64 = 1_000_000;
/// Share of time for which a late publisher must have run or waited to be the cause itself; below
/// it the publisher slept because the system held it back.
pub const LAG_AT_FAULT: f64 = 0.50;
/// Growth of the backlog over the measurement, as a share of the deliveries due in that
/// time, from which it is material.
pub const BACKLOG_SHARE: f64 = 0.05;
/// Growth of the backlog, as a share of the deliveries due, that is material if the backlog is
/// long ([`BACKLOG_SECONDS`]) or latency rises with it ([`LATENCY_FACTOR`]).
pub const BACKLOG_SHARE_MINOR: f64 = 0.01;
/// Backlog at the end, in seconds of delivered traffic, from which it is long.
pub const BACKLOG_SECONDS: f64 = 1.0;
/// Longest latency as a share of the time the backlog needs to empty, below which the backlog is no
/// queue but messages under way. Used where records are too few for a slope.
pub const QUEUE_DELAY_SHARE: f64 = 0.2;
/// Messages by which a backlog must grow at least; less growth is chance.
pub const BACKLOG_FLOOR: f64 = 10.0;
/// Slope divided by its standard error from which growth is not chance.
pub const SLOPE_SIGNIFICANCE: f64 = 3.0;
/// Probability of a slope, by Student's distribution, below which growth of any size counts
/// although nothing else confirms it: that of five standard errors among many records.
pub const SLOPE_CHANCE_ALONE: f64 = 3e-7;
/// Records that are needed for growth of any size to count.
pub const RECORDS_ALONE: usize = 8;
/// Slope of the second half as a share of the whole slope, from which growth continues.
pub const SLOPE_LASTS: f64 = 0.5;
/// Rise of median latency, as a share of what it was at first, that is material by itself.
pub const LATENCY_RISE_SHARE: f64 = 0.05;
/// Factor between the median latencies of the first and the last quarter from which they differ.
pub const LATENCY_FACTOR: f64 = 2.0;
/// Change of median latency up to which it is ignored, in nanoseconds.
pub const LATENCY_FLOOR_NS: f64 = 100_000.0;
/// Share of due messages that may be left unsent or be refused.
pub const UNSENT_SHARE: f64 = 0.01;
/// Coefficient of variation of the delivery rate, less that of chance (Poisson).
pub const RATE_VARIATION: f64 = 0.25;
/// Difference between the delivery rates of the two halves, as a share of the larger.
pub const HALVES_DIFFER: f64 = 0.20;
/// The same for measurements too short for a fair judgement of variation.
pub const HALVES_DIFFER_SHORT: f64 = 0.50;
/// Seconds of measurement below which variation from record to record is not judged.
pub const SHORT_S: f64 = 5.0;
/// Share of the measurement for which a system that has something to deliver must deliver nothing
/// to count as stalled.
pub const SILENCE_SHARE: f64 = 0.10;
/// Such a silence as a multiple of median latency.
pub const SILENCE_FACTOR: f64 = 10.0;
/// Shortest such silence, in nanoseconds.
pub const SILENCE_FLOOR_NS: f64 = 200e6;
/// Share of the measurement for which a worker, or the whole machine, may be stalled.
pub const STALLED: f64 = 0.05;
/// The same where the longest stall is at least half of the 99th percentile of latency.
pub const STALLED_TAIL: f64 = 0.01;
/// Share of deliveries before their sending time from which the clock cannot be trusted.
pub const NEGATIVE_SHARE: f64 = 0.01;
