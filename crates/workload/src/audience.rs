//! Who is entitled to what: the ground truth that the ledger counts against.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pubgauge_driver::topic::TopicMatch;

use crate::model::{Exchange, Flow, Workload};
use crate::units::Nanos;

/// One publisher's messages on one topic. Streams are numbered from 0 in the order flow,
/// publisher, topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Index into [`Workload::flows`].
    pub flow: u32,
    /// Index into [`Flow::publishers`].
    pub publisher: u32,
    /// Index into that publisher's topics.
    pub topic: u32,
}

/// A recipient that is entitled to one copy of each message: a subscriber, or a group whose members
/// share the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// The group's name, if it is one.
    pub group: Option<String>,
    /// Its subscribers as (index into [`Workload::flows`], index into [`Flow::subscribers`]);
    /// exactly one unless it is a group.
    pub members: Vec<(u32, u32)>,
    /// The streams it is entitled to, in ascending order, neither overlapping nor adjacent. Parties
    /// with equal filters share them.
    pub streams: Arc<[Range<u32>]>,
    /// Time that its application takes for each message of the measurement, ns, where it is slow; a group is not.
    pub takes: Option<Nanos>,
    /// How long after the beginning of the measurement it subscribes, ns, where that is late; a group is not.
    pub late: Option<Nanos>,
}

impl Party {
    /// Whether it is expected to fall behind: what it gets is told apart.
    pub fn is_slow(&self) -> bool {
        self.takes.is_some()
    }

    /// Whether it subscribes within the measurement: what it gets is told apart.
    pub fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Whether what it gets is told apart from what the others get.
    pub fn is_apart(&self) -> bool {
        self.is_slow() || self.is_late()
    }

    /// Whether it is entitled to `stream`.
    pub fn is_entitled(&self, stream: u32) -> bool {
        let after = self.streams.partition_point(|range| range.start <= stream);
        after > 0 && self.streams[after - 1].end > stream
    }

    /// How many streams it is entitled to.
    pub fn stream_count(&self) -> u64 {
        self.streams
            .iter()
            .map(|range| u64::from(range.end - range.start))
            .sum()
    }
}

/// Why deliveries cannot be attributed to parties.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AudienceError {
    /// Two filters of one connection match the same topic: systems differ in whether they then
    /// deliver once or twice.
    #[error(
        "device `{device}` subscribes twice to topic `{topic}` (by `{first}` and `{second}`); \
         systems differ in whether they then deliver once or twice, so a connection's filters \
         must not overlap"
    )]
    Overlap {
        /// The device's name.
        device: String,
        /// A topic that both match.
        topic: String,
        /// One filter.
        first: String,
        /// The other.
        second: String,
    },
    /// Members of a group with different filters, some of which are equal.
    #[error(
        "members of group `{0}` have different filters; all members of a group must have the same"
    )]
    MixedGroup(String),
    /// More streams than can be numbered.
    #[error("the workload has more than 4,294,967,295 streams (publishers times topics)")]
    TooManyStreams,
}

/// The streams of a workload and the parties entitled to them. Filters match the topics of every
/// flow, not only of their own. Replies of ping-pong flows are not part of it.
#[derive(Clone, Debug)]
pub struct Audience {
    /// Every stream; the index is its number.
    pub streams: Vec<StreamInfo>,
    /// Every party.
    pub parties: Vec<Party>,
    /// First stream of each publisher, flow by flow.
    first: Vec<Vec<u32>>,
    /// Parties entitled to each stream, without slow and late ones.
    fan_out: Vec<u32>,
    /// Slow parties entitled to each stream; empty where none is slow.
    slow_fan_out: Vec<u32>,
    /// Late parties entitled to each stream; empty where none is late.
    late_fan_out: Vec<u32>,
    /// Party of each subscriber, flow by flow.
    party_of: Vec<Vec<u32>>,
    /// The party that answers the messages of a stream of a ping-pong flow.
    responders: HashMap<u32, u32>,
}

