//! Verdicts: whether the figures of a trial can be trusted, by written rules over recorded
//! figures.
//!
//! [`judge`] is pure: the same trial always gets the same verdict, and a stored trial can be
//! judged again. Every rule that applies leaves a reason with the figures that decided it; the
//! status is the worst of them in the order of [`Status`]: valid, client-bound, unsteady,
//! overloaded, lossy, broken. `docs/verdicts.md` says the same in prose.
//!
//! The steady-state rule is that of ScalAgent, *Benchmark of MQTT servers* (2015), section 4:
//! delivered equals offered, steady processor load and latency; its 70 % limit on client
//! processors stands in [`thresholds::PACED_RUNNING`].

use pubgauge_driver::{OnFull, Reliability};

use crate::model::{Second, Status, Trial, Verdict};

mod client;
mod series;
#[cfg(test)]
mod tests;

/// The limits of the rules. Changing one changes what every later run is worth: say so in the
/// change log.
pub mod thresholds {
    /// Share of time for which the busiest worker may run in a paced trial. ScalAgent 2015
    /// accepts clients up to 70 % of their processors.
    pub const PACED_RUNNING: f64 = 0.70;
    /// Share of time for which the busiest worker may run in a flat-out trial; above it the
    /// worker itself is what cannot go faster.
    pub const FLAT_OUT_RUNNING: f64 = 0.90;
    /// Share of time for which a worker may be ready and wait for a processor.
    pub const WAITING: f64 = 0.20;
    /// Cores in use from which a system has at least one thread that never rests.
    pub const SYSTEM_BUSY_CORES: f64 = 0.90;
    /// Cores in use up to which a system can be limited by one single thread.
    pub const SINGLE_THREAD_CORES: f64 = 1.05;
    /// Share of all processors, client and system together, from which the machine is full.
    pub const MACHINE_BUSY: f64 = 0.95;
    /// Median send lag as a share of median latency from which the median says more about the
    /// client than about the system.
    pub const LAG_SHARE: f64 = 0.10;
    /// Median send lag that never matters, in nanoseconds.
    pub const LAG_FLOOR_NS: u64 = 100_000;
    /// 99th percentile of send lag that never matters, in nanoseconds.
    pub const LAG_TAIL_FLOOR_NS: u64 = 1_000_000;
    /// Share of time for which a late publisher must have run or waited to be at fault itself;
    /// below it the publisher slept because the system held it back.
    pub const LAG_AT_FAULT: f64 = 0.50;
    /// Growth of the backlog over the measurement, as a share of the deliveries due in that
    /// time, from which it is material.
    pub const BACKLOG_SHARE: f64 = 0.05;
    /// Growth of the backlog, as a share of the deliveries due, that is material if the backlog is
    /// long ([`BACKLOG_SECONDS`]) or latency rises with it ([`LATENCY_FACTOR`]).
    pub const BACKLOG_SHARE_MINOR: f64 = 0.01;
    /// Backlog at the end, in seconds of delivered traffic, from which it is long.
    pub const BACKLOG_SECONDS: f64 = 1.0;
    /// Longest latency as a share of the time the backlog needs to empty, below which the backlog
    /// is no queue but messages under way. Applied where records are too few for a slope.
    pub const QUEUE_DELAY_SHARE: f64 = 0.2;
    /// Messages by which a backlog must grow at all; below it is chance.
    pub const BACKLOG_FLOOR: f64 = 10.0;
    /// Slope divided by its standard error from which growth is no chance.
    pub const SLOPE_SIGNIFICANCE: f64 = 3.0;
    /// Factor by which the median latency of the last quarter exceeds that of the first.
    pub const LATENCY_FACTOR: f64 = 2.0;
    /// Change of median latency that never matters, in nanoseconds.
    pub const LATENCY_FLOOR_NS: f64 = 100_000.0;
    /// Share of due messages that may be left unsent or be refused.
    pub const UNSENT_SHARE: f64 = 0.01;
    /// Coefficient of variation of the delivery rate, chance (Poisson) taken off.
    pub const RATE_VARIATION: f64 = 0.25;
    /// Difference between the delivery rates of the two halves, as a share of the larger.
    pub const HALVES_DIFFER: f64 = 0.20;
    /// The same for measurements too short for a fair judgement of variation.
    pub const HALVES_DIFFER_SHORT: f64 = 0.50;
    /// Seconds of measurement below which variation from record to record is not judged.
    pub const SHORT_S: f64 = 5.0;
    /// Share of deliveries before their sending time from which the clock cannot be trusted.
    pub const NEGATIVE_SHARE: f64 = 0.01;
}

