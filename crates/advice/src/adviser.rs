//! The steps of an advice, and what follows from them.

mod counted;

use std::collections::BTreeMap;

use pubgauge_conclusions::judgement::Judgement;
use pubgauge_conclusions::{Carries, Cell, Contest};
use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::figure::Figure;
use pubgauge_figures::search::{LimitedBy, Search};
use pubgauge_figures::{Results, Status, Trial};
use pubgauge_quantities::stats::{MeanInterval, mean};
use pubgauge_results::verdict::spoilt_by_others;

use crate::answer::{Advice, FORMAT, LeftOut, OtherFleet, Recommendation, Undecided, WhyOut};
use crate::boxes::{BoxPlan, BoxRun, NotTold, Room};
use crate::evidence::{EvidenceOf, evidence};
use crate::fleet::Fleet;
use crate::rank::{Range, Standing, rank};
use crate::stage::{Candidate, Stage, StageKind};
use crate::study::{as_toml, spelling};
use crate::variation::Variation;
use counted::Stored;

/// Most systems whose limit is searched for.
const MOST_SEARCHES: usize = 4;
/// Most choices for which other fleets are tried, and that the screen names.
pub(crate) const MOST_CHOICES: usize = 3;
/// The share of what is left of the budget that repeats may take, before searches.
const SHARE_OF_REPEATS: f64 = 0.6;
/// A shorter search finds no limit.
const SHORTEST_SEARCH_S: u64 = 60;
/// How many times as long as a search it takes with the servers that start and stop.
const AROUND_SEARCH: f64 = 1.5;
/// A longer search narrows the limit no further than a ranking needs.
const LONGEST_SEARCH_S: u64 = 150;

/// Seconds of a search on boxes that other steps leave for it.
const SEARCH_ON_BOXES_S: f64 = 100.0;

/// Says which step comes next, and concludes from those that were measured.
#[derive(Debug)]
pub struct Adviser {
    fleet: Fleet,
    candidates: Vec<Candidate>,
    left_out: Vec<LeftOut>,
    /// Systems that could not be tried.
    untried: Vec<Undecided>,
    trials: Vec<Trial>,
    criteria: Vec<CriterionSpec>,
    searches: Vec<Search>,
    /// The steps that were measured, or left out because the budget was spent.
    done: Vec<StageKind>,
    /// With the reason.
    skipped: Vec<(StageKind, String)>,
    stored: Stored,
    /// The machine, as far as boxes share it; `None`: nobody asks how many.
    room: Option<Room>,
    /// The brokers that were measured side by side.
    box_run: Option<BoxRun>,
}

impl Adviser {
    /// For systems that keep their promises, those that do not, and those that could not be tried.
    pub fn new(
        fleet: Fleet,
        candidates: Vec<Candidate>,
        left_out: Vec<LeftOut>,
        untried: Vec<Undecided>,
    ) -> Adviser {
        Adviser {
            fleet,
            candidates,
            left_out,
            untried,
            trials: Vec::new(),
            criteria: Vec::new(),
            searches: Vec::new(),
            done: Vec::new(),
            skipped: Vec::new(),
            stored: Stored::default(),
            room: None,
            box_run: None,
        }
    }

    /// With the machine that boxes are measured on: how many are needed is told where the fleet asks for it, or where one is
    /// not enough.
    pub fn with_room(self, room: Room) -> Adviser {
        Adviser {
            room: Some(room),
            ..self
        }
    }

    /// The fleet.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The next step; `None` if there is none. `left_s`: seconds of the budget that are left, which searches share.
    pub fn next_step(&self, left_s: f64) -> Option<Stage> {
        let kinds = StageKind::ALL.into_iter();
        let is_skipped = |kind: &StageKind| self.skipped.iter().any(|(skipped, _)| skipped == kind);
        let mut open = kinds.filter(|kind| !self.done.contains(kind) && !is_skipped(kind));
        open.find_map(|kind| self.step(kind, left_s - self.reserved_s(kind)))
    }