impl Audience {
    /// Numbers the streams of `workload` and matches every filter against every topic, at a cost
    /// of about (streams + matches) log streams.
    ///
    /// # Errors
    /// When a delivery could not be attributed with certainty: overlapping filters of one
    /// connection, members of one group with different filters, too many streams.
    pub fn new(workload: &Workload) -> Result<Self, AudienceError> {
        let (streams, first) = number(workload)?;
        let topics = SortedTopics::new(workload, &streams);
        // Filters and groups are of one broker.
        let mut matched: HashMap<(u32, Vec<&str>), Ranges> = HashMap::new();
        let mut groups: HashMap<(u32, &str, Vec<&str>), u32> = HashMap::new();
        let mut group_filters: HashMap<(u32, &str, &str), u32> = HashMap::new();
        let broker = |device: u32| workload.realm_of(device);
        // Connections that subscribe in several flows have to be free of overlap as a whole.
        let mut by_device: HashMap<u32, Vec<&str>> = HashMap::new();
        let mut parties: Vec<Party> = Vec::new();
        let mut party_of = Vec::with_capacity(workload.flows.len());
        for (flow_index, flow) in workload.flows.iter().enumerate() {
            let mut of_flow = Vec::with_capacity(flow.subscribers.len());
            for (index, subscriber) in flow.subscribers.iter().enumerate() {
                let member = (flow_index as u32, index as u32);
                let device = || {
                    workload
                        .devices
                        .get(subscriber.device as usize)
                        .map(|device| device.name.clone())
                        .unwrap_or_else(|| subscriber.device.to_string())
                };
                let broker = broker(subscriber.device);
                let mut filters: Vec<&str> =
                    subscriber.filters.iter().map(String::as_str).collect();
                filters.sort_unstable();
                let of_device = by_device.entry(subscriber.device).or_default();
                if !of_device.is_empty() {
                    let mut all = of_device.clone();
                    all.extend(&filters);
                    topics.matching(broker, &all, device)?;
                }
                of_device.extend(&filters);
                let ranges = match matched.get(&(broker, filters.clone())) {
                    Some(ranges) => ranges.clone(),
                    None => {
                        let ranges: Ranges = topics.matching(broker, &filters, device)?.into();
                        matched.insert((broker, filters.clone()), ranges.clone());
                        ranges
                    }
                };
                let party = match &subscriber.group {
                    None => None,
                    Some(group) => {
                        let next = parties.len() as u32;
                        let party = *groups
                            .entry((broker, group.as_str(), filters.clone()))
                            .or_insert(next);
                        for filter in &filters {
                            let owner = *group_filters
                                .entry((broker, group.as_str(), filter))
                                .or_insert(party);
                            if owner != party {
                                return Err(AudienceError::MixedGroup(group.clone()));
                            }
                        }
                        (party != next).then_some(party)
                    }
                };
                let party = party.unwrap_or_else(|| {
                    parties.push(Party {
                        group: subscriber.group.clone(),
                        members: Vec::new(),
                        streams: ranges,
                        takes: subscriber.takes.filter(|_| subscriber.group.is_none()),
                        late: subscriber.late.filter(|_| subscriber.group.is_none()),
                    });
                    parties.len() as u32 - 1
                });
                parties[party as usize].members.push(member);
                of_flow.push(party);
            }
            party_of.push(of_flow);
        }
        let entitled = |those: fn(&Party) -> bool| {
            let parties = parties.iter().filter(move |party| those(party));
            covering(
                parties.flat_map(|party| party.streams.iter()),
                streams.len(),
            )
        };
        let entitled_if_any = |those: fn(&Party) -> bool| {
            if parties.iter().any(those) {
                entitled(those)
            } else {
                Vec::new()
            }
        };
        let fan_out = entitled(|party| !party.is_apart());
        let slow_fan_out = entitled_if_any(Party::is_slow);
        let late_fan_out = entitled_if_any(Party::is_late);
        let responders = responders(workload, &first, &party_of, &parties);
        Ok(Audience {
            responders,
            streams,
            parties,
            first,
            fan_out,
            slow_fan_out,
            late_fan_out,
            party_of,
        })
    }

