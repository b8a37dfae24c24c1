//! Verdicts: whether the figures of a trial can be trusted, by written rules over recorded
//! figures.
//!
//! [`judge`] is pure: the same trial always gets the same verdict, and a stored trial can be
//! judged again. Every rule that applies leaves a reason with the figures that decided it; the
//! status is the worst of them in the order of [`Status`]: valid, host-bound, setting-bound, too short, unsteady,
//! client-bound, overloaded, lossy, broken. `docs/verdicts.md` explains the rules.
//!
//! The steady-state rule is that of ScalAgent, *Benchmark of MQTT servers* (2015), section 4:
//! delivered equals offered, steady processor load and latency; its 70 % limit on client processors
//! is [`thresholds::PACED_RUNNING`].

use pubgauge_driver::{OnFull, Reliability, Settings};
use pubgauge_quantities::shown;

pub use pubgauge_figures::model::Circumstances;
use pubgauge_figures::model::{Evidence, FlowFigures, Reason, Rule, Status, Trial, Verdict};
use pubgauge_figures::network::{FULL, full_link};
use pubgauge_figures::{Messages, Questions, Shortfall};

mod acknowledgements;
mod broken;
mod carried;
mod changing;
mod client;
mod cores;
mod findings;
mod growth;
mod host;
mod others;
mod overdue;
mod parties;
mod promises;
mod quota;
mod repeats;
mod series;
mod silence;
mod steps;
#[cfg(test)]
mod tests;
pub mod thresholds;
mod window;

use carried::Carried;
use findings::Findings;
pub use repeats::{failures_decide, spoilt_by_others};
use window::WindowFull;

/// Judges a trial by its figures and its circumstances. The verdict that it has already is ignored.
pub fn judge(trial: &Trial) -> Verdict {
    let findings = findings(trial);
    Verdict {
        system_failed: findings.show_failure(trial.duration_s > 0.0),
        latency_is_upper_bound: latency_is_upper_bound(trial, &findings),
        others_busy: others::crowded(trial),
        ..findings.verdict()
    }
}

/// Whether latency bounds the system's from above, as [`Verdict::latency_is_upper_bound`] has it.
///
/// A client that is late sends later, and reads later. No system that takes messages in order delivers one earlier
/// because it, or another, came later: with a client in time, each would have come no later than it did. Flat out, and
/// where bursts wait for one another, nothing is due at a time of its own, and a faster client would have sent more.
/// A latency that fell while nothing was amiss is, over the whole measurement, no lower than where it settles.
fn latency_is_upper_bound(trial: &Trial, findings: &Findings) -> bool {
    let leaves_a_bound = |(status, reason): &(Status, Reason)| {
        matches!(status, Status::ClientBound | Status::HostBound)
            || reason.rule == Rule::LatencyFalls && !series::rises_in_a_flow(trial)
    };
    let found = &findings.found;
    let mut flows = trial.flows.iter();
    let has_schedule =
        !trial.workload.flat_out && !flows.any(|flow| flow.flat_out || bursts_wait(flow));
    let missing = trial.shortfall.lost
        + trial.shortfall.under_way
        + trial.messages.refused
        + trial.messages.not_sent
        + trial.messages.not_connected
        + trial.messages.latency_ns.censored;
    !found.is_empty()
        && found.iter().all(leaves_a_bound)
        && has_schedule
        && missing == 0
        && matches!(series::carried(trial), Carried::All)
}

fn findings(trial: &Trial) -> Findings {
    let mut findings = Findings::default();
    let client = client::Load::from_trial(trial);
    broken::broken(trial, &client, &mut findings);
    promises::topics(trial, &mut findings);
    if !findings.ends_here() {
        let carried = series::carried(trial);
        let growth = match &carried {
            Carried::Not(growth) => Some(growth),
            Carried::All | Carried::Unknown { .. } => None,
        };
        lossy(trial, &client, &mut findings);
        acknowledgements::judge(trial, &mut findings);
        // Messages that a window held back say nothing about the system: neither a queue before it, nor its latency.
        let unsent = Judged::parts_of(trial).iter().any(Judged::is_left_unsent);
        let held_back = trial.workload.flat_out || unsent || !matches!(carried, Carried::All);
        let window = WindowFull::find(trial, &client).filter(|_| held_back);
        let growth = growth.filter(|_| window.is_none());
        overloaded(trial, &client, growth, window.is_some(), &mut findings);
        match &window {
            Some(window) => findings.add(Status::SettingBound, window.reason(trial)),
            None => too_short(&client, &carried, &mut findings),
        }
        unsteady(trial, &client, window.is_some(), &mut findings);
        promises::quality(trial, &mut findings);
        promises::order(trial, &mut findings);
        client.judge(trial, growth, &mut findings);
        others::judge(trial, &mut findings);
        link(trial, &mut findings);
        // The rate of a client at its end, or of a system that failed, says nothing more by being one.
        if findings.found.is_empty()
            && let Some((needs_s, why)) = series::rate_unclear(trial)
        {
            findings.add_too_short(needs_s, why);
        }
    }
    findings
}