    /// Seconds of the budget that a step leaves for boxes, where the fleet asks how many.
    pub fn reserved_s(&self, kind: StageKind) -> f64 {
        let asks = self.fleet.file.must.boxes == Some(true) && kind < StageKind::Boxes;
        let room = self.room.as_ref().filter(|_| asks);
        let counts = room.and_then(|room| self.fleet.box_counts(room).ok());
        counts.map_or(0.0, |counts| {
            counts.len() as f64 * SEARCH_ON_BOXES_S * AROUND_SEARCH
        })
    }

    fn step(&self, kind: StageKind, left_s: f64) -> Option<Stage> {
        let headroom = Variation::Headroom(self.fleet.headroom());
        let demanded = self.demanded();
        let (changes, repeats) = match kind {
            StageKind::Fleet => (vec![Variation::None], 1),
            StageKind::Headroom if self.fleet.headroom() == 1.0 => return None,
            StageKind::Headroom => (vec![headroom], 1),
            StageKind::Confirm => (demanded.clone(), 2),
            StageKind::Limit => (vec![Variation::Limit], 1),
            StageKind::Others => (self.other_fleets(), 1),
            StageKind::Boxes => return self.step_of_boxes(left_s),
        };
        let mut candidates = match kind {
            StageKind::Fleet => self.candidates.clone(),
            StageKind::Headroom | StageKind::Confirm => self.keep(|one| {
                demanded
                    .iter()
                    .all(|&of| self.carries(one, of) != Some(Carries::No))
            }),
            StageKind::Limit => self.keep(|one| self.is_met(one)),
            StageKind::Others | StageKind::Boxes => {
                let choices = self.choices();
                let best = choices.iter().take(MOST_CHOICES);
                let named: Vec<&str> = best.map(|choice| choice.system.as_str()).collect();
                self.keep(|one| named.contains(&one.system.as_str()))
            }
        };
        let known = self.known(kind, &changes);
        let is_open = |one: &Candidate, change| !known.contains(&(one.system.clone(), change));
        candidates.retain(|one| changes.iter().any(|&change| is_open(one, change)));
        if [StageKind::Confirm, StageKind::Limit].contains(&kind) {
            candidates.sort_by(|a, b| self.mean_cost(a).total_cmp(&self.mean_cost(b)));
            candidates.truncate(match kind {
                StageKind::Limit => MOST_SEARCHES,
                _ => self.affordable(&candidates, changes.len() as u32 * repeats, left_s),
            });
        }
        let search_s = search_s(left_s, candidates.len());
        (!candidates.is_empty() && !changes.is_empty()).then_some(Stage {
            kind,
            changes,
            candidates,
            repeats,
            search_s,
            known,
            brokers: Vec::new(),
        })
    }

    /// The step that measures boxes, where it is asked how many, or one is not enough.
    fn step_of_boxes(&self, left_s: f64) -> Option<Stage> {
        let (candidate, _) = self.candidate_for_boxes()?;
        let stage = Stage::of_boxes(&self.fleet, &[candidate], self.room.as_ref()?).ok()?;
        Some(Stage {
            search_s: search_s(left_s, stage.brokers.len()),
            ..stage
        })
    }

    /// Whether it is told how many boxes carry what is asked for.
    fn asks_for_boxes(&self) -> bool {
        let is_too_much = |one: &Candidate| {
            let mut demanded = self.demanded().into_iter();
            demanded.any(|of| self.carries(one, of) == Some(Carries::No))
        };
        let one_is_not_enough = || {
            self.choices().is_empty()
                && self.candidates.iter().any(|one| {
                    is_too_much(one)
                        || self
                            .limit(one)
                            .is_some_and(|limit| limit.low < self.fleet.headroom())
                })
        };
        self.room.is_some() && self.fleet.file.must.boxes.unwrap_or_else(one_is_not_enough)
    }

