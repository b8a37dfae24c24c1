//! A study from its text to a stored run, without the program.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pubgauge_driver::{Driver, Nanos};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_engine::conductor::Phase;
use pubgauge_engine::live::Live;
use pubgauge_figures::model::{Machine, Status, StudyInfo};
use pubgauge_results::store::{NewRun, RunFolder, load};
use pubgauge_runner::{ClientConfig, Environment, Job, Kept, TrialRequest, Watch, perform};
use pubgauge_study::{PlanOptions, Study};
use pubgauge_testbed::{Catalog, Testbed};

const STUDY: &str = r#"
name = "library"
repeats = 2
[phases]
warm-up = "200ms"
measure = "1s"
[[settings]]
reliability = "at-least-once"
[[workload]]
name = "w"
[[workload.flow]]
publishers = 3
subscribers = 2
rate = "50/s-each"
payload = "64B"
"#;

#[derive(Default)]
struct Watched {
    measured: u32,
}

impl Watch for Watched {
    fn phase(&mut self, phase: Phase) {
        self.measured += u32::from(phase == Phase::Measure);
    }

    fn tick(&mut self, _: &Live, _: Nanos) {}
}

#[test]
fn a_study_without_the_program() {
    let study = Study::parse("library.toml", STUDY, Path::new(".")).unwrap();
    let catalog = Catalog::load(&[]).unwrap();
    let options = PlanOptions::with_systems(["mosquitto"]);
    let plan = study.plan(&options).unwrap();
    let place = tempfile::tempdir().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let driver: Arc<dyn Driver> = Arc::new(MqttDriver);
    let environment = Environment {
        testbed: Testbed::new().unwrap(),
        scratch: scratch.path(),
        client: ClientConfig::default(),
        tls: None,
        stop: Arc::new(AtomicBool::new(false)),
        cores: 1,
        quota_cores: None,
        own_cost: None,
    };
    let run = NewRun {
        invocation: String::new(),
        study_toml: STUDY.into(),
        study_resolved: serde_json::json!({ "study": plan.resolved }),
        machine: Machine::default(),
        study: StudyInfo {
            name: plan.name.clone(),
            planned_trials: plan.trials.len() as u32,
            ..StudyInfo::default()
        },
    };
    let mut folder = RunFolder::create(&place.path().join("run"), run).unwrap();
    let mut watched = Watched::default();
    for trial in &plan.trials {
        let system = catalog.get(&trial.system).unwrap();
        let job = Job {
            asked: TrialRequest {
                id: trial.order,
                cell: trial.cell.clone(),
                settings: (*trial.settings).clone().into(),
                repeat: trial.repeat,
                ..TrialRequest::default()
            },
            begun: Instant::now(),
            system: &system,
            variant: None,
            driver: driver.clone(),
            setup: trial.setup.clone(),
            workload: &trial.workload,
            ends_once_hopeless: false,
            network: None,
        };
        let (done, files) = perform(&job, &environment, &Kept::default(), &mut watched);
        folder.append_trial(done, &files).unwrap();
    }
    folder.finish(Vec::new()).unwrap();
    assert_eq!(watched.measured, 2);
    let results = load(folder.path()).unwrap();
    assert_eq!(results.trials.len(), 2);
    for trial in &results.trials {
        assert_ne!(trial.verdict.status, Status::Broken, "{:?}", trial.verdict);
        // On a crowded machine some may be due and not sent.
        assert_eq!(trial.messages.offered, 150, "{trial:?}");
        assert_eq!(
            trial.messages.offered,
            trial.messages.published + trial.messages.not_sent
        );
        assert_eq!(trial.messages.delivered, 2 * trial.messages.published);
        assert!(trial.checks.iter().all(|check| !check.disagrees()));
    }
    // The systems' folders are gone with them.
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
}
