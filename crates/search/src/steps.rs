//! The steps of a search.

use std::cell::OnceCell;

use crate::faces::{Faces, Outcome, Outcomes};
use crate::question::{LimitEstimate, LimitedBy, Question, Step, StepOutcome, StepTaken};
use crate::threshold::{Posterior, Prior, Spreads};
use crate::wander::Wander;

/// Runs of a trial whose client was the bottleneck before that counts; and trials without a result in a row
/// before the search is given up.
const TRIES: usize = 3;
/// Fewest trials with a result.
const FEWEST: usize = 6;
/// Factor between loads while nothing shows roughly where the limit is.
const GROWTH: f64 = 4.0;
/// How far from the median the next load is, in widths of the interval; in turn, on alternating sides.
const OFFSETS: [f64; 3] = [0.10, 0.22, 0.35];
/// Long trials after as many as a search may have, if there is time for them.
const LONG_AFTER: usize = 4;
/// Loads that long trials may fail at before the search goes without a confirmed one.
const CONFIRMATIONS: usize = 4;
/// Share of the interval's lower end from which a long trial confirms it.
const CONFIRMS: f64 = 0.9;
/// The next long trial's load after one whose client was the bottleneck, as a share.
const CLIENT_STEP: f64 = 0.95;
/// Share around the interval within which a trial is near the limit.
const PACE_ZONE: f64 = 0.25;
/// Share above the interval's upper end up to which a client that was the bottleneck counts as the limit.
const CLIENT_ZONE: f64 = 0.25;
/// Trials below the limit, at the least, for each in which a client was the bottleneck, if the client is to be the
/// limit: one that is the bottleneck at any load is disturbed.
const DISTURBED: usize = 8;
/// Share by which a load may be too much without a short trial showing it: ten records in 5 s show a queue
/// that grows by 0.2 % of what is sent, if it grows evenly.
const UNSEEN: f64 = 0.005;
/// Largest share of a search's time that is kept for its first long trial. Where there is less time, short
/// trials come first.
const KEPT_FOR_LONG: f64 = 0.25;
/// Shares of the limit at which costs are measured.
const COSTS: [f64; 2] = [0.5, 0.9];

/// A trial with a result.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    load: f64,
    within: bool,
    client: bool,
    long: bool,
    achieved: f64,
    /// Clients that were taken, where others were turned away.
    took: Option<f64>,
}

fn outcomes<'a>(evidence: impl Iterator<Item = &'a Evidence>) -> Vec<(f64, bool)> {
    evidence.map(|e| (e.load, e.within)).collect()
}

/// The outcomes of trials, weighed.
struct View<'a> {
    question: &'a Question,
    evidence: Vec<Evidence>,
    /// Loads of all trials whose client was the bottleneck.
    clients: Vec<f64>,
    /// The cost of a message in trials with a given load: load, processor time in s.
    costs_of: Vec<(f64, f64)>,
    /// A trial without a result, which is to be run again.
    again: Option<Step>,
    /// The rate that the flat-out trial delivered; 0 if the system collapsed.
    flat_out: Option<f64>,
    trials: usize,
    seconds: f64,
    /// Seconds that the last short trial took, and the last long one; 0 without any.
    short_seconds: f64,
    long_seconds: f64,
    /// Whether only long trials show what is within.
    long_only: bool,
    costs: usize,
    /// [`TRIES`] trials in a row had no result.
    given_up: bool,
    /// Weighed once, when it is asked for.
    posterior: OnceCell<Posterior>,
}

