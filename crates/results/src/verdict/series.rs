//! Rules on the series: a growing backlog, an unsteady rate or latency.
//!
//! Records may be shorter than a second, and few; each rule says what it needs.

use pubgauge_figures::model::{Evidence, FlowFigures, Reason, Rule, TrafficRecord, Trial};
use pubgauge_quantities::stats::{LinearFit, chance_beyond};

use super::carried::{self, Carried, Course};
use super::changing::ChangingLoad;
use super::growth::{DelayGrowth, Growth, Kind};
use super::silence::silence;
use super::steps::{self, Change, Changed};
use super::{bursts_wait, thresholds};

/// Whether the system carried what it was offered, over all flows and flow by flow. Messages that are in buffers
/// from the first record on (a full socket buffer flat out) are no growth.
pub(super) fn carried(trial: &Trial) -> Carried {
    if trial.circumstances.subscribers_come_and_go {
        // Messages that are kept for who is away look like a queue that grows.
        return Carried::All;
    }
    let flow = |flow: &FlowFigures| {
        let records = records_within(trial, flow.series.iter().map(without_latencies));
        let cycle = flow.cycle_s.unwrap_or(0.0);
        let course = (&flow.course[..], &flow.course_due[..]);
        match judged(trial, &records, course, cycle, load(flow)) {
            Carried::Not(growth) => Carried::Not(Growth {
                flow: Some(flow.name.clone()),
                ..growth
            }),
            Carried::Unknown { needs_s, why } => Carried::Unknown {
                needs_s,
                why: format!("flow `{}`: {why}", flow.name),
            },
            Carried::All => Carried::All,
        }
    };
    let several = trial.flows.len() > 1;
    // Bursts that wait for one another are no more than one at a time.
    let waits = |flow: &&FlowFigures| bursts_wait(flow);
    let alone = trial.flows.iter().filter(|f| several && !waits(f));
    let mut all: Vec<Carried> = alone.map(flow).collect();
    // Of several flows that take unequally long, the whole takes longer where the slower one has more of it.
    let changes = trial.flows.iter().any(changes);
    let together = !(several && changes || trial.flows.iter().any(|flow| waits(&flow)));
    if together {
        let cycle = cycle(trial);
        let of_all = match trial.workload.flat_out {
            true => Load::FlatOut,
            false if changes => Load::Changing,
            false => Load::Even,
        };
        let course = (&trial.course[..], &trial.course_due[..]);
        let whole = judged(trial, &measured(trial), course, cycle, of_all);
        // Of several flows each says itself what is too short for it.
        all.push(match whole {
            Carried::Unknown { .. } if several => Carried::All,
            whole => whole,
        });
    }
    // The worst of them; of what is too short, what needs longest.
    let rank = |carried: &Carried| match carried {
        Carried::Not(_) => f64::INFINITY,
        Carried::Unknown { needs_s, .. } => *needs_s,
        Carried::All => 0.0,
    };
    all.into_iter()
        .max_by(|a, b| rank(a).total_cmp(&rank(b)))
        .unwrap_or(Carried::All)
}

/// Seconds after which the arrivals of all flows have repeated; 0 where none repeat.
pub(super) fn cycle(trial: &Trial) -> f64 {
    let mut cycles: Vec<f64> = trial.flows.iter().filter_map(|f| f.cycle_s).collect();
    cycles.sort_by(f64::total_cmp);
    cycles.dedup();
    cycles.iter().sum()
}

/// The course of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// As much as the system takes.
    FlatOut,
    /// A rate that changes as the study asks.
    Changing,
    /// One rate, or bursts that repeat.
    Even,
}

/// That of a flow.
fn load(flow: &FlowFigures) -> Load {
    match flow.flat_out {
        true => Load::FlatOut,
        false if changes(flow) => Load::Changing,
        false => Load::Even,
    }
}

/// Whether the rate of a flow changes as the study asks.
fn changes(flow: &FlowFigures) -> bool {
    !flow.rate_over_time.is_empty()
}

