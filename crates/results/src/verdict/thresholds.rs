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
/// Share of its processor time from which a client host of a given size is at the end of it.
pub const HOST_USED: f64 = 0.90;
/// Share of what a client host of a given size uses that may be pubgauge's own.
pub const OWN_COST: f64 = 0.10;
/// Length of the periods in which a host of a given size gets its processor time, in nanoseconds.
pub const QUOTA_PERIOD_NS: f64 = 10e6;
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
/// Whole cycles of arrivals, with what is delivered in lumps, that a measurement must have to tell whether what
/// was offered was carried. Two do not tell a pause from a queue.
pub const CYCLES: f64 = 3.0;
/// Share of the length that is needed for so many cycles which will do: three cycles and a little of what else
/// swings.
pub const CYCLES_SLACK: f64 = 0.9;
/// Share of the measurement from which a silence of the system makes its deliveries lumps.
pub const LUMP_SHARE: f64 = 0.01;
/// Longest silence as a share of a flat-out measurement: as much of the rate may have been cut off at either end.
pub const LUMP_OF_RATE: f64 = 0.05;
/// Rise of the lowest backlog from one span to the next, as a share of the deliveries due in a span, that is
/// growth if it never ends.
pub const RISE_SHARE: f64 = 0.01;
/// Messages by which the lowest backlog has to rise from one span to the next; fewer are no growth.
pub const RISE_FLOOR: f64 = 3.0;
/// Rise of the lowest backlog over the measurement, as a share of the deliveries due meanwhile, up to which what
/// was offered was carried, however it rose.
pub const RISE_UNCLEAR: f64 = 0.025;
/// Messages up to which a rise of the lowest backlog over the measurement is nothing.
pub const RISE_NOTHING: f64 = 2.0;
/// Share of the longest delay of deliveries under a load that changes, from which the climb to it begins.
pub const CLIMB_FROM: f64 = 0.05;
/// Share of the measurement that such a climb takes at the least to be a queue.
pub const CLIMB_SHARE: f64 = 0.05;
/// Points of the course that it takes at the least.
pub const CLIMB_POINTS: usize = 5;
/// Share of the highest load of all that it has in it at the least.
pub const CLIMB_HIGH: f64 = 0.9;
/// Its growth as a multiple of how much arrivals and service at random differ meanwhile (standard deviation).
pub const CLIMB_DEVIATIONS: f64 = 4.0;
/// Backlog at the end beyond all that was seen before, as a share of the deliveries due, from which the
/// measurement ended too early.
pub const END_UNCLEAR: f64 = 0.04;
/// Share of a single cycle of arrivals in which there was no backlog, from which one cycle is enough.
pub const RESTED: f64 = 0.15;
/// Slots of a party's course that are needed to tell by their ranks whether it rises.
pub const SLOTS_RANKED: usize = 8;
/// Chance, among all parties, of a rise by ranks that still counts as one.
pub const RISE_BY_CHANCE: f64 = 0.01;
/// Share of a flat-out measurement in which buffers fill.
pub const FILLING: f64 = 0.1;
/// Messages by which a backlog must grow at least; less growth is chance.
pub const BACKLOG_FLOOR: f64 = 10.0;
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
/// Difference of the halves in measurements too short for a fair judgement of variation.
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
/// Share of the measurement for which a worker, or the whole machine, may be stalled where the longest stall is at least half of
/// the 99th percentile of latency.
pub const STALLED_TAIL: f64 = 0.01;
/// Share of all processors that other programs must have kept busy to have kept one message in a hundred waiting: a thread
/// waits for them only where no other processor is free.
pub const OTHERS_TAIL: f64 = 0.05;
/// Share of all processors' time from which what a hypervisor takes counts: one message in fifty may be late for it,
/// and rates that processors limit are as much too low.
pub const STOLEN: f64 = 0.02;
/// Share of deliveries before their sending time from which the clock cannot be trusted.
pub const NEGATIVE_SHARE: f64 = 0.01;
/// Share of the measurement for which publishers must have been held back for their window to be the limit, mean over all.
pub const WINDOW_BLOCKED: f64 = 0.5;
/// Share of the windows of all publishers that must have been in use.
pub const WINDOW_USED: f64 = 0.7;
/// Median time to an acknowledgement, as a multiple of the shortest one of the trial, up to which nothing waited in the
/// system. At its end, a system has as much under way as the window allows: the median is longer by what exceeds its
/// capacity. The rest of the factor is for paths and machines that are not equally fast all the time, and for sides that
/// wait for one more turn of the path (Nagle's algorithm, RFC 896, takes it to 2).
pub const WINDOW_WAIT: f64 = 2.2;
/// Share of the messages that tells how long messages take at least: they waited least.
pub const LEAST_DELAYED: f64 = 0.10;
/// Longest such time, as a share of the measurement, that is taken off a backlog.
pub const DELAY_SHARE: f64 = 0.20;
/// Factor by which a queue must have lengthened the delay, from what it was when the load began, to be told from a path
/// that only became slower.
pub const QUEUE_FACTOR: f64 = 2.0;
/// Factor by which a queue must have lengthened the delay from the first to the last moment of the measurement: what
/// is told of the time before is assumed.
pub const QUEUE_SEEN: f64 = 1.5;
/// Growth of the delay as a share of the time that passed, from which it is a queue whatever it was before.
pub const QUEUE_SHARE: f64 = 0.10;
/// Growth of the delay, as a share of the time that passed, up to which one that has not grown by [`QUEUE_FACTOR`] is
/// no queue: no load is known as exactly.
pub const DRIFT_SHARE: f64 = 0.001;
/// Share of the deliveries of a record that may be of the warm-up where its latency stands for a part of a cycle.
pub const OF_WARM_UP: f64 = 0.10;
/// Change of the rate due from the first to the last quarter, as a share, up to which latencies are of the same load.
pub const SAME_LOAD: f64 = 0.20;
/// Share of the deliveries that may come after the measurement's end as single stragglers.
const STRAGGLERS_SHARE: f64 = 0.005;

/// How many of so many deliveries are single stragglers at the most.
pub fn stragglers_at_most(deliveries: u64) -> f64 {
    (STRAGGLERS_SHARE * deliveries as f64).max(1.0)
}

/// Change of a flat-out rate within a measurement that makes it two rates, as a share of the larger.
pub const RATE_CHANGE: f64 = 0.08;
/// Probability of such a change, where there is none, below which it is told.
pub const RATE_CHANGE_CHANCE: f64 = 0.002;
/// Records from which chance is known well enough for that.
pub const RATE_CHANGE_RECORDS: usize = 30;
/// Probability of a change by chance where there are fewer records.
pub const RATE_CHANGE_CHANCE_OF_FEW: f64 = 0.0002;
/// Probability up to which fewer records do not tell whether there is such a change.
pub const RATE_CHANGE_DOUBT: f64 = 0.01;
