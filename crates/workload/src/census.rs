//! The numbers of a workload: connections, streams, pairs that decide how much a trial takes of the
//! host.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::audience::Audience;
use crate::model::{Arrivals, Exchange, Phases, Until, Workload};
use crate::units::SECOND;

/// A workload in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Connections.
    pub devices: u64,
    /// Devices that publish; one that answers a ping-pong is among them.
    pub publishers: u64,
    /// Devices that subscribe; one that gets answers in a ping-pong is among them.
    pub subscribers: u64,
    /// Topics, counted for each device that publishes to them; those of answers included.
    pub streams: u64,
    /// Pairs of a publishing device and a subscribing one that is entitled to hear it.
    pub links: u64,
    /// Pairs of one of the `streams` and a subscribing device that is entitled to it.
    pub stream_links: u64,
    /// Pairs of one of the streams of the audience and a party that is entitled to it: what the
    /// ledger counts by.
    pub entitlements: u64,
    /// About how many messages the measurement has; `None` if a flow is flat out, sends in bursts
    /// or replays a trace.
    pub messages: Option<u64>,
}

impl Census {
    /// Counts.
    pub fn take(workload: &Workload, audience: &Audience) -> Census {
        let mut publishing: HashSet<u32> = HashSet::new();
        let mut heard: HashMap<u32, Vec<u32>> = HashMap::new();
        let (mut streams, mut links, mut stream_links) = (audience.streams.len() as u64, 0, 0);
        for (f, flow) in (0..).zip(&workload.flows) {
            publishing.extend(flow.publishers.iter().map(|p| p.device));
            for (s, subscriber) in (0..).zip(&flow.subscribers) {
                let party = audience.party_of(f, s);
                heard.entry(subscriber.device).or_default().push(party);
            }
        }
        let mut answered = HashSet::new();
        for (stream, info) in (0..).zip(&audience.streams) {
            let flow = &workload.flows[info.flow as usize];
            if flow.exchange != Exchange::PingPong {
                continue;
            }
            let publisher = flow.publishers[info.publisher as usize].device;
            for responder in audience.responding_devices(workload, stream) {
                publishing.insert(responder);
                streams += 1;
                stream_links += 1;
                links += u64::from(answered.insert((responder, publisher)));
            }
        }
        // Parties with equal filters share their streams: those are counted once.
        let mut counted: HashMap<*const Range<u32>, u64> = HashMap::new();
        for parties in heard.values() {
            let of = |party: &u32| &audience.parties[*party as usize];
            stream_links += parties.iter().map(|p| of(p).stream_count()).sum::<u64>();
            links += match &parties[..] {
                [party] => {
                    let ranges = &of(party).streams;
                    let count = || publishers(workload, audience, ranges).len() as u64;
                    *counted.entry(ranges.as_ptr()).or_insert_with(count)
                }
                several => {
                    let all = several.iter().map(|party| &of(party).streams);
                    let all = all.flat_map(|ranges| publishers(workload, audience, ranges));
                    all.collect::<HashSet<u32>>().len() as u64
                }
            };
        }
        let subscribing = answered.iter().map(|(_, publisher)| publisher);
        let subscribing: HashSet<&u32> = subscribing.chain(heard.keys()).collect();
        Census {
            devices: workload.devices.len() as u64,
            publishers: publishing.len() as u64,
            subscribers: subscribing.len() as u64,
            streams,
            links,
            stream_links,
            entitlements: audience.parties.iter().map(|p| p.stream_count()).sum(),
            messages: messages(workload),
        }
    }
}

/// The devices that publish these streams.
fn publishers(workload: &Workload, audience: &Audience, ranges: &[Range<u32>]) -> HashSet<u32> {
    let mut devices = HashSet::new();
    for range in ranges {
        let mut stream = range.start;
        while stream < range.end {
            let info = audience.streams[stream as usize];
            let publishers = &workload.flows[info.flow as usize].publishers;
            let publisher = &publishers[info.publisher as usize];
            devices.insert(publisher.device);
            // Its other topics follow.
            stream += publisher.topics.len() as u32 - info.topic;
        }
    }
    devices
}

