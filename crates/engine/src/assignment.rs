//! The assignment of a worker, as plain data that could cross a network.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use pubgauge_driver::header::{HEADER_LEN, MAX_STREAMS};
use pubgauge_driver::{Mark, Nanos, Travel};
use pubgauge_setup::ClientSetup;
use pubgauge_workload::audience::covering;
use pubgauge_workload::presence::Presence;
use pubgauge_workload::trace::Outlets;
use pubgauge_workload::{
    Arrivals, Audience, AudienceError, Exchange, Flow, Party, Sizes, TraceError, Workload,
};
use serde::{Deserialize, Serialize};

/// Most bursts of one flow that a measurement may have: each has an account of its own.
const MOST_BURSTS: u64 = 1_000_000;

/// Which side of the traffic a worker's processor time is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Its devices publish (and perhaps subscribe as well).
    Publishers,
    /// Its devices only subscribe (a ping-pong responder answers from here).
    Subscribers,
}

/// One worker's part of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Number of the worker, unique within the trial.
    pub worker: u32,
    pub role: Role,
    /// Its devices, as indices into the workload's.
    pub devices: Vec<u32>,
    /// Which of the trial's settings they all ask for.
    pub settings: u32,
    /// The broker that they all connect to, from 0.
    pub broker: u32,
    /// Which of the hosts of its side it runs on, from 0.
    pub host: u32,
    /// Marks the trial's messages.
    pub mark: Mark,
    /// Bound on flat-out messages under way, per flow, where the system has no back-pressure of
    /// its own and the flow names none.
    pub default_window: Option<u32>,
    /// How it works.
    pub client: ClientSetup,
    /// Processor to stay on.
    pub pin_to: Option<usize>,
}

impl Assignment {
    /// Its part of the devices of the workload, 0 to 1.
    pub fn share(&self, workload: &Workload) -> f64 {
        self.devices.len() as f64 / workload.devices.len().max(1) as f64
    }
}

/// How many workers share the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workers {
    /// Threads for publishing devices.
    pub publishers: u32,
    /// Threads for the others.
    pub subscribers: u32,
    /// Hosts of publishing devices, each with as many workers as `publishers` says; 1 where all run
    /// on one.
    pub publisher_hosts: u32,
    /// Hosts that the subscribing workers are on.
    pub subscriber_hosts: u32,
}

impl Workers {
    /// The workers of a side on all of its hosts, and the number of these hosts; both at least 1.
    pub fn workers_and_hosts(&self, role: Role) -> (u32, u32) {
        let (each, hosts) = match role {
            Role::Publishers => (self.publishers, self.publisher_hosts),
            Role::Subscribers => (self.subscribers, self.subscriber_hosts),
        };
        (each.max(1) * hosts.max(1), hosts.max(1))
    }
}

impl Default for Workers {
    fn default() -> Self {
        Workers {
            publishers: 1,
            subscribers: 1,
            publisher_hosts: 1,
            subscriber_hosts: 1,
        }
    }
}

/// The workload with what every worker derives from it, computed once.
#[derive(Debug)]
pub struct Brief {
    pub workload: Arc<Workload>,
    /// Streams and parties.
    pub audience: Audience,
    /// First stream of each flow, and one past the last.
    pub flow_starts: Vec<u32>,
    /// Longest payload in bytes.
    pub max_payload: usize,
    /// The work of each device, in the order of devices.
    links: Vec<Activity>,
    /// Settings of each device.
    pub settings_of: Vec<u32>,
    /// Whether a flow's bodies are pubgauge's own, so that they can be checked (recorded contents
    /// are not).
    pub checked: Vec<bool>,
    /// Smallest and largest payload of each flow in bytes.
    pub sizes: Vec<RangeInclusive<usize>>,
    /// How the messages of each flow travel whose contents are as recorded.
    recorded: Vec<Option<Outlets>>,
}

/// One thing that one device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Activity {
    /// Index into the workload's devices.
    pub device: u32,
    /// Index into the workload's flows.
    pub flow: u32,
    /// It subscribes (else it publishes).
    pub subscribes: bool,
    /// Index into the flow's subscribers or publishers.
    pub index: u32,
}

