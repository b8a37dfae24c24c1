//! Claims: from their form in the file to rules that can be judged.

use std::collections::BTreeMap;

use pubgauge_claims::{Bounds, Claim, Filter, Judge, Needs, Part, Points, Rule, Side};

use crate::criterion::{Figure, VERDICTS};
use crate::file::{Cells, ClaimFile, PointsFile, RuleFile, RuleList, SlopeFile, Values};
use crate::units::{Rate, Size, Span, did_you_mean, nearest};

/// Figures of claims beside those of criteria: those of comparisons, and a few that only rules ask for.
pub const CLAIM_FIGURES: [&str; 14] = [
    "cpu-per-message",
    "client-cpu-per-message",
    "system-cpu-per-message",
    "duplicated-share",
    "reordered-share",
    "expected",
    "delivered-bytes-rate",
    "system-busiest-thread",
    "half-round-trip.mean",
    "half-round-trip.p50",
    "half-round-trip.p90",
    "half-round-trip.p99",
    "half-round-trip.max",
    "limit",
];

/// What is wrong with a claim: at which path below it, and what.
pub(crate) struct Fault {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
}

type Sides = BTreeMap<String, Cells>;

/// A claim from its form in the file.
pub(crate) fn claim(file: &ClaimFile, named: &Sides) -> Result<Claim, Fault> {
    let fault = |key: &str, message: String| Fault {
        path: vec![key.into()],
        message,
    };
    if file.id.trim().is_empty() {
        return Err(fault("id", "a claim needs a name".into()));
    }
    let share = file
        .share
        .as_deref()
        .map(percent)
        .transpose()
        .map_err(|m| fault("share", m))?;
    let rules = file.rule.list();
    let none = rules.is_empty() && file.not_applicable.is_none();
    if none {
        return Err(fault(
            "id",
            "a claim needs a `rule`, or says why it is `not-applicable`".into(),
        ));
    }
    let mut parts = Vec::new();
    for (nth, rule) in rules.iter().enumerate() {
        let at = |(key, message): (&str, String)| {
            let mut path = vec!["rule".to_owned()];
            if matches!(file.rule, RuleList::Many(_)) {
                path.push(nth.to_string());
            }
            path.push(key.to_owned());
            Fault { path, message }
        };
        let letter = || match rules.len() {
            1 => String::new(),
            _ => char::from_digit(10 + nth as u32 % 26, 36)
                .map(String::from)
                .unwrap_or_default(),
        };
        parts.push(Part {
            name: rule.part.clone().unwrap_or_else(letter),
            rule: match &rule.not_applicable {
                Some(_) => None,
                None => Some(self::rule(file, rule, named).map_err(at)?),
            },
            needs: Needs {
                systems: rule.needs_systems.clone(),
                network: rule.needs_network.clone(),
                never: rule.not_applicable.clone(),
            },
        });
    }
    let points_only = |part: &Part| {
        part.rule.as_ref().is_none_or(|rule| {
            matches!(
                rule.judge,
                Judge::Ratio(_) | Judge::Value(_) | Judge::Equal(_) | Judge::Difference(_)
            )
        })
    };
    if share.is_some() && !parts.iter().all(points_only) {
        return Err(fault(
            "share",
            "a share counts points: of `value`, `ratio`, `difference` or `equal`".into(),
        ));
    }
    Ok(Claim {
        id: file.id.clone(),
        sentence: file.sentence.clone(),
        source: file.source.clone(),
        papers: file.papers.clone().unwrap_or_default(),
        parts,
        share,
        needs: Needs {
            systems: file.needs_systems.clone(),
            network: file.needs_network.clone(),
            never: file.not_applicable.clone(),
        },
    })
}