    /// The system whose brokers are measured side by side, and why it is this one: the best of those that carry what is asked
    /// for and have a broker, else the cheapest that carries the fleet itself, else the first that was tried.
    fn candidate_for_boxes(&self) -> Option<(Candidate, String)> {
        let room = self.room.as_ref().filter(|_| self.asks_for_boxes())?;
        let has_broker = |one: &Candidate| !room.brokerless.contains(&one.system);
        let of_name = |name: &str| self.candidates.iter().find(|one| one.system == name);
        let choices = self.choices();
        let mut named = choices.iter().filter_map(|choice| of_name(&choice.system));
        if let Some(best) = named.find(|one| has_broker(one)) {
            let because = format!(
                "{} is the best of those that carry it and have a broker",
                best.system
            );
            return Some((best.clone(), because));
        }
        let shown = |wanted: Carries| {
            self.keep(|one| has_broker(one) && self.carries(one, Variation::None) == Some(wanted))
        };
        let (carrying, failing) = (shown(Carries::Yes), shown(Carries::No));
        let by_cost =
            |a: &&Candidate, b: &&Candidate| self.mean_cost(a).total_cmp(&self.mean_cost(b));
        if let Some(cheapest) = carrying.iter().min_by(by_cost) {
            let because = format!(
                "{} costs the least of those that carry the fleet itself and have a broker",
                cheapest.system
            );
            return Some((cheapest.clone(), because));
        }
        let first = failing.first()?.clone();
        let because = format!(
            "{} is the first of {} with a broker that do not carry the fleet itself, which nothing ranks",
            first.system,
            failing.len()
        );
        Some((first, because))
    }

    /// How many boxes carry what is asked for; `None` where nobody asks, or it was left out for time.
    fn box_plan(&self) -> Option<BoxPlan> {
        let room = self.room.as_ref().filter(|_| self.asks_for_boxes())?;
        if let Some(run) = &self.box_run {
            return Some(run.plan(&self.fleet, room));
        }
        let candidate = self
            .candidate_for_boxes()
            .map(|(candidate, _)| candidate.system);
        let has_broker = |one: &Candidate| !room.brokerless.contains(&one.system);
        let refused = match (self.fleet.box_counts(room), &candidate) {
            (Err(refused), _) => refused,
            (Ok(_), None) if self.candidates.iter().any(has_broker) => NotTold::undecided(),
            (Ok(_), None) => NotTold::without_broker(),
            // Left out for time.
            (Ok(_), Some(_)) => return None,
        };
        Some(BoxPlan::refused(&self.fleet, candidate, refused))
    }

    /// How many of these systems can have so many more trials, without what is left for searches; two at the least,
    /// because one is compared with nothing.
    fn affordable(&self, candidates: &[Candidate], trials: u32, left_s: f64) -> usize {
        let mut left_s = left_s * SHARE_OF_REPEATS;
        let fits = |candidate: &&Candidate| {
            let took = self
                .trials
                .iter()
                .filter(|trial| trial.system.name == candidate.system);
            let each_s = mean(took.map(|trial| trial.took_s.max(trial.duration_s))).unwrap_or(0.0);
            left_s -= each_s * f64::from(trials);
            left_s >= 0.0
        };
        candidates.iter().take_while(fits).count().max(2)
    }

    /// The other fleets that this machine can have.
    fn other_fleets(&self) -> Vec<Variation> {
        let can_be = |change: &Variation| match change {
            Variation::Devices(times) => self.fleet.grows_by_devices(*times),
            _ => true,
        };
        Variation::OTHERS.into_iter().filter(can_be).collect()
    }

    fn keep(&self, wanted: impl Fn(&Candidate) -> bool) -> Vec<Candidate> {
        let all = self.candidates.iter();
        all.filter(|one| wanted(one)).cloned().collect()
    }

    /// Leaves a step out, for this reason.
    pub fn skip(&mut self, kind: StageKind, because: impl Into<String>) {
        self.skipped.push((kind, because.into()));
    }

