//! How many boxes carry a fleet: independent brokers on hosts of one size, of which some numbers are measured side by side.
//!
//! Nothing is extrapolated from one broker. One, two and four brokers are searched for their limit with the whole load that is
//! asked for, dealt out over them; what other numbers carry follows only where these show that boxes do not hold each
//! other up, and up to twice the largest number.

mod bounds;

use pubgauge_figures::search::{LimitedBy, NoteOf, Search};
use pubgauge_figures::{Results, Trial};
use pubgauge_quantities::shown;
use schemars::JsonSchema;
use serde::Serialize;

use crate::fleet::{Fleet, MachineFile};
use crate::rank::Range;
use crate::variation::Variation;
use bounds::{Bounds, Limit};

/// Numbers of boxes that are measured.
const MEASURED: [u32; 3] = [1, 2, 4];
/// So many times the largest number that was measured is told at the most.
const FURTHEST: u32 = 2;
/// Devices are a multiple of this, so that one, two, three and four boxes have equally many.
pub(crate) const DEALT_EVENLY: u64 = 12;
/// The axis of the grid that has the number of boxes.
pub(crate) const AXIS: &str = "brokers";
/// Brokers that pass messages on to each other double half of all deliveries and more.
const MOST_DUPLICATES: f64 = 0.1;

/// The machine of the run, as far as boxes share it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Room {
    /// Processors that this process may use.
    pub processors: f64,
    /// Memory that it may use, in bytes.
    pub memory_bytes: u64,
    /// Systems whose clients reach each other directly.
    pub brokerless: Vec<String>,
}

/// How many boxes carry what is asked for, by brokers of one system that know nothing of each other.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BoxPlan {
    /// The system; absent where none could be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Size of a box; absent where the fleet does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<MachineFile>,
    /// How many times the fleet they must carry.
    pub headroom: f64,
    /// The smallest number of boxes that is sure to carry that; absent where it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boxes: Option<u32>,
    /// How much numbers of boxes carry, the smallest number first.
    pub counts: Vec<BoxCount>,
    /// Parts of this machine that the boxes shared when they were measured, in words.
    pub shared: Vec<String>,
    /// Questions that are not answered, and why.
    pub not_told: Vec<NotTold>,
    /// In which ways boxes were measured, in sentences.
    pub remarks: Vec<String>,
    /// The configuration of the system's server, by file in the folder of results, as in a recommendation.
    pub server_files: Vec<String>,
}

/// How much a number of boxes carries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BoxCount {
    /// The number.
    pub boxes: u32,
    /// At least so many times the fleet.
    pub at_least: f64,
    /// At most so many times; absent where no limit was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// How it is known.
    pub known_by: KnownBy,
}

/// How it is known what boxes carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// So many were measured side by side.
    Measured,
    /// It follows from other numbers, because boxes are independent of each other.
    Independence,
}

impl KnownBy {
    /// As a word in a table.
    pub fn as_str(self) -> &'static str {
        match self {
            KnownBy::Measured => "measured",
            KnownBy::Independence => "follows from the others",
        }
    }
}

/// A question about boxes that is not answered.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NotTold {
    /// The kind of reason.
    pub why: WhyNotTold,
    /// The reason in words.
    pub because: String,
}

/// Kinds of reasons for which a question about boxes is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhyNotTold {
    /// The fleet does not say how large a box is.
    NoSize,
    /// Boxes of that size do not fit side by side into this machine.
    TooLarge,
    /// No system that keeps its promises has a broker.
    NoBroker,
    /// Of no system with a broker it is known whether it carries the fleet.
    Undecided,
    /// The client gave way before the boxes did.
    ClientBound,
    /// A search found no limit.
    NoLimit,
    /// More boxes carried less for each box: they share something.
    NotIndependent,
    /// Brokers pass messages on to each other.
    Linked,
    /// The kernel did not hold boxes to their size.
    NotHeld,
    /// The answer is more boxes than were measured: what takes no more than those send is not seen.
    Cap,
    /// More boxes than twice the largest number that was measured.
    BeyondTwice,
    /// Boxes that are not a share of this machine.
    OtherHardware,
    /// Nobody was away while boxes were measured.
    Returns,
}