fn messages(workload: &Workload) -> Option<u64> {
    let Phases { measure, .. } = &workload.phases;
    let seconds = measure.latest() as f64 / SECOND as f64;
    let mut all = 0.0;
    for flow in workload.flows.iter().filter(|f| !f.publishers.is_empty()) {
        match &flow.arrivals {
            Arrivals::Periodic { per_s } | Arrivals::Poisson { per_s } => {
                let active = flow.active_for.map(|ns| ns as f64 / SECOND as f64);
                all += per_s * seconds.min(active.unwrap_or(seconds));
            }
            Arrivals::Varying { curve, .. } => {
                all += curve.messages_within(flow.sends_for(measure.latest())) as f64;
            }
            Arrivals::OnOff { .. }
            | Arrivals::Bursts { .. }
            | Arrivals::FlatOut
            | Arrivals::Replay(_) => return None,
        }
    }
    let most = match *measure {
        Until::Count(count, _) => count,
        Until::Time(_) => u64::MAX,
    };
    Some((all as u64).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Device, Flow, Publisher, Sizes, Subscriber};

    fn publisher(device: u32, topics: &[&str]) -> Publisher {
        Publisher {
            device,
            topics: topics.iter().map(|t| t.to_string()).collect(),
        }
    }

    fn subscriber(device: u32, filter: &str, group: Option<&str>) -> Subscriber {
        Subscriber {
            device,
            filters: vec![filter.into()],
            group: group.map(str::to_owned),
            takes: None,
            late: None,
        }
    }

    fn flow(publishers: Vec<Publisher>, subscribers: Vec<Subscriber>) -> Flow {
        Flow {
            name: "f".into(),
            publishers,
            subscribers,
            arrivals: Arrivals::Periodic { per_s: 10.0 },
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

    fn census(devices: u32, flows: Vec<Flow>) -> Census {
        let device = |n| Device {
            name: format!("d{n}"),
            ..Device::default()
        };
        let workload = Workload {
            name: "w".into(),
            devices: (0..devices).map(device).collect(),
            flows,
            phases: Phases {
                measure: Until::Time(5 * SECOND),
                ..Phases::default()
            },
            cluster: false,
            seed: 0,
        };
        Census::take(&workload, &Audience::new(&workload).unwrap())
    }

    #[test]
    fn everybody_hears_everybody() {
        let publishers = vec![publisher(0, &["a/0", "a/1"]), publisher(1, &["b/0", "b/1"])];
        let subscribers = vec![subscriber(2, "#", None), subscriber(3, "#", None)];
        let counted = census(4, vec![flow(publishers, subscribers)]);
        let expected = Census {
            devices: 4,
            publishers: 2,
            subscribers: 2,
            streams: 4,
            links: 4,
            stream_links: 8,
            entitlements: 8,
            messages: Some(50),
        };
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_device_counts_once_whatever_it_does() {
        // Device 0 publishes in both flows and hears device 1; device 2 subscribes twice.
        let one = flow(
            vec![publisher(0, &["a"]), publisher(1, &["b/0", "b/1"])],
            vec![subscriber(2, "a", None)],
        );
        let two = flow(
            vec![publisher(0, &["c"])],
            vec![subscriber(2, "c", None), subscriber(0, "b/+", None)],
        );
        let counted = census(3, vec![one, two]);
        assert_eq!((counted.publishers, counted.subscribers), (2, 2));
        assert_eq!((counted.streams, counted.links), (4, 2));
        assert_eq!((counted.stream_links, counted.entitlements), (4, 4));
        assert_eq!(counted.messages, Some(100));
    }

    #[test]
    fn members_of_a_group_share_an_entitlement() {
        let members = vec![
            subscriber(1, "a/#", Some("g")),
            subscriber(2, "a/#", Some("g")),
        ];
        let counted = census(3, vec![flow(vec![publisher(0, &["a/0", "a/1"])], members)]);
        assert_eq!((counted.links, counted.stream_links), (2, 4));
        assert_eq!(counted.entitlements, 2);
    }

    #[test]
    fn answers_have_topics_and_links_of_their_own() {
        let mut flow = flow(vec![publisher(0, &["a"])], vec![subscriber(1, "a", None)]);
        flow.exchange = Exchange::PingPong;
        flow.arrivals = Arrivals::FlatOut;
        let counted = census(2, vec![flow]);
        assert_eq!((counted.publishers, counted.subscribers), (2, 2));
        assert_eq!((counted.streams, counted.links), (2, 2));
        assert_eq!((counted.stream_links, counted.entitlements), (2, 1));
        assert_eq!(counted.messages, None);
    }

    #[test]
    fn the_first_who_hears_a_question_answers_it() {
        let subscribers = vec![
            subscriber(1, "b", None),
            subscriber(2, "+", None),
            subscriber(3, "a", None),
        ];
        let mut flow = flow(vec![publisher(0, &["a", "b"])], subscribers);
        flow.exchange = Exchange::PingPong;
        let counted = census(4, vec![flow]);
        // Devices 1 and 2 answer, each one topic.
        assert_eq!((counted.publishers, counted.subscribers), (3, 4));
        assert_eq!((counted.streams, counted.links), (4, 5));
    }
}
