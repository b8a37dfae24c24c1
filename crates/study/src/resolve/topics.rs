//! Topics and subscriptions of each device, from flow patterns and topic templates.

mod shared;

use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_workload::filter::{filter_fault, topic_fault};
use pubgauge_workload::mark::DEFAULT_ROOT;
use pubgauge_workload::trace::Outlets;
use pubgauge_workload::{MOST_TOPIC_ZIPF, Publisher, Trace};

use crate::clash::Clashes;
use crate::file::{Dimension, FlowFile, FlowPattern};

/// Most publishers or subscribers of a flow.
const MAX_DEVICES: u32 = 1_000_000;

/// Most topics of a flow; each is held in memory.
const MAX_TOPICS: u64 = 5_000_000;

/// Topics of each publisher; filters and group of each subscriber.
#[derive(Default)]
pub(super) struct Talk {
    pub(super) publishers: Vec<Vec<String>>,
    pub(super) subscribers: Vec<(Vec<String>, Option<String>)>,
}

/// Resolves a flow's topics and subscriptions; after a clash, the result must not be used.
pub(super) fn who_talks_to_whom(
    file: &FlowFile,
    name: &str,
    exact: bool,
    recording: Recording<'_>,
    clashes: &mut Clashes<'_>,
) -> Talk {
    let before = clashes.found.len();
    for (key, count) in [
        ("publishers", file.publishers),
        ("subscribers", file.subscribers),
    ] {
        if count.is_some_and(|count| count > MAX_DEVICES) {
            clashes.add(key, "more than 1,000,000 connections are beyond one host");
        }
    }
    if file.topics == Some(0) && file.publishers != Some(0) {
        clashes.add("topics", "publishers need at least one topic");
    }
    if u64::from(file.topics.unwrap_or(0)) > MAX_TOPICS {
        clashes.add("topics", format!("more than {MAX_TOPICS} topics in a flow"));
    }
    if file.groups.is_some() && file.pattern != Some(FlowPattern::Shared) {
        clashes.add("groups", "groups are for pattern = \"shared\"");
    }
    if file.groups == Some(0) {
        clashes.add("groups", "at least one group");
    }
    if clashes.found.len() > before {
        return Talk::default();
    }
    let template = Template::new(file, clashes);
    // A template that is wrong, or too big, is not expanded.
    if clashes.found.len() > before {
        return Talk::default();
    }
    let topics = if let Some(trace) = recording.contents {
        recorded_topics(file, name, trace, clashes)
    } else if template.names.is_empty() {
        plain_topics(file, name, recording.devices, clashes)
    } else {
        template_topics(file, &template, clashes)
    };
    if clashes.found.len() > before {
        return Talk::default();
    }
    let subscribers = match &file.subscribe {
        Some(filters) => by_filters(file, name, &template, filters.list(), clashes),
        None => by_pattern(file, name, &topics, exact, clashes),
    };
    Talk {
        publishers: topics.publishers,
        subscribers,
    }
}

/// The recording that a flow replays.
#[derive(Clone, Copy)]
pub(super) struct Recording<'a> {
    pub(super) devices: Option<u32>,
    /// Its trace, where its contents travel.
    pub(super) contents: Option<&'a Trace>,
}

/// All topics, and those of each publisher.
struct StudyTopics {
    all: Vec<String>,
    /// Whole levels that all topics begin with: `PREFIX/#` matches them all.
    prefix: Option<String>,
    publishers: Vec<Vec<String>>,
}

/// Counts by pattern where the file leaves them open, and what the pattern forbids.
fn counts(file: &FlowFile, recorded: Option<u32>, clashes: &mut Clashes<'_>) -> (u32, u32) {
    let publishers = file.publishers.or(recorded);
    match file.pattern {
        Some(FlowPattern::Pairs) => {
            let publishers = publishers.or(file.subscribers).unwrap_or(1);
            (publishers, file.subscribers.unwrap_or(publishers))
        }
        Some(FlowPattern::OneToMany) => {
            let publishers = publishers.unwrap_or(1);
            if publishers > 1 {
                clashes.add(
                    "publishers",
                    format!("pattern 1-n has one publisher, not {publishers}"),
                );
            }
            (publishers, file.subscribers.unwrap_or(1))
        }
        Some(FlowPattern::ManyToOne) => {
            let subscribers = file.subscribers.unwrap_or(1);
            if subscribers > 1 {
                clashes.add(
                    "subscribers",
                    format!("pattern n-1 has one subscriber, not {subscribers}"),
                );
            }
            (publishers.unwrap_or(1), subscribers)
        }
        Some(FlowPattern::ManyToMany | FlowPattern::Shared) | None => {
            (publishers.unwrap_or(1), file.subscribers.unwrap_or(1))
        }
    }
}

