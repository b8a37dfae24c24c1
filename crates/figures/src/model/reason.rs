//! Why a verdict is what it is: the rule that applied, and its words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use crate::unit::Unit;

/// A rule of verdicts; `docs/verdicts.md` has their thresholds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The trial did not run, or not to its end.
    #[default]
    NotRun,
    /// A process of the system ended.
    SystemDied,
    /// Not every client connected and subscribed in time.
    Unconnected,
    /// Connections were lost, and the study does not allow it.
    ConnectionsLost,
    /// Deliveries came that are not of this trial, or not for that subscriber.
    Foreign,
    /// Deliveries had a damaged body.
    Corrupt,
    /// Deliveries came on another topic than their message was published on.
    WrongTopic,
    /// Nothing fell due in the measurement, or it had no length.
    NothingMeasured,
    /// The system took no message.
    NothingTaken,
    /// No message arrived.
    NothingArrived,
    /// Clocks of hosts differ by more than can be converted.
    Clocks,
    /// Counts that must agree differ: those of the client among themselves, or with the system's own.
    CountsDiffer,
    /// Deliveries were lost.
    Lost,
    /// Deliveries were lost, and the client may have let them fall.
    LostByClient,
    /// Deliveries were repeated, and the settings promise none.
    Repeated,
    /// Deliveries came with a lower quality of service than both ends asked for.
    LowerQuality,
    /// Deliveries came out of order, and the system promises that none does.
    OutOfOrder,
    /// The queue grew.
    QueueGrew,
    /// The queue before one subscriber, or one group, of several grew.
    SubscriberBehind,
    /// Deliveries were still under way at the end of the drain.
    UnderWay,
    /// Messages that were due were not handed over, and the publishers had time.
    Unsent,
    /// Messages that were due were not handed over, and the publishers had none.
    UnsentByClient,
    /// Messages were refused.
    Refused,
    /// Messages were taken and never acknowledged.
    Unacknowledged,
    /// A window of the settings held publishers back, over a system with room.
    WindowFull,
    /// The measurement was too short to tell whether the load was carried.
    TooShort,
    /// The delivered rate varied.
    RateWanders,
    /// Latency rose.
    LatencyWanders,
    /// Latency fell: the system was still warming up.
    LatencyFalls,
    /// Nothing was delivered for a while.
    SystemSilent,
    /// A client host of a given size was at the end of it.
    HostFull,
    /// The publishing side had no processor time left.
    PublisherFull,
    /// The subscribing side had no processor time left.
    SubscriberFull,
    /// The application of a subscriber, which takes its time for each message as the study has it, was always busy.
    ApplicationFull,
    /// A thread of the client's library had no processor time left.
    LibraryFull,
    /// The machine had no processor time left.
    MachineFull,
    /// A quota of processor time around client and system (a container's) was used up.
    QuotaFull,
    /// The client sent late.
    ClientLate,
    /// The client stood still.
    ClientStalled,
    /// A hypervisor gave processor time of the machine to others.
    TimeStolen,
    /// Other programs kept the machine busy.
    OthersBusy,
    /// A link was full.
    LinkFull,
}