/// Whether a backlog grew, by its course and by its records.
fn judged(
    trial: &Trial,
    records: &[(f64, TrafficRecord)],
    (course, due): (&[(f64, u64)], &[u64]),
    cycle: f64,
    load: Load,
) -> Carried {
    let flat_out = load == Load::FlatOut;
    let points = match course {
        [] => backlog(records),
        course => course.iter().map(|(t, n)| (*t, *n as f64)).collect(),
    };
    // Deliveries due never become less; some may be refused later. Flat out they are what the system takes.
    let known = !flat_out && due.len() == points.len();
    let mut most = 0;
    let due = due.iter().map(|due| {
        most = most.max(*due);
        most as f64
    });
    let due: Vec<f64> = due.filter(|_| known).collect();
    // Messages leave together, as the study asks.
    let cycle = cycle + trial.circumstances.client.pacing_within as f64 / 1e9;
    if load == Load::Changing && known {
        let changing = ChangingLoad {
            points: &points,
            due: &due,
            silence: silence(trial),
            cycle,
        };
        return changing.carried();
    }
    // Flat out, the buffers before the system fill first: in the record in which sending begins.
    let begun = records.iter().find(|(_, record)| record.published > 0);
    let filled = begun
        .or(records.first())
        .map_or(0.0, |(_, first)| first.t_s);
    let from = if flat_out { filled - 1e-6 } else { 0.0 };
    let points: Vec<(f64, f64)> = points.into_iter().filter(|p| p.0 >= from).collect();
    let begins = points.first().map_or(0.0, |p| p.0);
    let counted = records
        .iter()
        .filter(|(_, record)| record.t_s > begins + 1e-6);
    let silence = silence(trial);
    // A stall is no lump: what comes usually comes sooner.
    let usual = trial.messages.latency_ns.p50.unwrap_or(0) as f64 / 1e9;
    let lumps = flat_out && silence <= thresholds::SILENCE_FACTOR * usual;
    let course = Course {
        delivered: counted.map(|(_, record)| record.delivered as f64).sum(),
        points,
        due,
        before: warmed_up(trial),
        rose: quarters(records).filter(|(first, last)| is_rise(trial, *first, *last)),
        cycle,
        silence,
        for_rate: if lumps {
            silence / thresholds::LUMP_OF_RATE
        } else {
            0.0
        },
    };
    match course.carried() {
        Carried::Not(growth) => Carried::Not(growth),
        told => match endless(trial, records, &course) {
            // Where nothing swings, a straight line tells more than spans of so short a measurement.
            Carried::Not(growth)
                if matches!(told, Carried::All) || cycle + course.lumps() <= 0.0 =>
            {
                Carried::Not(growth)
            }
            unclear @ Carried::Unknown { .. } if matches!(told, Carried::All) => unclear,
            _ => told,
        },
    }
}

/// Seconds for which the load had lasted when the measurement began, by what was published before and in it.
fn warmed_up(trial: &Trial) -> f64 {
    let rate = trial.messages.published_msgs_per_s;
    if rate > 0.0 {
        trial.at_start.published as f64 / rate
    } else {
        0.0
    }
}

/// The smallest change of a latency that counts, ns. Messages that are gathered leave up to that span after they are due, and
/// by how much may shift at any time. Between hosts the clocks may wander within their bounds meanwhile; where these are not
/// known, no change counts.
pub(super) fn least_rise(trial: &Trial) -> f64 {
    let wander = |bound: Option<u64>| bound.map_or(f64::INFINITY, |bound| 2.0 * bound as f64);
    let clocks = trial
        .one_way
        .map_or(0.0, |one_way| wander(one_way.bound_ns));
    let gathered = trial.circumstances.client.pacing_within as f64;
    gathered + thresholds::LATENCY_FLOOR_NS.max(clocks)
}

/// Whether one median latency is larger than another by more than may be chance, ns.
fn is_rise(trial: &Trial, low: f64, high: f64) -> bool {
    high > thresholds::LATENCY_FACTOR * low && high - low > least_rise(trial)
}

/// Whether the latency of a flow rose, which the course of all flows together may hide.
pub(super) fn rises_in_a_flow(trial: &Trial) -> bool {
    trial.flows.iter().any(|flow| {
        let records = records_within(trial, flow.series.iter().copied());
        quarters(&records).is_some_and(|(first, last)| is_rise(trial, first, last))
    })
}