    /// How many parties are entitled to `stream`, without slow and late ones: deliveries expected per message.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn fan_out(&self, stream: u32) -> u32 {
        self.fan_out[stream as usize]
    }

    /// How many slow parties are entitled to `stream`.
    #[inline]
    pub fn slow_fan_out(&self, stream: u32) -> u32 {
        self.slow_fan_out.get(stream as usize).copied().unwrap_or(0)
    }

    /// How many late parties are entitled to `stream`.
    pub fn late_fan_out(&self, stream: u32) -> u32 {
        self.late_fan_out.get(stream as usize).copied().unwrap_or(0)
    }

    /// How many parties are entitled to `stream` from the beginning, slow ones among them.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn listeners(&self, stream: u32) -> u32 {
        self.fan_out(stream) + self.slow_fan_out(stream)
    }

    /// The party that answers the messages of a stream of a ping-pong flow: that of the flow's first subscriber
    /// that hears them, or of its last one if the flow says so. `None` if nobody of the flow does, or the flow is no
    /// ping-pong.
    pub fn responder(&self, stream: u32) -> Option<u32> {
        self.responders.get(&stream).copied()
    }

    /// The devices that may answer the messages of a stream: the members of its responding party, of which a
    /// group has several.
    pub fn responding_devices(
        &self,
        workload: &Workload,
        stream: u32,
    ) -> impl Iterator<Item = u32> {
        let party = self.responder(stream).map(|p| &self.parties[p as usize]);
        let members = party.into_iter().flat_map(|party| &party.members);
        let device = |(flow, subscriber): &(u32, u32)| {
            let flow = &workload.flows[*flow as usize];
            flow.subscribers[*subscriber as usize].device
        };
        members.map(device)
    }

    /// The number of the first stream of a publisher; its other topics follow.
    ///
    /// # Panics
    /// If there is no such publisher.
    pub fn first_stream(&self, flow: u32, publisher: u32) -> u32 {
        self.first[flow as usize][publisher as usize]
    }

    /// The party that a subscriber belongs to, as index into [`Audience::parties`].
    ///
    /// # Panics
    /// If there is no such subscriber.
    pub fn party_of(&self, flow: u32, subscriber: u32) -> u32 {
        self.party_of[flow as usize][subscriber as usize]
    }
}

/// Which party answers each stream of the ping-pong flows.
fn responders(
    workload: &Workload,
    first: &[Vec<u32>],
    party_of: &[Vec<u32>],
    parties: &[Party],
) -> HashMap<u32, u32> {
    let mut all = HashMap::new();
    for (number, flow) in workload.flows.iter().enumerate() {
        let Some(from) = first[number].first().copied() else {
            continue;
        };
        if flow.exchange != Exchange::PingPong {
            continue;
        }
        let streams = flow
            .publishers
            .iter()
            .map(|p| p.topics.len())
            .sum::<usize>();
        let (upto, had) = (from + streams as u32, all.len());
        let in_order = party_of[number].iter();
        let parties_in_turn: Vec<&u32> = if flow.answered_by_last {
            in_order.rev().collect()
        } else {
            in_order.collect()
        };
        for party in parties_in_turn {
            for range in parties[*party as usize].streams.iter() {
                for stream in range.start.max(from)..range.end.min(upto) {
                    all.entry(stream).or_insert(*party);
                }
            }
            if all.len() - had == streams {
                break;
            }
        }
    }
    all
}

type Ranges = Arc<[Range<u32>]>;
type Numbered = (Vec<StreamInfo>, Vec<Vec<u32>>);

fn number(workload: &Workload) -> Result<Numbered, AudienceError> {
    let count = |flow: &Flow| {
        flow.publishers
            .iter()
            .map(|p| p.topics.len())
            .sum::<usize>()
    };
    let total: usize = workload.flows.iter().map(count).sum();
    if u32::try_from(total).is_err() {
        return Err(AudienceError::TooManyStreams);
    }
    let mut streams = Vec::with_capacity(total);
    let mut first = Vec::with_capacity(workload.flows.len());
    for (flow_index, flow) in workload.flows.iter().enumerate() {
        let mut of_flow = Vec::with_capacity(flow.publishers.len());
        for (publisher, topics) in flow.publishers.iter().map(|p| p.topics.len()).enumerate() {
            of_flow.push(streams.len() as u32);
            streams.extend((0..topics as u32).map(|topic| StreamInfo {
                flow: flow_index as u32,
                publisher: publisher as u32,
                topic,
            }));
        }
        first.push(of_flow);
    }
    Ok((streams, first))
}

