//! Advice as data.

use pubgauge_conclusions::Carries;
use pubgauge_driver::Mapping;
use pubgauge_quantities::lists::grouped;
use pubgauge_quantities::shown;
use schemars::JsonSchema;
use serde::Serialize;

use crate::boxes::{BoxPlan, so_many_boxes};
use crate::evidence::{Evidence, NotCounted, Source, in_words};
use crate::variation::Variation;

/// Name and version of the format.
pub const FORMAT: &str = "pubgauge-advice/1";

/// Which systems to take for a fleet, in which order, and why not the others. All of it was shown on the running system or
/// measured: in this run, or in stored ones where `evidence` says so.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// Name and version of the format: `pubgauge-advice/1`.
    pub format: String,
    /// Name of the fleet.
    pub fleet: String,
    /// How many times the fleet had to be carried.
    pub headroom: f64,
    /// Systems that meet all that is asked for, the best first; those of one rank are not told apart.
    pub choices: Vec<Recommendation>,
    /// Systems for which it cannot be told, and why.
    pub undecided: Vec<Undecided>,
    /// Systems that do not meet it, and why.
    pub left_out: Vec<LeftOut>,
    /// Other fleets, carried or not by the systems that were chosen.
    pub others: Vec<OtherFleet>,
    /// How many boxes carry what is asked for; absent where that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<BoxPlan>,
    /// In which ways what was measured differs from the fleet, in sentences.
    pub remarks: Vec<String>,
    /// Steps that were left out, and why, in sentences.
    pub not_measured: Vec<String>,
    /// Stored runs, or trials of them, that do not count, and why.
    pub not_counted: Vec<NotCounted>,
}

/// A system that meets all that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Recommendation {
    /// Rank, from 1.
    pub rank: u32,
    /// The system, with its variant.
    pub system: String,
    /// Its version, as it says itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Repeats of the fleet at its own load.
    pub repeats: u32,
    /// At least so many times the fleet is carried.
    pub headroom_at_least: f64,
    /// At most so many times; absent where no limit was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom_at_most: Option<f64>,
    /// 99th percentile of latency at the fleet's own load in milliseconds, mean over repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    /// Processor time of system and client for a delivery in microseconds, mean over repeats; absent for systems out of
    /// sight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_us: Option<f64>,
    /// Half the width of its 95 % interval in microseconds; absent below three repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_half_width_us: Option<f64>,
    /// Largest resident memory of the system at the fleet's own load in bytes; absent for systems that are part of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
    /// The settings as they stand in a study: TOML.
    pub settings: String,
    /// These settings in the system's own terms.
    pub client: Vec<Mapping>,
    /// Where each figure comes from.
    pub evidence: Vec<Evidence>,
    /// The configuration of its server, by file in the folder of results: as it was measured, with placeholders for ports,
    /// addresses and folders. Empty for systems without a server, and for those that were not written there.
    pub server_files: Vec<String>,
}

impl Recommendation {
    /// How many times the fleet it carries: `4 to 5`, `3 or more`.
    pub fn headroom_in_words(&self) -> String {
        let low = shown::brief(self.headroom_at_least);
        match self.headroom_at_most {
            Some(high) => format!("{low} to {}", shown::brief(high)),
            None => format!("{low} or more"),
        }
    }

    /// Its 99th percentile of latency with the unit; `-` where too few messages tell it.
    pub fn p99_in_words(&self) -> String {
        self.p99_ms.map_or("-".into(), |ms| shown::time(ms * 1e6))
    }

    /// Its cost of a delivery with the unit, and half the width of its interval; `-` where it is not known.
    pub fn cost_in_words(&self) -> String {
        let half = self.cost_half_width_us;
        let half = half
            .map(|half| format!(" ±{}", shown::brief(half)))
            .unwrap_or_default();
        self.cost_us
            .map_or("-".into(), |us| format!("{}{half} us", shown::digits(us)))
    }