/// What the figures of a trial do not say themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// Why the trial could not be run to its end: not ready in time, interrupted. In words that
    /// end a sentence "not run as planned: ...".
    pub not_run: Option<String>,
    /// Processes of the system that ended during the trial, each with how.
    pub system_died: Vec<String>,
    /// The study cuts connections on purpose: lost ones are no fault.
    pub disconnects_asked: bool,
    /// Loss is the study's subject. Settings that permit loss (`on-full = "drop"`, `conflate`,
    /// `lifespan-ms`) say so by themselves.
    pub losses_are_the_subject: bool,
    /// The system works inside the client's own threads or processes (brokerless libraries): a
    /// busy worker is then a busy system.
    pub system_in_client: bool,
    /// The arrivals vary by design (bursts, replayed traces): a rate that varies is no fault.
    pub rate_varies_by_design: bool,
    /// Processors available; 0 if not known.
    pub cores: u32,
}

impl Circumstances {
    fn losses_allowed(&self, trial: &Trial) -> bool {
        self.losses_are_the_subject
            || trial.settings.on_full == Some(OnFull::Drop)
            || trial.settings.conflate == Some(true)
            || trial.settings.lifespan_ms.is_some()
    }
}

/// Judges a trial. The verdict that the trial carries already is not looked at.
pub fn judge(trial: &Trial, circumstances: &Circumstances) -> Verdict {
    let mut findings = Findings::default();
    broken(trial, circumstances, &mut findings);
    if !findings.has(Status::Broken) {
        lossy(trial, circumstances, &mut findings);
        let client = client::Load::of(trial, circumstances);
        overloaded(trial, circumstances, &client, &mut findings);
        unsteady(trial, circumstances, &mut findings);
        client.judge(trial, circumstances, &mut findings);
    }
    findings.verdict()
}

/// Rules that applied so far.
#[derive(Default)]
struct Findings {
    found: Vec<(Status, String)>,
}

impl Findings {
    fn add(&mut self, status: Status, reason: String) {
        self.found.push((status, reason));
    }

    fn has(&self, status: Status) -> bool {
        self.found.iter().any(|(found, _)| *found == status)
    }

    /// Worst first; within a status in the order of the rules.
    fn verdict(mut self) -> Verdict {
        self.found
            .sort_by_key(|(status, _)| std::cmp::Reverse(*status));
        Verdict {
            status: self
                .found
                .first()
                .map_or(Status::Valid, |(status, _)| *status),
            reasons: self.found.into_iter().map(|(_, reason)| reason).collect(),
        }
    }
}

fn broken(trial: &Trial, circumstances: &Circumstances, findings: &mut Findings) {
    let mut add = |reason: String| findings.add(Status::Broken, reason);
    if let Some(why) = &circumstances.not_run {
        add(format!("not run as planned: {why}"));
    }
    for death in &circumstances.system_died {
        add(format!("the system ended during the trial: {death}"));
    }
    let connections = &trial.connections;
    if connections.made < connections.planned {
        add(format!(
            "{} of {} connections were made",
            connections.made, connections.planned
        ));
    }
    if connections.lost > 0 && !circumstances.disconnects_asked {
        add(format!(
            "{} of {} connections were lost, {} made again",
            connections.lost, connections.planned, connections.remade
        ));
    }
    let odd = &trial.odd;
    if odd.foreign > 0 {
        add(format!(
            "{} deliveries were not of this trial or not for that subscriber",
            odd.foreign
        ));
    }
    if odd.corrupt > 0 {
        add(format!("{} deliveries had a damaged body", odd.corrupt));
    }
    if circumstances.not_run.is_some() {
        return;
    }
    if trial.duration_s <= 0.0 {
        add("nothing was measured: the measurement lasted 0 s".to_owned());
        return;
    }
    if trial.offered > 0 && trial.published == 0 {
        add(format!(
            "the system took none of {} messages",
            trial.offered
        ));
    }
    if trial.expected > 0 && trial.delivered == 0 {
        add(format!(
            "none of {} expected deliveries arrived",
            trial.expected
        ));
    }
    if odd.negative as f64 > thresholds::NEGATIVE_SHARE * trial.delivered.max(1) as f64 {
        add(format!(
            "{} of {} deliveries came before they were sent: the clocks cannot be trusted",
            odd.negative, trial.delivered
        ));
    }
    let unique = trial.delivered.checked_sub(trial.duplicated);
    if unique.and_then(|unique| unique.checked_add(trial.lost)) != Some(trial.expected) {
        add(format!(
            "the counts do not add up: {} delivered - {} duplicated + {} lost is not {} expected",
            trial.delivered, trial.duplicated, trial.lost, trial.expected
        ));
    }
}

