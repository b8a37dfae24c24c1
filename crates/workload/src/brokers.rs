//! Several brokers side by side: each topic is on one of them, and its publishers and subscribers
//! connect there.

use std::collections::HashMap;

use crate::audience::{Audience, Sorted};
use crate::model::{Arrivals, Device, Exchange, Flow, Publisher, Subscriber, Workload};

/// Most brokers that a workload is run over.
pub const MOST_BROKERS: u32 = 64;

/// Why a workload cannot be run over several brokers and still be the same workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Not from 1 to [`MOST_BROKERS`].
    #[error("{0} brokers are not possible; there can be 1 to {MOST_BROKERS}")]
    Count(u32),
    /// A cluster has 2 to [`MOST_BROKERS`] nodes.
    #[error("a cluster of {0} is not possible; it has 2 to {MOST_BROKERS} nodes")]
    Nodes(u32),
    /// Some brokers would have nothing to do.
    #[error(
        "workload `{workload}` has {}, and each topic lives on one broker: {} of {brokers} brokers \
         would carry nothing",
        so_many(*topics, "topic"), brokers - topics
    )]
    TooFewTopics {
        workload: String,
        /// Its distinct topics.
        topics: u32,
        /// Brokers asked for.
        brokers: u32,
    },
    /// A publisher could not take its topics in turn as before.
    #[error(
        "flow `{flow}`: the {topics} topics of publisher `{device}` live on {brokers} brokers and \
         cannot be dealt out to that many connections that send equally often"
    )]
    Uneven {
        flow: String,
        /// The publisher's device.
        device: String,
        topics: usize,
        /// Brokers that they are on.
        brokers: usize,
    },
    /// A publisher uses its topics by popularity.
    #[error(
        "flow `{flow}`: the topics of publisher `{device}` live on several brokers and are not equally popular: its messages \
         cannot be dealt out to that many connections"
    )]
    Popular {
        flow: String,
        /// The publisher's device.
        device: String,
    },
    /// A recorded device sends on topics of several brokers.
    #[error(
        "flow `{flow}` replays a trace, and the topics of publisher `{device}` live on several \
         brokers: what was recorded of one device cannot be split"
    )]
    Recorded {
        flow: String,
        /// The publisher's device.
        device: String,
    },
    /// The subscriber that answers would have to be on several brokers.
    #[error(
        "flow `{0}` is a ping-pong whose topics live on several brokers, but one subscriber answers \
         all its messages on one connection"
    )]
    PingPong(String),
    /// A last will belongs to one connection.
    #[error("device `{0}` has a last will, which only one of several brokers could publish")]
    Will(String),
}