/// Whether a flow sends bursts that wait for one another.
fn bursts_wait(flow: &FlowFigures) -> bool {
    flow.bursts.is_some_and(|bursts| bursts.every_ns.is_none())
}

/// The unit of judgement: a flow, where a workload has several, or the whole trial.
struct Judged<'a> {
    /// The flow's name, as the beginning of a sentence.
    of: String,
    /// Its name, where there are several.
    flow: Option<&'a str>,
    settings: &'a Settings,
    flat_out: bool,
    /// Its bursts wait for one another: the end of the measurement may cut one off.
    bursts_wait: bool,
    messages: &'a Messages,
    shortfall: &'a Shortfall,
}

impl Judged<'_> {
    fn parts_of(trial: &Trial) -> Vec<Judged<'_>> {
        if trial.flows.len() < 2 {
            return vec![Judged {
                of: String::new(),
                flow: None,
                settings: (trial.flows.first())
                    .and_then(|flow| flow.settings.as_ref())
                    .unwrap_or(&trial.settings),
                flat_out: trial.workload.flat_out,
                bursts_wait: trial.flows.iter().any(bursts_wait),
                messages: &trial.messages,
                shortfall: &trial.shortfall,
            }];
        }
        let flow = |flow: &'_ FlowFigures| format!("flow `{}`: ", flow.name);
        let part = |f| Judged {
            of: flow(f),
            flow: Some(&f.name),
            settings: f.settings.as_ref().unwrap_or(&trial.settings),
            flat_out: f.flat_out,
            bursts_wait: bursts_wait(f),
            messages: &f.messages,
            shortfall: &f.shortfall,
        };
        trial.flows.iter().map(part).collect()
    }

    /// A share of the messages that were due.
    fn share(&self, count: u64) -> f64 {
        count as f64 / self.messages.offered.max(1) as f64
    }

    /// Whether messages were left unsent, most of which the client never offered to the system. A library that is
    /// the system works in the worker's own thread, and may be what made it late.
    fn client_was_behind(&self, trial: &Trial) -> bool {
        self.is_left_unsent()
            && !trial.circumstances.system_in_client
            && 2 * self.shortfall.not_tried > self.messages.not_sent
    }

    /// Whether more messages were left unsent than may be.
    fn is_left_unsent(&self) -> bool {
        !self.flat_out
            && !self.bursts_wait
            && self.messages.not_sent >= 2
            && self.share(self.messages.not_sent) > thresholds::UNSENT_SHARE
    }

    fn losses_allowed(&self, trial: &Trial) -> bool {
        trial.circumstances.losses_allowed
            || self.settings.on_full == Some(OnFull::Drop)
            || self.settings.conflate == Some(true)
            || self.settings.lifespan_ms.is_some()
    }
}