/// A backlog or, in a paced trial, a latency that grew little, but in a straight line that would
/// not end: the load is slightly more than the system can carry. Records see no more than one moment of a cycle
/// of arrivals, or of a lump: less growth than those make is none.
fn endless(trial: &Trial, records: &[(f64, TrafficRecord)], course: &Course) -> Carried {
    let swing = course.cycle + course.silence;
    let told = |(from, to): (f64, f64), delays, seconds, kind| match DelayGrowth::classify(
        delays,
        seconds,
        course.before,
    ) {
        DelayGrowth::Queue => Carried::Not(Growth {
            flow: None,
            kind,
            from,
            to,
            seconds,
        }),
        DelayGrowth::Unclear { needs_s } => course.unclear(needs_s),
        DelayGrowth::Nothing => Carried::All,
    };
    let rate = course.due_per_s().max(f64::MIN_POSITIVE);
    if let Some((from, to, seconds)) = climb(&overdue(records, course))
        && to - from >= thresholds::BACKLOG_FLOOR.max(swing * course.due_per_s())
    {
        let way = course.under_way();
        let (from, to) = (from.max(0.0) + way, to + way);
        return told((from, to), (from / rate, to / rate), seconds, Kind::Slow);
    }
    let latency: Vec<(f64, f64)> = records
        .iter()
        .filter(|(_, second)| second.latency_p50_ns > 0)
        .map(|(_, second)| (second.t_s, second.latency_p50_ns as f64))
        .collect();
    // Under a load that changes, latency may change with it.
    let judged = !trial.workload.flat_out && same_load(records);
    let Some((from, to, seconds)) = climb(&latency).filter(|_| judged) else {
        return Carried::All;
    };
    let rise = to - from;
    let material =
        rise >= least_rise(trial).max(swing * 1e9) && rise >= thresholds::LATENCY_RISE_SHARE * from;
    if material {
        told((from, to), (from / 1e9, to / 1e9), seconds, Kind::Latency)
    } else {
        Carried::All
    }
}

/// The overdue deliveries at the end of each record.
fn overdue(records: &[(f64, TrafficRecord)], course: &Course) -> Vec<(f64, f64)> {
    let backlog = backlog(records);
    if course.due.is_empty() {
        return backlog;
    }
    let overdue = course.overdue();
    let steps = overdue.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let step = steps.fold(0.0, f64::max);
    let at = |(t, _): &(f64, f64)| {
        let later = overdue.partition_point(|point| point.0 < t - 1e-6);
        overdue
            .get(later)
            .filter(|point| point.0 <= t + step)
            .map(|point| (*t, point.1))
    };
    backlog.iter().filter_map(at).collect()
}

/// Whether as much was due at the end of the measurement as at its beginning.
fn same_load(records: &[(f64, TrafficRecord)]) -> bool {
    let quarter = (records.len() / 4).max(1);
    let rate = |part: &[(f64, TrafficRecord)]| {
        let due: u64 = part.iter().map(|(_, second)| second.due).sum();
        due as f64 / part.iter().map(|(length, _)| length).sum::<f64>()
    };
    if records.is_empty() {
        return true;
    }
    let (first, last) = (
        rate(&records[..quarter]),
        rate(&records[records.len() - quarter..]),
    );
    (first - last).abs() <= thresholds::SAME_LOAD * first.max(last)
}

/// Everything that is due and has not come, inside the system or held back before it.
fn queue(second: &TrafficRecord) -> f64 {
    second.backlog as f64 + second.waiting as f64
}

fn backlog(records: &[(f64, TrafficRecord)]) -> Vec<(f64, f64)> {
    let point = |(_, second): &(f64, TrafficRecord)| (second.t_s, queue(second));
    records.iter().map(point).collect()
}

