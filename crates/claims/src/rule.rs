//! What a claim says, as plain data.

use std::collections::BTreeMap;

/// A sentence of a paper, and the rule by which it is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Its name, unique in the study: `K02`.
    pub id: String,
    /// What the paper says.
    pub sentence: String,
    /// Where: paper, section, figure.
    pub source: String,
    /// The paper's own figures; they stand beside ours and decide nothing.
    pub papers: String,
    /// What is judged; all parts must hold.
    pub parts: Vec<Part>,
    /// Instead of all parts: more than this share of the decided points of all parts must hold.
    pub share: Option<f64>,
    /// What it needs to be applicable.
    pub needs: Needs,
}

/// A part of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its name; empty if the claim has one part.
    pub name: String,
    /// The rule; `None` for a part that says why it is not applicable.
    pub rule: Option<Rule>,
    /// What it needs to be applicable.
    pub needs: Needs,
}

/// What must be there for a claim to be applicable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Systems of the run.
    pub systems: Vec<String>,
    /// Links that the run must have gone over, in words: "links of 95 Mbit/s".
    pub network: Option<String>,
    /// Something that no run has, and why.
    pub never: Option<String>,
}

/// Which cells: for each of `system`, `settings`, `workload`, `flow` and the axes of the grid, the
/// values that are let through. What is not named lets everything through. `flow` chooses a flow's own
/// figures.
pub type Filter = BTreeMap<String, Vec<String>>;

/// One of the things that are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Its name in the study.
    pub name: String,
    /// Its cells; several filters are implementations of the same, which must agree.
    pub alternatives: Vec<Filter>,
}

/// A rule over figures of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The figure; `"limit"` for what a search found; with a slash the quotient of two in each trial.
    pub figure: String,
    /// Cells of all sides.
    pub filter: Filter,
    /// The axis whose values are the points.
    pub along: Option<String>,
    /// How judgements of points become one.
    pub points: Points,
    /// What is judged. Without `against`, a judge of ratios takes each with the next: a chain.
    pub sides: Vec<Side>,
    /// What each side is held against.
    pub against: Vec<Side>,
    /// How.
    pub judge: Judge,
    /// The paper's machine decides its numbers: a range is doubled on either side, but stays on its side
    /// of 1; a crossing or a jump may lie anywhere.
    pub wide: bool,
    /// Repeats were measured in turns: compared repeat by repeat.
    pub paired: bool,
    /// Verdicts of the trials that count; valid ones if empty.
    pub verdicts: Vec<String>,
}

impl Rule {
    /// The cells of a side: the rule's, where the side says nothing else.
    pub fn cells(&self, side: &Filter) -> Filter {
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
    /// Of the (geometric) mean over all.
    Mean,
}

/// A range, its ends left out; infinite where it is open.
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
        let (low, high) = (self.low / 2.0, self.high * 2.0);
        match (self.low >= 1.0, self.high <= 1.0) {
            (true, _) => Bounds {
                low: low.max(1.0),
                high,
            },
            (_, true) => Bounds {
                low,
                high: high.min(1.0),
            },
            _ => Bounds { low, high },
        }
    }
}

/// How the cells are judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Judge {
    /// The figure of each side lies in a range.
    Value(Bounds),
    /// The ratio of two sides does.
    Ratio(Bounds),
    /// The difference of two sides does, in the figure's unit.
    Difference(Bounds),
    /// Two sides differ by no more than this share.
    Equal(f64),
    /// In every repeat, exactly: the figure of each side lies in a range, its ends included.
    Count {
        /// Least.
        least: f64,
        /// Most; absent: any number.
        most: Option<f64>,
    },
    /// From point to point it rises, or stays within a tolerance; last over first lies in the range.
    Rises {
        /// Share by which a step may fall.
        tolerance: f64,
        /// Last over first.
        ends: Bounds,
    },
    /// From point to point it falls, or stays within a tolerance; last over first lies in the range.
    Falls {
        /// Share by which a step may rise.
        tolerance: f64,
        /// Last over first.
        ends: Bounds,
    },
    /// Each point is within this share of the mean over the axis.
    Flat(f64),
    /// The first side is above the second up to the first value, and below it from the second one on.
    Cross(String, String),
    /// The largest step lies between the two values, and more than doubles the figure.
    Jump(String, String),
    /// The first side rises less with each unit of the axis than the second.
    Slope {
        /// Both are straight lines, too, up to a tenth of their range.
        linear: bool,
    },
    /// The ratio of the standard deviations lies in a range: over the seconds of each repeat, or, along
    /// an axis, over the steps of each repeat's curve.
    Spread(Bounds),
}

/// The number in a value of an axis: `1KiB` is 1024, `10k/s` is 10,000, `5ms` is 0.005.
pub fn quantity(text: &str) -> Option<f64> {
    let text = text.trim();
    let at = text
        .find(|c: char| !(c.is_ascii_digit() || ".-+_".contains(c)))
        .unwrap_or(text.len());
    let number: f64 = text[..at].replace('_', "").parse().ok()?;
    let unit = text[at..].trim();
    let factor = match unit.strip_suffix("-each").unwrap_or(unit) {
        "" | "B" | "/s" | "s" => 1.0,
        "kB" | "KB" | "k/s" => 1e3,
        "MB" | "M/s" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number * factor)
}

/// Whether two values of an axis are the same: `1KiB` and `1024B` are.
pub fn same(a: &str, b: &str) -> bool {
    a == b || quantity(a).zip(quantity(b)).is_some_and(|(a, b)| a == b)
}