    /// Takes what a step measured.
    pub fn take(&mut self, kind: StageKind, results: &Results) {
        self.done.push(kind);
        if kind == StageKind::Boxes {
            let run = self.candidate_for_boxes().map(|(of, because)| {
                let because = format!("{because}; its settings are in {}.toml", kind.name());
                BoxRun::new(of.system, because, results)
            });
            self.box_run = run;
            return;
        }
        self.criteria.clone_from(&results.study.criterion_specs);
        self.searches.extend(results.searches.iter().cloned());
        // Repeats of the same load are in several steps.
        let mut before: BTreeMap<(String, String), u32> = BTreeMap::new();
        for trial in &self.trials {
            let last = before.entry(key(trial)).or_default();
            *last = trial.repeat.max(*last);
        }
        for trial in results.standing().filter(|trial| trial.search.is_none()) {
            let mut trial = trial.clone();
            trial.repeat += before.get(&key(&trial)).copied().unwrap_or(0);
            self.trials.push(trial);
        }
    }

    /// The loads that must be carried.
    fn demanded(&self) -> Vec<Variation> {
        let headroom = self.fleet.headroom();
        if headroom > 1.0 {
            vec![Variation::None, Variation::Headroom(headroom)]
        } else {
            vec![Variation::None]
        }
    }

    fn trials_of(&self, candidate: &Candidate, change: Variation) -> Vec<&Trial> {
        let name = self.fleet.workload_name(change, candidate.reliability);
        let is_of =
            |trial: &&Trial| trial.system.name == candidate.system && trial.workload.name == name;
        self.trials.iter().filter(is_of).collect()
    }

    /// Whether a changed fleet is carried; `None` where it was not measured.
    fn carries(&self, candidate: &Candidate, change: Variation) -> Option<Carries> {
        let trials = self.trials_of(candidate, change);
        let is_spoilt = trials.iter().all(|trial| spoilt_by_others(trial));
        if is_spoilt && self.larger(candidate, change).next().is_some() {
            return Some(Carries::Yes);
        }
        if trials.is_empty() {
            return None;
        }
        let judge = |trials: Vec<&Trial>| {
            Judgement::new(&Cell::from_repeats(trials), &self.criteria).carries
        };
        let undisturbed: Vec<&Trial> = (trials.iter().copied())
            .filter(|trial| !spoilt_by_others(trial))
            .collect();
        let carries = judge(trials);
        if carries != Some(Carries::CannotTell) || undisturbed.is_empty() {
            return carries;
        }
        // A repeat that others spoilt says nothing, and does not take away what the others say.
        match judge(undisturbed) {
            Some(Carries::Yes) => Some(Carries::Yes),
            _ => carries,
        }
    }

    /// Whether it carries all that must be carried, and no search contradicts.
    fn is_met(&self, candidate: &Candidate) -> bool {
        let mut demanded = self.demanded().into_iter();
        demanded.all(|of| self.carries(candidate, of) == Some(Carries::Yes))
            && self
                .limit(candidate)
                .is_none_or(|limit| limit.high.is_infinite() || limit.low >= self.fleet.headroom())
    }

    /// How many times the fleet a search found to be carried. Where the search did not end at the system, above its lower end
    /// nothing is known.
    fn limit(&self, candidate: &Candidate) -> Option<Range> {
        let mut searches = self.searches.iter();
        let search = searches.find(|search| search.system == candidate.system)?;
        let times = |per_s: f64| per_s / self.fleet.busiest_per_s();
        let is_limit = search.bound == LimitedBy::System;
        let high = search.high.filter(|_| is_limit);
        Some(Range {
            low: times(search.low.unwrap_or(0.0)),
            high: high.map_or(f64::INFINITY, times),
        })
    }

    /// A figure of the fleet at its own load, of each trial that can be trusted, with the trial.
    fn figures_of_trials(&self, candidate: &Candidate, figure: &str) -> Vec<(f64, &Trial)> {
        let Some(figure) = Figure::named(figure) else {
            return Vec::new();
        };
        let trials = self.trials_of(candidate, Variation::None).into_iter();
        let valid = trials.filter(|trial| trial.verdict.status == Status::Valid);
        let values =
            valid.filter_map(|trial| Some((figure.value_in(trial, None, None).ok()?, trial)));
        values.collect()
    }

