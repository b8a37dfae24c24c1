//! Judges a study's claims by what a run measured.

mod conditions;
pub mod kept;
pub mod several;

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_claims::{
    Absent, CellKey, Curve, Figures, MeasuredRun, Observation, Outcome, Picture, Point, RECORDING,
    SearchedLimit, rule_sentence,
};
use pubgauge_driver::{Capability, Support};
use pubgauge_figures::claim::{ClaimCurve, ClaimOutcome, ClaimPicture, ClaimPoint, ClaimVerdict};
use pubgauge_figures::criterion;
use pubgauge_figures::figure::{Figure, Unit, capabilities};
use pubgauge_figures::model::Rule;
use pubgauge_figures::recording::{RecordedDay, RecordedHours, RecordingInfo};
use pubgauge_figures::rule::{Claim, Needs};
use pubgauge_figures::search::Search;
use pubgauge_figures::{
    AxisValue, CapabilityAnswer, Results, Status, TrafficRecord, Trial, network, window,
};
use pubgauge_network::{HostRole, Network};
use pubgauge_quantities::shown::{bit_rate, number};
use pubgauge_quantities::written::amount;

use self::kept::{Kept, KeptRow};

/// Judges all claims of a study by what a run measured. Trials of searches are not repeats of a cell; the results of
/// searches are the limits. Where a limit is only known as "at least", a trial's true share of it may be smaller, so
/// that it does not decide a claim about that share.
pub fn judge(results: &Results, claims: &[Claim]) -> Vec<ClaimOutcome> {
    judge_each(results, claims, &outcome)
}

/// The outcome of a claim of which no trial is known that counts by its rule as it is now: not applicable or not told where
/// the claim says so itself, else not told for want of trials.
pub fn unmeasured(claim: &Claim) -> ClaimOutcome {
    let mut bare = claim.clone();
    if !bare.needs.is_never_judged() {
        bare.needs = Needs {
            untold: Some("not measured since its rule or its bed was changed".to_owned()),
            ..Needs::default()
        };
    }
    let nothing = Kept::default();
    let outcome = nothing.judge(std::slice::from_ref(&bare)).remove(0);
    ClaimOutcome {
        rule: rule_words(claim),
        ..outcome
    }
}

/// The repeats that would decide a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// About how many repeats, those that there are included.
    pub repeats: u32,
    /// Of which cells, by their names in the results.
    pub cells: BTreeSet<String>,
}

/// The claims judged, and of each cell that they are about what their rules asked of its trials: enough to judge them
/// again.
pub fn judge_and_keep(results: &Results, claims: &[Claim]) -> (Vec<ClaimOutcome>, Vec<KeptRow>) {
    as_run(results, !claims.is_empty(), |run| {
        kept::judge_and_keep(run, claims)
    })
}

/// For each claim, what would decide it; `None` where it is decided, or repeats would not help.
pub fn open(results: &Results, claims: &[Claim]) -> Vec<Option<Open>> {
    let standing = results.standing();
    let names: BTreeMap<CellKey, &String> = standing.map(|t| (cell_of(t), &t.cell)).collect();
    judge_each(results, claims, &|claim, run| {
        let open = pubgauge_claims::open(claim, run)?;
        let cells = open.cells.iter().filter_map(|cell| names.get(cell));
        Some(Open {
            repeats: open.repeats,
            cells: cells.map(|name| name.to_string()).collect(),
        })
    })
}