fn so_many(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl PlacementError {
    pub fn hint(&self) -> String {
        match self {
            PlacementError::Count(_) => {
                format!("brokers may be a whole number from 1 to {MOST_BROKERS}")
            }
            PlacementError::Nodes(_) => {
                "name the addresses of its nodes: --on nats://a:4222+nats://b:4222".into()
            }
            PlacementError::TooFewTopics {
                topics, brokers, ..
            } => format!(
                "take at least {brokers} topics, or at most {}",
                so_many((*topics).max(1), "broker")
            ),
            PlacementError::Uneven { .. } => {
                "give each publisher one topic, or a number of topics that is a multiple of brokers"
                    .into()
            }
            PlacementError::Recorded { .. } | PlacementError::Popular { .. } => {
                "give each publisher one topic".into()
            }
            PlacementError::PingPong(_) => "give the flow one topic, or use one broker".into(),
            PlacementError::Will(_) => "use one broker".into(),
        }
    }
}

/// A set of brokers, by bits.
type Brokers = u64;

fn numbers(brokers: Brokers) -> impl Iterator<Item = u32> {
    (0..MOST_BROKERS).filter(move |b| brokers >> b & 1 == 1)
}

impl Workload {
    /// Spreads the workload over `brokers` brokers. A topic is on one of them: its number in order
    /// of first appearance modulo `brokers`. A device has a connection to each broker on which it
    /// publishes or hears something; the further ones are devices of their own, named after the
    /// first with `-b2` for broker 2 and so on. Every message has the time and the topic that it has
    /// with one broker, and is delivered as often.
    ///
    /// A publisher on several brokers becomes one on each, which share its rate, and its bursts: one whose messages cannot
    /// be dealt out evenly has some more. A subscriber
    /// subscribes on a broker to those of its filters that match a topic there; a filter that matches
    /// none goes to the subscriber's first broker.
    ///
    /// # Errors
    /// [`PlacementError`] where that would be another workload.
    pub fn spread_over(&self, brokers: u32) -> Result<Workload, PlacementError> {
        if brokers == 0 || brokers > MOST_BROKERS {
            return Err(PlacementError::Count(brokers));
        }
        if brokers == 1 {
            return Ok(self.clone());
        }
        let placed = Placed::new(self, brokers)?;
        let parts: Vec<Parts> = (self.flows.iter())
            .map(|flow| placed.place_flow(self, flow))
            .collect::<Result<_, _>>()?;
        let connections = Connections::new(self, &parts);
        let flow = |(flow, parts): (&Flow, Parts)| Flow {
            arrivals: shared(&flow.arrivals, parts.ways()),
            publishers: connections.publishers(flow, parts.publishers),
            subscribers: connections.subscribers(flow, parts.subscribers),
            ..flow.clone()
        };
        let flows = self.flows.iter().zip(parts).map(flow).collect();
        Ok(Workload {
            name: self.name.clone(),
            devices: connections.devices,
            flows,
            phases: self.phases.clone(),
            cluster: false,
            seed: self.seed,
        })
    }
}

impl Workload {
    /// Deals the devices out to the nodes of a cluster, so that every pair of nodes has its share of what goes from
    /// publishers to subscribers: publisher k of a flow is at node k modulo `nodes`, subscriber k one node further, and
    /// one more after each round. A device of several flows stays where the first of them puts it.
    ///
    /// # Errors
    /// Not from 2 to [`MOST_BROKERS`] nodes.
    pub fn dealt_over(&self, nodes: u32) -> Result<Workload, PlacementError> {
        if !(2..=MOST_BROKERS).contains(&nodes) {
            return Err(PlacementError::Nodes(nodes));
        }
        let mut dealt = Workload {
            cluster: true,
            ..self.clone()
        };
        let mut placed = vec![false; dealt.devices.len()];
        for flow in &dealt.flows {
            let publishers = flow.publishers.iter().map(|one| one.device).zip(0..);
            let publishers = publishers.map(|(device, k)| (device, k % nodes));
            let subscribers = flow.subscribers.iter().map(|one| one.device).zip(0..);
            let subscribers =
                subscribers.map(|(device, k): (u32, u32)| (device, (k + 1 + k / nodes) % nodes));
            for (device, node) in publishers.chain(subscribers) {
                if !std::mem::replace(&mut placed[device as usize], true) {
                    dealt.devices[device as usize].broker = node;
                }
            }
        }
        Ok(dealt)
    }

    /// The brokers among which a device's messages stay: its own, or all of a cluster.
    pub(crate) fn realm_of(&self, device: u32) -> u32 {
        let device = self.devices.get(device as usize);
        device
            .filter(|_| !self.cluster)
            .map_or(0, |device| device.broker)
    }

    /// Of a cluster: how many paths there are from a publisher's topic to a subscriber that is a party of its own, and how
    /// many of them lead from one node to another.
    pub fn crossings(&self, audience: &Audience) -> (u64, u64) {
        let node = |device: u32| self.devices[device as usize].broker as usize;
        let nodes = self.devices.iter().map(|device| device.broker as usize + 1);
        let nodes = nodes.max().unwrap_or(1);
        // Of each node, how many streams begin there up to each of them.
        let mut before = vec![vec![0u64]; nodes];
        for stream in &audience.streams {
            let flow = &self.flows[stream.flow as usize];
            let begins = node(flow.publishers[stream.publisher as usize].device);
            for (of_node, count) in before.iter_mut().enumerate() {
                let last = count[count.len() - 1];
                count.push(last + u64::from(of_node == begins));
            }
        }
        let (mut all, mut crossing) = (0, 0);
        for party in audience
            .parties
            .iter()
            .filter(|party| party.group.is_none())
        {
            let (flow, subscriber) = party.members[0];
            let ends = node(self.flows[flow as usize].subscribers[subscriber as usize].device);
            for range in party.streams.iter() {
                let (start, end) = (range.start as usize, range.end as usize);
                let within = before[ends][end] - before[ends][start];
                let paths = (end - start) as u64;
                all += paths;
                crossing += paths - within;
            }
        }
        (all, crossing)
    }
}

/// The arrivals of each of the publishers that one on so many brokers becomes.
fn shared(arrivals: &Arrivals, ways: usize) -> Arrivals {
    match arrivals {
        Arrivals::Bursts { messages, every } => Arrivals::Bursts {
            messages: messages.div_ceil(ways as u32),
            every: *every,
        },
        other => other.clone(),
    }
}

/// The topics of a workload and their brokers.
struct Placed<'a> {
    of: HashMap<&'a str, u32>,
    sorted: Sorted<'a>,
}