    fn figures(&self, candidate: &Candidate, figure: &str) -> Vec<f64> {
        let all = self.figures_of_trials(candidate, figure).into_iter();
        all.map(|(value, _)| value).collect()
    }

    fn cost(&self, candidate: &Candidate) -> Option<MeanInterval> {
        MeanInterval::mean_of(&self.figures(candidate, &cost_figure()))
    }

    fn mean_cost(&self, candidate: &Candidate) -> f64 {
        self.cost(candidate).map_or(f64::INFINITY, |cost| cost.mean)
    }

    fn standing(&self, candidate: &Candidate) -> Standing {
        let carried = self.fleet.headroom();
        let limit = self.limit(candidate);
        Standing {
            is_confirmed: self.trials_of(candidate, Variation::None).len() > 2,
            headroom: Range {
                low: limit.map_or(carried, |limit| limit.low.max(carried)),
                high: limit.map_or(f64::INFINITY, |limit| limit.high),
            },
            cost: self.cost(candidate),
            cost_from: self.cost_from(candidate),
        }
    }

    fn choices(&self) -> Vec<Recommendation> {
        let met = self.keep(|one| self.is_met(one));
        let standings: Vec<Standing> = met.iter().map(|one| self.standing(one)).collect();
        let ranked = rank(&standings).into_iter();
        let named = ranked.map(|(rank, n)| self.choice(rank, &met[n], &standings[n]));
        named.collect()
    }

    fn choice(&self, rank: u32, candidate: &Candidate, standing: &Standing) -> Recommendation {
        let trials = self.trials_of(candidate, Variation::None);
        let first = trials.first();
        Recommendation {
            rank,
            system: candidate.system.clone(),
            version: first
                .map(|trial| trial.system.version.clone())
                .filter(|version| !version.is_empty()),
            repeats: trials.len() as u32,
            headroom_at_least: standing.headroom.low,
            headroom_at_most: Some(standing.headroom.high).filter(|high| high.is_finite()),
            p99_ms: mean(self.figures(candidate, "latency.p99")).map(|ns| ns / 1e6),
            cost_us: standing.cost.map(|cost| cost.mean),
            cost_half_width_us: standing.cost.and_then(|cost| cost.half_width),
            memory_bytes: mean(self.figures(candidate, "system-memory")),
            settings: format!(
                "name = {:?}\n{}",
                spelling(candidate.reliability),
                as_toml(&self.fleet.settings(candidate.reliability))
            ),
            client: first.map_or(Vec::new(), |trial| trial.mappings.clone()),
            evidence: self.evidence_of(candidate),
            server_files: Vec::new(),
        }
    }

    /// The advice from all that was measured so far.
    pub fn advice(&self) -> Advice {
        let choices = self.choices();
        let mut left_out = self.left_out.clone();
        let mut undecided = self.untried.clone();
        for candidate in &self.candidates {
            if choices
                .iter()
                .any(|choice| choice.system == candidate.system)
            {
                continue;
            }
            match self.why_not(candidate) {
                Ok(out) => left_out.push(out),
                Err(because) => undecided.push(Undecided {
                    system: candidate.system.clone(),
                    because,
                }),
            }
        }
        Advice {
            format: FORMAT.to_owned(),
            fleet: self.fleet.name().to_owned(),
            headroom: self.fleet.headroom(),
            others: self.other_answers(&choices),
            boxes: self.box_plan(),
            choices,
            undecided,
            left_out,
            remarks: self.fleet.remarks(),
            not_measured: self.not_measured(),
            not_counted: self.stored.not_counted.clone(),
        }
    }