impl Rule {
    /// The next thing to do, as a sentence.
    pub fn advice(self) -> &'static str {
        match self {
            Rule::NotRun => "Look at the reason and at the system's log, and run the trial again.",
            Rule::SystemDied => {
                "Read the end of the system's log; give it more memory or a smaller load."
            }
            Rule::Unconnected => {
                "Raise `ready-within`, connect fewer clients, or look in the system's log for why it refused them."
            }
            Rule::ConnectionsLost => {
                "Read the system's log; where the study cuts connections on purpose, it has to allow that."
            }
            Rule::Foreign => {
                "Give this run topics of its own (`topic` of its flows), and end whatever else publishes there."
            }
            Rule::Corrupt | Rule::WrongTopic | Rule::LowerQuality | Rule::OutOfOrder => {
                "Run it once more; if it comes again, it is a defect of the system worth reporting."
            }
            Rule::NothingMeasured => "Measure for longer, or publish more often.",
            Rule::NothingTaken | Rule::NothingArrived => {
                "Check topics and rights of the user, and read the system's log."
            }
            Rule::Clocks => {
                "Synchronise the hosts' clocks (chrony, PTP), or run clients on one host."
            }
            Rule::CountsDiffer => {
                "See that nobody else uses the system during a trial; if it comes again, one of the two counts has a defect."
            }
            Rule::Lost | Rule::Repeated => {
                "Ask for a stronger delivery, or for less load; where losses are the subject, the study can allow them."
            }
            Rule::LostByClient | Rule::UnsentByClient | Rule::ClientLate | Rule::ClientStalled => {
                "Give the clients more processors, or fewer messages: nothing is said of the system."
            }
            Rule::QueueGrew | Rule::UnderWay | Rule::Unsent => {
                "Offer less: `pubgauge find` tells how far the system goes."
            }
            Rule::SubscriberBehind => {
                "Give that subscriber less, or spread its messages over a group that shares them."
            }
            Rule::Refused => {
                "Read the codes of the rejections: a quota, a right or a limit of the system."
            }
            Rule::Unacknowledged => "Let the drain take longer (`drain-within`), or offer less.",
            Rule::WindowFull => {
                "Allow more messages under way, or take the rate as that of this setting."
            }
            Rule::TooShort => "Measure for as long as the reason says.",
            Rule::LatencyFalls => "Warm up for longer (`warm-up`).",
            Rule::RateWanders | Rule::LatencyWanders => {
                "Measure for longer, after a longer warm-up; where arrivals vary on purpose, say so in the workload."
            }
            Rule::SystemSilent => {
                "Read the system's log of that time: a pause, an election, a compaction."
            }
            Rule::HostFull => {
                "Give the client's hosts more of a processor, or take the rate as that of such a host."
            }
            Rule::PublisherFull | Rule::LibraryFull => {
                "Publish from more workers or hosts: the system may carry more."
            }
            Rule::SubscriberFull => {
                "Subscribe from more workers or hosts: the system may carry more."
            }
            Rule::ApplicationFull => {
                "Give the flow more subscribers that share its messages, or take the rate as that of such an application."
            }
            Rule::MachineFull => "Put clients and system on hosts of their own, or offer less.",
            Rule::QuotaFull => "Give the container more processor time.",
            Rule::TimeStolen => "Run it when the hypervisor is quiet, or on a machine of your own.",
            Rule::OthersBusy => "End the other programs, and run again when the machine is quiet.",
            Rule::LinkFull => {
                "Offer less, or take a faster link: it was the limit, not the system."
            }
        }
    }
}

/// A figure by which a rule applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidingFigure {
    /// The figure.
    pub figure: Evidence,
    /// Who counted, where several count the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<String>,
    /// Its value.
    pub value: f64,
    /// The unit of value and limit.
    pub unit: Unit,
    /// The limit of the rule, in the same unit; absent where the rule has none, or none of this figure alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// A rule that applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// The rule.
    pub rule: Rule,
    /// The figures by which it applied. None where it has none, such as an exit status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<DecidingFigure>,
    /// Its finding, in words with the figures that decided, on one line.
    pub text: String,
}

impl Reason {
    /// A reason in these words.
    pub fn new(rule: Rule, text: impl Into<String>) -> Reason {
        let (text, figures) = (text.into(), Vec::new());
        Reason {
            rule,
            figures,
            text,
        }
    }

    /// The value of a figure that decided.
    pub fn value(&self, figure: Evidence) -> Option<f64> {
        let mut figures = self.figures.iter();
        figures
            .find(|decided| decided.figure == figure)
            .map(|decided| decided.value)
    }

    /// With a figure that decided, and no limit.
    pub fn figure(self, figure: Evidence, value: f64) -> Reason {
        self.decided(figure, None, value, None)
    }

    /// With a count that decided, and no limit.
    pub fn count(self, figure: Evidence, count: u64) -> Reason {
        self.figure(figure, count as f64)
    }

    /// With the count of one of several that must agree.
    pub fn counted_by(self, who: &str, count: u64) -> Reason {
        self.decided(Evidence::Counted, Some(who.to_owned()), count as f64, None)
    }

    /// With a figure and the limit that the rule sets it.
    pub fn limited(self, figure: Evidence, value: f64, limit: f64) -> Reason {
        self.decided(figure, None, value, Some(limit))
    }

    fn decided(
        mut self,
        figure: Evidence,
        counted_by: Option<String>,
        value: f64,
        limit: Option<f64>,
    ) -> Reason {
        // JSON has no other numbers.
        if value.is_finite() && limit.is_none_or(f64::is_finite) {
            self.figures.push(DecidingFigure {
                figure,
                counted_by,
                value,
                unit: figure.unit(),
                limit,
            });
        }
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
