//! From the study file to the workload that is run: templates expanded, units converted, devices
//! numbered.

mod checks;
mod contents;
mod identities;
mod late;
mod presence;
mod rate;
mod recordings;
mod slow;
mod topics;
pub(crate) mod traces;

use std::collections::{HashMap, HashSet};

use pubgauge_driver::Settings;
use pubgauge_quantities::shown;
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_quantities::{Rate, Size, Span};
use pubgauge_workload::schedule::{MIN_SIZE, Replay, ReplayMode, ScheduleError};
use pubgauge_workload::{
    Arrivals, AudienceError, Device, Exchange, Flow, Publisher, Sizes, Subscriber, TopicMatch,
    Workload, WorkloadError,
};

use crate::clash::{Clash, Clashes};
use crate::file::{
    AnsweredByFile, ArrivalsFile, Drawn, ExchangeFile, FlowFile, OneSize, PayloadFile, PhasesFile,
    RateFile, ReplayModeFile, WorkloadFile,
};
use crate::phases::resolve_phases;
pub(crate) use checks::{check_bed, check_parts};
pub(crate) use recordings::recordings;
use topics::Recording;
pub(crate) use traces::Traces;

/// Largest message in bytes: what MQTT can carry.
const MAX_SIZE: u64 = pubgauge_workload::schedule::MAX_SIZE as u64;

/// The workload of one cell.
pub(crate) fn workload(
    file: &WorkloadFile,
    index: usize,
    phases: &PhasesFile,
    seed: u64,
    traces: &mut Traces<'_>,
    (found, notes): (&mut Vec<Clash>, &mut Vec<String>),
) -> Workload {
    let number = index.to_string();
    let mut clashes = Clashes::new(&["workload", &number], found);
    if file.flow.is_empty() {
        clashes.hinted(
            "",
            format!("workload `{}` has no flow", file.name),
            Some("add a [[workload.flow]] with who sends what, how big, how fast".into()),
        );
    }
    let names = flow_names(file);
    let mut devices = Devices::default();
    // A plan may have 100,000 workloads: no room for what they do not have.
    let mut flows: Vec<Flow> = Vec::with_capacity(file.flow.len());
    let own_settings = own_settings(file);
    for (nth, flow_file) in file.flow.iter().enumerate() {
        let mut clashes = clashes.below(&["flow", &nth.to_string()]);
        let name = names[nth].clone();
        if flows.iter().any(|flow| flow.name == name) {
            clashes.add("name", format!("two flows are called `{name}`"));
        } else if let Some(flow) = flows
            .iter()
            .find(|f| topics::slug(&f.name) == topics::slug(&name))
        {
            let other = &flow.name;
            clashes.add(
                "name",
                format!("`{name}` would have the topics and connections of `{other}`: names differ by letters a to z or digits"),
            );
        }
        let mut flow = flow(flow_file, name, &mut devices, traces, &mut clashes);
        // The trial's own come before those of flows.
        let own = flow_file.settings.as_ref();
        let own = own_settings.iter().position(|one| Some(*one) == own);
        flow.settings = own.map_or(0, |own| own as u32 + 1);
        flows.push(flow);
    }
    devices.list.shrink_to_fit();
    own_connections(&devices.list, &flows, &mut clashes);
    identities::check_unique(&devices.list, &flows, &mut clashes);
    subscribe_once(&devices.list, &mut flows, notes);
    let phases = resolve_phases(phases, &file.phases);
    let mut workload = Workload::new(file.name.clone(), devices.list, flows, phases, seed);
    connects_in_time(&workload, file, &mut clashes);
    rate::fit_curves(&mut workload, notes);
    if clashes.found.is_empty() {
        answers_overheard(&workload, &mut clashes, notes);
        both_sides(&workload, notes);
    }
    // A trace that cannot be read is told of where it is described.
    let is_told = |error: &WorkloadError| {
        let of_trace = matches!(
            error,
            WorkloadError::Schedule {
                error: ScheduleError::Trace(_),
                ..
            }
        );
        of_trace && !traces.found.is_empty()
    };
    if clashes.found.is_empty()
        && let Err(error) = workload.check()
        && !is_told(&error)
    {
        let overlap = matches!(
            error,
            WorkloadError::Audience(AudienceError::Overlap { .. })
        );
        let hint = "use one filter that covers both, or give one of them a connection of its own \
                    (`subscribe-as`, or a flow with other subscribers)";
        clashes.hinted("", error.to_string(), overlap.then(|| hint.into()));
    }
    workload
}