/// Points that rise in a straight line to the end: first and last value of the line, and the
/// seconds between them. The slope exceeds its error clearly, with the correlation of neighbouring
/// points taken into account; each quarter is higher than the one before; and the second half rises
/// at least half as fast as the whole, so that it is not levelling off.
fn climb(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    if points.len() < thresholds::RECORDS_ALONE {
        return None;
    }
    let line = LinearFit::through(points)?;
    let error = line.error * line.autocorrelation_factor(points);
    let quarter = points.len() / 4;
    let mean = |part: &[(f64, f64)]| part.iter().map(|p| p.1).sum::<f64>() / part.len() as f64;
    let means: Vec<f64> = (0..4)
        .map(|q| match q {
            3 => mean(&points[3 * quarter..]),
            q => mean(&points[q * quarter..(q + 1) * quarter]),
        })
        .collect();
    let second_half = LinearFit::through(&points[points.len() / 2..])?;
    let climbs = line.slope > 0.0
        && chance_beyond(line.slope / error, (points.len() - 2) as f64)
            < thresholds::SLOPE_CHANCE_ALONE
        && means.windows(2).all(|pair| pair[1] > pair[0])
        && second_half.slope >= thresholds::SLOPE_LASTS * line.slope;
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    climbs.then(|| (line.value_at(first), line.value_at(last), last - first))
}

/// Median latency of the first and of the last quarter of the records (at least one each), each
/// the mean of the records' medians weighted by deliveries. `None` without deliveries in both.
fn quarters(records: &[(f64, TrafficRecord)]) -> Option<(f64, f64)> {
    if records.len() < 2 {
        return None;
    }
    let quarter = (records.len() / 4).max(1);
    let mean = |part: &[(f64, TrafficRecord)]| {
        // A record may hold only deliveries of the warm-up, which have no latency here.
        let part = part.iter().filter(|(_, second)| second.latency_p50_ns > 0);
        let part: Vec<&(f64, TrafficRecord)> = part.collect();
        let count: u64 = part.iter().map(|(_, second)| second.delivered).sum();
        let sum: f64 = part
            .iter()
            .map(|(_, second)| second.latency_p50_ns as f64 * second.delivered as f64)
            .sum();
        (count > 0).then(|| sum / count as f64)
    };
    Some((
        mean(&records[..quarter])?,
        mean(&records[records.len() - quarter..])?,
    ))
}

/// Why the delivery rate is not steady, if it is not.
///
/// Flat out, this looks at the deliveries; paced, at the deliveries against those due in the same
/// record, since a schedule of a few devices is itself uneven. Chance is that of messages: the
/// deliveries of one message come together.
pub(super) fn rate_unsteady(trial: &Trial) -> Option<Reason> {
    let records = measured(trial);
    let delivered: u64 = records.iter().map(|(_, second)| second.delivered).sum();
    let published: u64 = records.iter().map(|(_, second)| second.published).sum();
    let seconds: f64 = records.iter().map(|(length, _)| length).sum();
    if records.len() < 4 || delivered == 0 || seconds <= 0.0 {
        return None;
    }
    let mean = delivered as f64 / seconds;
    let due: u64 = records.iter().map(|(_, second)| second.due).sum();
    let messages = match published {
        0 => delivered,
        published => published.min(delivered),
    } as f64;
    // The rate of each record as a share of the mean rate.
    let shares: Vec<f64> = records
        .iter()
        .map(|(length, second)| {
            let surplus = if trial.workload.flat_out || due == 0 {
                0.0
            } else {
                second.due as f64 / due as f64 * delivered as f64 - mean * length
            };
            (second.delivered as f64 - surplus) / length / mean
        })
        .collect();
    let half = shares.len() / 2;
    let average = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, second) = (
        average(&shares[..half]),
        average(&shares[shares.len() - half..]),
    );
    let differ = (first - second).abs() / first.max(second).max(f64::MIN_POSITIVE);
    // Two halves of this many messages differ by chance too: three standard deviations.
    let chance = 3.0 * (4.0 / messages).sqrt();
    let short = seconds < thresholds::SHORT_S;
    let limit = if short {
        thresholds::HALVES_DIFFER_SHORT
    } else {
        thresholds::HALVES_DIFFER
    };
    if differ > limit.max(chance) {
        // A half that delivers nothing although more than its share was due comes out below zero: it is told as 0.
        let rate = |half: f64| (half * mean).max(0.0) + 0.0;
        let text = format!(
            "the first half delivered {:.0} msgs/s and the second {:.0} msgs/s: {:.0} % apart \
             (limit {:.0} %)",
            rate(first),
            rate(second),
            differ * 100.0,
            limit * 100.0
        );
        let reason = Reason::new(Rule::RateWanders, text);
        return Some(reason.limited(Evidence::HalvesDiffer, differ, limit.max(chance)));
    }
    if trial.workload.flat_out
        && let Changed::Yes(change) = steps::changed(&rates(&records))
    {
        return Some(rate_changed(&change));
    }
    if short {
        return None;
    }
    let n = shares.len() as f64;
    let centre = average(&shares);
    let variance = shares
        .iter()
        .map(|share| (share - centre).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    let by_chance = n / messages;
    let variation = (variance - by_chance).max(0.0).sqrt() / centre.max(f64::MIN_POSITIVE);
    (variation > thresholds::RATE_VARIATION).then(|| {
        let text = format!(
            "the delivery rate varied by {:.0} % around {:.0} msgs/s over {} records (limit {:.0} %)",
            variation * 100.0,
            mean,
            shares.len(),
            thresholds::RATE_VARIATION * 100.0
        );
        let reason = Reason::new(Rule::RateWanders, text);
        reason.limited(Evidence::RateVariation, variation, thresholds::RATE_VARIATION)
    })
}