/// The publishers and subscribers of a flow, each with its topics or filters on every broker.
struct Parts {
    publishers: Vec<Vec<(u32, Vec<String>)>>,
    subscribers: Vec<Vec<(u32, Vec<String>)>>,
}

impl Parts {
    /// The most brokers that a publisher is on.
    fn ways(&self) -> usize {
        self.publishers
            .iter()
            .map(Vec::len)
            .max()
            .unwrap_or(1)
            .max(1)
    }
}

impl<'a> Placed<'a> {
    fn new(workload: &'a Workload, brokers: u32) -> Result<Self, PlacementError> {
        if let Some(device) = workload.devices.iter().find(|d| d.will.is_some()) {
            return Err(PlacementError::Will(device.name.clone()));
        }
        let mut of: HashMap<&str, u32> = HashMap::new();
        let publishers = workload.flows.iter().flat_map(|flow| &flow.publishers);
        for topic in publishers.flat_map(|publisher| &publisher.topics) {
            let next = of.len() as u32 % brokers;
            of.entry(topic).or_insert(next);
        }
        let topics = of.len() as u32;
        if topics < brokers {
            return Err(PlacementError::TooFewTopics {
                workload: workload.name.clone(),
                topics,
                brokers,
            });
        }
        let sorted = Sorted::new(of.iter().map(|(topic, broker)| (*topic, *broker)));
        Ok(Placed { of, sorted })
    }

    fn place_flow(&self, workload: &Workload, flow: &Flow) -> Result<Parts, PlacementError> {
        let publisher = |publisher: &Publisher| {
            let mut parts: Vec<(u32, Vec<String>)> = Vec::new();
            for topic in &publisher.topics {
                let broker = self.of[topic.as_str()];
                match parts.iter_mut().find(|(known, _)| *known == broker) {
                    Some((_, topics)) => topics.push(topic.clone()),
                    None => parts.push((broker, vec![topic.clone()])),
                }
            }
            parts
        };
        let mut heard: HashMap<&str, Brokers> = HashMap::new();
        let mut subscribers = Vec::with_capacity(flow.subscribers.len());
        for subscriber in &flow.subscribers {
            for filter in &subscriber.filters {
                heard.entry(filter).or_insert_with(|| {
                    let mut brokers = 0;
                    self.sorted
                        .each_match(filter, |broker| brokers |= 1 << broker);
                    brokers
                });
            }
            subscribers.push(parts_of(subscriber, &heard));
        }
        let parts = Parts {
            publishers: flow.publishers.iter().map(publisher).collect(),
            subscribers,
        };
        faithful(workload, flow, &parts)?;
        Ok(parts)
    }
}

fn parts_of(subscriber: &Subscriber, heard: &HashMap<&str, Brokers>) -> Vec<(u32, Vec<String>)> {
    let of = |filter: &String| heard[filter.as_str()];
    let all = subscriber.filters.iter().fold(0, |all, f| all | of(f));
    let first = if all == 0 { 0 } else { all.trailing_zeros() };
    let on = |broker: u32| {
        let here = |f: &&String| match of(f) {
            0 => broker == first,
            brokers => brokers >> broker & 1 == 1,
        };
        subscriber.filters.iter().filter(here).cloned().collect()
    };
    numbers(all | 1 << first).map(|b| (b, on(b))).collect()
}