/// The names of a workload's flows.
pub(crate) fn flow_names(file: &WorkloadFile) -> Vec<String> {
    let name = |(nth, flow): (usize, &FlowFile)| match (&flow.name, nth) {
        (Some(name), _) => name.clone(),
        (None, 0) => file.name.clone(),
        (None, _) => format!("{}-{}", file.name, nth + 1),
    };
    file.flow.iter().enumerate().map(name).collect()
}

/// The demands of a workload's flows on top of the trial's settings, each once.
pub(crate) fn own_settings(file: &WorkloadFile) -> Vec<&Settings> {
    let mut all: Vec<&Settings> = Vec::new();
    for own in file.flow.iter().filter_map(|flow| flow.settings.as_ref()) {
        if !all.contains(&own) {
            all.push(own);
        }
    }
    all
}

/// A connection has one set of settings: flows with different ones cannot share it.
fn own_connections(devices: &[Device], flows: &[Flow], clashes: &mut Clashes<'_>) {
    let mut users: HashMap<u32, (u32, &str)> = HashMap::new();
    for (nth, flow) in flows.iter().enumerate() {
        let publishers = flow.publishers.iter().map(|p| p.device);
        for device in publishers.chain(flow.subscribers.iter().map(|s| s.device)) {
            let (settings, other) = *users.entry(device).or_insert((flow.settings, &flow.name));
            if settings != flow.settings {
                clashes.below(&["flow", &nth.to_string()]).hinted(
                    "settings",
                    format!(
                        "connection `{}` is used by flow `{}` with its own settings and by flow `{other}` \
                         with others; a connection has one set of settings",
                        devices[device as usize].name, flow.name
                    ),
                    Some("give the flows different names in `publish-as` and `subscribe-as`, or the same settings".into()),
                );
                return;
            }
        }
    }
}

/// Connections that are made at a rate are made within `ready-within`.
fn connects_in_time(workload: &Workload, file: &WorkloadFile, clashes: &mut Clashes<'_>) {
    let phases = &workload.phases;
    let Some(per_s) = phases.connect_per_s else {
        return;
    };
    let count = workload.devices.len();
    let needed_s = count as f64 / per_s;
    if needed_s * 1e9 <= phases.ready_within as f64 {
        return;
    }
    let key = match file.phases.connect_rate {
        Some(_) => "phases.connect-rate",
        None => "",
    };
    let enough = (needed_s * 1.5).ceil();
    clashes.hinted(
        key,
        format!(
            "its {count} connections take {} at {per_s} a second, more than the {} of `ready-within`: no trial would begin",
            shown::span((needed_s * 1e9) as u64),
            shown::span(phases.ready_within)
        ),
        Some(format!("phases.ready-within = \"{enough}s\", or a higher connect-rate")),
    );
}

/// Connections by name.
#[derive(Default)]
struct Devices {
    list: Vec<Device>,
    numbers: HashMap<String, u32>,
}

impl Devices {
    fn number(&mut self, pool: &str, index: u32) -> u32 {
        let name = format!("{pool}-{index}");
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.list.len() as u32;
        self.list.push(Device {
            name: name.clone(),
            ..Device::default()
        });
        self.numbers.insert(name, number);
        number
    }
}