impl<'a> View<'a> {
    fn new(question: &'a Question, seen: &[StepTaken]) -> View<'a> {
        let mut view = View {
            question,
            evidence: Vec::new(),
            clients: Vec::new(),
            costs_of: Vec::new(),
            again: None,
            flat_out: None,
            trials: 0,
            seconds: 0.0,
            short_seconds: 0.0,
            long_seconds: 0.0,
            long_only: false,
            costs: 0,
            given_up: false,
            posterior: OnceCell::new(),
        };
        let mut in_vain: Vec<&StepTaken> = Vec::new();
        for one in seen {
            view.seconds += one.seconds;
            if matches!(one.step, Step::Cost(_)) {
                view.costs += 1;
                continue;
            }
            view.trials += 1;
            view.costs_of.extend(one.step.load().zip(one.cost));
            if one.step.is_long() {
                view.long_seconds = one.seconds
            } else {
                view.short_seconds = one.seconds
            }
            // A client that is the bottleneck flat out does no harm: the trial shows roughly where the limit
            // is. A system that took messages flat out and delivered none would do so again.
            let told = match one.finding {
                StepOutcome::Within | StepOutcome::Beyond => true,
                StepOutcome::Client => one.step == Step::FlatOut,
                StepOutcome::Nothing => one.step == Step::FlatOut && one.collapsed(),
            };
            if told {
                in_vain.clear();
                view.take(one, false);
                continue;
            }
            in_vain.push(one);
            view.again = Some(one.step);
            let nothing = in_vain.iter().filter(|e| e.finding == StepOutcome::Nothing);
            view.given_up |= nothing.count() >= TRIES;
            // Where the client is known to be the limit, one trial says so too: above all that was within, and
            // for long.
            let client = one.finding == StepOutcome::Client;
            let load = one.step.load().filter(|_| client);
            view.clients.extend(load);
            let above =
                |load| one.step.is_long() || view.most_within().is_none_or(|most| load > most);
            let known = load.is_some_and(above) && view.deciding().any(|e| e.client);
            if (known || in_vain.len() >= TRIES) && !view.given_up {
                in_vain.clear();
                view.take(one, true);
            }
        }
        view
    }

    /// Takes the result of a trial; `client`: that the client is the bottleneck.
    fn take(&mut self, one: &StepTaken, client: bool) {
        self.again = None;
        let Some(load) = one.step.load() else {
            self.flat_out = Some(if one.collapsed() { 0.0 } else { one.achieved });
            return;
        };
        let evidence = Evidence {
            load,
            within: one.finding == StepOutcome::Within,
            client,
            long: one.step.is_long(),
            achieved: one.achieved,
            took: one.took,
        };
        let twice = |last: &Evidence| last.long && !last.within && last.load == evidence.load;
        let failed_again = evidence.long
            && !evidence.within
            && !evidence.client
            && self.evidence.last().is_some_and(twice);
        self.long_only |= failed_again;
        self.evidence.push(evidence);
    }

    /// The trials that decide. Where long trials fail, short ones that stayed within are left out. A client that
    /// was the bottleneck at one load and not at a larger one was disturbed: that is left out too, but the second
    /// time only if something stayed within at the larger one. A system that is behind takes in less than is
    /// offered, which may be less than what the client could not offer.
    fn deciding(&self) -> impl Iterator<Item = &Evidence> {
        let most = |of: fn(&&Evidence) -> bool| {
            let loads = self.evidence.iter().filter(of).map(|e| e.load);
            loads.fold(0.0, f64::max)
        };
        let (within, offered) = (most(|e| e.within), most(|e| !e.client));
        let above = self.evidence.iter().filter(|e| e.client && e.load > within);
        let undisturbed = if above.count() > 1 { within } else { offered };
        self.evidence.iter().filter(move |e| {
            if e.client {
                e.load > undisturbed
            } else {
                !self.long_only || e.long || !e.within
            }
        })
    }

    fn posterior(&self) -> &Posterior {
        self.posterior.get_or_init(|| self.weighed())
    }

    fn weighed(&self) -> Posterior {
        let prior = |about: Option<f64>| match about.filter(|load| *load >= self.question.least) {
            Some(load) => Prior::About(load),
            None => Prior::Between(self.question.least, self.question.most),
        };
        let decide = outcomes(self.deciding());
        if !self.long_only {
            return Posterior::new(prior(self.flat_out), Spreads::default(), &decide);
        }
        // Short trials say nothing of the limit of long ones, but how much trials differ.
        let short = outcomes(self.evidence.iter().filter(|e| !e.long && !e.client));
        let short = Posterior::new(prior(self.flat_out), Spreads::default(), &short);
        let failed = self.evidence.iter().filter(|e| e.long && !e.within);
        let kept_up = failed.map(|e| e.achieved).reduce(f64::min);
        Posterior::new(prior(kept_up), short.spreads(), &decide)
    }

    fn most_within(&self) -> Option<f64> {
        let within = self.deciding().filter(|e| e.within);
        within.map(|e| e.load).reduce(f64::max)
    }

    fn least_beyond(&self) -> Option<f64> {
        let beyond = self.deciding().filter(|e| !e.within);
        beyond.map(|e| e.load).reduce(f64::min)
    }

    /// The interval, if there are trials on both sides of it.
    fn interval(&self) -> Option<(f64, f64)> {
        if let Some(Faces { low, high, .. }) = self.faces() {
            return low.zip(high);
        }
        if let Some((low, high, _)) = self.turned_away() {
            return Some((low, high));
        }
        self.most_within()?;
        self.least_beyond()?;
        let (low, high) = self.posterior().interval();
        Some((self.below(low * (1.0 - UNSEEN)), self.above(high)))
    }

    fn outcomes(&self) -> Outcomes {
        let told = self.deciding().filter(|e| !e.client);
        Outcomes::new(told.map(|e| Outcome {
            load: e.load,
            within: e.within,
            achieved: e.achieved,
            long: e.long,
        }))
    }

    /// The two faces of a system, where long trials do not decide alone and it turned nobody away.
    fn faces(&self) -> Option<Faces> {
        let counts = !self.long_only && self.turned_away().is_none();
        self.outcomes().faces().filter(|_| counts)
    }

    /// Where clients were turned away: the most that were taken, the fewest of which some were turned away, and how many the
    /// system took of these. No chance is in that.
    fn turned_away(&self) -> Option<(f64, f64, f64)> {
        let low = self.most_within()?;
        let beyond = self.deciding().filter(|e| !e.within && !e.client);
        let beyond = beyond.min_by(|a, b| a.load.total_cmp(&b.load))?;
        (low < beyond.load).then_some((low, beyond.load, beyond.took?))
    }

    /// The next number of clients between the most that were taken and the fewest that were not; `None` where these are
    /// neighbours. A system may have taken more than the client knew of when it was told of the first refusal: from what it
    /// took the loads go up, ever faster.
    fn bisect_clients(&self) -> Option<Step> {
        let (low, high, took) = self.turned_away()?;
        let inside = |load: &f64| low < *load && *load < high;
        let middle = (low + high) / 2.0;
        let further = (low >= took).then(|| middle.min(low + (low - took).max(1.0)));
        let load = self.rounded(further.unwrap_or(took), f64::floor);
        inside(&load).then(|| self.measure(load))
    }

    /// A load that can be asked for: whole, or with four digits.
    fn rounded(&self, load: f64, round: fn(f64) -> f64) -> f64 {
        let load = load.clamp(self.question.least, self.question.most);
        let unit = if self.question.whole {
            1.0
        } else {
            10f64.powf(load.log10().floor() - 3.0)
        };
        let rounded = round(load / unit) * unit;
        // Without the noise of the last binary digits.
        let decimals = 10f64.powf((-unit.log10()).ceil().max(0.0));
        ((rounded * decimals).round() / decimals).clamp(self.question.least, self.question.most)
    }

    fn below(&self, load: f64) -> f64 {
        self.rounded(load, f64::floor)
    }

    fn above(&self, load: f64) -> f64 {
        self.rounded(load, f64::ceil)
    }

    fn narrow(&self, (low, high): (f64, f64)) -> bool {
        if self.faces().is_some() {
            return self.doubtful().is_none();
        }
        if self.turned_away().is_some() {
            return self.bisect_clients().is_none();
        }
        let width = high / low <= 1.0 + self.question.width;
        let step = self.question.whole && high - low <= 1.0;
        self.deciding().count() >= FEWEST && (width || step)
    }

    /// Seconds that a step takes: as many as the last one of its kind.
    fn expected_seconds(&self, step: Step) -> f64 {
        match (step.is_long(), self.long_seconds > 0.0) {
            (false, _) => self.short_seconds,
            (true, true) => self.long_seconds,
            // The time of a short trial includes the time that a trial takes beside its measurement.
            (true, false) => self.question.long_seconds + self.short_seconds,
        }
    }

    /// Whether there is time for a step, and for others after it that take so long, s.
    fn has_time_for(&self, step: Step, after: f64) -> bool {
        self.seconds + self.expected_seconds(step) + after <= self.question.most_seconds
    }

    /// Whether a step is one too many, by number or time. Once a load stayed within, the trials of the costs are
    /// kept time for, and, if it is not most of what there is, the first long one.
    fn spent(&self, step: Step) -> bool {
        let costs = COSTS.len() as f64 * self.short_seconds;
        let long = self.expected_seconds(Step::Long(0.0));
        let keeps_long = !step.is_long()
            && !self.tried_long()
            && long <= KEPT_FOR_LONG * self.question.most_seconds;
        let kept = match self.most_within() {
            None => 0.0,
            Some(_) if keeps_long => costs + long,
            Some(_) => costs,
        };
        let most = if step.is_long() {
            self.question.most_trials + LONG_AFTER
        } else {
            self.question.most_trials
        };
        self.trials >= most || (self.trials > 0 && !self.has_time_for(step, kept))
    }

    fn tried_long(&self) -> bool {
        self.evidence.iter().any(|e| e.long)
    }

    /// The highest load near the interval's lower end that a long trial stayed within.
    fn confirmed(&self) -> Option<f64> {
        let (low, _) = self.interval()?;
        let near = self.evidence.iter().filter(|e| e.long && e.within);
        let near = near.filter(|e| e.load >= CONFIRMS * low && e.load <= 1.01 * low);
        near.map(|e| e.load).reduce(f64::max)
    }

    fn measure(&self, load: f64) -> Step {
        if self.long_only {
            Step::Long(load)
        } else {
            Step::Short(load)
        }
    }

    /// The next load while all trials were on one side of the limit.
    fn onwards(&self) -> Option<Step> {
        let question = self.question;
        let load = match (self.most_within(), self.least_beyond()) {
            (Some(_), Some(_)) => return None,
            (None, None) => match self.flat_out.filter(|load| *load > 0.0) {
                // A little below what it delivered flat out: most systems carry that.
                Some(load) => 0.9 * load,
                None => question.start,
            },
            (Some(within), None) if within >= question.most => return Some(Step::End),
            (None, Some(beyond)) if beyond <= question.least => {
                // One trial may have failed by chance.
                let failed = self.deciding().filter(|e| e.load <= question.least);
                let again = failed.count() < 2;
                return Some(if again {
                    self.measure(beyond)
                } else {
                    Step::End
                });
            }
            // The limit is near the load that a flat-out trial has shown: then less than a factor of four.
            (Some(within), None) => within * self.stride(),
            (None, Some(_)) if self.took_fewer().is_some() => self.took_fewer()?,
            (None, Some(beyond)) => {
                // A client that may have been disturbed is not asked for the same load again.
                let clients = self.evidence.iter().filter(|e| e.client);
                clients.map(|e| e.load).fold(beyond, f64::min) / self.stride()
            }
        };
        Some(self.measure(self.rounded(load, f64::round)))
    }

    /// A load at which, or near which, trials contradict each other, to be measured once more.
    fn doubtful(&self) -> Option<Step> {
        let counts = !self.long_only && self.turned_away().is_none();
        let load = self
            .outcomes()
            .next(self.question.width)
            .filter(|_| counts)?;
        let load = self.rounded(load, f64::round);
        let smallest = self.question.least;
        let asked = load > smallest || self.faces().is_none_or(|faces| faces.failed > smallest);
        asked.then(|| self.measure(load))
    }

    fn stride(&self) -> f64 {
        let known = self.flat_out.is_some_and(|load| load > 0.0) || self.long_only;
        // Where long trials decide, short ones have brought them near.
        let told = self.deciding().filter(|e| e.long || !self.long_only);
        match (known, told.count()) {
            (true, 0..=2) => 1.25,
            (true, 3..=4) => 2.0,
            _ => GROWTH,
        }
    }

    /// How many clients a system took that turned others away, where none were few enough so far.
    fn took_fewer(&self) -> Option<f64> {
        let took = self.deciding().filter_map(|e| e.took);
        let took = took.reduce(f64::min)?;
        (self.question.least..self.least_beyond()?)
            .contains(&took)
            .then_some(took)
    }

    /// The next load around the median, above and below it in turn.
    fn around(&self) -> Step {
        let posterior = self.posterior();
        let (low, high) = posterior.interval();
        let nth = self.evidence.len();
        let side = if nth.is_multiple_of(2) { -1.0 } else { 1.0 };
        // While one trial alone bounds the limit on a side, the interval reaches far beyond where the limit likely is.
        let width = (high / low).min(GROWTH).ln();
        let offset = side * OFFSETS[nth / 2 % OFFSETS.len()] * width;
        let load = posterior.quantile(0.5) * offset.exp();
        self.measure(self.rounded(load, f64::round))
    }

    /// The remaining steps when the interval is known.
    fn confirm(&self) -> Option<Step> {
        let (low, _) = self.interval()?;
        let last = self.evidence.last()?;
        let repeats = self.trials < self.question.most_trials && !self.long_only;
        if last.long && !last.within && !last.client && repeats {
            // Once more at the same load: one long trial may have failed by chance.
            return Some(Step::Long(last.load));
        }
        let long = || self.evidence.iter().filter(|e| e.long);
        let mut loads: Vec<f64> = long().map(|e| e.load).collect();
        loads.dedup();
        // Where the client does not last, less of it may.
        let clients = long().filter(|e| e.client).map(|e| CLIENT_STEP * e.load);
        let load = self.below(clients.fold(low, f64::min));
        let tries = self.long_only || loads.len() < CONFIRMATIONS && load >= CONFIRMS * low;
        (self.confirmed().is_none() && tries).then_some(Step::Long(load))
    }

    fn cost(&self) -> Step {
        let base = self.confirmed().or(self.estimate().low);
        match (COSTS.get(self.costs), base) {
            (Some(share), Some(base)) => {
                let step = Step::Cost(self.rounded(share * base, f64::round));
                if self.has_time_for(step, 0.0) {
                    step
                } else {
                    Step::End
                }
            }
            _ => Step::End,
        }
    }

    fn next(&self) -> Step {
        if self.given_up {
            return Step::End;
        }
        let step = self.wanted();
        if matches!(step, Step::Cost(_) | Step::End) || !self.spent(step) {
            return step;
        }
        // Long trials show that what is known by then lasts; the first of them matters more than the costs.
        match self.confirm() {
            Some(long) if !self.spent(long) => long,
            Some(long) if !self.tried_long() && self.has_time_for(long, 0.0) => long,
            _ => self.cost(),
        }
    }

    /// The next trial if there is time for it.
    fn wanted(&self) -> Step {
        if self.question.flat_out && self.flat_out.is_none() {
            return Step::FlatOut;
        }
        if let Some(again) = self.again {
            return again;
        }
        match self.onwards() {
            Some(Step::End) => return self.cost(),
            Some(step) => return step,
            None => {}
        }
        if let Some(step) = self.doubtful().or_else(|| self.bisect_clients()) {
            return step;
        }
        let last = self.evidence.last();
        let failed_long = last.is_some_and(|e| e.long && !e.within) && !self.long_only;
        match self.interval() {
            Some(interval) if failed_long || self.narrow(interval) => {
                self.confirm().unwrap_or_else(|| self.cost())
            }
            _ => self.around(),
        }
    }

    fn estimate(&self) -> LimitEstimate {
        let within = self.most_within();
        let beyond = self.least_beyond();
        let interval = self.interval();
        let faces = self.faces();
        let high = match faces {
            Some(faces) => faces.high,
            None => interval.map(|(_, high)| high).or(beyond),
        };
        // A client that is the bottleneck near the limit may be the limit; so may one that often is, and hardly
        // ever below, even if other trials say that the system is behind.
        let zone = high.unwrap_or(f64::INFINITY) * (1.0 + CLIENT_ZONE);
        let above = |load: f64| within.is_none_or(|within| load > within);
        let near = |load: f64| above(load) && load <= zone;
        let told = || self.evidence.iter().filter(|e| !e.client);
        let behind = told().filter(|e| near(e.load)).count();
        let below = told().filter(|e| !above(e.load)).count();
        let clients = self.clients.iter().filter(|load| near(**load)).count();
        let disturbed = self.clients.iter().filter(|load| !above(**load)).count();
        let often = clients >= TRIES && 2 * clients >= behind && DISTURBED * disturbed <= below;
        let client = often || self.deciding().any(|e| e.client && e.load <= zone);
        let low = match faces {
            Some(faces) => faces.low,
            None => interval.map(|(low, _)| low).or(within),
        };
        let least = |load: f64| load <= self.question.least;
        let bound = match (client, interval) {
            (true, _) => LimitedBy::Client,
            (false, Some(interval)) if self.narrow(interval) => LimitedBy::System,
            // Only a failure at the smallest load says that there is no limit.
            (false, None) if within.is_none() && beyond.is_some_and(least) => LimitedBy::System,
            _ => LimitedBy::Budget,
        };
        let wander = self.wander();
        let slower = |load: f64| wander.map_or(load, |w| self.below(load * w.median / w.most));
        let faster = |load: f64| wander.map_or(load, |w| self.above(load * w.median / w.least));
        LimitEstimate {
            low: match bound {
                LimitedBy::Client => low.zip(within).map(|(low, within)| low.min(within)),
                _ => low.map(slower),
            },
            high: high.filter(|_| bound != LimitedBy::Client).map(faster),
            confirmed: self.confirmed(),
            bound,
            long_only: self.long_only,
            given_up: self.given_up,
            faces,
            wander,
        }
    }

    /// How far the pace wandered near the limit.
    fn wander(&self) -> Option<Wander> {
        if self.faces().is_some() || self.turned_away().is_some() {
            return None;
        }
        let (low, high) = self.interval()?;
        let near = (1.0 - PACE_ZONE) * low..=(1.0 + PACE_ZONE) * high;
        let costs = self.costs_of.iter().filter(|(load, _)| near.contains(load));
        Wander::from_costs(&costs.copied().collect::<Vec<_>>())
    }
}

/// The next trial after these outcomes.
pub fn next(question: &Question, seen: &[StepTaken]) -> Step {
    View::new(question, seen).next()
}

/// The knowledge after these outcomes.
pub fn estimate_limit(question: &Question, seen: &[StepTaken]) -> LimitEstimate {
    View::new(question, seen).estimate()
}