/// Refuses a division that would make another workload.
fn faithful(workload: &Workload, flow: &Flow, parts: &Parts) -> Result<(), PlacementError> {
    let device = |nth: usize| {
        let device = flow.publishers[nth].device as usize;
        workload.devices[device].name.clone()
    };
    if flow.exchange == Exchange::PingPong {
        let publishers = parts.publishers.iter().flatten();
        let subscribers = &parts.subscribers;
        let responder = if flow.answered_by_last {
            subscribers.last()
        } else {
            subscribers.first()
        };
        let responder = responder.into_iter().flatten();
        let mut brokers: Vec<u32> = publishers.chain(responder).map(|(b, _)| *b).collect();
        brokers.dedup();
        if brokers.len() > 1 {
            return Err(PlacementError::PingPong(flow.name.clone()));
        }
    }
    let divided = parts.publishers.iter().position(|parts| parts.len() > 1);
    if let Some(nth) = divided.filter(|_| flow.topic_zipf.is_some()) {
        return Err(PlacementError::Popular {
            flow: flow.name.clone(),
            device: device(nth),
        });
    }
    if flow.arrivals.is_flat_out() {
        return Ok(());
    }
    let recorded = matches!(flow.arrivals, Arrivals::Replay(_));
    let ways = parts.ways();
    for (nth, parts) in parts.publishers.iter().enumerate() {
        if recorded && parts.len() > 1 {
            return Err(PlacementError::Recorded {
                flow: flow.name.clone(),
                device: device(nth),
            });
        }
        let alike = parts.windows(2).all(|two| two[0].1.len() == two[1].1.len());
        if parts.len() != ways || !alike {
            return Err(PlacementError::Uneven {
                flow: flow.name.clone(),
                device: device(nth),
                topics: flow.publishers[nth].topics.len(),
                brokers: ways,
            });
        }
    }
    Ok(())
}

/// The devices, one for each connection.
struct Connections {
    devices: Vec<Device>,
    /// Of each device of the workload: its first connection, and its brokers.
    of: Vec<(u32, Brokers)>,
}

impl Connections {
    fn new(workload: &Workload, parts: &[Parts]) -> Self {
        let mut brokers: Vec<Brokers> = vec![0; workload.devices.len()];
        for (flow, parts) in workload.flows.iter().zip(parts) {
            let publishers = flow.publishers.iter().map(|p| p.device);
            let subscribers = flow.subscribers.iter().map(|s| s.device);
            let uses = publishers.zip(&parts.publishers);
            for (device, uses) in uses.chain(subscribers.zip(&parts.subscribers)) {
                for (broker, _) in uses {
                    brokers[device as usize] |= 1 << broker;
                }
            }
        }
        let mut connections = Connections {
            devices: Vec::with_capacity(brokers.len()),
            of: Vec::with_capacity(brokers.len()),
        };
        for (device, brokers) in workload.devices.iter().zip(brokers) {
            let first = connections.devices.len() as u32;
            let brokers = brokers.max(1);
            connections.of.push((first, brokers));
            for (nth, broker) in numbers(brokers).enumerate() {
                connections.devices.push(Device {
                    name: match nth {
                        0 => device.name.clone(),
                        _ => format!("{}-b{}", device.name, broker + 1),
                    },
                    identity: device.identity.clone(),
                    broker,
                    connection_of: (nth > 0).then_some(first),
                    will: None,
                });
            }
        }
        connections
    }

    fn number(&self, device: u32, broker: u32) -> u32 {
        let (first, brokers) = self.of[device as usize];
        let before = brokers & ((1 << broker) - 1);
        first + before.count_ones()
    }

    /// All first parts, then all second ones: a round of the flow's publishers then takes the topics
    /// in the order in which they are taken on one broker.
    fn publishers(&self, flow: &Flow, parts: Vec<Vec<(u32, Vec<String>)>>) -> Vec<Publisher> {
        let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
        let mut publishers = Vec::with_capacity(parts.len());
        loop {
            let before = publishers.len();
            for (publisher, parts) in flow.publishers.iter().zip(&mut parts) {
                publishers.extend(parts.next().map(|(broker, topics)| Publisher {
                    device: self.number(publisher.device, broker),
                    topics,
                }));
            }
            if publishers.len() == before {
                return publishers;
            }
        }
    }

    fn subscribers(&self, flow: &Flow, parts: Vec<Vec<(u32, Vec<String>)>>) -> Vec<Subscriber> {
        let each = flow.subscribers.iter().zip(parts);
        let split = each.flat_map(|(subscriber, parts)| {
            let one = move |(broker, filters)| Subscriber {
                device: self.number(subscriber.device, broker),
                filters,
                group: subscriber.group.clone(),
                takes: subscriber.takes,
                late: subscriber.late,
            };
            parts.into_iter().map(one)
        });
        split.collect()
    }
}

#[cfg(test)]
mod tests;
