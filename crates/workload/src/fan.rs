//! The plainest workload: every subscriber hears every publisher.

use crate::model::{
    Arrivals, Device, Exchange, Flow, Phases, Publisher, Sizes, Subscriber, Workload,
};

impl Workload {
    /// One flow of 64-byte messages from `publishers` devices, each on a topic of its own
    /// (`t/0`, `t/1`, ...), to `subscribers` devices with the filter `t/#`. Phases are the default.
    /// For calibration and tests, which change what matters to them.
    pub fn fan(publishers: u32, subscribers: u32, arrivals: Arrivals) -> Workload {
        let device = |name: String| Device {
            name,
            ..Device::default()
        };
        let flow = Flow {
            name: "flow".into(),
            publishers: (0..publishers)
                .map(|p| Publisher {
                    device: p,
                    topics: vec![format!("t/{p}")],
                })
                .collect(),
            subscribers: (0..subscribers)
                .map(|s| Subscriber {
                    device: publishers + s,
                    filters: vec!["t/#".into()],
                    group: None,
                    takes: None,
                    late: None,
                })
                .collect(),
            arrivals,
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
        };
        Workload {
            name: "fan".into(),
            devices: (0..publishers)
                .map(|p| device(format!("pub{p}")))
                .chain((0..subscribers).map(|s| device(format!("sub{s}"))))
                .collect(),
            flows: vec![flow],
            phases: Phases::default(),
            cluster: false,
            seed: 7,
        }
    }
}