fn lossy(trial: &Trial, client: &client::Load, findings: &mut Findings) {
    for part in Judged::parts_of(trial) {
        let (of, lost, expected) = (&part.of, part.shortfall.lost, part.messages.expected);
        let mut losses: Vec<(String, [(Evidence, u64); 2])> = Vec::new();
        if lost > 0 {
            let share = percent(lost, expected);
            let unconnected = match part.messages.not_connected {
                0 => String::new(),
                n => format!("; {n} messages fell due while their publisher was not connected"),
            };
            let most = lost_most(trial, &part);
            let text = format!(
                "{of}{lost} of {expected} expected deliveries were lost ({share}){unconnected}{most}"
            );
            losses.push((
                text,
                [(Evidence::Lost, lost), (Evidence::Expected, expected)],
            ));
        }
        if let Some(Questions {
            asked, unanswered, ..
        }) = (part.shortfall.questions)
            .filter(|questions| questions.unanswered > 0 && !trial.drain.cut_short)
        {
            let share = percent(unanswered, asked);
            let text = format!("{of}{unanswered} of {asked} questions got no answer ({share})");
            losses.push((
                text,
                [(Evidence::Unanswered, unanswered), (Evidence::Asked, asked)],
            ));
        }
        losses.retain(|_| !part.losses_allowed(trial));
        for (text, [few, all]) in losses {
            // Acknowledged messages are kept for a subscriber that has no time; others are not.
            let acknowledged = part
                .settings
                .reliability
                .is_some_and(|r| !matches!(r, Reliability::AtMostOnce | Reliability::BestEffort));
            let trouble = client.subscriber_trouble(trial).filter(|_| !acknowledged);
            let (status, reason) = match trouble {
                Some(trouble) => {
                    let text = format!("{text}, and the client may have let them fall: {trouble}");
                    let reason = Reason::new(Rule::LostByClient, text);
                    (client.subscribers_blame(), reason)
                }
                None => (Status::Lossy, Reason::new(Rule::Lost, text)),
            };
            findings.add(status, reason.count(few.0, few.1).count(all.0, all.1));
        }
        let repeats_allowed = part.settings.reliability == Some(Reliability::AtLeastOnce);
        if part.messages.duplicated > 0 && !repeats_allowed {
            let again = part.messages.duplicated;
            let text =
                format!("{of}{again} deliveries were duplicates, and the settings promise none");
            let reason = Reason::new(Rule::Repeated, text).count(Evidence::Duplicated, again);
            findings.add(Status::Lossy, reason);
        }
    }
}

/// Which subscriber lost most, where they did not lose alike, as the end of a clause; of several flows in that of its own.
fn lost_most(trial: &Trial, part: &Judged<'_>) -> String {
    let most = trial.parties.as_ref().and_then(|parties| {
        let most = parties.lost_most.as_ref()?;
        if part.flow != most.party.flow.as_deref() {
            return None;
        }
        // More than half as many again as each would have lost if all had lost alike.
        (2 * most.lost * parties.count > 3 * part.shortfall.lost).then_some(most)
    });
    most.map_or(String::new(), |most| {
        let (party, own) = (&most.party, most.lost);
        let share = percent(own, own + most.deliveries);
        format!(
            "; {party} lost most: {own} of {} ({share})",
            own + most.deliveries
        )
    })
}

fn overloaded(
    trial: &Trial,
    client: &client::Load,
    growth: Option<&growth::Growth>,
    window_full: bool,
    findings: &mut Findings,
) {
    // A subscriber that cannot keep up makes a backlog of its own; that says nothing about the
    // system, and `client` names it. The same goes for what a busy publisher left unsent.
    let blameless = !client.subscribers_full && client.stalled.is_none();
    // Latency also rises behind a client that falls behind by itself: then the queue tells.
    let parts = Judged::parts_of(trial);
    let behind = parts.iter().any(|part| part.client_was_behind(trial));
    let queued = silence::queue_at_end(trial) as f64;
    let grew = !behind || queued > thresholds::RISE_SHARE * trial.messages.expected as f64;
    if let Some(growth) = growth.filter(|_| blameless && grew) {
        findings.add(Status::Overloaded, growth.reason());
    }
    let alone = growth.is_none();
    let late = behind || client.publishers_short_of_time();
    let subscribers = parties::behind(trial).filter(|_| blameless && !late);
    // Where the queue of all grew, a few subscribers are named whose queue it was.
    if let Some(behind) = subscribers.filter(|behind| alone || 2 * behind.count < behind.all) {
        findings.add(Status::Overloaded, behind.reason());
    }
    if trial.shortfall.under_way > 0 && blameless {
        let (under_way, expected) = (trial.shortfall.under_way, trial.messages.expected);
        let seconds = trial.drain.seconds;
        let end = if trial.drain.cut_short {
            format!("the drain was cut short after {seconds:.1} s")
        } else {
            format!(
                "the drain ended after {seconds:.1} s: the system never acknowledged their messages"
            )
        };
        let text = format!(
            "{under_way} of {expected} expected deliveries ({}) were still under way when {end}: \
             latencies are known for the other {} alone",
            percent(under_way, expected),
            percent(expected - under_way, expected)
        );
        let reason = Reason::new(Rule::UnderWay, text)
            .count(Evidence::UnderWay, under_way)
            .count(Evidence::Expected, expected);
        findings.add(Status::Overloaded, reason);
    }
    for part in parts {
        if part.is_left_unsent() && !window_full {
            unsent(trial, &part, client, findings);
        }
    }
}