impl WhyNotTold {
    /// Whether it leaves the number of boxes open, or some numbers; others limit every answer.
    pub fn is_obstacle(self) -> bool {
        !matches!(
            self,
            WhyNotTold::OtherHardware | WhyNotTold::Returns | WhyNotTold::BeyondTwice
        )
    }
}

impl NotTold {
    fn new(why: WhyNotTold, because: impl Into<String>) -> NotTold {
        NotTold {
            why,
            because: because.into(),
        }
    }

    /// That nothing is known of any candidate with a broker.
    pub(crate) fn undecided() -> NotTold {
        NotTold::new(
            WhyNotTold::Undecided,
            "of no system with a broker it is known whether it carries the fleet",
        )
    }

    /// That no candidate has a broker.
    pub(crate) fn without_broker() -> NotTold {
        NotTold::new(
            WhyNotTold::NoBroker,
            "no system that is left has a broker to have several of: its clients reach each other directly",
        )
    }
}

impl BoxCount {
    /// How many times the fleet they carry: `3.1 to 3.6`, `4 or more`.
    pub fn times_in_words(&self) -> String {
        // Rounded outwards: 2.996 times are not 3.
        let low = shown::brief((self.at_least * 100.0).floor() / 100.0);
        match self.at_most {
            Some(high) => format!("{low} to {}", shown::brief((high * 100.0).ceil() / 100.0)),
            None => format!("{low} or more"),
        }
    }
}

impl BoxPlan {
    /// A plan without an answer.
    pub(crate) fn refused(fleet: &Fleet, system: Option<String>, because: NotTold) -> BoxPlan {
        BoxPlan {
            system,
            size: fleet.file.must.machine,
            headroom: fleet.headroom(),
            boxes: None,
            counts: Vec::new(),
            shared: Vec::new(),
            not_told: vec![because],
            remarks: Vec::new(),
            server_files: Vec::new(),
        }
    }

    /// The answer in a sentence: `3 boxes of 0.1 cores with mosquitto carry 3 times the fleet: 3.1 to 3.6 times (measured)`.
    pub fn answer_in_words(&self) -> String {
        let size = self
            .size
            .map_or(String::new(), |size| format!(" of {}", words_of(size)));
        let with = self
            .system
            .as_ref()
            .map_or(String::new(), |system| format!(" with {system}"));
        let asked = if self.headroom > 1.0 {
            format!("{} times the fleet", self.headroom)
        } else {
            "the fleet".to_owned()
        };
        let needed = self
            .boxes
            .and_then(|boxes| self.counts.iter().find(|count| count.boxes == boxes));
        match needed {
            Some(count) => {
                let carry = if count.boxes == 1 { "carries" } else { "carry" };
                format!(
                    "{}{size}{with} {carry} {asked}: {} times ({})",
                    so_many_boxes(count.boxes),
                    count.times_in_words(),
                    count.known_by.as_str()
                )
            }
            None => format!("how many boxes{size}{with} carry {asked} is not told"),
        }
    }