fn flow(
    file: &FlowFile,
    name: String,
    devices: &mut Devices,
    traces: &mut Traces<'_>,
    clashes: &mut Clashes<'_>,
) -> Flow {
    let ping_pong = file.exchange == Some(ExchangeFile::PingPong);
    let recorded_devices = file
        .replay
        .as_ref()
        .and_then(|replay| traces.devices(&replay.trace));
    let recorded = contents::check(file, traces, clashes);
    let recording = Recording {
        devices: recorded_devices,
        contents: recorded.as_deref(),
    };
    let talk = topics::who_talks_to_whom(file, &name, ping_pong, recording, clashes);
    let pool = |given: &Option<String>, what: &str| match given {
        Some(pool) => pool.clone(),
        None => format!("{}-{what}", topics::slug(&name)),
    };
    let publish_as = pool(&file.publish_as, "pub");
    let subscribe_as = pool(&file.subscribe_as, "sub");
    let publishers: Vec<Publisher> = (0..)
        .zip(talk.publishers)
        .map(|(index, topics)| Publisher {
            device: devices.number(&publish_as, index),
            topics,
        })
        .collect();
    let mut subscribers: Vec<Subscriber> = (0..)
        .zip(talk.subscribers)
        .map(|(index, (filters, group))| Subscriber {
            device: devices.number(&subscribe_as, index),
            filters,
            group,
            takes: None,
            late: None,
        })
        .collect();
    if let Some(written) = &file.identities {
        let sides = devices_of_sides(&publishers, &subscribers);
        let folder = traces.folder;
        identities::give(written, &sides, &mut devices.list, folder, clashes);
    }
    let arrivals = arrivals(file, publishers.len(), traces, clashes);
    let size = size(file, !publishers.is_empty(), clashes);
    if ping_pong && subscribers.is_empty() {
        clashes.add("exchange", "ping-pong needs a subscriber to answer");
    }
    topics::check_zipf(file, &publishers, clashes);
    if file.answered_by.is_some() && !ping_pong {
        clashes.add("answered-by", "only questions of a ping-pong are answered");
    }
    if file.window == Some(0) {
        clashes.add(
            "window",
            "a window of 0 lets no message through; the smallest is 1",
        );
    }
    if file.window.is_some() && !arrivals.is_flat_out() {
        clashes.add(
            "window",
            "a window is for flat-out traffic (rate = \"max\"); this flow keeps to its schedule",
        );
    }
    if publishers.is_empty() {
        for (key, given) in [("start", file.start), ("lasts", file.lasts)] {
            if given.is_some() {
                clashes.add(
                    key,
                    format!(
                        "`{key}` is about sending, and this flow has no publishers; its subscribers are there before \
                         the warm-up"
                    ),
                );
            }
        }
    }
    if file.lasts == Some(Span(0)) {
        clashes.add("lasts", "a flow that lasts no time sends nothing");
    }
    let waits = matches!(arrivals, Arrivals::Bursts { every: None, .. });
    let kind = presence::FlowKind {
        unscheduled: !publishers.is_empty() && (arrivals.is_flat_out() || waits),
        shared: subscribers
            .iter()
            .any(|subscriber| subscriber.group.is_some()),
    };
    if let Some(slow) = &file.slow {
        slow::mark(slow, kind, &mut subscribers, clashes);
    }
    if let Some(late) = &file.late {
        late::mark(late, kind, &mut subscribers, clashes);
    }
    if let Some(presence) = &file.presence {
        let sides = devices_of_sides(&publishers, &subscribers);
        presence::give_wills(presence, sides, &mut devices.list, clashes);
    }
    let presence = file.presence.as_ref();
    let presence = presence.map(|file| Box::new(presence::presence(file, kind, clashes)));
    Flow {
        name,
        publishers,
        subscribers,
        arrivals,
        size,
        start_offset: file.start.map(|span| span.0),
        active_for: file.lasts.map(|span| span.0),
        exchange: if ping_pong {
            Exchange::PingPong
        } else {
            Exchange::OneWay
        },
        answered_by_last: file.answered_by == Some(AnsweredByFile::Last),
        window: file.window,
        topic_zipf: file.topic_zipf,
        subscribers_take: slow::time_for_all(file, clashes),
        presence,
        settings: 0,
    }
}

/// The devices of both sides of a flow, in the order of its publishers and of its subscribers.
fn devices_of_sides(publishers: &[Publisher], subscribers: &[Subscriber]) -> [Vec<u32>; 2] {
    [
        publishers.iter().map(|p| p.device).collect(),
        subscribers.iter().map(|s| s.device).collect(),
    ]
}