/// Applies `of` to each claim and the trials of a run.
fn judge_each<T>(
    results: &Results,
    claims: &[Claim],
    of: &dyn Fn(&Claim, &MeasuredRun<'_>) -> T,
) -> Vec<T> {
    as_run(results, !claims.is_empty(), |run| {
        claims.iter().map(|claim| of(claim, run)).collect()
    })
}

/// Applies `of` to the trials of a run, as claims see them; without their figures where these are not asked for.
fn as_run<T>(results: &Results, with_figures: bool, of: impl FnOnce(&MeasuredRun<'_>) -> T) -> T {
    let unknown = |trial: &&Trial| trial.limit_share.as_ref().is_some_and(|s| s.at_least);
    // A trial that a hypervisor slowed says nothing of a system, whichever verdicts a claim counts.
    let stolen = |trial: &Trial| Some(trial.verdict.reason(Rule::TimeStolen)?.text.clone());
    // One that was measured again in its round does not count.
    let repeats = || results.standing().filter(|trial| !unknown(trial));
    let figures: Vec<OfTrial<'_>> = if with_figures {
        let of = |trial| OfTrial::new(trial, results);
        repeats().map(of).collect()
    } else {
        Vec::new()
    };
    let trials = repeats().zip(&figures).map(|(trial, figures)| Observation {
        cell: cell_of(trial),
        repeat: trial.repeat,
        round: trial.round,
        verdict: trial.verdict.status.as_str().to_owned(),
        void: stolen(trial),
        figures,
    });
    let recorded = OfDay::group_by_day(&results.study.recordings);
    let days = recorded.iter().map(|of| Observation {
        cell: of.cell(),
        repeat: of.day.day as u32,
        round: 0,
        verdict: Status::Valid.as_str().to_owned(),
        void: None,
        figures: of,
    });
    let limits = results.searches.iter().map(|search| SearchedLimit {
        cell: cell_of_search(search),
        low: search.low.unwrap_or(0.0),
        high: search.high.unwrap_or(f64::INFINITY),
    });
    let absent = results.not_measured.iter().map(|absent| Absent {
        cell: cell(
            &absent.system,
            &absent.settings,
            &absent.workload,
            &absent.axes,
        ),
        reason: format!("not measured: {}", absent.reason),
    });
    let at_some_share = results.trials.iter().filter_map(|trial| {
        let share = trial.limit_share.as_ref().filter(|s| s.at_least)?;
        let (of, end) = (&share.of, share.axis.format_load(share.end));
        Some(Absent {
            cell: cell_of(trial),
            reason: format!(
                "the limit of {of} is only known as at least {end}: which share of it was measured is not known"
            ),
        })
    });
    // A run that was cut off may lack other cells than those that its scale leaves out.
    let whole = results.trials.len() >= results.study.planned_trials as usize;
    let run = MeasuredRun {
        trials: trials.chain(days).collect(),
        limits: limits.collect(),
        absent: absent.chain(at_some_share).collect(),
        networks: networks(results),
        in_rounds: results.study.until_decided_s.is_some(),
        scale: results.study.scale.clone().filter(|_| whole),
        day: results.study.started.get(..10).map(str::to_owned),
        claim_rules: results.study.claim_rules.clone(),
        show: &show_value,
    };
    of(&run)
}

/// Of each cell that ran on a network, what that network is, in the words of claims (`docs/claims.md`).
fn networks(results: &Results) -> BTreeMap<CellKey, Vec<String>> {
    let searches = &results.searches;
    let of = |trial: &Trial| {
        let words = properties(&network::network_of(results, trial)?.network);
        let sought = trial
            .search
            .and_then(|step| searches.get(step.search as usize));
        let cell = match sought {
            Some(search) => cell_of_search(search),
            None => cell_of(trial),
        };
        Some((cell, words))
    };
    results.trials.iter().filter_map(of).collect()
}

/// The properties of a network, in the words of claims.
fn properties(network: &Network) -> Vec<String> {
    let links = HostRole::ALL.map(|role| network.hosts_of(role));
    let links = links.iter().filter(|hosts| hosts.hosts > 0);
    let rates: Vec<Option<u64>> = links.map(|hosts| hosts.link.rate_bits_per_s).collect();
    let mut words = Vec::new();
    if let Some(Some(bits)) = rates.first().filter(|one| rates.iter().all(|r| r == *one)) {
        words.push(format!("links of {}", bit_rate(*bits)));
    }
    if network.broker.hosts > 0 && network.broker.link.rate_bits_per_s.is_some() {
        words.push("a link of limited rate between clients and broker".to_owned());
    }
    if network.broker.hosts > 0 && network.broker.link.delay_ns > 0 {
        words.push("a link with delay between clients and broker".to_owned());
    }
    words
}

/// The outcome of a claim by a run.
pub(crate) fn outcome(claim: &Claim, run: &MeasuredRun<'_>) -> ClaimOutcome {
    let found = pubgauge_claims::judge(claim, run);
    let rule = rule_words(claim);
    let began = &run.claim_rules;
    let is_later = !began.is_empty() && began.get(&claim.id) != Some(&rule);
    ClaimOutcome {
        id: claim.id.clone(),
        sentence: claim.sentence.clone(),
        source: claim.source.clone(),
        rule_is_later: is_later && found.outcome.is_answer(),
        rule,
        kept_from: String::new(),
        outcome: match found.outcome {
            Outcome::Holds => ClaimVerdict::Holds,
            Outcome::InPart => ClaimVerdict::HoldsInPart,
            Outcome::Depends => ClaimVerdict::Depends,
            Outcome::StandInHolds => ClaimVerdict::StandInHolds,
            Outcome::StandInInPart => ClaimVerdict::StandInHoldsInPart,
            Outcome::StandInDoesNotHold => ClaimVerdict::StandInDoesNotHold,
            Outcome::OfVersion => ClaimVerdict::OfVersion,
            Outcome::DoesNotHold => ClaimVerdict::DoesNotHold,
            Outcome::CannotTell => ClaimVerdict::CannotTell,
            Outcome::NotApplicable => ClaimVerdict::NotApplicable,
        },
        stand_in: claim.stand_in.clone().unwrap_or_default(),
        repeats_to_tell: found.repeats_to_tell(),
        reason: found.reason,
        would_change: found.turn.map(|turn| turn.words).unwrap_or_default(),
        ours: found.ours,
        papers: claim.papers.clone(),
        pictures: pictures(claim, run),
    }
}

/// The figures of a claim, as curves.
fn pictures(claim: &Claim, run: &MeasuredRun<'_>) -> Vec<ClaimPicture> {
    let point = |point: Point| ClaimPoint {
        at: point.at,
        number: point.number,
        value: point.value,
        low: point.low,
        high: point.high,
    };
    let side = |side: Curve| ClaimCurve {
        side: side.side,
        points: side.points.into_iter().map(point).collect(),
    };
    let pictures = pubgauge_claims::pictures(claim, run).into_iter();
    let picture = |picture: Picture| ClaimPicture {
        part: picture.part,
        figure: picture.figure,
        axis: picture.axis,
        sides: picture.sides.into_iter().map(side).collect(),
    };
    pictures.map(picture).collect()
}

fn cell(system: &str, settings: &str, workload: &str, axes: &[AxisValue]) -> CellKey {
    CellKey {
        system: system.to_owned(),
        settings: settings.to_owned(),
        workload: workload.to_owned(),
        axes: axes
            .iter()
            .map(|axis| (axis.name.clone(), axis.value.clone()))
            .collect(),
    }
}

fn cell_of(trial: &Trial) -> CellKey {
    cell(
        &trial.system.name,
        &trial.settings_name,
        &trial.workload.name,
        &trial.axes,
    )
}

fn cell_of_search(search: &Search) -> CellKey {
    cell(
        &search.system,
        &search.settings,
        &search.workload,
        &search.axes,
    )
}

/// The rule of a claim as a sentence.
pub fn rule_words(claim: &Claim) -> String {
    rule_sentence(claim, &show_value)
}

/// The figure of that name; `None` for a quotient, a statistic of a series, and what a system supports.
fn plain(name: &str) -> Option<&'static Figure> {
    Some(Figure::in_window(name)?.0)
}