    /// Its memory with the unit; `-` where it is part of the client.
    pub fn memory_in_words(&self) -> String {
        self.memory_bytes
            .map_or("-".into(), |bytes| shown::bytes(bytes as u64))
    }

    /// Where its figures come from: `the fleet, p99, cost: measured; the limit: not measured`.
    pub fn evidence_in_words(&self) -> String {
        in_words(&self.evidence)
    }

    /// The settings as they are on its client, in its own terms: `QoS 1 published, QoS 1 subscribed`.
    pub fn client_in_words(&self) -> String {
        let asked = self
            .client
            .iter()
            .filter(|mapping| mapping.value != "default");
        let each: Vec<&str> = asked.map(|mapping| mapping.native.as_str()).collect();
        each.join("; ")
    }
}

impl Advice {
    /// The question, and how many systems meet it: `3 times the fleet · 9 systems, 4 carry it`.
    pub fn in_short(&self) -> String {
        let asked = if self.headroom > 1.0 {
            format!("{} times the fleet", self.headroom)
        } else {
            "the fleet".to_owned()
        };
        let all = self.choices.len() + self.undecided.len() + self.left_out.len();
        let systems = shown::so_many(all as u64, "system");
        let boxes = self
            .boxes
            .as_ref()
            .and_then(|plan| plan.boxes)
            .map(so_many_boxes);
        match self.choices.len() {
            0 => match boxes {
                Some(boxes) => {
                    format!("{asked} · {systems}, none carries it on one box, {boxes} do")
                }
                None => format!("{asked} · {systems}, none of them is known to carry it"),
            },
            1 => format!("{asked} · {systems}, 1 carries it"),
            n => format!("{asked} · {systems}, {n} carry it"),
        }
    }

    /// Where the figures of the choices come from, each answer once, with the systems that it is of.
    pub fn evidence_in_words(&self) -> Vec<(String, String)> {
        let each = self.choices.iter();
        let each = each.map(|choice| (choice.evidence_in_words(), choice.system.as_str()));
        let lines = grouped(each).into_iter();
        lines
            .map(|(words, systems)| (systems.join(", "), words))
            .collect()
    }

    /// Each other fleet once, with all systems: `10 times as often`, `mosquitto yes, nats:mqtt no`.
    pub fn others_in_words(&self) -> Vec<(String, String)> {
        let each = self.others.iter();
        let each = each.map(|other| (other.change.describe(), other));
        let lines = grouped(each).into_iter().map(|(change, carried)| {
            let carried = carried.into_iter();
            let carried: Vec<String> = carried
                .map(|other| {
                    let is_stored = other.source == Source::Stored;
                    let stored = if is_stored { " (stored)" } else { "" };
                    format!("{} {}{stored}", other.system, other.carries.as_str())
                })
                .collect();
            (change, carried.join(", "))
        });
        lines.collect()
    }
}

/// A system for which it cannot be told.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Undecided {
    /// The system, with its variant.
    pub system: String,
    /// Why, in a sentence.
    pub because: String,
}

/// A system that does not meet what is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The system, with its variant.
    pub system: String,
    /// The kind of reason.
    pub why: WhyOut,
    /// The part of the fleet that asks for it: `keep-last = true`.
    pub asked: String,
    /// The reason in words.
    pub because: String,
}

/// Kinds of reasons for which a system is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhyOut {
    /// It does not have it.
    Lacks,
    /// It promises it, and did not keep it when it was tried.
    Breaks,
    /// It was measured not to carry the fleet.
    FleetNotCarried,
    /// It carries the fleet, and not as many times as is asked for.
    HeadroomNotCarried,
}

/// Another fleet, measured once on a system that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OtherFleet {
    /// How it differs.
    pub change: Variation,
    /// The system.
    pub system: String,
    /// Whether it is carried.
    pub carries: Carries,
    /// Whether that was measured, or is from a stored run.
    pub source: Source,
}

/// The schema as it stands in `schema/advice.schema.json`, pretty-printed with a final newline.
pub fn schema() -> String {
    pubgauge_results::schema::pretty::<Advice>(FORMAT)
}
