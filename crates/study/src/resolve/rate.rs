//! Rates that change over time, from the study file to plain data.

use pubgauge_quantities::Span;
use pubgauge_quantities::shown::number;
use pubgauge_workload::{Arrivals, RateCurve, RatePiece, SECOND, Workload};

use crate::clash::Clashes;
use crate::file::{DailyFile, RampFile, StepFile, VaryingRate};

/// Most steps of a rate: the plan, the workers and the page have each of them.
const MOST_STEPS: usize = 1000;

/// The shortest day.
const LEAST_DAY: Span = Span(SECOND);

/// As plain data, of so many publishers.
pub(super) fn curve(rate: &VaryingRate, publishers: usize, clashes: &mut Clashes<'_>) -> RateCurve {
    let mut clashes = clashes.below(&["rate"]);
    match rate {
        VaryingRate::Steps(steps) => of_steps(steps, publishers, &mut clashes),
        VaryingRate::Ramp(ramp) => of_ramp(ramp, publishers, &mut clashes.below(&["ramp"])),
        VaryingRate::Daily(daily) => of_days(daily, publishers, &mut clashes.below(&["daily"])),
    }
}

fn of_steps(steps: &[StepFile], publishers: usize, clashes: &mut Clashes<'_>) -> RateCurve {
    if steps.is_empty() || steps.len() > MOST_STEPS {
        let message = format!("{} steps: a rate has 1 to {MOST_STEPS}", steps.len());
        let example = "such as steps = [{ to = \"100/s\", for = \"10s\" }, { to = \"1k/s\" }]";
        clashes.hinted("steps", message, Some(example.into()));
    }
    for (nth, step) in steps.iter().enumerate() {
        let mut clashes = clashes.below(&["steps", &nth.to_string()]);
        match step.lasts {
            Some(Span(0)) => clashes.add("for", "a step must be longer than 0"),
            None if nth + 1 < steps.len() => clashes.hinted(
                "",
                "nothing says for how long this step lasts; only the last one goes on to the end",
                Some("add `for`, such as for = \"10s\"".into()),
            ),
            _ => {}
        }
    }
    let level = |step: &StepFile| {
        // The last rate holds, whatever the length of its piece.
        let lasts = step.lasts.map_or(SECOND, |span| span.0);
        RatePiece::level(step.to.per_s(publishers), lasts)
    };
    let pieces: Vec<RatePiece> = steps.iter().map(level).collect();
    if publishers > 0 && !steps.is_empty() && pieces.iter().all(|piece| piece.from_per_s == 0.0) {
        clashes.hinted(
            "steps",
            "no step sends anything",
            Some("publishers that send nothing: `publishers = 0`".into()),
        );
    }
    RateCurve::steps(pieces)
}

fn of_ramp(ramp: &RampFile, publishers: usize, clashes: &mut Clashes<'_>) -> RateCurve {
    if ramp.lasts == Some(Span(0)) {
        clashes.add("for", "a ramp must be longer than 0");
    }
    let [from, to] = [ramp.from, ramp.to].map(|level| level.per_s(publishers));
    if from == to && publishers > 0 {
        clashes.hinted(
            "to",
            format!("a ramp from {} to {} does not change", ramp.from, ramp.to),
            Some(format!("write rate = \"{}\"", ramp.to)),
        );
    }
    RateCurve {
        stretched: ramp.lasts.is_none(),
        ..RateCurve::ramp(from, to, ramp.lasts.map_or(SECOND, |span| span.0))
    }
}

fn of_days(daily: &DailyFile, publishers: usize, clashes: &mut Clashes<'_>) -> RateCurve {
    let day = daily.day;
    if day < LEAST_DAY {
        clashes.add("day", format!("a day takes {LEAST_DAY} at the least"));
    }
    if let Some(peak) = daily.peak_at.filter(|peak| *peak >= day) {
        clashes.hinted(
            "peak-at",
            format!("the peak is {peak} after the beginning of a day, which takes {day}"),
            Some("`peak-at` is a time within the day".into()),
        );
    }
    let [low, high] = [daily.low, daily.high].map(|level| level.per_s(publishers));
    if high <= low && publishers > 0 {
        clashes.add(
            "high",
            format!("expected more than `low`, which is {}", daily.low),
        );
    }
    let peak = daily.peak_at.map_or(day.0 / 2, |peak| peak.0);
    RateCurve::daily((low, high), day.0.max(LEAST_DAY.0), peak)
}

/// Says of rates over time what of them is not reached, and makes those fit that take as long as their flow sends.
pub(super) fn fit_curves(workload: &mut Workload, notes: &mut Vec<String>) {
    workload.stretch_curves();
    let measure = workload.phases.measure.latest();
    for flow in &workload.flows {
        let Arrivals::Varying { curve, .. } = &flow.arrivals else {
            continue;
        };
        let sends = flow.sends_for(measure);
        // The last rate holds: it is reached if the pieces before it are over.
        let last = curve.pieces.last().map_or(0, |piece| {
            if !curve.repeats && piece.from_per_s == piece.to_per_s {
                piece.lasts
            } else {
                0
            }
        });
        let needs = curve.length() - last;
        if needs > sends || needs == sends && last > 0 {
            let s = |ns: u64| number(ns as f64 / SECOND as f64);
            notes.push(format!(
                "{}: flow `{}`: its rate over time is whole after {} s, but it sends for {} s: the rest of it is not reached",
                workload.name,
                flow.name,
                s(needs),
                s(sends)
            ));
        }
    }
}