    /// Each number that was measured: `1 carries 1.1 to 1.2 times the fleet, 2 carry 2.2 to 2.4`; empty without any.
    pub fn measured_in_words(&self) -> String {
        let measured = self
            .counts
            .iter()
            .filter(|count| count.known_by == KnownBy::Measured);
        let each = measured.enumerate().map(|(n, count)| {
            let carry = if count.boxes == 1 { "carries" } else { "carry" };
            let of = if n == 0 { " times the fleet" } else { "" };
            format!("{} {carry} {}{of}", count.boxes, count.times_in_words())
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

/// A size in words: `0.1 cores`, `2 cores and 512 MiB`.
fn words_of(size: MachineFile) -> String {
    let cores = match size.cores {
        1.0 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    };
    match size.memory {
        Some(memory) => format!("{cores} and {} MiB", memory.0 >> 20),
        None => cores,
    }
}

pub(crate) fn so_many_boxes(boxes: u32) -> String {
    if boxes == 1 {
        "1 box".to_owned()
    } else {
        format!("{boxes} boxes")
    }
}

impl Fleet {
    /// Numbers of boxes that this machine holds beside the client, of those that are measured.
    ///
    /// # Errors
    /// Why boxes cannot be measured here.
    pub fn box_counts(&self, room: &Room) -> Result<Vec<u32>, NotTold> {
        let Some(size) = self.file.must.machine else {
            return Err(NotTold::new(
                WhyNotTold::NoSize,
                "a box is all of this machine, of which there is one: `machine` in [must] gives boxes a size, for example \
                 { cores = 0.4 }",
            ));
        };
        let memory = size.memory.map_or(0, |memory| memory.0);
        let fit = |boxes: &u32| {
            let boxes = f64::from(*boxes);
            boxes * size.cores < room.processors
                && boxes * (memory as f64) < room.memory_bytes as f64
        };
        let counts: Vec<u32> = MEASURED.into_iter().filter(fit).collect();
        if counts.len() < 2 {
            return Err(self.too_large(size, 2, room));
        }
        Ok(counts)
    }

    fn too_large(&self, size: MachineFile, boxes: u32, room: &Room) -> NotTold {
        let memory = match size.memory {
            Some(_) => format!(" and {}", shown::bytes(room.memory_bytes)),
            None => String::new(),
        };
        NotTold::new(
            WhyNotTold::TooLarge,
            format!(
                "{} of {} do not fit beside the client on this machine, which has {} processors{memory}",
                so_many_boxes(boxes),
                words_of(size),
                shown::brief(room.processors)
            ),
        )
    }
}

/// Brokers of one system that were measured side by side.
#[derive(Clone, Debug)]
pub(crate) struct BoxRun {
    /// The system.
    pub system: String,
    /// Why it was this one, in a sentence.
    pub because: String,
    searches: Vec<Search>,
    faults: Vec<NotTold>,
}

impl BoxRun {
    pub(crate) fn new(system: String, because: String, results: &Results) -> BoxRun {
        BoxRun {
            faults: faults(&results.trials),
            searches: results.searches.clone(),
            system,
            because,
        }
    }

    /// The plan that follows.
    pub(crate) fn plan(&self, fleet: &Fleet, room: &Room) -> BoxPlan {
        let load = Variation::Boxes(fleet.headroom());
        let per_s = fleet.busiest_per_s();
        let found: Vec<Found> = self
            .searches
            .iter()
            .filter_map(|search| Found::new(search, per_s))
            .collect();
        let mut not_told = self.faults.clone();
        let fits = fleet.box_counts(room).unwrap_or_default();
        if let (Some(size), Some(unfit)) = (
            fleet.file.must.machine,
            MEASURED.iter().find(|boxes| !fits.contains(boxes)),
        ) {
            not_told.push(fleet.too_large(size, *unfit, room));
        }
        not_told.extend(found.iter().filter_map(Found::obstacle));
        let limits = found.iter().filter_map(Found::limit).collect();
        let bounds = Bounds::new(limits, fleet.others_per_s(load) / per_s);
        if let Some((few, many, times)) = bounds.contradiction() {
            not_told.push(not_independent(few, many, times));
        }
        let may_follow = self.faults.is_empty()
            && bounds.contradiction().is_none()
            && found.iter().all(|one| one.may_be_followed(&bounds));
        let counts = self.counts(fleet.headroom(), &found, &bounds, may_follow);
        let enough = |count: &&BoxCount| count.at_least >= fleet.headroom();
        let boxes = counts.iter().find(enough).map(|count| count.boxes);
        let largest = found.iter().map(|one| one.boxes).max().unwrap_or(1);
        if boxes.is_some_and(|boxes| boxes > largest) {
            not_told.push(NotTold::new(
                WhyNotTold::Cap,
                format!(
                    "whether something that boxes share, such as an application, takes no more than {} send",
                    so_many_boxes(largest)
                ),
            ));
        }
        not_told.extend(limits_of_every_answer(fleet, &found));
        BoxPlan {
            system: Some(self.system.clone()),
            size: fleet.file.must.machine,
            headroom: fleet.headroom(),
            boxes,
            counts,
            shared: shared(fleet, room, largest),
            not_told,
            remarks: self.remarks(fleet, &found),
            server_files: Vec::new(),
        }
    }

    /// All numbers up to the largest that was measured, or to the first that is enough, or to the last that is told.
    fn counts(
        &self,
        headroom: f64,
        found: &[Found],
        bounds: &Bounds,
        may_follow: bool,
    ) -> Vec<BoxCount> {
        // Without the kernel's hold, or with links between them, they are no boxes.
        if !self.faults.is_empty() {
            return Vec::new();
        }
        let largest = found.iter().map(|one| one.boxes).max().unwrap_or(0);
        let mut counts: Vec<BoxCount> = Vec::new();
        for boxes in 1..=FURTHEST * largest {
            let is_enough = counts.iter().any(|count| count.at_least >= headroom);
            if boxes > largest && is_enough {
                break;
            }
            let measured = found.iter().find(|one| one.boxes == boxes);
            let (range, known_by) = match measured {
                Some(one) => (one.range(bounds), KnownBy::Measured),
                None => (
                    bounds.range(boxes).filter(|_| may_follow),
                    KnownBy::Independence,
                ),
            };
            counts.extend(range.map(|range| BoxCount {
                boxes,
                at_least: range.low,
                at_most: Some(range.high).filter(|high| high.is_finite()),
                known_by,
            }));
        }
        counts
    }

    fn remarks(&self, fleet: &Fleet, found: &[Found]) -> Vec<String> {
        let load = Variation::Boxes(fleet.headroom());
        let mut remarks = vec![
            self.because.clone(),
            "each box has equally many devices, each application is connected to every box, and no box knows of another".into(),
        ];
        for kind in &fleet.file.devices {
            let devices = fleet.devices(kind, load);
            remarks.push(format!(
                "{}: {devices} devices over all boxes, whatever their number",
                kind.name
            ));
            if kind.commands.is_some_and(|commands| commands.answered) {
                remarks.push(format!(
                    "{}: commands and their answers are sent apart, as often as they would be",
                    kind.name
                ));
            }
        }
        if fleet.file.devices.len() > 1 {
            remarks.push(format!(
                "the rate of {} was searched for, with {} times the others",
                fleet.busiest().name,
                fleet.headroom()
            ));
        }
        let unsure = found
            .iter()
            .filter(|one| one.low.is_some() && !one.is_confirmed);
        remarks.extend(unsure.map(|one| {
            format!(
                "{}: no long trial confirmed the limit",
                so_many_boxes(one.boxes)
            )
        }));
        remarks
    }
}

/// The findings of a search on so many boxes, in times the fleet.
#[derive(Clone, Copy, Debug)]
struct Found {
    boxes: u32,
    low: Option<f64>,
    high: Option<f64>,
    bound: LimitedBy,
    cause: Option<&'static str>,
    is_confirmed: bool,
    /// Whether the smallest load was too much.
    is_none_within: bool,
}

impl Found {
    fn new(search: &Search, per_s: f64) -> Option<Found> {
        let axis = search.axes.iter().find(|axis| axis.name == AXIS)?;
        let mut causes = search.notes.iter().filter_map(|note| note.of.cause());
        Some(Found {
            boxes: axis.value.parse().ok()?,
            low: search.low.map(|low| low / per_s),
            high: search.high.map(|high| high / per_s),
            bound: search.bound,
            cause: causes.next_back(),
            is_confirmed: search.confirmed.is_some(),
            is_none_within: search
                .notes
                .iter()
                .any(|note| note.of == NoteOf::NoneWithin),
        })
    }

    /// Both ends of its limit, where it is the boxes' own.
    fn limit(&self) -> Option<Limit> {
        if self.bound == LimitedBy::Client {
            return None;
        }
        Some(Limit {
            boxes: self.boxes,
            range: Range {
                low: self.low?,
                high: self.high?,
            },
        })
    }

    fn range(&self, bounds: &Bounds) -> Option<Range> {
        match self.limit() {
            Some(limit) => Some(bounds.measured(limit)),
            None => Some(Range {
                low: self.low?,
                high: f64::INFINITY,
            }),
        }
    }

    /// Whether other numbers may follow from those beside it: it has a limit of its own, or is too few for anything of the
    /// kind that was searched for.
    fn may_be_followed(&self, bounds: &Bounds) -> bool {
        let is_too_few = bounds
            .smallest()
            .is_some_and(|smallest| self.boxes < smallest);
        self.limit().is_some() || self.is_none_within && is_too_few
    }

    fn obstacle(&self) -> Option<NotTold> {
        if self.limit().is_some() {
            return None;
        }
        let boxes = so_many_boxes(self.boxes);
        let at_least = match self.low {
            Some(low) => format!(
                "; at least {} times the fleet were carried",
                shown::brief(low)
            ),
            None => String::new(),
        };
        Some(match self.bound {
            LimitedBy::Client => NotTold::new(
                WhyNotTold::ClientBound,
                format!(
                    "with {boxes} {} before they gave way{at_least}",
                    self.cause.unwrap_or("the client was the bottleneck")
                ),
            ),
            _ => NotTold::new(
                WhyNotTold::NoLimit,
                format!(
                    "with {boxes} no limit was found: {}{at_least}",
                    self.cause.unwrap_or("the search told nothing")
                ),
            ),
        })
    }
}

fn not_independent(few: u32, many: u32, times: Range) -> NotTold {
    NotTold::new(
        WhyNotTold::NotIndependent,
        format!(
            "{} carry {} to {} times what {} does, not {}: they share something, and no other number of boxes follows from them",
            so_many_boxes(many),
            shown::brief(times.low),
            shown::brief(times.high),
            so_many_boxes(few),
            many / few
        ),
    )
}

/// Circumstances under which brokers side by side are no boxes.
fn faults(trials: &[Trial]) -> Vec<NotTold> {
    let mut faults = Vec::new();
    let is_alone = |trial: &&Trial| {
        trial
            .axes
            .iter()
            .any(|axis| axis.name == AXIS && axis.value == "1")
    };
    let mut side_by_side = trials.iter().filter(|trial| !is_alone(trial));
    let doubled = side_by_side.find_map(|trial| {
        let messages = &trial.messages;
        let share = messages.duplicated as f64 / messages.delivered.max(1) as f64;
        (share > MOST_DUPLICATES).then_some(share)
    });
    if let Some(share) = doubled {
        faults.push(NotTold::new(
            WhyNotTold::Linked,
            format!(
                "{} of the deliveries came twice: brokers pass messages on to each other",
                shown::percent(share, 0)
            ),
        ));
    }
    let loose = trials.iter().find_map(|trial| {
        let limits = trial.limits.as_ref()?;
        // That the client is not off these processors takes nothing from the size of a box: the client's own limit is looked at.
        let holds_cores = limits.cores.is_none_or(|cores| {
            limits.cores_by_quota || (limits.cores_by.is_some() && cores.fract() == 0.0)
        });
        let holds_memory = limits.memory_bytes.is_none() || limits.memory_by.is_some();
        (!holds_cores || !holds_memory).then(|| {
            let reason = limits.not_held.first().cloned();
            reason.unwrap_or_else(|| "the kernel holds no part of a processor here".into())
        })
    });
    if let Some(reason) = loose {
        faults.push(NotTold::new(
            WhyNotTold::NotHeld,
            format!("boxes did not have their size: {reason}"),
        ));
    }
    faults
}

fn limits_of_every_answer(fleet: &Fleet, found: &[Found]) -> Vec<NotTold> {
    let mut all = Vec::new();
    if let Some(largest) = found.iter().map(|one| one.boxes).max() {
        all.push(NotTold::new(
            WhyNotTold::BeyondTwice,
            format!(
                "more than {}: beyond twice the largest number that was measured nobody knows what applications and network take",
                so_many_boxes(FURTHEST * largest)
            ),
        ));
    }
    all.push(NotTold::new(
        WhyNotTold::OtherHardware,
        "boxes of other hardware: a box is a share of the processors of this machine",
    ));
    if fleet.file.devices.iter().any(|kind| kind.offline.is_some()) {
        all.push(NotTold::new(
            WhyNotTold::Returns,
            "absences: nobody was away while boxes were measured, and nothing waited for anybody",
        ));
    }
    all
}

/// Parts of this machine that so many boxes shared with each other and with the client.
fn shared(fleet: &Fleet, room: &Room, boxes: u32) -> Vec<String> {
    let mut shared = Vec::new();
    if let Some(size) = fleet.file.must.machine {
        let left = room.processors - size.cores * f64::from(boxes);
        shared.push(format!(
            "one client for all devices and applications, which has {} of {} processors beside {}",
            shown::brief(left.max(0.0)),
            shown::brief(room.processors),
            so_many_boxes(boxes)
        ));
    }
    shared.push("loopback in place of a link to each box".into());
    shared.push("caches and memory bandwidth".into());
    if !fleet.file.must.survive.is_empty() {
        shared.push("one disk".into());
    }
    shared
}