fn arrivals(
    file: &FlowFile,
    publishers: usize,
    traces: &mut Traces<'_>,
    clashes: &mut Clashes<'_>,
) -> Arrivals {
    if let Some(replay) = &file.replay {
        for (key, given) in [
            ("rate", file.rate.is_some()),
            ("arrivals", file.arrivals.is_some()),
            ("bursts", file.bursts.is_some()),
            ("burst", file.burst.is_some()),
            ("burst-every", file.burst_every.is_some()),
        ] {
            if given {
                clashes.add(
                    key,
                    format!(
                        "a replay follows its trace; leave `{key}` out (or use `replay.speed`)"
                    ),
                );
            }
        }
        let mut clashes = clashes.below(&["replay"]);
        let speed = replay.speed.unwrap_or(1.0);
        if !(speed > 0.0 && speed.is_finite()) {
            clashes.add(
                "speed",
                format!("{speed} is no speed; 1 is real time, 60 makes a minute of an hour"),
            );
        }
        if replay.interval.is_some() && replay.mode != Some(ReplayModeFile::Drawn) {
            clashes.add("interval", "an interval is for mode = \"drawn\"");
        }
        if replay.interval == Some(Span(0)) {
            clashes.add("interval", "the interval must be longer than 0");
        }
        let Some(source) = traces.source(&replay.trace) else {
            let near = did_you_mean(&replay.trace, traces.names());
            let message = format!("there is no trace `{}`{near}", replay.trace);
            clashes.hinted(
                "trace",
                message,
                Some(format!("describe it under [trace.{}]", replay.trace)),
            );
            return Arrivals::FlatOut;
        };
        return Arrivals::Replay(Box::new(Replay {
            source,
            checksum: traces.checksum(&replay.trace),
            speed,
            looped: replay.looped.unwrap_or(true),
            contents: replay.contents.is_some(),
            mode: match replay.mode {
                None | Some(ReplayModeFile::Tape) => ReplayMode::Tape,
                Some(ReplayModeFile::Drawn) => ReplayMode::Drawn {
                    interval: replay.interval.map_or(900_000_000_000, |span| span.0),
                },
            },
        }));
    }
    if let Some(messages) = file.burst {
        return burst(messages, file, clashes);
    }
    if file.burst_every.is_some() {
        clashes.add(
            "burst-every",
            "this is the time between bursts of messages back to back; say with `burst` how many",
        );
    }
    let rate = match file.rate {
        Some(RateFile::Constant(rate)) => rate,
        Some(RateFile::Varying(ref rate)) => {
            if file.bursts.is_some() {
                clashes.hinted(
                    "bursts",
                    "a rate over time and bursts both say when messages are sent: leave `bursts` out",
                    Some("steps to \"0/s\" are silences".into()),
                );
            }
            let curve = rate::curve(rate, publishers, clashes);
            return match publishers {
                // It only subscribes.
                0 => Arrivals::FlatOut,
                _ => Arrivals::Varying {
                    curve: curve.into(),
                    random: file.arrivals == Some(ArrivalsFile::Poisson),
                },
            };
        }
        None if publishers == 0 || file.exchange == Some(ExchangeFile::PingPong) => Rate::Max,
        None => {
            clashes.hinted(
                "",
                "nothing says how fast this flow sends",
                Some(
                    "add `rate`, such as \"10k/s\", \"1/s-each\" or \"max\", or a `replay`".into(),
                ),
            );
            Rate::Max
        }
    };
    let per_s = match rate {
        Rate::Max => None,
        Rate::All(per_s) => Some(per_s),
        Rate::Each(per_s) => Some(per_s * publishers as f64),
    };
    let poisson = file.arrivals == Some(ArrivalsFile::Poisson);
    match (&file.bursts, per_s) {
        (Some(bursts), per_s) => {
            if poisson {
                clashes.add(
                    "arrivals",
                    "bursts are periodic; Poisson arrivals have no bursts",
                );
            }
            if bursts.on.0 == 0 {
                clashes.add("bursts.on", "a burst must be longer than 0");
            }
            Arrivals::OnOff {
                per_s,
                on: bursts.on.0,
                off: bursts.off.0,
            }
        }
        (None, None) => {
            if file.arrivals.is_some() {
                clashes.add(
                    "arrivals",
                    "flat-out traffic (rate = \"max\") has no arrivals; give a rate",
                );
            }
            Arrivals::FlatOut
        }
        (None, Some(per_s)) if poisson => Arrivals::Poisson { per_s },
        (None, Some(per_s)) => Arrivals::Periodic { per_s },
    }
}