/// A value of a figure with its unit.
pub(crate) fn show_value(name: &str, value: f64) -> String {
    let Some(figure) = plain(name) else {
        return number(value);
    };
    match figure.unit {
        Unit::BytesPerSecond => format!("{}B/s", thousands(value)),
        Unit::Cores => format!("{} cores", number(value)),
        Unit::MicrosecondsPerMessage => format!("{} µs a message", number(value)),
        Unit::Count => number(value),
        _ => criterion::show_value(figure, value),
    }
}

fn thousands(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(size, _)| value.abs() >= *size) {
        Some((size, letter)) => format!("{} {letter}", number(value / size)),
        None => format!("{} ", number(value)),
    }
}

/// The unit of a figure, as the end of a column's name; empty for a count or a quotient.
pub fn unit(name: &str) -> &'static str {
    plain(name).map_or("", |figure| figure.unit.suffix())
}

/// Some hours of a day of a recording, in place of a trial.
struct OfDay<'a> {
    recording: &'a RecordingInfo,
    hours: &'a RecordedHours,
    day: &'a RecordedDay,
}

impl OfDay<'_> {
    fn group_by_day(recordings: &[RecordingInfo]) -> Vec<OfDay<'_>> {
        let hours = recordings
            .iter()
            .flat_map(|recording| recording.hours.iter().map(move |hours| (recording, hours)));
        let day = |(recording, hours)| {
            let of = move |day| OfDay {
                recording,
                hours,
                day,
            };
            let hours: &RecordedHours = hours;
            hours.days.iter().map(of)
        };
        hours.flat_map(day).collect()
    }

    fn cell(&self) -> CellKey {
        CellKey {
            axes: vec![
                (RECORDING.to_owned(), self.recording.name.clone()),
                ("hours".to_owned(), self.hours.name.clone()),
            ],
            ..CellKey::default()
        }
    }
}