/// Topics without a template: numbered below a prefix, distributed round-robin to the publishers.
fn plain_topics(
    file: &FlowFile,
    name: &str,
    recorded: Option<u32>,
    clashes: &mut Clashes<'_>,
) -> StudyTopics {
    let (publishers, subscribers) = counts(file, recorded, clashes);
    for (key, given) in [
        ("dimensions", !file.dimensions.is_empty()),
        ("publisher-per", file.publisher_per.is_some()),
    ] {
        if given {
            clashes.add(
                key,
                format!("`{key}` needs a `topic` with `{{name}}` in it"),
            );
        }
    }
    let prefix = match &file.topic {
        Some(topic) => topic.trim_end_matches('/').to_string(),
        None => format!("{DEFAULT_ROOT}/{}", slug(name)),
    };
    let default = match file.pattern {
        Some(FlowPattern::OneToMany | FlowPattern::ManyToMany) | None => 1,
        Some(FlowPattern::Pairs | FlowPattern::ManyToOne | FlowPattern::Shared) => {
            publishers.max(subscribers.min(1))
        }
    };
    let count = file.topics.unwrap_or(default).max(1);
    if file.pattern == Some(FlowPattern::Pairs) && count < publishers {
        clashes.add(
            "topics",
            format!("{publishers} pairs need at least {publishers} topics of their own"),
        );
    }
    // A topic that was given is used as it is unless several are needed.
    let single = file.topic.is_some() && count == 1;
    let all: Vec<String> = if single {
        vec![prefix.clone()]
    } else {
        (0..count).map(|n| format!("{prefix}/{n}")).collect()
    };
    if let Some(fault) = topic_fault(&prefix) {
        clashes.add("topic", format!("`{prefix}` cannot be used: {fault}"));
    }
    StudyTopics {
        publishers: (0..publishers)
            .map(|p| dealt(&all, p, publishers))
            .collect(),
        prefix: (!single).then_some(prefix),
        all,
    }
}

/// The topics of a recording. A message of which it names none goes to the flow's own topic.
fn recorded_topics(
    file: &FlowFile,
    name: &str,
    trace: &Trace,
    clashes: &mut Clashes<'_>,
) -> StudyTopics {
    let (publishers, _) = counts(file, Some(trace.devices.len() as u32), clashes);
    let own = match &file.topic {
        Some(topic) => topic.trim_end_matches('/').to_string(),
        None => format!("{DEFAULT_ROOT}/{}", slug(name)),
    };
    let outlets = Outlets::new(trace, publishers);
    let of = |publisher: u32| -> Vec<String> {
        let topics = outlets.outlets_of(publisher).map(|(topic, _)| match topic {
            Some(topic) => trace.topics[topic as usize].clone(),
            None => own.clone(),
        });
        topics.collect()
    };
    let publishers: Vec<Vec<String>> = (0..publishers).map(of).collect();
    let mut all: Vec<String> = publishers.iter().flatten().cloned().collect();
    all.sort_unstable();
    all.dedup();
    for topic in &all {
        if let Some(fault) = topic_fault(topic) {
            clashes.add(
                "replay",
                format!("the recorded topic `{topic}` cannot be used: {fault}"),
            );
            break;
        }
    }
    StudyTopics {
        all,
        prefix: None,
        publishers,
    }
}

/// The topics of device `index` of `hands` when `topics` are distributed round-robin: every
/// `hands`-th, or, if there are fewer topics than devices, one that others have as well.
fn dealt(topics: &[String], index: u32, hands: u32) -> Vec<String> {
    let (index, hands) = (index as usize, hands as usize);
    if topics.len() < hands {
        return topics[index % topics.len()..][..1].to_vec();
    }
    topics.iter().skip(index).step_by(hands).cloned().collect()
}