/// Bursts of messages back to back.
fn burst(messages: u32, file: &FlowFile, clashes: &mut Clashes<'_>) -> Arrivals {
    const LEAST: u64 = 1_000_000;
    let flat_out = RateFile::Constant(Rate::Max);
    let paced = file.rate.as_ref().is_some_and(|rate| *rate != flat_out);
    for (key, given) in [
        ("rate", paced),
        ("arrivals", file.arrivals.is_some()),
        ("bursts", file.bursts.is_some()),
    ] {
        if given {
            clashes.add(
                key,
                format!("`burst` says when messages are sent: back to back; leave `{key}` out"),
            );
        }
    }
    if file.exchange == Some(ExchangeFile::PingPong) {
        clashes.add(
            "exchange",
            "ping-pong has no bursts: each question waits for its answer",
        );
    }
    if messages == 0 {
        clashes.add(
            "burst",
            "a burst of 0 messages sends nothing; the smallest is 1",
        );
    }
    let every = file.burst_every.map(|span| span.0);
    if every.is_some_and(|every| every < LEAST) {
        clashes.add(
            "burst-every",
            "the time between two bursts is 1ms at the least",
        );
    }
    Arrivals::Bursts { messages, every }
}

fn size(file: &FlowFile, publishes: bool, clashes: &mut Clashes<'_>) -> Sizes {
    let mut bytes = |key: &str, size: Size| {
        if size.0 < u64::from(MIN_SIZE) || size.0 > MAX_SIZE {
            clashes.add(
                key,
                format!("{size} is no possible message: the smallest is 16B (the header), the largest 268435455B"),
            );
        }
        size.0.clamp(u64::from(MIN_SIZE), MAX_SIZE) as u32
    };
    match &file.payload {
        Some(PayloadFile::One(OneSize::Fixed(size))) => Sizes::Fixed {
            bytes: bytes("payload", *size),
        },
        Some(PayloadFile::One(OneSize::Recorded)) => {
            if file.replay.is_none() {
                clashes.add("payload", "recorded sizes need a `replay` of a trace");
                return Sizes::Fixed { bytes: MIN_SIZE };
            }
            Sizes::Recorded
        }
        Some(PayloadFile::List(list)) => {
            let list: Vec<u32> = list.iter().map(|size| bytes("payload", *size)).collect();
            if list.is_empty() {
                clashes.add("payload", "a list of sizes needs at least one");
                return Sizes::Fixed { bytes: MIN_SIZE };
            }
            Sizes::List { bytes: list }
        }
        Some(PayloadFile::Drawn(drawn)) => {
            let sizes = match drawn {
                Drawn::Uniform(of) => Sizes::Uniform {
                    min: bytes("payload", of.min),
                    max: bytes("payload", of.max),
                },
                Drawn::Normal(of) => Sizes::Normal {
                    mean: of.mean.0 as f64,
                    sd: of.sd.0 as f64,
                    min: of.min.map_or(MIN_SIZE, |min| bytes("payload", min)),
                    max: match of.max {
                        Some(max) => bytes("payload", max),
                        None => (of.mean.0 + 6 * of.sd.0).min(MAX_SIZE) as u32,
                    },
                },
                Drawn::LogNormal(of) => Sizes::LogNormal {
                    median: of.median.0 as f64,
                    sigma: of.sigma,
                    min: of.min.map_or(MIN_SIZE, |min| bytes("payload", min)),
                    max: match of.max {
                        Some(max) => bytes("payload", max),
                        None => (of.median.0 as f64 * (6.0 * of.sigma).exp()).min(MAX_SIZE as f64)
                            as u32,
                    },
                },
            };
            if let Sizes::Uniform { min, max }
            | Sizes::Normal { min, max, .. }
            | Sizes::LogNormal { min, max, .. } = sizes
                && min > max
            {
                clashes.add(
                    "payload",
                    format!("the smallest size, {min}B, is above the largest, {max}B"),
                );
            }
            sizes
        }
        None if file.replay.is_some() => Sizes::Recorded,
        None => {
            if publishes {
                clashes.hinted(
                    "",
                    "nothing says how big the messages of this flow are",
                    Some("add `payload`, such as \"64B\" or [\"64B\", \"1KiB\"]".into()),
                );
            }
            Sizes::Fixed { bytes: MIN_SIZE }
        }
    }
}