impl Figures for OfDay<'_> {
    fn figure(&self, _flow: Option<&str>, name: &str) -> Option<f64> {
        self.hours.figure(self.day, name)
    }

    fn windows(&self, _flow: Option<&str>, _name: &str) -> Vec<f64> {
        Vec::new()
    }
}

/// The figures of a trial by their names in studies.
struct OfTrial<'a> {
    trial: &'a Trial,
    /// The capabilities of its system.
    capabilities: &'a [CapabilityAnswer],
}

impl OfTrial<'_> {
    /// How many of these the system has itself; `None` where its driver was not asked.
    fn supports(&self, asked: &[Capability]) -> Option<f64> {
        let support = |one: &Capability| {
            let mut answers = self.capabilities.iter();
            Some(
                answers
                    .find(|answer| answer.capability == *one)?
                    .answer
                    .support,
            )
        };
        let support: Option<Vec<Support>> = asked.iter().map(support).collect();
        let native = support?.into_iter().filter(|one| *one == Support::Native);
        Some(native.count() as f64)
    }

    fn new<'a>(trial: &'a Trial, results: &'a Results) -> OfTrial<'a> {
        let mut systems = results.study.capabilities.iter();
        let system = systems.find(|system| system.system == trial.system.name);
        OfTrial {
            trial,
            capabilities: system.map_or(&[], |system| &system.answers),
        }
    }
}

/// The value of a series in a record, by the record's length in seconds; `None` if there is no such series.
fn series_value(name: &str) -> Option<fn(&TrafficRecord, f64) -> Option<f64>> {
    Some(match name {
        "latency.p50" => |s, _| came(s.latency_p50_ns),
        "latency.p90" => |s, _| came(s.latency_p90_ns),
        "latency.p99" => |s, _| came(s.latency_p99_ns),
        "latency.max" => |s, _| came(s.latency_max_ns),
        "latency-from-send.p90" => |s, _| came(s.latency_from_send_p90_ns),
        "published-rate" => |s, length| Some(s.published as f64 / length),
        "delivered-rate" => |s, length| Some(s.delivered as f64 / length),
        _ => return None,
    })
}

/// The figure that a trial has no field for: it is worked out from its deliveries and their size.
const PAYLOAD_RATE: &str = "delivered-bytes-rate";