/// Subscribers that the pattern makes.
fn by_pattern(
    file: &FlowFile,
    name: &str,
    topics: &StudyTopics,
    exact: bool,
    clashes: &mut Clashes<'_>,
) -> Vec<(Vec<String>, Option<String>)> {
    let publishers = topics.publishers.len() as u32;
    let subscribers = file.subscribers.unwrap_or(match file.pattern {
        Some(FlowPattern::Pairs) => publishers,
        _ => 1,
    });
    if file.pattern == Some(FlowPattern::Pairs) && publishers != subscribers {
        clashes.add(
            "subscribers",
            format!("pattern 1-1 makes pairs, but there are {publishers} publishers and {subscribers} subscribers"),
        );
        return Vec::new();
    }
    if topics.all.is_empty() && subscribers > 0 {
        clashes.add("subscribers", "there is no topic to subscribe to");
        return Vec::new();
    }
    let everything = || match &topics.prefix {
        Some(prefix) if !exact && topics.all.len() > 1 => vec![format!("{prefix}/#")],
        _ => topics.all.clone(),
    };
    let groups = file.groups.unwrap_or(1);
    let shared = file.pattern == Some(FlowPattern::Shared);
    if shared && groups > subscribers && subscribers > 0 {
        clashes.add(
            "groups",
            format!("{groups} groups need at least {groups} subscribers"),
        );
    }
    let of = |index: u32| match file.pattern {
        Some(FlowPattern::OneToMany | FlowPattern::ManyToOne | FlowPattern::Shared) => everything(),
        Some(FlowPattern::Pairs) => topics.publishers[index as usize].clone(),
        Some(FlowPattern::ManyToMany) | None if subscribers == 1 || topics.all.len() == 1 => {
            everything()
        }
        Some(FlowPattern::ManyToMany) | None => dealt(&topics.all, index, subscribers),
    };
    (0..subscribers)
        .map(|index| {
            let group = shared.then(|| format!("{}-{}", slug(name), index % groups));
            (of(index), group)
        })
        .collect()
}

/// A topic template and the values of its names.
struct Template {
    /// Names in the order of the template; the first varies slowest.
    names: Vec<String>,
    /// Values of each name.
    values: Vec<Vec<String>>,
}

impl Template {
    fn new(file: &FlowFile, clashes: &mut Clashes<'_>) -> Self {
        let mut template = Template {
            names: Vec::new(),
            values: Vec::new(),
        };
        let Some(topic) = &file.topic else {
            return template;
        };
        match holes(topic) {
            Ok(names) => template.names = names,
            Err(message) => {
                clashes.add("topic", message);
                return template;
            }
        }
        let known = || file.dimensions.keys().map(String::as_str);
        for name in &template.names {
            let values = match file.dimensions.get(name) {
                Some(Dimension::Count(count)) => (0..*count).map(|n| n.to_string()).collect(),
                Some(Dimension::Names(names)) => names.clone(),
                None => {
                    let near = did_you_mean(name, known());
                    let message = format!("`{{{name}}}` has no values{near}");
                    clashes.hinted(
                        "topic",
                        message,
                        Some(format!(
                            "add dimensions = {{ {name} = 10 }} or = [\"a\", \"b\"]"
                        )),
                    );
                    continue;
                }
            };
            if values.is_empty() {
                clashes.add(
                    &format!("dimensions.{name}"),
                    format!("`{name}` needs at least one value"),
                );
            }
            if let Some(fault) = values.iter().find_map(|value| value_fault(value)) {
                clashes.add(&format!("dimensions.{name}"), fault);
            }
            let mut sorted = values.clone();
            sorted.sort_unstable();
            if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                clashes.add(
                    &format!("dimensions.{name}"),
                    format!("`{}` is there twice", twice[0]),
                );
            }
            template.values.push(values);
        }
        for name in known() {
            if !template.names.iter().any(|used| used == name) && !template.names.is_empty() {
                clashes.add(
                    &format!("dimensions.{name}"),
                    format!("the topic has no `{{{name}}}`"),
                );
            }
        }
        let product = template.values.iter().try_fold(1u64, |product, values| {
            product
                .checked_mul(values.len() as u64)
                .filter(|p| *p <= MAX_TOPICS)
        });
        if product.is_none() {
            clashes.add(
                "dimensions",
                format!("the template makes more than {MAX_TOPICS} topics"),
            );
        }
        template
    }

    /// Whether the topic has this name, which the key uses.
    fn check_name(&self, key: &str, name: &str, clashes: &mut Clashes<'_>) -> bool {
        let known = self.names.iter().any(|known| known == name);
        if !known {
            let near = did_you_mean(name, &self.names);
            clashes.add(key, format!("the topic has no `{{{name}}}`{near}"));
        }
        known
    }

    /// Every combination of the named dimensions, as values aligned with `self.names`; the first
    /// varies slowest.
    fn combinations(&self, wanted: impl Fn(&str) -> bool) -> Vec<Vec<Option<&str>>> {
        let mut all: Vec<Vec<Option<&str>>> = vec![vec![None; self.names.len()]];
        for (nth, (name, values)) in self.names.iter().zip(&self.values).enumerate() {
            if !wanted(name) {
                continue;
            }
            all = all
                .iter()
                .flat_map(|combination| {
                    values.iter().map(move |value| {
                        let mut next = combination.clone();
                        next[nth] = Some(value.as_str());
                        next
                    })
                })
                .collect();
        }
        all
    }

    /// `text` with every name replaced that has a value.
    fn fill(&self, text: &str, values: &[Option<&str>]) -> String {
        let mut filled = text.to_string();
        for (name, value) in self.names.iter().zip(values) {
            if let Some(value) = value {
                filled = filled.replace(&format!("{{{name}}}"), value);
            }
        }
        filled
    }
}