/// Finds that the measurement was too short to know more, where nothing else says that the system was at its
/// end, and where the backlog is the system's.
fn too_short(client: &client::Load, carried: &Carried, findings: &mut Findings) {
    let known = findings.have_any(&[Status::Overloaded]);
    if let Carried::Unknown { needs_s, why } = carried
        && !client.subscribers_full
        && client.stalled.is_none()
        && !known
    {
        findings.add_too_short(*needs_s, why);
    }
}

fn unsent(trial: &Trial, part: &Judged<'_>, client: &client::Load, findings: &mut Findings) {
    let (of, not_sent, offered) = (&part.of, part.messages.not_sent, part.messages.offered);
    let share = percent(not_sent, offered);
    let unsent = format!(
        "{of}{not_sent} of {offered} messages that were due could not be handed over before the end \
         ({share})"
    );
    let load = format!(
        "they ran {:.0} % and waited for a processor {:.0} % of it{}",
        trial.worker_load.publishers_running * 100.0,
        client.publishers_waiting * 100.0,
        client.share(),
    );
    let (status, rule, text) = if part.client_was_behind(trial) {
        let not_tried = part.shortfall.not_tried;
        let text = format!(
            "{unsent}: {not_tried} of them were never offered to the system, because the publishers were \
             behind: {load}"
        );
        (client.publishers_blame(), Rule::UnsentByClient, text)
    } else if client.publishers_short_of_time() || client.stalled.is_some() {
        let text = format!("{unsent}, and the publishers had little time: {load}");
        (client.publishers_blame(), Rule::UnsentByClient, text)
    } else {
        let text = format!("{unsent}, and the publishers had time: {load}");
        (Status::Overloaded, Rule::Unsent, text)
    };
    let unsent_share = part.share(not_sent);
    let reason = Reason::new(rule, text)
        .limited(
            Evidence::UnsentShare,
            unsent_share,
            thresholds::UNSENT_SHARE,
        )
        .count(Evidence::NotTried, part.shortfall.not_tried)
        .figure(Evidence::RunningShare, trial.worker_load.publishers_running)
        .figure(Evidence::WaitingShare, client.publishers_waiting);
    findings.add(status, reason);
}

fn unsteady(trial: &Trial, client: &client::Load, window_full: bool, findings: &mut Findings) {
    if client.stalled.is_none()
        && let Some(reason) = silent(trial)
    {
        findings.add(Status::Unsteady, reason);
    }
    let by_design = trial.circumstances.rate_varies_by_design;
    if !by_design && let Some(reason) = series::rate_unsteady(trial) {
        findings.add(Status::Unsteady, reason);
    }
    if !trial.workload.flat_out
        && !window_full
        && let Some(reason) = series::latency_unsteady(trial)
    {
        findings.add(Status::Unsteady, reason);
    }
}

/// A system that delivered nothing for a good part of the measurement though it had messages.
fn silent(trial: &Trial) -> Option<Reason> {
    if trial.circumstances.subscribers_come_and_go {
        // Nothing comes while all of them are away.
        return None;
    }
    let silence = silence::silence(trial) * 1e9;
    // The median falls among lost messages where half are; between hosts it may be too short to be quoted.
    let latency = &trial.messages.latency_ns;
    let usual = (latency.p50.map(|ns| ns as f64).or(latency.known_mean))
        .or_else(|| trial.one_way?.unquoted_at_most())?;
    let long = silence >= thresholds::SILENCE_FLOOR_NS
        && silence >= thresholds::SILENCE_SHARE * trial.duration_s * 1e9
        && silence > thresholds::SILENCE_FACTOR * usual;
    long.then(|| {
        let text = format!(
            "the system stood still: nothing was delivered for {:.2} s although messages were under \
             way or due, against a usual latency of {:.3} ms",
            silence / 1e9,
            usual / 1e6
        );
        let limit = thresholds::SILENCE_FACTOR * usual;
        Reason::new(Rule::SystemSilent, text).limited(Evidence::Silence, silence, limit)
    })
}

/// Where the system is blamed: adds that a link of its network was full.
fn link(trial: &Trial, findings: &mut Findings) {
    let blamed = findings.have_any(&[Status::Overloaded, Status::Unsteady, Status::Lossy]);
    if let Some((link, share)) = full_link(trial).filter(|_| blamed) {
        let text = format!(
            "the link of {} was {:.0} % full: what was short is the link, not the system",
            link.host,
            100.0 * share
        );
        let reason = Reason::new(Rule::LinkFull, text).limited(Evidence::LinkShare, share, FULL);
        findings.add(Status::Unsteady, reason);
    }
}

fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64;
    shown::percent(share, if share >= 0.001 { 1 } else { 4 })
}