type At<T> = Result<T, (&'static str, String)>;

fn rule(claim: &ClaimFile, file: &RuleFile, named: &Sides) -> At<Rule> {
    let figure = file.figure.as_ref().or(claim.figure.as_ref());
    let figure = figure.ok_or((
        "sides",
        "a rule needs a `figure`, its own or the claim's".to_owned(),
    ))?;
    check_figure(figure).map_err(|message| ("figure", message))?;
    let judge = judge(file, figure)?;
    let mut filter = cells(&claim.filter);
    filter.extend(cells(&file.filter));
    let sides = |key, list: &[Cells]| -> At<Vec<Side>> {
        list.iter()
            .map(|cells| side(cells, named).map_err(|message| (key, message)))
            .collect()
    };
    let along = file.along.clone().or_else(|| claim.along.clone());
    let verdicts = claim.verdicts.clone().unwrap_or_default();
    if let Some(word) = verdicts
        .iter()
        .find(|word| !VERDICTS.contains(&word.as_str()))
    {
        let near = nearest(word, VERDICTS.into_iter());
        return Err((
            "figure",
            format!("`{word}` is not a verdict{}", did_you_mean(near)),
        ));
    }
    let rule = Rule {
        figure: figure.clone(),
        filter,
        along,
        points: match file.at {
            None | Some(PointsFile::Every) => Points::Every,
            Some(PointsFile::Some) => Points::Some,
            Some(PointsFile::Mean) => Points::Mean,
        },
        sides: sides("sides", &file.sides)?,
        against: sides("against", &file.against)?,
        judge,
        wide: file.wide.unwrap_or(false),
        paired: file.paired.unwrap_or(false),
        verdicts,
    };
    check(file, &rule)?;
    Ok(rule)
}

/// What a judge needs beside itself.
fn check(file: &RuleFile, rule: &Rule) -> At<()> {
    let (of_two, of_axis) = match rule.judge {
        Judge::Ratio(_) | Judge::Difference(_) | Judge::Equal(_) => (true, false),
        Judge::Spread(_) => (true, false),
        Judge::Cross(..) | Judge::Slope { .. } => (true, true),
        Judge::Rises { .. } | Judge::Falls { .. } | Judge::Flat(_) | Judge::Jump(..) => {
            (false, true)
        }
        Judge::Value(_) | Judge::Count { .. } => (false, false),
    };
    let message = if rule.sides.is_empty() {
        "a rule needs `sides`: who is judged"
    } else if of_two && rule.sides.len() < 2 && rule.against.is_empty() {
        "this judge needs two `sides`, or one and `against`"
    } else if of_axis && rule.along.is_none() {
        "this judge needs `along`: the axis of the grid whose values are the points"
    } else if file.at.is_some() && rule.along.is_none() {
        "`at` needs `along`: the axis of the grid whose values are the points"
    } else if file.ends.is_some()
        && !matches!(rule.judge, Judge::Rises { .. } | Judge::Falls { .. })
    {
        "`ends` belongs to `rises` and `falls`"
    } else if rule.figure == "limit"
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

fn judge(file: &RuleFile, figure: &str) -> At<Judge> {
    let unit = |text: &str| quantity(figure, text);
    let plain = |text: &str| number(text);
    let mut found: Vec<(&'static str, Result<Judge, String>)> = Vec::new();
    let mut given = |key, text: &Option<String>, judge: &dyn Fn(&str) -> Result<Judge, String>| {
        found.extend(text.as_deref().map(|text| (key, judge(text))));
    };
    let ends = |usual: Bounds| {
        file.ends
            .as_deref()
            .map_or(Ok(usual), |text| bounds(text, &plain))
    };
    given("value", &file.value, &|text| {
        bounds(text, &unit).map(Judge::Value)
    });
    given("ratio", &file.ratio, &|text| {
        bounds(text, &plain).map(Judge::Ratio)
    });
    given("difference", &file.difference, &|text| {
        bounds(text, &unit).map(Judge::Difference)
    });
    given("equal", &file.equal, &|text| {
        percent(text).map(Judge::Equal)
    });
    given("count", &file.count, &count);
    given("rises", &file.rises, &|text| {
        Ok(Judge::Rises {
            tolerance: percent(text)?,
            ends: ends(Bounds::above(1.0))?,
        })
    });
    given("falls", &file.falls, &|text| {
        Ok(Judge::Falls {
            tolerance: percent(text)?,
            ends: ends(Bounds::below(1.0))?,
        })
    });
    given("flat", &file.flat, &|text| percent(text).map(Judge::Flat));
    given("spread", &file.spread, &|text| {
        bounds(text, &plain).map(Judge::Spread)
    });
    let pair = |[from, to]: &[String; 2]| match (
        pubgauge_claims::rule::quantity(from),
        pubgauge_claims::rule::quantity(to),
    ) {
        (Some(low), Some(high)) if low < high => Ok((from.clone(), to.clone())),
        _ => Err("expected two values of the axis with numbers, the smaller one first".to_owned()),
    };
    found.extend(
        file.cross
            .as_ref()
            .map(|p| ("cross", pair(p).map(|(a, b)| Judge::Cross(a, b)))),
    );
    found.extend(
        file.jump
            .as_ref()
            .map(|p| ("jump", pair(p).map(|(a, b)| Judge::Jump(a, b)))),
    );
    found.extend(file.slope.map(|slope| {
        (
            "slope",
            Ok(Judge::Slope {
                linear: slope == SlopeFile::Linear,
            }),
        )
    }));
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some((key, judge)), None) => judge.map_err(|message| (key, message)),
        (Some((first, _)), Some((second, _))) => {
            Err((second, format!("a rule has one judge, but both `{first}` and `{second}` are given; write two rules")))
        }
        (None, _) => Err((
            "sides",
            "a rule needs a judge: one of `value`, `ratio`, `difference`, `equal`, `count`, `rises`, `falls`, \
             `flat`, `cross`, `jump`, `slope`, `spread`"
                .into(),
        )),
    }
}

fn check_figure(name: &str) -> Result<(), String> {
    for one in name.split('/').map(str::trim) {
        if one == "verdict" {
            return Err(
                "a verdict is no figure of claims; `verdicts` says which trials count".into(),
            );
        }
        if !Figure::is_name(one) && !CLAIM_FIGURES.contains(&one) {
            let names = Figure::names();
            let all = names.iter().map(String::as_str).chain(CLAIM_FIGURES);
            return Err(format!(
                "`{one}` is not a figure{}",
                did_you_mean(nearest(one, all))
            ));
        }
    }
    Ok(())
}

/// Cells with a name: of a filter, the values that tell them apart.
fn side(cells: &Cells, named: &Sides) -> Result<Side, String> {
    let name = match cells {
        Cells::Named(name) => name.clone(),
        Cells::Like(like) => like
            .iter()
            .map(|(key, Values(values))| match key.as_str() {
                "system" | "settings" | "workload" | "flow" => values.join("/"),
                axis => format!("{axis} {}", values.join("/")),
            })
            .collect::<Vec<_>>()
            .join(" "),
        Cells::Any(_) => return Err("several implementations get a name in `[side]`".into()),
    };
    let defined = match cells {
        Cells::Named(name) => named.get(name).unwrap_or(cells),
        cells => cells,
    };
    let alternatives = match defined {
        Cells::Any(several) => several.iter().map(alternative).collect::<Result<_, _>>()?,
        one => vec![alternative(one)?],
    };
    Ok(Side { name, alternatives })
}

fn alternative(one: &Cells) -> Result<Filter, String> {
    match one {
        Cells::Named(system) => Ok(Filter::from([("system".into(), vec![system.clone()])])),
        Cells::Like(like) => Ok(cells(like)),
        Cells::Any(_) => Err("a list of implementations has no lists in it".into()),
    }
}

fn cells(like: &BTreeMap<String, Values>) -> Filter {
    like.iter()
        .map(|(key, Values(values))| (key.clone(), values.clone()))
        .collect()
}

/// `> 1`, `< 1ms` or `1.2..2.1`, by `read` for a number.
fn bounds(text: &str, read: &dyn Fn(&str) -> Result<f64, String>) -> Result<Bounds, String> {
    if let Some(low) = text.strip_prefix('>') {
        return read(low.trim()).map(Bounds::above);
    }
    if let Some(high) = text.strip_prefix('<') {
        return read(high.trim()).map(Bounds::below);
    }
    let Some((low, high)) = text.split_once("..") else {
        return Err(format!(
            "`{text}` is no range; expected one such as \"> 1\", \"< 1.5\" or \"1.2..2.1\""
        ));
    };
    let (low, high) = (read(low.trim())?, read(high.trim())?);
    match low < high {
        true => Ok(Bounds { low, high }),
        false => Err(format!("`{text}` is no range: the smaller end comes first")),
    }
}

fn count(text: &str) -> Result<Judge, String> {
    let wanted = || "expected \"= 0\", \"> 0\" or another whole number".to_owned();
    let whole = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map(f64::from)
            .map_err(|_| wanted())
    };
    let text = text.trim();
    if let Some(number) = text.strip_prefix('=') {
        let number = whole(number)?;
        return Ok(Judge::Count {
            least: number,
            most: Some(number),
        });
    }
    let least = whole(text.strip_prefix('>').ok_or_else(wanted)?)? + 1.0;
    Ok(Judge::Count { least, most: None })
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

/// A share: `5%`, 0 and more.
fn percent(text: &str) -> Result<f64, String> {
    let share = text
        .trim()
        .strip_suffix('%')
        .and_then(|p| p.trim().parse::<f64>().ok());
    let share = share
        .filter(|p| (0.0..1000.0).contains(p))
        .map(|p| p / 100.0);
    share.ok_or_else(|| format!("`{text}` is no percentage; expected one such as \"5%\""))
}

/// A value of a figure, with the figure's unit.
fn quantity(figure: &str, text: &str) -> Result<f64, String> {
    let wrong = |e: crate::units::UnitError| e.to_string();
    let is = |part: &str| figure.contains(part);
    if figure.contains('/') {
        number(text)
    } else if is("latency") || is("round-trip") || is("send-lag") || is("acknowledgement") {
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        let span = text
            .trim_start_matches('-')
            .parse::<Span>()
            .map_err(wrong)?;
        Ok(sign * span.0 as f64)
    } else if is("bytes-rate") {
        number(text)
    } else if is("-rate") {
        match text.parse::<Rate>().map_err(wrong)? {
            Rate::All(per_s) => Ok(per_s),
            _ => Err("expected a rate over all, such as \"10k/s\"".into()),
        }
    } else if is("-memory") {
        text.parse::<Size>()
            .map(|size| size.0 as f64)
            .map_err(wrong)
    } else if is("-share") {
        percent(text)
    } else {
        number(text)
    }
}