/// Drops filters that another one of the same connection covers, because systems differ in whether
/// they then deliver once or twice, and adds a note. Members of groups are left alone: a shared and
/// a plain subscription both deliver.
fn subscribe_once(devices: &[Device], flows: &mut [Flow], notes: &mut Vec<String>) {
    let mut filters: HashMap<u32, Vec<String>> = HashMap::new();
    let subscribers = flows.iter().flat_map(|flow| &flow.subscribers);
    for subscriber in subscribers.filter(|s| s.group.is_none()) {
        let of_device = filters.entry(subscriber.device).or_default();
        of_device.extend(subscriber.filters.iter().cloned());
    }
    filters.retain(|_, filters| filters.len() > 1);
    // Of equal filters the first stays.
    let mut seen: HashSet<(u32, String)> = HashSet::new();
    let one_way = |flow: &&mut Flow| flow.exchange == Exchange::OneWay;
    for flow in flows.iter_mut().filter(one_way) {
        for subscriber in flow.subscribers.iter_mut().filter(|s| s.group.is_none()) {
            let device = subscriber.device;
            let Some(others) = filters.get(&device) else {
                continue;
            };
            subscriber.filters.retain(|filter| {
                let first = seen.insert((device, filter.clone()));
                let wider = others.iter().find(|other| *other != filter && other.covers(filter));
                let covered = wider.or((!first).then_some(filter));
                if let Some(wider) = covered {
                    notes.push(format!(
                        "connection `{}` hears `{filter}` by its subscription to `{wider}`, and is subscribed \
                         once; such deliveries count for the flow that publishes them",
                        devices[device as usize].name
                    ));
                }
                covered.is_none()
            });
        }
        flow.subscribers
            .retain(|subscriber| !subscriber.filters.is_empty());
    }
}

/// Adds a note on connections that publish and subscribe: a worker serves whole connections, so
/// that the cost of their receiving cannot be told apart.
fn both_sides(workload: &Workload, notes: &mut Vec<String>) {
    let publishers = workload.flows.iter().flat_map(|flow| &flow.publishers);
    let publishers: HashSet<u32> = publishers.map(|publisher| publisher.device).collect();
    let subscribers = workload.flows.iter().flat_map(|flow| &flow.subscribers);
    let subscribers: HashSet<u32> = subscribers.map(|subscriber| subscriber.device).collect();
    let words = match publishers.intersection(&subscribers).count() {
        0 => return,
        1 => "1 connection publishes and subscribes; its".to_owned(),
        n => format!("{n} connections publish and subscribe; their"),
    };
    notes.push(format!(
        "workload `{}`: {words} client processor time is counted as publishing, all of it",
        workload.name
    ));
}

/// Adds a note on subscribers that also get the answers of a ping-pong flow, which are not for
/// them. Those who answer must not get their own.
fn answers_overheard(workload: &Workload, clashes: &mut Clashes<'_>, notes: &mut Vec<String>) {
    let ping_pong = |flow: &&Flow| flow.exchange == Exchange::PingPong;
    let replies: Vec<String> = workload
        .flows
        .iter()
        .filter(ping_pong)
        .flat_map(|flow| &flow.publishers)
        .filter_map(|publisher| publisher.topics.first())
        .map(|topic| format!("{topic}/reply"))
        .collect();
    for (nth, flow) in workload.flows.iter().enumerate() {
        let subscribers = flow.subscribers.iter();
        let filters = subscribers.flat_map(|s| s.filters.iter().map(|filter| (s.device, filter)));
        for (device, filter) in filters.filter(|(_, filter)| filter.is_wild()) {
            let Some(reply) = replies.iter().find(|reply| filter.matches_topic(reply)) else {
                continue;
            };
            if ping_pong(&flow) {
                let message = format!(
                    "filter `{filter}` would also catch the answers of a ping-pong flow (`{reply}`); \
                     name its topics without `#`"
                );
                let mut clashes = clashes.below(&["flow", &nth.to_string()]);
                return clashes.add("subscribe", message);
            }
            notes.push(format!(
                "connection `{}` also hears the answers of a ping-pong flow (`{reply}`) by `{filter}`; \
                 they cost it time, but are not for it and not counted",
                workload.devices[device as usize].name
            ));
        }
    }
}