/// The rate of each record, per second, and its end, s.
fn rates(records: &[(f64, TrafficRecord)]) -> Vec<(f64, f64)> {
    let rate =
        |(length, second): &(f64, TrafficRecord)| (second.t_s, second.delivered as f64 / length);
    records.iter().map(rate).collect()
}

/// Why a flat-out rate is that of two systems.
fn rate_changed(change: &Change) -> Reason {
    let text = format!(
        "{change}: {:.0} % apart, more than it varies from record to record (limit {:.0} %)",
        change.share() * 100.0,
        thresholds::RATE_CHANGE * 100.0
    );
    let reason = Reason::new(Rule::RateWanders, text)
        .figure(Evidence::FirstRate, change.from)
        .figure(Evidence::LastRate, change.to);
    reason.limited(
        Evidence::ChangeShare,
        change.share(),
        thresholds::RATE_CHANGE,
    )
}

/// For a flat-out rate of which so few records do not tell whether it is that of two systems: how long a measurement
/// would have to be, s, and why.
pub(super) fn rate_unclear(trial: &Trial) -> Option<(f64, String)> {
    if !trial.workload.flat_out || trial.circumstances.rate_varies_by_design {
        return None;
    }
    let records = measured(trial);
    let Changed::Unclear(change) = steps::changed(&rates(&records)) else {
        return None;
    };
    let length = records.last().map_or(0.0, |(_, record)| record.t_s);
    // Those of a longer measurement last a second at least.
    let record_s = (length / records.len() as f64).max(1.0);
    let needs_s = record_s * thresholds::RATE_CHANGE_RECORDS as f64;
    let why = format!(
        "{} of measurement are too short to tell whether the rate is one: {change}, which may be chance in {} \
         records; {} or more would do",
        carried::seconds(length),
        records.len(),
        carried::seconds(needs_s)
    );
    Some((needs_s, why))
}

/// Why latency is not steady, if it is not. Needs [`thresholds::SHORT_S`] seconds.
pub(super) fn latency_unsteady(trial: &Trial) -> Option<Reason> {
    let records = measured(trial);
    let seconds: f64 = records.iter().map(|(length, _)| length).sum();
    if records.len() < 4 || seconds < thresholds::SHORT_S {
        return None;
    }
    let (first, last) = if trial.circumstances.rate_varies_by_design {
        cycles(trial, &records)?
    } else {
        quarters(&records)?
    };
    let (low, high, rule, went) = if first < last {
        (first, last, Rule::LatencyWanders, "went")
    } else {
        (last, first, Rule::LatencyFalls, "fell")
    };
    is_rise(trial, low, high).then(|| {
        let text = format!(
            "median latency {went} from {:.3} ms in the first quarter to {:.3} ms in the last{} \
             (limit: a factor of {})",
            first / 1e6,
            last / 1e6,
            if trial.circumstances.rate_varies_by_design {
                ", over whole cycles of the arrivals,"
            } else {
                ""
            },
            thresholds::LATENCY_FACTOR
        );
        let reason = Reason::new(rule, text);
        reason.limited(Evidence::Latency, high, thresholds::LATENCY_FACTOR * low)
    })
}

