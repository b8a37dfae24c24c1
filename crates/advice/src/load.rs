//! The load of a workload, as far as one trial can stand for another: who sends how much to whom, without names.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_quantities::shown;
use pubgauge_workload::audience::Audience;
use pubgauge_workload::{Arrivals, Flow, Phases, Sizes, Workload};

/// Amounts that differ by less than this share are the same.
const SAME_WITHIN: f64 = 1e-4;
/// The most times as large as another that a load may be to say something of it.
const MOST_TIMES: f64 = 2.0;

/// A load: amounts, which may differ within bounds where one stands for another, and all else, which may not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load {
    /// How clients connect, and what the trial forgives.
    rules: Vec<Property>,
    flows: Vec<FlowLoad>,
}

#[derive(Clone, Debug, PartialEq)]
struct FlowLoad {
    name: String,
    properties: Vec<Property>,
    amounts: Vec<(&'static str, f64)>,
}

/// A property that is the same or not: what it is, as a part of a sentence, and its value.
type Property = (&'static str, String);

/// How a load stands to one that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Same,
    /// None of its amounts is smaller, and none more than twice as large.
    Larger,
}

impl Load {
    /// The load of a workload; `None` where its deliveries cannot be told apart.
    pub(crate) fn new(workload: &Workload) -> Option<Load> {
        let audience = Audience::new(workload).ok()?;
        let flows = (0..).zip(&workload.flows);
        let flows = flows.map(|(nth, flow)| FlowLoad {
            name: flow.name.clone(),
            properties: properties(workload, nth, flow),
            amounts: amounts(&audience, nth as u32, flow),
        });
        Some(Load {
            rules: rules(workload),
            flows: flows.collect(),
        })
    }

    /// How it stands to a load that is asked for. A smaller one says nothing of a larger one.
    ///
    /// # Errors
    /// Why it does not stand for that, as part of a sentence.
    pub(crate) fn relation(&self, asked: &Load) -> Result<Relation, String> {
        if self.flows.len() != asked.flows.len() {
            let (own, asked) = (self.flows.len() as u64, asked.flows.len() as u64);
            let own = shown::so_many(own, "flow");
            return Err(format!("it has {own}, and the fleet {asked}"));
        }
        differing(&self.rules, &asked.rules)?;
        let mut relation = Relation::Same;
        for (own, asked) in self.flows.iter().zip(&asked.flows) {
            if self.flows.len() > 1 && own.name != asked.name {
                return Err(format!("its flow {} is none of the fleet", own.name));
            }
            differing(&own.properties, &asked.properties)?;
            for (&(what, amount), &(_, wanted)) in own.amounts.iter().zip(&asked.amounts) {
                if compared(what, amount, wanted)? == Relation::Larger {
                    relation = Relation::Larger;
                }
            }
        }
        Ok(relation)
    }

    /// The names of its flows.
    pub(crate) fn flow_names(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| flow.name.as_str())
    }
}

fn compared(what: &str, amount: f64, wanted: f64) -> Result<Relation, String> {
    if (amount - wanted).abs() <= wanted.abs() * SAME_WITHIN {
        return Ok(Relation::Same);
    }
    if wanted == 0.0 {
        return Err(format!("it has {what}, and the fleet none"));
    }
    let times = amount / wanted;
    let words = format!(
        "it has {} times the {what} of the fleet",
        shown::brief(times)
    );
    if times > MOST_TIMES * (1.0 + SAME_WITHIN) {
        Err(format!("{words}, more than twice"))
    } else if times < 1.0 {
        Err(format!(
            "{words}: a smaller load says nothing of a larger one"
        ))
    } else {
        Ok(Relation::Larger)
    }
}

fn differing(own: &[Property], asked: &[Property]) -> Result<(), String> {
    let mut pairs = own.iter().zip(asked);
    match pairs.find(|(own, asked)| own != asked) {
        Some(((what, _), _)) => Err(format!("it differs in {what}")),
        None => Ok(()),
    }
}

fn rules(workload: &Workload) -> Vec<Property> {
    let Phases {
        connect_per_s,
        reconnect_after,
        disconnects_allowed,
        losses_allowed,
        ..
    } = &workload.phases;
    let connecting = (connect_per_s, reconnect_after);
    let forgiven = (disconnects_allowed, losses_allowed);
    let devices = || workload.devices.iter();
    let special = (
        devices().any(|device| device.identity.is_some()),
        devices().any(|device| device.will.is_some()),
    );
    let brokers: BTreeSet<u32> = devices().map(|device| device.broker).collect();
    vec![
        ("how clients connect", format!("{connecting:?}")),
        ("what a trial forgives", format!("{forgiven:?}")),
        ("who clients are", format!("{special:?}")),
        ("the brokers", format!("{brokers:?} {}", workload.cluster)),
    ]
}

