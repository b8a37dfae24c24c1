//! Trials over the simulated system, from workload to verdict, with the true events beside the reported
//! figures; and searches over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubgauge_driver::{Clock, Driver, Mark, Settings};
use pubgauge_engine::assignment::{Brief, BriefError, Role, Workers};
use pubgauge_engine::conductor::{Nobody, TrialRecord, TrialSpec, run};
use pubgauge_engine::link::Encoded;
use pubgauge_engine::recording::Recording;
use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::model::{Circumstances, Trial};
use pubgauge_figures::search::Search;
use pubgauge_search::{Axis, Question, Step};
use pubgauge_setup::ClientSetup;
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, TruthRecord};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

use crate::circumstances::{circumstances, exhausted};
use crate::convert::{self, Beside};
use crate::job::TrialRequest;
use crate::searching::{conclude, next, stored_step};

/// When a simulated clock starts, ns.
pub const START: u64 = SECOND;

/// A trial, and the true events in it.
pub struct SimulatedTrial {
    /// The reported trial.
    pub trial: Trial,
    /// The engine's record.
    pub record: TrialRecord,
    /// The true events.
    pub truth: Vec<TruthRecord>,
}

/// Runs a trial in simulated time. Times of the behaviour count from when the workers connect,
/// which takes 20 ms with the proof of readiness.
///
/// # Errors
/// If the workload is not possible.
pub fn simulate(
    workload: Workload,
    behaviour: Behaviour,
    settings: Settings,
) -> Result<SimulatedTrial, BriefError> {
    let (clock, mark) = (Clock::virtual_at(START), Mark::from_seed(behaviour.seed));
    let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), mark));
    simulate_on(
        workload,
        &behaviour,
        settings,
        (clock, mark, bus),
        SimulatedClient::default(),
    )
}

/// The options of the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulatedClient {
    /// Its threads; one in simulated time.
    pub workers: Workers,
    /// How each worker works.
    pub setup: ClientSetup,
}

/// Runs a trial on a given simulated system, with its clock.
///
/// # Errors
/// If the workload is not possible.
pub fn simulate_on(
    workload: Workload,
    behaviour: &Behaviour,
    settings: Settings,
    there: (Clock, Mark, Arc<Bus>),
    client: SimulatedClient,
) -> Result<SimulatedTrial, BriefError> {
    let asked = TrialRequest {
        cell: "cell".into(),
        settings: settings.into(),
        repeat: 1,
        ..TrialRequest::default()
    };
    run_as(asked, workload, behaviour, there, client)
}

fn run_as(
    asked: TrialRequest,
    workload: Workload,
    behaviour: &Behaviour,
    (clock, mark, bus): (Clock, Mark, Arc<Bus>),
    client: SimulatedClient,
) -> Result<SimulatedTrial, BriefError> {
    let brief = Brief::new(workload.clone())?;
    let driver: Arc<dyn Driver> = Arc::new(SimulatedDriver);
    let targets = vec![SimulatedDriver::target(bus.clone())];
    let here = TrialSpec::local(brief, driver, targets, clock, |_| Ok(()));
    let spec = TrialSpec {
        settings: vec![with_behaviour(asked.settings.settings.clone(), behaviour)],
        workers: client.workers,
        client: client.setup,
        mark,
        // Encoded as between processes, which must not change a result.
        place: Arc::new(Encoded(here.place.clone())),
        ..here
    };
    let mut record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    let (published, span) = (record.sum().messages.published, record.duration());
    let publishers = |r: &&mut Recording| r.role == Role::Publishers;
    let planted = behaviour.publish_cpu_ns > 0;
    if let Some(busy) = record
        .recordings
        .iter_mut()
        .find(publishers)
        .filter(|_| planted)
    {
        busy.usage.span = span;
        busy.usage.own_running = (behaviour.publish_cpu_ns * published).min(span);
    }
    let mut beside = Beside::nothing(Circumstances {
        not_run: convert::not_run(&record.outcome),
        exhausted: exhausted(&record),
        client: client.setup,
        order_promised: behaviour.ordered,
        ..circumstances(&workload)
    });
    beside.driver = Some(Arc::new(SimulatedDriver));
    let trial = convert::trial(asked, &workload, &record, beside);
    Ok(SimulatedTrial {
        trial,
        record,
        truth: bus.truth(),
    })
}

/// Settings under which the simulated system behaves so.
pub fn with_behaviour(mut settings: Settings, behaviour: &Behaviour) -> Settings {
    let native: BTreeMap<_, _> = match serde_json::to_value(behaviour) {
        Ok(serde_json::Value::Object(map)) => map.into_iter().collect(),
        _ => BTreeMap::new(),
    };
    settings.native.insert(SimulatedDriver::NAME.into(), native);
    settings
}

/// Length of the trials of a search except for the confirming ones, s.
const SHORT_S: u64 = 5;

/// Searches in simulated time for the messages a second that a system carries from one publisher to one
/// subscriber; see [`search_along`].
///
/// # Errors
/// If a load is not possible.
pub fn search(
    question: &Question,
    criteria: &[CriterionSpec],
    confirm_s: u64,
    behaves: impl FnMut() -> Behaviour,
) -> Result<Search, BriefError> {
    let arrivals = |load: Option<f64>| match load {
        Some(per_s) => Arrivals::Periodic { per_s },
        None => Arrivals::FlatOut,
    };
    let workload = |load| Workload::fan(1, 1, arrivals(load));
    search_along(
        (Axis::Rate, &workload),
        question,
        criteria,
        confirm_s,
        behaves,
    )
}

/// Searches in simulated time along an axis, whose loads make workloads. It uses all parts of a real search:
/// engine, figures, verdict, evidence, next load. Confirming trials take `confirm_s` seconds; `behaves` gives the
/// system's behaviour in each trial.
///
/// # Errors
/// If a load is not possible.
pub fn search_along(
    (axis, workload): (Axis, &dyn Fn(Option<f64>) -> Workload),
    question: &Question,
    criteria: &[CriterionSpec],
    confirm_s: u64,
    mut behaves: impl FnMut() -> Behaviour,
) -> Result<Search, BriefError> {
    let mut trials: Vec<Trial> = Vec::new();
    loop {
        let step = next(question, axis, 0, &trials, criteria);
        let Some(stored) = stored_step(0, step) else {
            break;
        };
        let measure = match step {
            Step::Long(_) => confirm_s,
            _ => SHORT_S,
        };
        let mut workload = workload(stored.load);
        workload.phases.warm_up = Until::Time(SECOND);
        workload.phases.measure = Until::Time(measure * SECOND);
        workload.phases.drain_within = 2 * SECOND;
        let behaviour = behaves();
        let (clock, mark) = (Clock::virtual_at(START), Mark::from_seed(behaviour.seed));
        let bus = Bus::new(behaviour.clone(), clock.clone(), mark).without_truth();
        let there = (clock, mark, Arc::new(bus));
        let client = SimulatedClient::default();
        let asked = TrialRequest {
            id: trials.len() as u32,
            cell: "cell".into(),
            repeat: 1,
            search: Some(stored),
            ..TrialRequest::default()
        };
        let mut trial = run_as(asked, workload, &behaviour, there, client)?.trial;
        // Parts that are not used again are dropped, to save memory.
        trial.series.clear();
        trials.push(trial);
    }
    Ok(conclude(
        question,
        axis,
        0,
        &trials,
        criteria,
        Search::default(),
    ))
}
