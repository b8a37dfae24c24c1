//! Claims: from their form in the file to rules that can be judged.

mod figures;
mod judges;
mod sides;

use pubgauge_figures::figure::Figure;
use pubgauge_figures::rule::{
    BLOCK, CellFilter, Claim, ClaimPart, ClaimRule, Judge, LOSS_FREE, Needs, Points, RuleGroup,
    SUSTAINED, Side,
};

use self::figures::check_figure;
use self::figures::percent;
use self::judges::At;
use self::sides::Sides;
use crate::criterion::{of_whole_trials, unknown};
use crate::file::{Cells, ClaimFile, PointsFile, RuleFile, RuleList};

/// An error in a claim: the path below it, and a message.
pub(crate) struct ClaimFault {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
}

impl ClaimFault {
    pub(crate) fn new(key: &str, message: impl Into<String>) -> ClaimFault {
        ClaimFault {
            path: vec![key.into()],
            message: message.into(),
        }
    }

    /// Puts `step` before its path.
    fn below(mut self, step: &str) -> ClaimFault {
        self.path.insert(0, step.into());
        self
    }
}

/// A resolved study without its claims and the names of their sides, on which nothing that is measured depends; `None`
/// of a text that is no TOML.
pub fn without_claims(resolved: &str) -> Option<serde_json::Value> {
    let mut study: serde_json::Map<String, serde_json::Value> = toml::from_str(resolved).ok()?;
    study.remove("claim");
    study.remove("side");
    Some(study.into())
}

/// A claim from its form in the file.
pub(crate) fn claim(file: &ClaimFile, named: &Sides) -> Result<Claim, ClaimFault> {
    if file.id.trim().is_empty() {
        return Err(ClaimFault::new("id", "a claim needs a name"));
    }
    let share = file
        .share
        .as_deref()
        .map(percent)
        .transpose()
        .map_err(|m| ClaimFault::new("share", m))?;
    let rules = file.rule.list();
    let said = file.not_applicable.is_some() || file.cannot_tell.is_some();
    if rules.is_empty() && !said {
        return Err(ClaimFault::new(
            "id",
            "a claim needs a `rule`, or says why it is `not-applicable` or `cannot-tell`",
        ));
    }
    if let Some(day) = file.not_before.as_ref().filter(|day| !is_day(day)) {
        let message = format!("`{day}` is no day; expected one such as \"2026-11-30\"");
        return Err(ClaimFault::new("not-before", message));
    }
    let above = Above {
        figure: file.figure.as_ref(),
        along: file.along.as_ref(),
        verdicts: file.verdicts.as_deref().unwrap_or_default(),
        filter: sides::cells(&file.filter).map_err(|m| ClaimFault::new("where", m))?,
        named,
    };
    if let Some(message) = unknown(above.verdicts) {
        return Err(ClaimFault::new("verdicts", message));
    }
    known(&file.figure).map_err(|(key, message)| ClaimFault::new(key, message))?;
    let many = matches!(file.rule, RuleList::Many(_));
    let parts = above.read_parts(rules, many).map_err(|f| f.below("rule"))?;
    let points_only = |part: &ClaimPart| {
        part.group.is_none()
            && part.rule.as_ref().is_none_or(|rule| {
                matches!(
                    rule.judge,
                    Judge::Ratio(_) | Judge::Value(_) | Judge::Equal(_) | Judge::Difference(_)
                )
            })
    };
    if share.is_some() && !parts.iter().all(points_only) {
        return Err(ClaimFault::new(
            "share",
            "a share counts points: of `value`, `ratio`, `difference` or `equal`",
        ));
    }
    Ok(Claim {
        id: file.id.clone(),
        sentence: file.sentence.clone(),
        source: file.source.clone(),
        papers: file.papers.clone().unwrap_or_default(),
        parts,
        share,
        stand_in: file.stand_in.clone(),
        needs: Needs {
            systems: file.needs_systems.clone(),
            network: file.needs_network.clone(),
            never: file.not_applicable.clone(),
            untold: file.cannot_tell.clone(),
            of_version: file.of_version.clone(),
        },
        told_by: file.told_by.clone(),
        not_before: file.not_before.clone(),
    })
}

/// Whether it is a day as RFC 3339 writes it, `2026-11-30`, so that days compare as texts.
fn is_day(text: &str) -> bool {
    let digit = |(at, c): (usize, char)| match at {
        4 | 7 => c == '-',
        _ => c.is_ascii_digit(),
    };
    text.len() == 10 && text.chars().enumerate().all(digit)
}

/// A figure is told of where it is written: at the claim or at a part.
fn known(figure: &Option<String>) -> At<()> {
    let checked = figure.as_deref().map_or(Ok(()), check_figure);
    checked.map_err(|message| ("figure", message))
}