fn properties(workload: &Workload, nth: usize, flow: &Flow) -> Vec<Property> {
    let arrivals = match &flow.arrivals {
        Arrivals::Periodic { .. } => "evenly".to_owned(),
        Arrivals::Poisson { .. } => "at random".to_owned(),
        other => format!("{other:?}"),
    };
    let sends = (flow.start_offset, flow.active_for);
    let sizes = match &flow.size {
        Sizes::Fixed { .. } => "fixed".to_owned(),
        other => format!("{other:?}"),
    };
    let answers = (flow.exchange, flow.answered_by_last);
    vec![
        ("when messages are due", format!("{arrivals} {sends:?}")),
        ("the sizes of messages", sizes),
        ("who answers", format!("{answers:?}")),
        ("what may be under way", format!("{:?}", flow.window)),
        ("absences", format!("{:?}", flow.presence)),
        ("settings of flows", flow.settings.to_string()),
        ("topics", format!("{:?}", topic_forms(flow))),
        ("subscriptions", format!("{:?}", subscriptions(flow))),
        (
            "who has connections together",
            format!("{:?}", shared_clients(workload, nth, flow)),
        ),
    ]
}

/// The numbers of levels of topics.
fn topic_forms(flow: &Flow) -> BTreeSet<usize> {
    let topics = flow.publishers.iter().flat_map(|of| &of.topics);
    topics.map(|topic| topic.split('/').count()).collect()
}

/// Forms of filters, with what else is asked for by who subscribes to them.
fn subscriptions(flow: &Flow) -> BTreeSet<(String, bool, Option<u64>, Option<u64>)> {
    let each = flow.subscribers.iter();
    let each = each.flat_map(|of| {
        of.filters.iter().map(move |filter| {
            let form = filter.split('/').map(|level| match level {
                "+" | "#" => level,
                _ => "x",
            });
            let form = form.collect::<Vec<_>>().join("/");
            let takes = of.takes.or(flow.subscribers_take);
            (form, of.group.is_some(), takes, of.late)
        })
    });
    each.collect()
}

/// The flows that some of a flow's clients are in besides, and as whom: as publishers, as subscribers.
fn shared_clients(workload: &Workload, nth: usize, flow: &Flow) -> BTreeMap<usize, [bool; 2]> {
    let publishing =
        |flow: &Flow| -> BTreeSet<u32> { flow.publishers.iter().map(|of| of.device).collect() };
    let subscribing =
        |flow: &Flow| -> BTreeSet<u32> { flow.subscribers.iter().map(|of| of.device).collect() };
    let mut own = publishing(flow);
    own.extend(subscribing(flow));
    let others = workload.flows.iter().enumerate();
    let others = others.filter(|(other, _)| *other != nth);
    let shared = others.map(|(other, flow)| {
        let shares = [publishing(flow), subscribing(flow)].map(|those| !those.is_disjoint(&own));
        (other, shares)
    });
    shared
        .filter(|(_, shares)| shares.contains(&true))
        .collect()
}

fn amounts(audience: &Audience, nth: u32, flow: &Flow) -> Vec<(&'static str, f64)> {
    let streams = (0..).zip(&flow.publishers).flat_map(|(publisher, of)| {
        let first = audience.first_stream(nth, publisher);
        first..first + of.topics.len() as u32
    });
    let fan_outs: Vec<f64> = streams
        .map(|stream| f64::from(audience.listeners(stream)))
        .collect();
    let topics: BTreeSet<&String> = flow.publishers.iter().flat_map(|of| &of.topics).collect();
    let groups: BTreeSet<&String> = flow
        .subscribers
        .iter()
        .filter_map(|of| of.group.as_ref())
        .collect();
    let bytes = match flow.size {
        Sizes::Fixed { bytes } => f64::from(bytes),
        _ => 0.0,
    };
    let rate = flow.arrivals.mean_per_s().filter(|_| flow.publishes());
    vec![
        ("publishers", flow.publishers.len() as f64),
        ("topics", topics.len() as f64),
        ("subscribers", flow.subscribers.len() as f64),
        ("groups", groups.len() as f64),
        ("messages a second", rate.unwrap_or(0.0)),
        ("bytes of a message", bytes),
        (
            "deliveries of a message",
            pubgauge_quantities::stats::mean(fan_outs).unwrap_or(0.0),
        ),
    ]
}
