//! Small workloads for the tests of this crate.

use crate::{Arrivals, Device, Exchange, Flow, Phases, Publisher, Sizes, Subscriber, Workload};

/// A flat-out flow of 64 B from publishers with these topics to subscribers with these filters
/// and groups; devices are numbered in [`workload`].
pub(crate) fn flow(
    publishers: Vec<Vec<String>>,
    subscribers: Vec<(Vec<String>, Option<String>)>,
) -> Flow {
    Flow {
        name: "test".into(),
        publishers: publishers
            .into_iter()
            .map(|topics| Publisher { device: 0, topics })
            .collect(),
        subscribers: subscribers
            .into_iter()
            .map(|(filters, group)| Subscriber {
                device: 0,
                filters,
                group,
                takes: None,
                late: None,
            })
            .collect(),
        arrivals: Arrivals::FlatOut,
        size: Sizes::Fixed { bytes: 64 },
        start_offset: None,
        active_for: None,
        exchange: Exchange::OneWay,
        window: None,
        topic_zipf: None,
        subscribers_take: None,
        answered_by_last: false,
        presence: None,
        settings: 0,
    }
}

/// A workload in which everyone has a device of their own.
pub(crate) fn workload(mut flows: Vec<Flow>) -> Workload {
    let mut devices = Vec::new();
    let mut device = |what: &str| {
        devices.push(Device {
            name: format!("{what}-{}", devices.len()),
            ..Device::default()
        });
        devices.len() as u32 - 1
    };
    for flow in &mut flows {
        for publisher in &mut flow.publishers {
            publisher.device = device("publisher");
        }
        for subscriber in &mut flow.subscribers {
            subscriber.device = device("subscriber");
        }
    }
    Workload {
        name: "test".into(),
        devices,
        flows,
        phases: Phases::default(),
        cluster: false,
        seed: 1,
    }
}
