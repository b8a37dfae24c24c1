//! Recorded contents that do not travel as they were recorded, for the plan.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_driver::Settings;
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_workload::{Arrivals, Flow, Trace};

use crate::Chosen;

/// One sentence for each thing that a system does otherwise than it was recorded, for flows whose contents travel.
pub(crate) fn remarks(plan: &Plan, systems: &BTreeMap<String, Chosen>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for trial in &plan.trials {
        let Some(chosen) = systems.get(&trial.system) else {
            continue;
        };
        for flow in &trial.workload.flows {
            let Arrivals::Replay(replay) = &flow.arrivals else {
                continue;
            };
            // A trace that cannot be read was refused before.
            if replay.contents
                && let Ok(trace) = replay.open()
            {
                let said = of_flow(&trace, chosen, settings_of(trial, flow));
                let place = format!("{}, flow {}", trial.system, flow.name);
                all.extend(said.into_iter().map(|said| format!("{place}: {said}")));
            }
        }
    }
    all.into_iter().collect()
}

fn settings_of<'a>(trial: &'a PlannedTrial, flow: &Flow) -> &'a Settings {
    let own = (flow.settings as usize).checked_sub(1);
    own.map_or(&*trial.settings, |own| &trial.of_flows[own])
}

fn of_flow(trace: &Trace, chosen: &Chosen, settings: &Settings) -> Vec<String> {
    let carries = chosen.carries(settings);
    let count = |is: &dyn Fn(&pubgauge_workload::trace::TraceReading) -> bool| {
        trace.readings.iter().filter(|reading| is(reading)).count()
    };
    let mut said = vec![match carries.header_in {
        Some(place) => format!(
            "recorded payloads travel as they are, with pubgauge's header in {place}; beside them come empty messages \
             that prove that each topic is heard"
        ),
        None => "recorded payloads travel behind pubgauge's header of 16 bytes, which makes them longer: this system has no \
                 other place for it; beside them come messages of 16 bytes that prove that each topic is heard"
            .into(),
    }];
    let without = count(&|reading| trace.payload(reading).is_none());
    if without > 0 {
        said.push(format!(
            "{without} of {} recorded messages have no payload in the recording; bytes of pubgauge's own travel in their place, \
             as many as recorded",
            trace.readings.len()
        ));
    }
    let with_qos = count(&|reading| reading.manner().qos.is_some());
    match carries.highest_qos {
        None if with_qos > 0 => {
            said.push("the recorded quality of service does not travel: all messages have that of the settings".into());
        }
        Some(highest) => {
            let above = count(&|reading| reading.manner().qos.is_some_and(|qos| qos > highest));
            if above > 0 {
                said.push(format!(
                    "{above} messages were recorded with a higher QoS than {highest}, which is what the settings ask for, and \
                     travel with that; reliability = \"exactly-once\" lets all travel as recorded"
                ));
            }
        }
        None => {}
    }
    let retained = count(&|reading| reading.manner().retain == Some(true));
    if retained > 0 && !carries.retain {
        said.push(format!(
            "{retained} messages were recorded as retained, which this system does not have for single messages"
        ));
    }
    said
}