fn lossy(trial: &Trial, circumstances: &Circumstances, findings: &mut Findings) {
    if trial.lost > 0 && !circumstances.losses_allowed(trial) {
        findings.add(
            Status::Lossy,
            format!(
                "{} of {} expected deliveries were lost ({})",
                trial.lost,
                trial.expected,
                percent(trial.lost, trial.expected)
            ),
        );
    }
    let repeats_allowed = trial.settings.reliability == Some(Reliability::AtLeastOnce);
    if trial.duplicated > 0 && !repeats_allowed {
        findings.add(
            Status::Lossy,
            format!(
                "{} deliveries were duplicates, and the settings promise none",
                trial.duplicated
            ),
        );
    }
}

fn overloaded(
    trial: &Trial,
    circumstances: &Circumstances,
    client: &client::Load,
    findings: &mut Findings,
) {
    // A subscriber that cannot keep up makes a backlog of its own; that says nothing about the
    // system, and `client` names it. The same goes for what a busy publisher left unsent.
    if let Some(growth) = series::backlog_growth(trial)
        && !client.subscribers_full
    {
        findings.add(Status::Overloaded, growth.to_string());
    }
    let share = |count: u64| count as f64 / trial.offered.max(1) as f64;
    if !trial.workload.flat_out
        && trial.not_sent >= 2
        && share(trial.not_sent) > thresholds::UNSENT_SHARE
        && !client.publishers_full
    {
        findings.add(
            Status::Overloaded,
            format!(
                "{} of {} messages that were due could not be handed over before the end ({}), \
                 and the publishers had time: they ran {:.0} % and waited for a processor {:.0} % \
                 of it",
                trial.not_sent,
                trial.offered,
                percent(trial.not_sent, trial.offered),
                trial.worker_load.publishers_running * 100.0,
                trial.worker_load.publishers_waiting * 100.0,
            ),
        );
    }
    if share(trial.refused) > thresholds::UNSENT_SHARE && !circumstances.losses_allowed(trial) {
        findings.add(
            Status::Overloaded,
            format!(
                "{} of {} messages were refused ({})",
                trial.refused,
                trial.offered,
                percent(trial.refused, trial.offered)
            ),
        );
    }
}

fn unsteady(trial: &Trial, circumstances: &Circumstances, findings: &mut Findings) {
    if !circumstances.rate_varies_by_design
        && let Some(reason) = series::rate_unsteady(trial)
    {
        findings.add(Status::Unsteady, reason);
    }
    if !trial.workload.flat_out
        && !circumstances.rate_varies_by_design
        && let Some(reason) = series::latency_unsteady(trial)
    {
        findings.add(Status::Unsteady, reason);
    }
}

/// The records of the measurement itself (the series goes on through the drain) with the length
/// of each in seconds. Slivers shorter than half the usual length are left out: a rate over a
/// few milliseconds is chance.
fn measured(trial: &Trial) -> Vec<(f64, Second)> {
    let mut start = 0.0;
    let mut records = Vec::new();
    for second in &trial.series {
        let length = second.t_s - start;
        start = second.t_s;
        // Half a record of grace: the last one may end a little after the measurement.
        if second.t_s - length / 2.0 <= trial.duration_s && length > 0.0 {
            records.push((length, *second));
        }
    }
    let mut lengths: Vec<f64> = records.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
    records.retain(|(length, _)| *length >= usual / 2.0);
    records
}

fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64 * 100.0;
    if share >= 0.1 {
        format!("{share:.1} %")
    } else {
        format!("{share:.4} %")
    }
}