/// Why workers cannot run a workload that is sound in itself.
#[derive(Debug, thiserror::Error)]
pub enum BriefError {
    /// Streams have numbers in the header.
    #[error(
        "the workload has {0} streams (publishers times topics), but at most {MAX_STREAMS} can be told apart"
    )]
    TooManyStreams(u32),
    #[error(
        "flow `{flow}` has {bursts} bursts in the measurement, but at most {MOST_BURSTS} can be told apart\n  hint: a longer time between bursts, or a shorter measurement"
    )]
    TooManyBursts { flow: String, bursts: u64 },
    /// A connection has one set of settings.
    #[error("connection `{0}` is used by flows with different settings")]
    ConnectionOfTwo(String),
    /// No fleet could have the settings of all members.
    #[error("members of group `{0}` belong to flows with different settings")]
    GroupOfTwo(String),
    #[error(transparent)]
    Audience(#[from] AudienceError),
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Brief {
    /// Derives everything from a workload.
    ///
    /// # Errors
    /// The reason why the workload cannot be run.
    pub fn new(workload: impl Into<Arc<Workload>>) -> Result<Arc<Self>, BriefError> {
        let workload = workload.into();
        let mut max_payload = HEADER_LEN;
        let mut checked = Vec::with_capacity(workload.flows.len());
        let mut sizes = Vec::with_capacity(workload.flows.len());
        let mut recorded = Vec::with_capacity(workload.flows.len());
        for flow in &workload.flows {
            recorded.push(match &flow.arrivals {
                Arrivals::Replay(replay) if replay.contents => {
                    let trace = replay.open()?;
                    Some(Outlets::new(&trace, flow.publishers.len() as u32))
                }
                _ => None,
            });
            let (size, contents) = payloads(flow)?;
            max_payload = max_payload.max(*size.end());
            sizes.push(size);
            checked.push(!contents);
        }
        let wills = workload.devices.iter().flat_map(|device| &device.will);
        let largest = wills.map(|will| will.bytes as usize).max();
        max_payload = max_payload.max(largest.unwrap_or(0));
        let audience = Audience::new(&workload)?;
        let streams = audience.streams.len() as u32;
        if streams > MAX_STREAMS {
            return Err(BriefError::TooManyStreams(streams));
        }
        let settings_of = settings_of(&workload)?;
        groups_are_whole(&workload, &audience)?;
        bursts_are_told_apart(&workload)?;
        let flows = workload.flows.len() as u32;
        let starts = (0..flows).map(|f| audience.streams.partition_point(|s| s.flow < f) as u32);
        let flow_starts = starts.chain([streams]).collect();
        let mut links = Vec::new();
        for (number, flow) in (0..).zip(&workload.flows) {
            let link = |index, device, subscribes| Activity {
                device,
                flow: number,
                subscribes,
                index,
            };
            let publishers = (0..).zip(&flow.publishers);
            links.extend(publishers.map(|(index, p)| link(index, p.device, false)));
            let subscribers = (0..).zip(&flow.subscribers);
            links.extend(subscribers.map(|(index, s)| link(index, s.device, true)));
        }
        links.sort_unstable();
        Ok(Arc::new(Brief {
            links,
            settings_of,
            checked,
            sizes,
            recorded,
            workload,
            audience,
            flow_starts,
            max_payload,
        }))
    }

    /// How the messages of a publisher of a flow travel on one of its topics, where that is as they were recorded.
    pub fn travel(&self, flow: usize, publisher: usize, topic: usize) -> Option<Travel> {
        let outlets = self.recorded[flow].as_ref()?;
        let (_, manner) = outlets.outlets_of(publisher as u32).nth(topic)?;
        Some(Travel {
            header_apart: true,
            qos: manner.qos,
            retain: manner.retain,
        })
    }

    /// The device of a member of a party.
    pub fn device_of(&self, (flow, subscriber): (u32, u32)) -> u32 {
        self.workload.flows[flow as usize].subscribers[subscriber as usize].device
    }

    /// The work of a device.
    pub fn links(&self, device: u32) -> &[Activity] {
        let from = self.links.partition_point(|l| l.device < device);
        let upto = self.links.partition_point(|l| l.device <= device);
        &self.links[from..upto]
    }

    /// The flow of a stream; `None` if there is no such stream.
    #[inline]
    pub fn flow_of(&self, stream: u32) -> Option<usize> {
        // Flows are few: a scan beats a search.
        (0..self.flow_starts.len() - 1).find(|&f| stream < self.flow_starts[f + 1])
    }

    /// The topic that a stream is published on.
    ///
    /// # Panics
    /// If there is no such stream.
    #[inline]
    pub fn topic_of(&self, stream: u32) -> &str {
        let info = self.audience.streams[stream as usize];
        let publisher =
            &self.workload.flows[info.flow as usize].publishers[info.publisher as usize];
        &publisher.topics[info.topic as usize]
    }

    /// For how many clients of a worker messages and acknowledgements are counted one by one: none, unless some come and go.
    pub fn counted_clients(&self, assignment: &Assignment) -> usize {
        let devices = &assignment.devices;
        let mut all = devices.iter();
        if all.any(|device| self.presence_of(*device).is_some()) {
            devices.len()
        } else {
            0
        }
    }

    /// Time that a device's application takes for each message, ns, where it takes its time: as a slow subscriber, or as all
    /// of its flow do.
    pub fn takes(&self, device: u32) -> Option<Nanos> {
        let mut links = self.links(device).iter().filter(|link| link.subscribes);
        links.find_map(|link| {
            let party = self.audience.party_of(link.flow, link.index);
            let slow = self.audience.parties[party as usize].takes;
            slow.or(self.workload.flows[link.flow as usize].subscribers_take)
        })
    }

    /// Whether a device is a slow subscriber, what comes to which is told apart.
    pub fn is_slow(&self, device: u32) -> bool {
        let mut links = self.links(device).iter().filter(|link| link.subscribes);
        links.any(|link| {
            let party = self.audience.party_of(link.flow, link.index);
            self.audience.parties[party as usize].is_slow()
        })
    }

    /// How long after the beginning of the measurement a device subscribes, ns, where that is late.
    pub fn late(&self, device: u32) -> Option<Nanos> {
        let mut links = self.links(device).iter().filter(|link| link.subscribes);
        links.find_map(|link| {
            let party = self.audience.party_of(link.flow, link.index);
            self.audience.parties[party as usize].late
        })
    }

    /// When a device is connected; `None`: throughout.
    pub fn presence_of(&self, device: u32) -> Option<&Presence> {
        let mut links = self.links(device).iter();
        links.find_map(|link| self.workload.flows[link.flow as usize].presence_of(link.subscribes))
    }

    pub fn streams_of(&self, flow: usize) -> Range<u32> {
        self.flow_starts[flow]..self.flow_starts[flow + 1]
    }

    pub fn stream_count(&self) -> u32 {
        self.flow_starts.last().copied().unwrap_or(0)
    }

    /// Whether answers are expected on a flow.
    pub fn is_ping_pong(&self, flow: usize) -> bool {
        self.workload.flows[flow].exchange == Exchange::PingPong
    }

    /// Whether a device answers messages of a ping-pong flow.
    pub fn responds(&self, device: u32) -> bool {
        let asked = |link: &&Activity| link.subscribes && self.is_ping_pong(link.flow as usize);
        self.links(device).iter().filter(asked).any(|link| {
            let party = self.audience.party_of(link.flow, link.index);
            let heard = &self.audience.parties[party as usize].streams;
            let mut streams = heard.iter().cloned().flatten();
            streams.any(|stream| self.audience.responder(stream) == Some(party))
        })
    }
}

/// The settings of each device.
fn settings_of(workload: &Workload) -> Result<Vec<u32>, BriefError> {
    let mut settings: Vec<Option<u32>> = vec![None; workload.devices.len()];
    for flow in &workload.flows {
        let publishers = flow.publishers.iter().map(|p| p.device);
        for device in publishers.chain(flow.subscribers.iter().map(|s| s.device)) {
            let known = settings[device as usize].get_or_insert(flow.settings);
            if *known != flow.settings {
                let name = workload.devices[device as usize].name.clone();
                return Err(BriefError::ConnectionOfTwo(name));
            }
        }
    }
    Ok(settings
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect())
}

/// Refuses a group whose members ask for different settings: no fleet could have them all.
fn groups_are_whole(workload: &Workload, audience: &Audience) -> Result<(), BriefError> {
    let settings = |member: &(u32, u32)| workload.flows[member.0 as usize].settings;
    for party in &audience.parties {
        if let Some(group) = &party.group
            && party
                .members
                .iter()
                .any(|m| settings(m) != settings(&party.members[0]))
        {
            return Err(BriefError::GroupOfTwo(group.clone()));
        }
    }
    Ok(())
}

/// Refuses a workload with more bursts in its measurement than can be kept apart.
fn bursts_are_told_apart(workload: &Workload) -> Result<(), BriefError> {
    for flow in &workload.flows {
        let period = flow.arrivals.burst_period().filter(|period| *period > 0);
        let bursts = period.map_or(0, |period| workload.phases.measure.latest() / period);
        if bursts > MOST_BURSTS {
            let flow = flow.name.clone();
            return Err(BriefError::TooManyBursts { flow, bursts });
        }
    }
    Ok(())
}

/// For each device, the first of those that must be with the same worker: members of a group that hears a flow with a
/// window, because one ledger says what of it is under way.
fn companies(brief: &Brief, windowed: &[bool]) -> Vec<u32> {
    fn first_of(company: &mut [u32], device: u32) -> u32 {
        let mut first = device;
        while company[first as usize] != first {
            first = company[first as usize];
        }
        company[device as usize] = first;
        first
    }
    let mut company: Vec<u32> = (0..brief.workload.devices.len() as u32).collect();
    let windows = (0..windowed.len()).filter(|flow| windowed[*flow]);
    let windows: Vec<Range<u32>> = windows.map(|flow| brief.streams_of(flow)).collect();
    let hears_one = |party: &&Party| {
        let mut heard = party.streams.iter();
        heard.any(|streams| {
            let overlaps = |w: &Range<u32>| w.start < streams.end && streams.start < w.end;
            windows.iter().any(overlaps)
        })
    };
    for party in brief.audience.parties.iter().filter(hears_one) {
        let first = brief.device_of(party.members[0]);
        for member in &party.members[1..] {
            let (a, b) = (
                first_of(&mut company, first),
                first_of(&mut company, brief.device_of(*member)),
            );
            company[a.max(b) as usize] = a.min(b);
        }
    }
    (0..company.len() as u32)
        .map(|device| first_of(&mut company, device))
        .collect()
}

/// Splits the devices over workers: those of different brokers apart, and those with different
/// settings, because a fleet has one of each; those that publish apart from those that only
/// subscribe. Each broker and each kind of settings has as many workers as `workers` says, on the hosts of their side in
/// turn. Members of a group are among them like all others, but for groups that hear a flow with a window, as `windowed`
/// says flow by flow: their members are together, on the publishers' side if one of them publishes.
pub fn divide(brief: &Brief, workers: Workers, mark: Mark, windowed: &[bool]) -> Vec<Assignment> {
    let workload = &brief.workload;
    let company = companies(brief, windowed);
    let mut publishes = vec![false; workload.devices.len()];
    for p in workload.flows.iter().flat_map(|f| &f.publishers) {
        publishes[company[p.device as usize] as usize] = true;
    }
    let mut kinds: BTreeMap<(u32, u32, Role), Vec<u32>> = BTreeMap::new();
    for (device, first) in (0..).zip(&company) {
        let role = if publishes[*first as usize] {
            Role::Publishers
        } else {
            Role::Subscribers
        };
        let broker = workload.devices[device as usize].broker;
        let settings = brief.settings_of[device as usize];
        let kind = kinds.entry((settings, broker, role)).or_default();
        kind.push(device);
    }
    let mut assignments = Vec::new();
    let mut hosts_used: BTreeMap<Role, u32> = BTreeMap::new();
    for ((settings, broker, role), mine) in kinds {
        let (count, hosts) = workers.workers_and_hosts(role);
        let count = (count as usize).min(mine.len());
        let mut shares: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut share_of = HashMap::new();
        for (i, device) in mine.iter().enumerate() {
            let even = i * count / mine.len();
            let share = *share_of.entry(company[*device as usize]).or_insert(even);
            shares[share].push(*device);
        }
        let used = hosts_used.entry(role).or_default();
        for devices in shares.into_iter().filter(|devices| !devices.is_empty()) {
            let host = *used % hosts;
            *used += 1;
            assignments.push(Assignment {
                worker: assignments.len() as u32,
                role,
                devices,
                settings,
                broker,
                host,
                mark,
                default_window: None,
                client: ClientSetup::default(),
                pin_to: None,
            });
        }
    }
    assignments
}

/// For each stream, how many workers have parties that hear it, without slow and late ones.
pub fn spread(brief: &Brief, assignments: &[Assignment]) -> Arc<[u16]> {
    let mut spread = vec![0u16; brief.stream_count() as usize];
    for assignment in assignments {
        let links = assignment.devices.iter().flat_map(|d| brief.links(*d));
        let parties = links.filter(|link| link.subscribes).map(|link| {
            let party = brief.audience.party_of(link.flow, link.index);
            &brief.audience.parties[party as usize]
        });
        let heard = parties.filter(|party| !party.is_apart());
        let heard = heard.flat_map(|party| party.streams.iter());
        let parties = covering(heard, spread.len());
        for (workers, parties) in spread.iter_mut().zip(parties) {
            *workers += u16::from(parties > 0);
        }
    }
    spread.into()
}

/// The largest payload of a flow in bytes, and whether it sends recorded contents.
fn payloads(flow: &Flow) -> Result<(RangeInclusive<usize>, bool), BriefError> {
    let trace = match &flow.arrivals {
        Arrivals::Replay(replay) => Some(replay.open()?),
        _ => None,
    };
    let ends = |sizes: &mut dyn Iterator<Item = u32>| {
        let first = sizes.next().unwrap_or(0);
        sizes.fold((first, first), |(least, most), size| {
            (least.min(size), most.max(size))
        })
    };
    let (smallest, largest) = match &flow.size {
        Sizes::Fixed { bytes } => (*bytes, *bytes),
        Sizes::List { bytes } => ends(&mut bytes.iter().copied()),
        Sizes::Uniform { min, max }
        | Sizes::Normal { min, max, .. }
        | Sizes::LogNormal { min, max, .. } => (*min, *max),
        Sizes::Recorded => trace.as_ref().map_or((0, 0), |trace| {
            ends(&mut trace.readings.iter().map(|reading| reading.size))
        }),
    };
    if matches!(&flow.arrivals, Arrivals::Replay(replay) if replay.contents) {
        let whole = |size: u32| size as usize + HEADER_LEN;
        return Ok((whole(smallest)..=whole(largest), true));
    }
    let smallest = (smallest as usize).max(HEADER_LEN);
    let sizes = smallest..=(largest as usize).max(smallest);
    Ok((sizes, trace.is_some_and(|t| t.has_payloads())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_workload::{SECOND, Until};

    #[test]
    fn more_bursts_than_can_be_kept_apart_are_refused() {
        let every = Some(SECOND / 1_000);
        let mut workload = Workload::fan(1, 1, Arrivals::Bursts { messages: 3, every });
        workload.phases.measure = Until::Time(1_000 * SECOND);
        Brief::new(workload.clone()).unwrap();
        workload.phases.measure = Until::Count(1, 1_001 * SECOND);
        let why = Brief::new(workload).unwrap_err().to_string();
        assert!(why.contains("1001000 bursts"), "{why}");
    }
}
