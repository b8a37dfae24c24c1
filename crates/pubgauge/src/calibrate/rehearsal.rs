//! `pubgauge calibrate --search`: searches over simulated systems whose limit is known, in simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use pubgauge_campaign::default_criterion;
use pubgauge_command::exit::{Ending, FINE, NOT_VALID};
use pubgauge_figures::search::{LimitedBy, Purpose};
use pubgauge_quantities::shown::count;
use pubgauge_runner::simulated::search;
use pubgauge_search::Question;
use pubgauge_simulator::Behaviour;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};
use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::args::CalibrateArgs;
use crate::signals;

/// Length of confirming trials, s: that of `pubgauge find`.
const CONFIRM_S: u64 = 45;
/// Share of intervals that must contain the limit, of [`TELLING`] searches or more.
const MUST_HOLD: f64 = 0.93;
/// Fewest searches whose share is compared with [`MUST_HOLD`].
const TELLING: u64 = 100;
/// Nominal confidence of an interval.
const PROMISED: f64 = 0.95;
/// Of fewer searches, too few contain the limit if so few or fewer would have less than this probability
/// at [`PROMISED`].
const CHANCE: f64 = 0.05;

/// One search.
#[derive(Clone, Debug, Serialize)]
struct Rehearsed {
    limit: f64,
    low: Option<f64>,
    high: Option<f64>,
    confirmed: Option<f64>,
    bound: LimitedBy,
    trials: usize,
}

/// The result of all searches.
#[derive(Debug, Serialize)]
struct Rehearsal {
    searches: usize,
    noise: f64,
    held: usize,
    median_width: f64,
    median_trials: f64,
    each: Vec<Rehearsed>,
}

impl Rehearsed {
    fn holds(&self) -> bool {
        let (low, high) = (self.low.unwrap_or(0.0), self.high.unwrap_or(f64::INFINITY));
        low <= self.limit && self.limit <= high
    }

    fn width(&self) -> f64 {
        let interval = self.low.zip(self.high);
        interval.map_or(f64::INFINITY, |(low, high)| high / low - 1.0)
    }
}

/// Runs so many searches, on all processors, and reports how many intervals contain the limit.
///
/// # Errors
/// If the user ends it, or a search cannot be run.
pub fn rehearse(searches: u32, args: &CalibrateArgs) -> Result<i32, Ending> {
    let stop = signals::install().map_err(Ending::not_valid)?;
    let output = &args.output;
    output.remark(&format!(
        "{searches} searches in simulated time, some seconds each"
    ));
    let each = rehearse_all(searches, args, &stop)?;
    let median = |of: fn(&Rehearsed) -> f64| {
        let mut values: Vec<f64> = each.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let rehearsal = Rehearsal {
        searches: each.len(),
        noise: args.noise,
        held: each.iter().filter(|one| one.holds()).count(),
        median_width: median(Rehearsed::width),
        median_trials: median(|one| one.trials as f64),
        each,
    };
    output.print_result(&rehearsal, || describe(&rehearsal));
    if too_few(rehearsal.held as u64, rehearsal.searches as u64) {
        Ok(NOT_VALID)
    } else {
        Ok(FINE)
    }
}

/// Whether `held` intervals of `searches` are fewer than must contain the limit.
fn too_few(held: u64, searches: u64) -> bool {
    if searches >= TELLING {
        return (held as f64) < MUST_HOLD * searches as f64;
    }
    Binomial::new(PROMISED, searches).is_ok_and(|promised| promised.cdf(held) < CHANCE)
}

fn rehearse_all(
    searches: u32,
    args: &CalibrateArgs,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Rehearsed>, Ending> {
    let (next, over) = (AtomicU32::new(0), AtomicU32::new(0));
    let worker = || -> Result<Vec<Rehearsed>, Ending> {
        let mut own = Vec::new();
        while !stop.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            if number >= searches {
                break;
            }
            own.push(rehearse_one(number, searches, args)?);
            let over = over.fetch_add(1, Relaxed) + 1;
            args.output.remark(&format!("{over} of {searches}"));
        }
        Ok(own)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let done: Result<Vec<_>, Ending> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|worker| worker.join());
        let ended = ended.map(|own| own.expect("a search does not panic"));
        ended.collect()
    });
    let mut done = done?.concat();
    if stop.load(Relaxed) {
        return Err(Ending::not_valid("ended by the user"));
    }
    done.sort_by(|a, b| a.limit.total_cmp(&b.limit));
    Ok(done)
}

/// A search over a system whose limit is the `number`-th of `of`, evenly over orders of magnitude.
fn rehearse_one(number: u32, of: u32, args: &CalibrateArgs) -> Result<Rehearsed, Ending> {
    let (least, most) = args.limits;
    let place = (f64::from(number) + 0.5) / f64::from(of);
    let limit = least * (most / least).powf(place);
    let mut draws = StdRng::seed_from_u64(u64::from(number));
    let noise = Normal::new(0.0, args.noise).map_err(Ending::not_valid)?;
    let behaves = || {
        let takes: f64 = limit * f64::exp(noise.sample(&mut draws));
        Behaviour {
            service_ns: (1e9 / takes).round() as u64,
            seed: draws.random(),
            ..Behaviour::default()
        }
    };
    let criteria = [default_criterion(0, None)];
    let found = search(&Question::default(), &criteria, CONFIRM_S, behaves);
    let found = found.map_err(Ending::not_valid)?;
    let deciding = found.trials.iter().filter(|t| t.purpose != Purpose::Cost);
    Ok(Rehearsed {
        limit,
        low: found.low,
        high: found.high,
        confirmed: found.confirmed,
        bound: found.bound,
        trials: deciding.count(),
    })
}

fn describe(r: &Rehearsal) -> String {
    let mut text = format!(
        "{} of {} intervals hold the planted limit (asked: {:.0} %)\nmedian width {:.1} %, median of {:.0} trials, {:.0} % noise from trial to trial\n",
        r.held,
        r.searches,
        MUST_HOLD * 100.0,
        r.median_width * 100.0,
        r.median_trials,
        r.noise * 100.0
    );
    for one in r.each.iter().filter(|one| !one.holds()) {
        let show = |end: Option<f64>| end.map_or("-".into(), |end| count(end.round() as u64));
        text.push_str(&format!(
            "  {} was found to lie between {} and {}\n",
            count(one.limit.round() as u64),
            show(one.low),
            show(one.high)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_few_are_too_few() {
        let least = |searches| (0..=searches).find(|held| !too_few(*held, searches));
        assert_eq!(least(1), Some(0));
        assert_eq!(least(2), Some(1));
        assert_eq!(least(20), Some(17));
        assert_eq!(least(100), Some(93));
        assert_eq!(least(1000), Some(930));
    }
}