/// Checks that the popularity of a flow's topics can be as it is written.
pub(super) fn check_zipf(file: &FlowFile, publishers: &[Publisher], clashes: &mut Clashes<'_>) {
    let Some(exponent) = file.topic_zipf else {
        return;
    };
    if !(0.0..=MOST_TOPIC_ZIPF).contains(&exponent) {
        let message =
            format!("{exponent} is no exponent; it may be from 0 (all alike) to {MOST_TOPIC_ZIPF}");
        clashes.add("topic-zipf", message);
    } else if file.replay.is_some() {
        clashes.add("topic-zipf", "a replay has the topics of its trace");
    } else if publishers
        .iter()
        .all(|publisher| publisher.topics.len() < 2)
    {
        clashes.hinted(
            "topic-zipf",
            "each publisher has one topic: there is none to prefer",
            Some("give the flow more topics than publishers".into()),
        );
    }
}

/// Topics from a template.
fn template_topics(file: &FlowFile, template: &Template, clashes: &mut Clashes<'_>) -> StudyTopics {
    let mut topics = StudyTopics {
        all: Vec::new(),
        prefix: None,
        publishers: Vec::new(),
    };
    let pattern = file.topic.as_deref().unwrap_or_default();
    if template.values.len() != template.names.len() {
        return topics;
    }
    if file.topics.is_some() {
        clashes.add(
            "topics",
            "the template and its dimensions say how many topics there are",
        );
    }
    let owned = file.publisher_per.as_ref();
    for name in owned.into_iter().flatten() {
        template.check_name("publisher-per", name, clashes);
    }
    let owns = |name: &str| owned.is_none_or(|owned| owned.iter().any(|o| o == name));
    let mut faulty = None;
    for owner in template.combinations(owns) {
        let mut own = Vec::new();
        for rest in template.combinations(|name| !owns(name)) {
            let values: Vec<Option<&str>> =
                owner.iter().zip(&rest).map(|(a, b)| a.or(*b)).collect();
            let topic = template.fill(pattern, &values);
            if let Some(fault) = topic_fault(&topic) {
                faulty.get_or_insert(format!("`{topic}` cannot be used: {fault}"));
            }
            own.push(topic);
        }
        topics.all.extend(own.iter().cloned());
        topics.publishers.push(own);
    }
    if let Some(fault) = faulty {
        clashes.add("topic", fault);
    }
    let made = topics.publishers.len();
    match file.publishers {
        Some(0) => topics.publishers.clear(),
        Some(publishers) if publishers as usize != made => clashes.hinted(
            "publishers",
            format!("the template makes {made} publishers, not {publishers}"),
            Some("leave `publishers` out, or change `dimensions` or `publisher-per`".into()),
        ),
        _ => {}
    }
    if made as u64 > u64::from(MAX_DEVICES) {
        clashes.add(
            "dimensions",
            format!("{made} publishers are beyond one host"),
        );
    }
    match file.pattern {
        Some(FlowPattern::OneToMany) if made > 1 => {
            clashes.add(
                "pattern",
                format!("pattern 1-n has one publisher, but the template makes {made}"),
            );
        }
        Some(FlowPattern::ManyToOne) if file.subscribers.is_some_and(|s| s > 1) => {
            clashes.add("subscribers", "pattern n-1 has one subscriber");
        }
        _ => {}
    }
    // Whole levels before the first name.
    let literal = pattern.split('{').next().unwrap_or_default();
    topics.prefix = literal.rfind('/').map(|end| literal[..end].to_string());
    topics
}