/// All topics in byte order, each with its stream: topics with a common prefix are adjacent.
struct SortedTopics<'a> {
    sorted: Sorted<'a>,
    /// The broker of each stream.
    brokers: Vec<u32>,
}

/// Topics in byte order, each with a number: topics with a common prefix are adjacent.
pub(crate) struct Sorted<'a>(Vec<(&'a str, u32)>);

impl<'a> SortedTopics<'a> {
    fn new(workload: &'a Workload, streams: &[StreamInfo]) -> Self {
        let publisher = |stream: &StreamInfo| {
            &workload.flows[stream.flow as usize].publishers[stream.publisher as usize]
        };
        let topic = |stream| -> &'a str { &publisher(stream).topics[stream.topic as usize] };
        let broker = |stream| workload.realm_of(publisher(stream).device);
        SortedTopics {
            sorted: Sorted::new(streams.iter().map(topic).zip(0..)),
            brokers: streams.iter().map(broker).collect(),
        }
    }

    /// The streams that one connection gets by `filters`.
    fn matching(
        &self,
        broker: u32,
        filters: &[&str],
        device: impl Fn() -> String,
    ) -> Result<Vec<Range<u32>>, AudienceError> {
        let mut found: Vec<(u32, usize)> = Vec::new();
        for (nth, filter) in filters.iter().enumerate() {
            self.sorted.each_match(filter, |stream| {
                if self.brokers[stream as usize] == broker {
                    found.push((stream, nth));
                }
            });
        }
        found.sort_unstable();
        let mut ranges: Vec<Range<u32>> = Vec::new();
        let mut previous: Option<(u32, usize)> = None;
        for &(stream, nth) in &found {
            if let Some((same, other)) = previous
                && same == stream
            {
                let topic = self.sorted.0.iter().find(|(_, s)| *s == stream);
                return Err(AudienceError::Overlap {
                    device: device(),
                    topic: topic.map(|(t, _)| t.to_string()).unwrap_or_default(),
                    first: filters[other].to_string(),
                    second: filters[nth].to_string(),
                });
            }
            previous = Some((stream, nth));
            match ranges.last_mut() {
                Some(range) if range.end == stream => range.end += 1,
                _ => ranges.push(stream..stream + 1),
            }
        }
        Ok(ranges)
    }
}

impl<'a> Sorted<'a> {
    pub(crate) fn new(topics: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let mut sorted: Vec<(&str, u32)> = topics.collect();
        sorted.sort_unstable();
        Sorted(sorted)
    }

    /// Calls `found` with the number of each topic that matches.
    pub(crate) fn each_match(&self, filter: &str, mut found: impl FnMut(u32)) {
        let equal = |topic: &str, found: &mut dyn FnMut(u32)| {
            let from = self.0.partition_point(|(t, _)| *t < topic);
            for (_, stream) in self.0[from..].iter().take_while(|(t, _)| *t == topic) {
                found(*stream);
            }
        };
        if !filter.is_wild() {
            return equal(filter, &mut found);
        }
        let prefix = filter.literal_prefix();
        // `a/#` also matches `a`, which does not begin with `a/`.
        if let Some(parent) = prefix.strip_suffix('/')
            && filter.matches_topic(parent)
        {
            equal(parent, &mut found);
        }
        let from = self.0.partition_point(|(t, _)| *t < prefix);
        for (topic, stream) in &self.0[from..] {
            if !topic.starts_with(prefix) {
                break;
            }
            if filter.matches_topic(topic) {
                found(*stream);
            }
        }
    }
}

/// How many of these ranges each of the streams is in, by differences at their ends: they may be long.
pub fn covering<'a>(ranges: impl Iterator<Item = &'a Range<u32>>, streams: usize) -> Vec<u32> {
    let mut steps = vec![0i64; streams + 1];
    for range in ranges {
        steps[range.start as usize] += 1;
        steps[range.end as usize] -= 1;
    }
    let mut level = 0;
    steps[..streams]
        .iter()
        .map(|step| {
            level += step;
            level as u32
        })
        .collect()
}

#[cfg(test)]
mod tests;
