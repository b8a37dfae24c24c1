//! Claims as plain data.

use std::collections::BTreeMap;

use pubgauge_quantities::written::amount;

/// A sentence of a paper, and the rule by which it is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Its name, unique in the study: `K02`.
    pub id: String,
    /// The paper's sentence.
    pub sentence: String,
    /// Where: paper, section, figure.
    pub source: String,
    /// The paper's own figures; they are shown beside the measured ones and decide nothing.
    pub papers: String,
    /// The halves of the sentence, which are judged. It holds in part where some of them hold.
    pub parts: Vec<ClaimPart>,
    /// Instead of all parts: more than this share of the decided points of all parts must hold.
    pub share: Option<f64>,
    /// The stand-in, and what it replaces: the claim is then judged of the stand-in.
    pub stand_in: Option<String>,
    /// The conditions under which it is applicable.
    pub needs: Needs,
    /// The machine or the measurement that would tell it, where this run does not.
    pub told_by: Option<String>,
    /// The first day (`2026-11-30`) whose trials count: the rule or the bed was another one before.
    pub not_before: Option<String>,
}

/// A part of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimPart {
    /// Its name; empty if the claim has one part.
    pub name: String,
    /// The rule; `None` for a part that says why it is not applicable, and for one with a group.
    pub rule: Option<ClaimRule>,
    /// Parts of its own instead of a rule.
    pub group: Option<RuleGroup>,
    /// The conditions under which it is applicable.
    pub needs: Needs,
}

/// Parts of which not all must hold, or which hold together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleGroup {
    /// How many must hold; absent: all.
    pub least: Option<usize>,
    pub parts: Vec<ClaimPart>,
}

impl ClaimPart {
    /// Its rule, or those of its group.
    pub fn rules(&self) -> Vec<&ClaimRule> {
        let within = self.group.iter().flat_map(|group| &group.parts);
        let within = within.flat_map(ClaimPart::rules);
        self.rule.iter().chain(within).collect()
    }
}

/// The conditions under which a claim is applicable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Systems of the run.
    pub systems: Vec<String>,
    /// Links that the run must have gone over, in words: "links of 95 Mbit/s".
    pub network: Option<String>,
    /// Why the claim is never judged: it needs something that no run has.
    pub never: Option<String>,
    /// Why its cells, whatever is measured there, do not tell it: a bed or a length that decides in its place.
    pub untold: Option<String>,
    /// How the version that is claimed about differs from the one here, and since when: what does not hold here may then
    /// have held there.
    pub of_version: Option<String>,
}

impl Needs {
    /// Whether it says by itself, without any trial, that nothing is judged.
    pub fn is_never_judged(&self) -> bool {
        self.never.is_some() || self.untold.is_some()
    }
}

/// Which cells: for each of `system`, `settings`, `workload`, `flow` and the axes of the grid, the
/// values that are let through, or ranges of them: see [`admits`]. What is not named lets everything
/// through. `flow` chooses a flow's own figures.
pub type CellFilter = BTreeMap<String, Vec<String>>;

/// One of the things that are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Its name in the study.
    pub name: String,
    /// The name by which one of its implementations is chosen: sides with the same one use the same
    /// implementation. Absent: its own name.
    pub choice: Option<String>,
    /// Its cells; several filters are implementations of the same, which must agree.
    pub alternatives: Vec<CellFilter>,
}

impl Side {
    /// The name by which one of its implementations is chosen.
    pub fn chosen_by(&self) -> &str {
        self.choice.as_ref().unwrap_or(&self.name)
    }
}

/// A rule over figures of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimRule {
    /// The figure; `"limit"` for what a search found; with a slash the quotient of two in each trial.
    pub figure: String,
    /// Cells of all sides.
    pub filter: CellFilter,
    /// The axis whose values are the points.
    pub along: Option<String>,
    /// In how many blocks of equal length the measurement of each trial is cut: these are the points then, of the axis [`BLOCK`], and
    /// [`SPANS_OF_BLOCK`] spans of each block are its repeats. Absent: trials are whole.
    pub blocks: Option<u32>,
    /// How judgements of points become one.
    pub points: Points,
    /// The sides that are judged. Without `against`, a judge of ratios takes each with the next: a chain.
    pub sides: Vec<Side>,
    /// The sides with which each of them is compared.
    pub against: Vec<Side>,
    /// The largest of all sides over the smallest is judged, whichever they are, in place of each side.
    pub gap: bool,
    /// How they are judged.
    pub judge: Judge,
    /// The paper's numbers depend on its machine: a range is doubled on either side, but stays on its side
    /// of 1; a crossing or a jump may lie anywhere.
    pub wide: bool,
    /// Repeats were measured in turns: compared repeat by repeat.
    pub paired: bool,
    /// The share by which a ratio may lie beside its bound and still be a tie: 0.02 is 2 %. An order within it neither
    /// holds nor fails.
    pub margin: f64,
    /// Verdicts of the trials that count; valid ones if empty.
    pub verdicts: Vec<String>,
    /// Verdicts of which one trial takes its cell out of the rule: the claim is not about such cells.
    pub leave_out: Vec<String>,
}

/// The figure of [`ClaimRule::axis`]: the largest value of the axis `along` that a system sustains.
pub const SUSTAINED: &str = "sustained";

/// The axis of the blocks that measurements are cut into.
pub const BLOCK: &str = "block";

/// How many spans of a block are taken for its repeats.
pub const SPANS_OF_BLOCK: u32 = 5;

/// The figure that is 1 in a trial that lost nothing, and 0 in others: over trials it is a share.
pub const LOSS_FREE: &str = "loss-free";