/// Subscribers by filters, which may be templates too.
fn by_filters(
    file: &FlowFile,
    name: &str,
    template: &Template,
    filters: &[String],
    clashes: &mut Clashes<'_>,
) -> Vec<(Vec<String>, Option<String>)> {
    if let Some(pattern @ (FlowPattern::Pairs | FlowPattern::OneToMany | FlowPattern::ManyToMany)) =
        file.pattern
    {
        clashes.add(
            "subscribe",
            format!(
                "pattern {} already says who subscribes to what; leave one of them out",
                flow_pattern_name(pattern)
            ),
        );
        return Vec::new();
    }
    if filters.is_empty() {
        clashes.add("subscribe", "a subscriber needs at least one filter");
    }
    let mut used: Vec<String> = Vec::new();
    for filter in filters {
        match holes(filter) {
            Ok(names) => used.extend(names),
            Err(message) => clashes.add("subscribe", message),
        }
    }
    for name in &used {
        if !template.check_name("subscribe", name, clashes) {
            return Vec::new();
        }
    }
    let copies = file.subscribers.unwrap_or(1);
    let groups = file.groups.unwrap_or(1);
    let mut subscribers = Vec::new();
    for (nth, values) in template
        .combinations(|name| used.iter().any(|u| u == name))
        .iter()
        .enumerate()
    {
        let filled: Vec<String> = filters.iter().map(|f| template.fill(f, values)).collect();
        let (named, filled) = match shared::taken_apart(filled) {
            Ok(parts) => parts,
            Err(message) => {
                clashes.hinted("subscribe", message, Some(shared::HINT.into()));
                return Vec::new();
            }
        };
        if let (Some(group), Some(FlowPattern::Shared)) = (&named, file.pattern) {
            let message = format!(
                "pattern shared already deals the subscribers out to groups, and `$share/{group}/` names one; leave one of them out"
            );
            clashes.hinted("subscribe", message, Some(shared::HINT.into()));
            return Vec::new();
        }
        for filter in &filled {
            if let Some(fault) = filter_fault(filter) {
                clashes.add("subscribe", format!("`{filter}` cannot be used: {fault}"));
                return Vec::new();
            }
        }
        for copy in 0..copies {
            let group = (file.pattern == Some(FlowPattern::Shared))
                .then(|| format!("{}-group-{nth}-{}", slug(name), copy % groups))
                .or_else(|| named.clone());
            subscribers.push((filled.clone(), group));
        }
        if subscribers.len() > MAX_DEVICES as usize {
            clashes.add(
                "subscribe",
                "more than 1,000,000 subscribers are beyond one host",
            );
            return Vec::new();
        }
    }
    subscribers
}

/// The names in braces, in order.
fn holes(text: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['{', '}']) {
        let inner = &rest[start + 1..];
        let end = inner.find(['{', '}']);
        let closed =
            rest[start..].starts_with('{') && end.is_some_and(|e| inner[e..].starts_with('}'));
        let Some(end) = end.filter(|_| closed) else {
            return Err(format!("`{text}` has a brace without its partner"));
        };
        let name = &inner[..end];
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(fits) {
            return Err(format!(
                "`{{{name}}}` is no name; use letters, digits, `-` and `_`"
            ));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
        rest = &inner[end + 1..];
    }
    Ok(names)
}

fn value_fault(value: &str) -> Option<String> {
    let wrong = value.is_empty() || value.contains(['/', '+', '#', '\0', '{', '}']);
    wrong.then(|| format!("`{value}` cannot be a level of a topic"))
}

/// A name that fits into topics and client identifiers.
pub(super) fn slug(name: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let slug: String = name.chars().map(keep).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        "flow".into()
    } else {
        slug.into()
    }
}

/// The pattern in the file's own words.
fn flow_pattern_name(pattern: FlowPattern) -> &'static str {
    match pattern {
        FlowPattern::Pairs => "1-1",
        FlowPattern::OneToMany => "1-n",
        FlowPattern::ManyToOne => "n-1",
        FlowPattern::ManyToMany => "n-m",
        FlowPattern::Shared => "shared",
    }
}