/// The values that a rule inherits from the claim or rule above it.
struct Above<'a> {
    figure: Option<&'a String>,
    along: Option<&'a String>,
    verdicts: &'a [String],
    filter: CellFilter,
    named: &'a Sides,
}

impl<'a> Above<'a> {
    /// The values that the rules below `file` inherit.
    fn inherited_by(&self, file: &'a RuleFile) -> At<Above<'a>> {
        let verdicts = file.verdicts.as_deref().unwrap_or(self.verdicts);
        if let Some(message) = unknown(verdicts) {
            return Err(("verdicts", message));
        }
        known(&file.figure)?;
        let mut filter = self.filter.clone();
        filter.extend(sides::cells(&file.filter).map_err(|message| ("where", message))?);
        Ok(Above {
            figure: file.figure.as_ref().or(self.figure),
            along: file.along.as_ref().or(self.along),
            verdicts,
            filter,
            named: self.named,
        })
    }

    fn read_parts(&self, files: &'a [RuleFile], many: bool) -> Result<Vec<ClaimPart>, ClaimFault> {
        let part = |(nth, file): (usize, &'a RuleFile)| {
            let letter = || match files.len() {
                1 => String::new(),
                _ => char::from_digit(10 + nth as u32 % 26, 36)
                    .map(String::from)
                    .unwrap_or_default(),
            };
            let name = file.part.clone().unwrap_or_else(letter);
            self.read_part(file, name).map_err(|fault| {
                if many {
                    fault.below(&nth.to_string())
                } else {
                    fault
                }
            })
        };
        files.iter().enumerate().map(part).collect()
    }

    fn read_part(&self, file: &'a RuleFile, name: String) -> Result<ClaimPart, ClaimFault> {
        let fault = |(key, message): (&str, String)| ClaimFault::new(key, message);
        let mut part = ClaimPart {
            name,
            needs: Needs {
                systems: file.needs_systems.clone(),
                network: file.needs_network.clone(),
                never: file.not_applicable.clone(),
                untold: file.cannot_tell.clone(),
                of_version: file.of_version.clone(),
            },
            ..ClaimPart::default()
        };
        let none = file.sides.is_empty() && file.any.is_empty() && file.all.is_empty();
        if file.not_applicable.is_some() || file.cannot_tell.is_some() && none {
            return Ok(part);
        }
        let above = self.inherited_by(file).map_err(fault)?;
        let least = file.least.map_or(1, |least| least as usize);
        let (key, files, least) = match (file.any.is_empty(), file.all.is_empty()) {
            (true, true) => {
                part.rule = Some(above.rule(file).map_err(fault)?);
                return Ok(part);
            }
            (false, true) => ("any", &file.any, Some(least)),
            (true, false) => ("all", &file.all, None),
            (false, false) => {
                let message = "a part has `any` or `all`; put one into a part of the other";
                return Err(ClaimFault::new("all", message));
            }
        };
        if !file.sides.is_empty() || !judges::given_judges(file).is_empty() {
            let message = format!("a part with `{key}` has neither sides nor a judge of its own");
            return Err(ClaimFault::new(key, message));
        }
        if least.is_some_and(|least| least == 0 || least > files.len()) {
            let message = format!("`least` is 1 to {} here: the parts of `any`", files.len());
            return Err(ClaimFault::new("least", message));
        }
        let parts = above.read_parts(files, true).map_err(|f| f.below(key))?;
        part.group = Some(RuleGroup { least, parts });
        Ok(part)
    }

    fn rule(self, file: &RuleFile) -> At<ClaimRule> {
        let figure = self.figure.ok_or((
            "sides",
            "a rule needs a `figure`, its own or the claim's".to_owned(),
        ))?;
        if let Some(message) = unknown(&file.leave_out) {
            return Err(("leave-out", message));
        }
        if file.least.is_some() {
            return Err(("least", "`least` belongs to `any`".into()));
        }
        let judge = judges::judge(file, figure)?;
        let sides = |key, list: &[Cells]| -> At<Vec<Side>> {
            list.iter()
                .map(|cells| {
                    sides::resolve_side(cells, self.named).map_err(|message| (key, message))
                })
                .collect()
        };
        let rule = ClaimRule {
            figure: figure.clone(),
            along: match file.blocks {
                Some(_) => Some(BLOCK.to_owned()),
                None => self.along.cloned(),
            },
            blocks: file.blocks,
            points: match file.at {
                None | Some(PointsFile::Every) => Points::Every,
                Some(PointsFile::Some) => Points::Some,
                Some(PointsFile::Mean) => Points::Mean,
                Some(PointsFile::Joint) => Points::Joint,
            },
            sides: sides("sides", &file.sides)?,
            against: sides("against", &file.against)?,
            gap: file.gap.unwrap_or(false),
            judge,
            wide: file.wide.unwrap_or(false),
            paired: file.paired.unwrap_or(false),
            verdicts: self.verdicts.to_vec(),
            leave_out: file.leave_out.clone(),
            filter: self.filter,
            margin: margin(file)?,
        };
        check(file, &rule)?;
        check_blocks(file, &rule)?;
        let whole = Figure::in_window(figure).filter(|(figure, _)| !figure.of_flows());
        if let Some((figure, _)) = whole.filter(|_| names_a_flow(&rule)) {
            return Err(("where", of_whole_trials(figure)));
        }
        Ok(rule)
    }
}

/// The share up to which sides are alike; 0 if none is given.
fn margin(file: &RuleFile) -> At<f64> {
    let Some(text) = &file.margin else {
        return Ok(0.0);
    };
    if file.ratio.is_none() {
        return Err(("margin", "`margin` belongs to `ratio`".into()));
    }
    percent(text).map_err(|message| ("margin", message))
}

/// Whether a rule is about one of several flows.
fn names_a_flow(rule: &ClaimRule) -> bool {
    let sides = rule.sides.iter().chain(&rule.against);
    let mut filters = sides
        .flat_map(|side| &side.alternatives)
        .chain([&rule.filter]);
    filters.any(|filter| filter.contains_key("flow"))
}

/// Checks that measurements can be cut into blocks as a rule has it.
fn check_blocks(file: &RuleFile, rule: &ClaimRule) -> At<()> {
    let Some(blocks) = rule.blocks else {
        return Ok(());
    };
    let of_points = matches!(
        rule.judge,
        Judge::Value(_)
            | Judge::Ratio(_)
            | Judge::Difference(_)
            | Judge::Equal(_)
            | Judge::Rises(_)
            | Judge::Falls(_)
            | Judge::Flat(_)
    );
    let fault = if !(3..=100).contains(&blocks) {
        ("blocks", "a measurement is cut into 3 to 100 blocks")
    } else if file.along.is_some() {
        ("along", "the blocks are the axis: leave `along` out")
    } else if rule.figure.contains('/') || rule.figure == SUSTAINED {
        (
            "blocks",
            "blocks have records of a series, such as \"delivered-rate\" or \"latency.p99\"",
        )
    } else if !of_points {
        (
            "blocks",
            "blocks are judged by `value`, `ratio`, `difference`, `equal`, `rises`, `falls` or `flat`",
        )
    } else {
        return Ok(());
    };
    Err((fault.0, fault.1.to_owned()))
}

/// Checks that a judge has the other keys that it needs.
fn check(file: &RuleFile, rule: &ClaimRule) -> At<()> {
    let (of_two, of_axis) = match rule.judge {
        Judge::Ratio(_) | Judge::Difference(_) | Judge::Equal(_) => (true, false),
        Judge::Spread(_) => (true, false),
        Judge::Cross(..) | Judge::Slope { .. } | Judge::Reaches(_) => (true, true),
        Judge::Rises(_) | Judge::Falls(_) | Judge::Flat(_) | Judge::Jump(..) => (false, true),
        Judge::Value(_) | Judge::Count(_) => (false, false),
    };
    let message = if rule.sides.is_empty() {
        "a rule needs `sides`: who is judged"
    } else if !rule.against.is_empty()
        && matches!(
            rule.judge,
            Judge::Value(_) | Judge::Count(_) | Judge::Jump(..)
        )
    {
        "this judge takes `sides` one by one, without `against`"
    } else if of_two && rule.sides.len() < 2 && rule.against.is_empty() {
        "this judge needs two `sides`, or one and `against`"
    } else if of_axis && rule.along.is_none() {
        "this judge needs `along`: the axis of the grid whose values are the points"
    } else if file.at.is_some() && rule.along.is_none() {
        "`at` needs `along`: the axis of the grid whose values are the points"
    } else if file.ends.is_some() && !matches!(rule.judge, Judge::Rises(_) | Judge::Falls(_)) {
        "`ends` belongs to `rises` and `falls`"
    } else if rule.gap
        && (rule.sides.len() < 2
            || !rule.against.is_empty()
            || !matches!(
                rule.judge,
                Judge::Value(_) | Judge::Rises(_) | Judge::Falls(_) | Judge::Flat(_)
            ))
    {
        "`gap` is of two `sides` or more, without `against`, and is judged by `value`, `rises`, `falls` or `flat`"
    } else if rule.figure == SUSTAINED && rule.along.is_none() {
        "`sustained` needs `along`: the axis of the grid whose largest value is asked for"
    } else if rule.figure == LOSS_FREE && !matches!(rule.judge, Judge::Value(_) | Judge::Count(_)) {
        "a share of trials is judged by `value` or `count`"
    } else if ["limit", SUSTAINED].contains(&&*rule.figure)
        && !matches!(
            rule.judge,
            Judge::Ratio(_) | Judge::Value(_) | Judge::Equal(_)
        )
    {
        "a limit is judged by `ratio`, `equal` or `value`"
    } else {
        return Ok(());
    };
    Err(("sides", message.into()))
}