impl ClaimRule {
    /// The axis whose values are judged one by one; `None` where there is none, or all its values make one figure.
    pub fn axis(&self) -> Option<&String> {
        self.along.as_ref().filter(|_| self.figure != SUSTAINED)
    }

    /// The axis of the grid whose values are judged one by one: the blocks of a trial are none.
    pub fn grid_axis(&self) -> Option<&String> {
        self.axis().filter(|_| self.blocks.is_none())
    }

    /// Whether trials of a verdict count.
    pub fn counts(&self, verdict: &str) -> bool {
        match &self.verdicts[..] {
            [] => verdict == "valid",
            named => named.iter().any(|one| one == verdict),
        }
    }

    /// The cells of a side: the rule's, where the side says nothing else.
    pub fn cells(&self, side: &CellFilter) -> CellFilter {
        let mut filter = self.filter.clone();
        filter.extend(side.clone());
        filter
    }
}

/// How judgements of the points of an axis become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Points {
    /// It must hold at each.
    #[default]
    Every,
    /// It must hold at one.
    Some,
    /// It must hold for the mean over all: the geometric one, except of differences and of figures that
    /// may be 0.
    Mean,
    /// It must hold for the mean over all, and no point may be decided against it.
    Joint,
}

/// A range, its ends excluded; infinite where it is open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Bounds {
    /// More than `low`.
    pub fn above(low: f64) -> Bounds {
        Bounds {
            low,
            high: f64::INFINITY,
        }
    }

    /// Less than `high`.
    pub fn below(high: f64) -> Bounds {
        Bounds {
            low: f64::NEG_INFINITY,
            high,
        }
    }

    /// Doubled on either side, but on the same side of 1.
    pub fn wide(self) -> Bounds {
        let (mut low, mut high) = (self.low / 2.0, self.high * 2.0);
        if self.low >= 1.0 {
            low = low.max(1.0);
        } else if self.high <= 1.0 {
            high = high.min(1.0);
        }
        Bounds { low, high }
    }
}

/// A demand on a figure in every repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// This number.
    Exactly(f64),
    /// More than this number: a share of 0.5 is more than 0.
    Above(f64),
}

/// How the cells are judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Judge {
    /// The figure of each side lies in a range.
    Value(Bounds),
    /// The ratio of two sides lies in a range.
    Ratio(Bounds),
    /// The difference of two sides lies in a range, in the figure's unit.
    Difference(Bounds),
    /// Two sides differ by no more than this share.
    Equal(f64),
    /// In every repeat: the figure of each side is a number exactly, or more than it.
    Count(Count),
    /// Its trend over the axis rises, and no step is decided back by more than a tolerance.
    Rises(Steps),
    /// Its trend over the axis falls, and no step is decided back by more than a tolerance.
    Falls(Steps),
    /// Its trend from first to last is within this share, and no point is decided further from the mean over the
    /// axis.
    Flat(f64),
    /// The first side is above the second up to the first value, and below it from the second one on: as geometric
    /// means, with no point decided against.
    Cross(String, String),
    /// The largest step lies between the two values, and more than doubles the figure.
    Jump(String, String),
    /// The first side rises less with each unit of the axis than the second.
    Slope {
        /// Both are straight lines, too, up to a tenth of their range.
        linear: bool,
    },
    /// In most repeats the first side reaches this share of its own largest value at a smaller value of the
    /// axis than the second.
    Reaches(f64),
    /// The ratio of the standard deviations lies in a range: over the seconds of each repeat, or, along
    /// an axis, over the steps of each repeat's curve.
    Spread(Bounds),
}

/// A demand on the steps from point to point of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// By how much a step may go the other way: a share, or, with `plain`, an amount in the figure's unit.
    pub tolerance: f64,
    /// Where the trend from first to last lies: a ratio, or, with `plain`, a difference.
    pub ends: Bounds,
    /// Differences are judged, not ratios.
    pub plain: bool,
}

/// Whether two values of an axis are the same: `1KiB` and `1024B` are.
pub fn same(a: &str, b: &str) -> bool {
    // Shares are of different limits.
    let share = a.contains('%') || b.contains('%');
    a == b || !share && amount(a).zip(amount(b)).is_some_and(|(a, b)| a == b)
}

/// The ends of a range of values: `64B..1KiB`, `..1KiB`, `64B..`; infinite where it is open. `None` if the
/// text is not a range.
pub fn range(text: &str) -> Option<(f64, f64)> {
    let (low, high) = text.split_once("..")?;
    let end = |text: &str, open: f64| match text.trim() {
        "" => Some(open),
        text => amount(text),
    };
    let (low, high) = (end(low, f64::NEG_INFINITY)?, end(high, f64::INFINITY)?);
    (low <= high && (low.is_finite() || high.is_finite())).then_some((low, high))
}

/// Whether a filter's value lets a value through: the same one, or one in its range, the ends included.
pub fn admits(allowed: &str, value: &str) -> bool {
    match range(allowed) {
        Some((low, high)) => amount(value).is_some_and(|value| low <= value && value <= high),
        None => same(allowed, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_their_ends() {
        for (allowed, value, lets) in [
            ("64B..1KiB", "64B", true),
            ("64B..1KiB", "1024B", true),
            ("64B..1KiB", "2KiB", false),
            ("..512B", "32B", true),
            ("..512B", "1KiB", false),
            ("2KiB..", "32KiB", true),
            ("2KiB..", "1KiB", false),
            ("1KiB..", "default", false),
            ("1KiB", "1024B", true),
        ] {
            assert_eq!(admits(allowed, value), lets, "{allowed} {value}");
        }
        for text in ["..", "1KiB..64B", "64B", "a..b", "64B..x"] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