    /// Why a candidate is not among the choices: what it does not carry, or else why that cannot be told.
    fn why_not(&self, candidate: &Candidate) -> Result<LeftOut, String> {
        for change in self.demanded() {
            let carries = self.carries(candidate, change);
            let because = || self.reason(candidate, change);
            match carries {
                Some(Carries::Yes) => {}
                Some(Carries::No) => {
                    return Ok(LeftOut {
                        system: candidate.system.clone(),
                        why: match change {
                            Variation::None => WhyOut::FleetNotCarried,
                            _ => WhyOut::HeadroomNotCarried,
                        },
                        asked: change.describe(),
                        because: because(),
                    });
                }
                Some(Carries::CannotTell) => {
                    return Err(format!("{}: {}", change.describe(), because()));
                }
                None => return Err(format!("{} was not measured", change.describe())),
            }
        }
        let limit = self.limit(candidate).map_or(0.0, |limit| limit.low);
        Err(format!(
            "{} times the fleet was carried, and a search is sure of {} times only",
            self.fleet.headroom(),
            pubgauge_quantities::shown::brief(limit)
        ))
    }

    /// The sentence of the repeat that decided.
    fn reason(&self, candidate: &Candidate, change: Variation) -> String {
        let cell = Cell::from_repeats(self.trials_of(candidate, change));
        let judgement = Judgement::new(&cell, &self.criteria);
        let Some(decisive) = judgement.decisive() else {
            return "nothing was asked of it".to_owned();
        };
        match &decisive.demand {
            Some((spec, _)) if !decisive.is_by_verdict() => {
                let value = spec.catalogued_figure().and_then(|figure| {
                    let flow = spec.filter.flow.as_deref();
                    figure.value_in(decisive.trial, flow, None).ok()
                });
                let value = value.map_or("not known".to_owned(), |value| spec.format_value(value));
                format!(
                    "{} is {value}, asked for: {} {}",
                    spec.figure,
                    spec.comparison,
                    spec.limit()
                )
            }
            _ => {
                let reasons = &decisive.trial.verdict.reasons;
                reasons
                    .first()
                    .map_or("no reason".to_owned(), |reason| reason.text.clone())
            }
        }
    }

    fn other_answers(&self, choices: &[Recommendation]) -> Vec<OtherFleet> {
        let named = choices.iter().take(MOST_CHOICES);
        let each = named.flat_map(|choice| {
            let of = self
                .candidates
                .iter()
                .find(|one| one.system == choice.system);
            let changes = Variation::OTHERS.into_iter();
            changes.filter_map(move |change| {
                let carried_by = self.carried_by(of?, change);
                Some(OtherFleet {
                    change,
                    system: choice.system.clone(),
                    carries: self.carries(of?, change)?,
                    source: evidence(EvidenceOf::Fleet, carried_by).source,
                })
            })
        });
        each.collect()
    }

    fn not_measured(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|(kind, because)| {
            let what = match kind {
                StageKind::Fleet => "the fleet",
                StageKind::Headroom => "the headroom",
                StageKind::Confirm => "repeats, without which costs are not told apart",
                StageKind::Limit => "how far each goes",
                StageKind::Others => "other fleets",
                StageKind::Boxes => "how many boxes",
            };
            format!("{what} ({because})")
        });
        let devices = Variation::Devices(10.0);
        let too_many = (!self.fleet.grows_by_devices(10.0)
            && self.done.contains(&StageKind::Others))
        .then(|| {
            format!(
                "{}: more connections than a process here can have",
                devices.describe()
            )
        });
        skipped.chain(too_many).collect()
    }
}

/// The figure that costs are told by.
fn cost_figure() -> String {
    Contest::CPU_PER_MESSAGE.figure().name.clone()
}

/// Seconds that each of so many searches may take.
fn search_s(left_s: f64, searches: usize) -> u64 {
    let each_s = (left_s / searches.max(1) as f64 / AROUND_SEARCH) as u64;
    each_s.clamp(SHORTEST_SEARCH_S, LONGEST_SEARCH_S)
}

/// Trials of one load on one system.
fn key(trial: &Trial) -> (String, String) {
    (trial.system.name.clone(), trial.workload.name.clone())
}