impl Figures for OfTrial<'_> {
    fn figure(&self, flow: Option<&str>, name: &str) -> Option<f64> {
        if let Some(Ok(asked)) = capabilities(name) {
            return self.supports(&asked);
        }
        let (figure, window) = Figure::in_window(name)?;
        if figure.name != PAYLOAD_RATE {
            return figure.value_in(self.trial, flow, window).ok();
        }
        // Only with payloads of one size; flows may differ in theirs.
        let rate = Figure::named("delivered-rate").filter(|_| flow.is_none())?;
        let payload = amount(&self.trial.workload.payload)?;
        Some(rate.value_in(self.trial, None, window).ok()? * payload)
    }

    fn is_slowed(&self, name: &str) -> bool {
        self.trial.system_calls.is_some() && is_of_speed(name)
    }

    fn is_stretched(&self, name: &str, value: f64) -> bool {
        is_shorter_than_stops(name, value) && was_stopped(self.trial)
    }

    fn windows(&self, flow: Option<&str>, name: &str) -> Vec<f64> {
        // The series includes the drain. For a window, the records that lie in it.
        let (name, window) = window::split(name);
        let (from, to) = match window {
            None => (0.0, self.trial.duration_s),
            Some(name) => match window::in_window(self.trial, flow, name) {
                Some(window) => (window.from_s, window.to_s),
                None => return Vec::new(),
            },
        };
        let ends: Vec<f64> = self.trial.series.iter().map(|s| s.traffic.t_s).collect();
        // The length of the record that ends then, if it lies there.
        let length = |t_s: f64| {
            let before = ends
                .iter()
                .filter(|end| **end < t_s)
                .copied()
                .fold(0.0, f64::max);
            let inside = before >= from - 1e-6 && t_s > from && t_s <= to + 1e-6;
            inside.then_some(t_s - before)
        };
        let lengths = ends.iter().filter_map(|end| length(*end));
        let longest = lengths.fold(0.0, f64::max);
        // A rate over much less than a record is chance.
        let measured = |t_s: f64| length(t_s).filter(|length| *length >= longest / 2.0);
        let Some(value) = series_value(name) else {
            return Vec::new();
        };
        let records: Vec<&TrafficRecord> = match flow {
            Some(flow) => {
                let flows = self.trial.flows.iter().filter(|f| f.name == flow);
                flows.flat_map(|f| &f.series).collect()
            }
            None => self.trial.series.iter().map(|s| &s.traffic).collect(),
        };
        let records = records.into_iter();
        records.filter_map(|s| value(s, measured(s.t_s)?)).collect()
    }
}

/// Whether counting system calls changes a figure, or one of those that it is made of.
pub(crate) fn is_of_speed(name: &str) -> bool {
    let mut parts = name.split('/').map(|part| {
        let part = part.trim();
        let series = part.strip_suffix(".cv").or(part.strip_suffix(".growth"));
        series.unwrap_or(part)
    });
    parts.any(|part| plain(part).is_some_and(Figure::is_of_speed))
}

/// Whether it is a time that a delivery took, and shorter than ten periods of a quota: stops of up to a period each make up
/// too much of it.
pub(crate) fn is_shorter_than_stops(name: &str, value: f64) -> bool {
    let (base, _) = window::split(name.trim());
    let of_delivery = [
        "latency",
        "delivered-latency",
        "half-round-trip",
        "round-trip",
    ];
    let is_time = plain(base).is_some_and(|figure| figure.unit == Unit::Nanoseconds);
    is_time
        && of_delivery.iter().any(|begin| base.starts_with(begin))
        && value < LEAST_UNDER_QUOTA_NS
}

/// Ten periods of the quotas that hold hosts, of 10 ms each.
const LEAST_UNDER_QUOTA_NS: f64 = 10.0 * 10e6;

/// Whether a quota stopped one of the trial's hosts while it measured; one of which that was not seen counts.
pub(crate) fn was_stopped(trial: &Trial) -> bool {
    let mut hosts = trial.sized_hosts.iter();
    hosts.any(|host| host.limits.cores_by_quota && host.throttled.is_none_or(|share| share > 0.0))
}

/// A time of a record; `None` where nothing came.
fn came(ns: u64) -> Option<f64> {
    (ns > 0).then_some(ns as f64)
}