/// The end of the last record in which a good part of what came was of the warm-up, s: a queue that stood when the
/// measurement began. Its latencies are not known, and those of the cycle that it is in would lack the largest.
fn without_warm_up(trial: &Trial, records: &[(f64, TrafficRecord)]) -> f64 {
    let mut left = trial.at_start.backlog as f64;
    let mut start = 0.0;
    for (_, record) in records {
        if left <= thresholds::OF_WARM_UP * record.delivered as f64 {
            break;
        }
        left -= record.delivered as f64;
        start = record.t_s;
    }
    start
}

/// Median latency of the first and of the last quarter in whole cycles of the arrivals (one at least), of arrivals that
/// repeat: the mean of the records' medians weighted by the deliveries that fall into those cycles. `None` for other
/// arrivals, and where the measurement has no two cycles.
fn cycles(trial: &Trial, records: &[(f64, TrafficRecord)]) -> Option<(f64, f64)> {
    let cycles: Option<Vec<f64>> = trial.flows.iter().map(|flow| flow.cycle_s).collect();
    let cycle = cycles?.into_iter().fold(0.0, f64::max);
    let (start, end) = (without_warm_up(trial, records), records.last()?.1.t_s);
    let quarter = cycle * ((end - start) / 4.0 / cycle).round().max(1.0);
    let later = cycle * ((end - start - quarter) / cycle + 1e-9).floor();
    if cycle <= 0.0 || later < quarter {
        return None;
    }
    // Deliveries and the sum of their medians, and what was due, from a time on.
    let sums = |from: f64| {
        let mut sums = (0.0, 0.0, 0.0);
        for (length, second) in records {
            let inside = (from + quarter).min(second.t_s) - from.max(second.t_s - length);
            let share = (inside / length).clamp(0.0, 1.0);
            sums.2 += share * second.due as f64;
            if second.latency_p50_ns > 0 {
                sums.0 += share * second.delivered as f64;
                sums.1 += share * second.delivered as f64 * second.latency_p50_ns as f64;
            }
        }
        sums
    };
    let (first, last) = (sums(start), sums(start + later));
    let same = (first.2 - last.2).abs() <= thresholds::SAME_LOAD * first.2.max(last.2);
    (same && first.0 > 0.0 && last.0 > 0.0).then(|| (first.1 / first.0, last.1 / last.0))
}

/// The records of the measurement itself (the series includes the drain) with the length of each in
/// seconds. Records shorter than half the usual length are left out: a rate over a few milliseconds
/// is chance.
fn measured(trial: &Trial) -> Vec<(f64, TrafficRecord)> {
    records_within(trial, trial.series.iter().map(|record| record.traffic))
}

/// A record of one flow, without the latencies: their growth is judged over all flows together.
fn without_latencies(record: &TrafficRecord) -> TrafficRecord {
    TrafficRecord {
        latency_p50_ns: 0,
        latency_p90_ns: 0,
        latency_p99_ns: 0,
        latency_max_ns: 0,
        latency_from_send_p90_ns: 0,
        ..*record
    }
}

fn records_within(
    trial: &Trial,
    series: impl Iterator<Item = TrafficRecord>,
) -> Vec<(f64, TrafficRecord)> {
    let mut start = 0.0;
    let mut records = Vec::new();
    for second in series {
        let length = second.t_s - start;
        start = second.t_s;
        // Half a record of grace: the last one may end a little after the measurement.
        if second.t_s - length / 2.0 <= trial.duration_s && length > 0.0 {
            records.push((length, second));
        }
    }
    let mut lengths: Vec<f64> = records.iter().map(|(length, _)| *length).collect();
    lengths.sort_by(f64::total_cmp);
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
    records.retain(|(length, _)| *length >= usual / 2.0);
    records
}
