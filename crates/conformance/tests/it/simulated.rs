//! The simulated system conforms to the seam, and the suite notices when a system does not.

use std::sync::Arc;

use pubgauge_conformance::{Conformity, Exception, check, failures};
use pubgauge_driver::{Capability, Clock, Driver, Mark, Reliability, Settings, Target};
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver};

fn outcomes(
    behaviour: Behaviour,
    reliability: Reliability,
    exceptions: &[Exception],
) -> Vec<(&'static str, Conformity)> {
    let mut settings = Settings {
        reliability: Some(reliability),
        ..Settings::default()
    };
    let serde_json::Value::Object(native) = serde_json::to_value(&behaviour).unwrap() else {
        unreachable!()
    };
    settings
        .native
        .insert(SimulatedDriver::NAME.into(), native.into_iter().collect());
    let target = SimulatedDriver::target(Arc::new(Bus::new(
        behaviour,
        Clock::Monotonic,
        Mark::from_seed(42),
    )));
    check(&SimulatedDriver, &target, &settings, exceptions)
}

#[test]
fn the_simulated_system_conforms() {
    for reliability in [Reliability::AtMostOnce, Reliability::AtLeastOnce] {
        let behaviour = Behaviour {
            delay_median_ns: 200_000,
            capacity: 1000,
            ..Behaviour::default()
        };
        let outcomes = outcomes(behaviour, reliability, &[]);
        assert_eq!(failures(&outcomes), Vec::<String>::new());
    }
}

#[test]
fn a_system_that_loses_and_disorders_is_found_out() {
    let behaviour = Behaviour {
        delay_median_ns: 200_000,
        loss: 0.001,
        reordering: 0.01,
        corruption: 0.01,
        ..Behaviour::default()
    };
    let failed = failures(&outcomes(behaviour, Reliability::AtMostOnce, &[]));
    assert!(
        failed.iter().any(|f| f.starts_with("delivers-in-order")),
        "{failed:?}"
    );
}

#[test]
fn an_exception_needs_its_failure() {
    let exception = Exception::always("closes-in-time", "it is said not to");
    let behaviour = Behaviour {
        delay_median_ns: 200_000,
        capacity: 1000,
        ..Behaviour::default()
    };
    let failed = failures(&outcomes(behaviour, Reliability::AtMostOnce, &[exception]));
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].contains("remove the exception"));
}

#[test]
fn every_capability_is_answered_in_words() {
    for capability in Capability::ALL {
        let answer = SimulatedDriver.capability(capability, &Target::default());
        assert!(!answer.words.is_empty(), "{capability}: {answer:?}");
    }
}
