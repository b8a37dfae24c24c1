//! A rule as a sentence.

use pubgauge_quantities::shown::{decimals, number};

use pubgauge_figures::rule::{
    Bounds, CellFilter, Claim, ClaimPart, ClaimRule, Count, Judge, LOSS_FREE, Points, SUSTAINED,
    Steps,
};

/// A number of a claim as the study writes it.
fn exact(value: f64) -> String {
    decimals(value, 6)
}

/// The rule of a claim in words; `show` gives a figure's value its unit.
pub fn rule_sentence(claim: &Claim, show: &dyn Fn(&str, f64) -> String) -> String {
    if let Some(why) = &claim.needs.never {
        return format!("Not judged: {why}.");
    }
    if let Some(why) = &claim.needs.untold {
        return format!("Not told here, whatever is measured: {why}.");
    }
    let parts: Vec<String> = claim.parts.iter().map(|p| part_sentence(p, show)).collect();
    let parts = parts.join("; ");
    let since = claim.not_before.iter();
    let since = since.map(|day| format!(" Trials from {day} on count."));
    let since: String = since.collect();
    let stand_in = claim
        .stand_in
        .iter()
        .map(|what| format!("Of a stand-in: {what}. "));
    let stand_in: String = stand_in.collect();
    match claim.share {
        Some(share) => format!(
            "{stand_in}At more than {} of the points that can be decided: {parts}.{since}",
            percent(share)
        ),
        None => format!("{stand_in}{parts}.{since}"),
    }
}

fn part_sentence(part: &ClaimPart, show: &dyn Fn(&str, f64) -> String) -> String {
    let said = match (&part.rule, &part.group, &part.needs.never) {
        (_, _, Some(why)) => format!("not judged: {why}"),
        _ if part.needs.untold.is_some() => format!(
            "not told here, whatever is measured: {}",
            part.needs.untold.as_deref().unwrap_or_default()
        ),
        (Some(rule), ..) => sentence(rule, show),
        (None, Some(group), None) => {
            let parts: Vec<String> = group.parts.iter().map(|p| part_sentence(p, show)).collect();
            let parts = parts.join("; ");
            match group.least {
                None => format!("all of [{parts}]"),
                Some(least) => format!("at least {least} of [{parts}]"),
            }
        }
        (None, None, None) => "no rule".to_owned(),
    };
    match part.name.as_str() {
        "" => said,
        name => format!("({name}) {said}"),
    }
}

/// The values of a filter: `64B, 1KiB`; of a range `64B to 1KiB`, `up to 1KiB`, `1KiB and more`.
fn listed(values: &[String], with: &str) -> String {
    let one = |value: &String| match value.split_once("..") {
        Some(("", high)) => format!("up to {high}"),
        Some((low, "")) => format!("{low} and more"),
        Some((low, high)) => format!("{low} to {high}"),
        None => value.clone(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(with)
}

fn bounds(bounds: Bounds, show: &dyn Fn(f64) -> String) -> String {
    match (bounds.low.is_finite(), bounds.high.is_finite()) {
        (true, true) => format!("between {} and {}", show(bounds.low), show(bounds.high)),
        (true, false) => format!("above {}", show(bounds.low)),
        (false, true) => format!("below {}", show(bounds.high)),
        (false, false) => "anything".to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", number(100.0 * share))
}

fn names(sides: &[pubgauge_figures::rule::Side], with: &str) -> String {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    names.join(with)
}

fn sentence(rule: &ClaimRule, show: &dyn Fn(&str, f64) -> String) -> String {
    let figure = match &rule.along {
        Some(axis) if rule.figure == SUSTAINED => &format!("largest {axis} sustained"),
        _ => &rule.figure,
    };
    let wide = |b: Bounds| if rule.wide { b.wide() } else { b };
    let unit = |value: f64| {
        if rule.gap {
            exact(value)
        } else {
            show(figure, value)
        }
    };
    let each = |b: Bounds| bounds(b, &unit);
    // Among themselves, or with others.
    let compared = |own: &str, other: &str| {
        if rule.against.is_empty() {
            names(&rule.sides, own)
        } else {
            let against = names(&rule.against, " and ");
            format!("{}{other}{against}", names(&rule.sides, " and "))
        }
    };
    let sides = if rule.gap {
        format!(
            "the largest of {} over the smallest",
            names(&rule.sides, ", ")
        )
    } else {
        compared(" and ", " over ")
    };
    let pairs = if rule.against.is_empty() {
        names(&rule.sides, " over ")
    } else {
        sides.clone()
    };
    let axis = rule.along.as_deref().unwrap_or("the axis");
    let values = rule.along.as_ref().and_then(|axis| rule.filter.get(axis));
    let among = values.map_or(String::new(), |values| {
        format!(" of {}", listed(values, ", "))
    });
    let mean = match rule.judge {
        Judge::Difference(_) => "mean",
        _ if rule.figure == LOSS_FREE => "share",
        _ => "geometric mean",
    };
    let at = match (rule.axis(), rule.points) {
        (None, _) => String::new(),
        (Some(axis), Points::Every) => format!(" at every {axis}{among}"),
        (Some(axis), Points::Some) => format!(" at one {axis} at least{among}"),
        (Some(axis), Points::Mean) => format!(", {mean} over {axis}{among}"),
        (Some(axis), Points::Joint) => {
            format!(", {mean} over {axis}{among}, and no point decided against")
        }
    };
    let along = format!(" along {axis}{among}");
    let ordered = |sign: &str| format!("{figure}: {}{at}", names(&rule.sides, sign));
    let minus = compared(" minus ", " minus ");
    let steps = |word: &str, steps: &Steps| {
        let Steps {
            tolerance,
            ends,
            plain,
        } = *steps;
        let most = if plain {
            unit(tolerance)
        } else {
            percent(tolerance)
        };
        let within = if tolerance > 0.0 {
            format!(", no step decided back by more than {most}")
        } else {
            ", no step decided back".to_owned()
        };
        let ends = if plain {
            each(ends)
        } else {
            bounds(ends, &exact)
        };
        let of = if plain && !rule.against.is_empty() {
            &minus
        } else {
            &sides
        };
        format!("{figure} of {of} {word}{along}{within}, trend from first to last {ends}")
    };
    let chain = rule.against.is_empty() && !rule.wide;
    let said = match &rule.judge {
        Judge::Value(b) => format!("{figure} of {sides} is {}{at}", each(wide(*b))),
        Judge::Ratio(b) if chain && *b == Bounds::above(1.0) => ordered(" > "),
        Judge::Ratio(b) if chain && *b == Bounds::below(1.0) => ordered(" < "),
        Judge::Ratio(b) => {
            let strict = if rule.wide {
                format!(" (the paper's own machine: {})", bounds(*b, &exact))
            } else {
                String::new()
            };
            format!(
                "{figure}: {pairs} is {}{at}{strict}",
                bounds(wide(*b), &exact)
            )
        }
        Judge::Difference(b) => {
            format!("{figure}: {minus} is {}{at}", each(*b))
        }
        Judge::Equal(tolerance) => {
            format!("{figure}: {pairs} is 1 up to {}{at}", percent(*tolerance))
        }
        Judge::Count(wanted) => {
            let wanted = match wanted {
                Count::Exactly(count) => number(*count),
                Count::Above(count) => format!("more than {}", number(*count)),
            };
            format!("{figure} of {sides} is {wanted} in every repeat{at}")
        }
        Judge::Rises(asked) => steps("rises", asked),
        Judge::Falls(asked) => steps("falls", asked),
        Judge::Flat(tolerance) => {
            format!(
                "{figure} of {sides} is flat{along}: trend from first to last within {0}, no point decided further \
                 than {0} from the mean",
                percent(*tolerance)
            )
        }
        Judge::Cross(from, to) => {
            let (first, second) = match &rule.sides[..] {
                [first, second] => (&first.name, &second.name),
                _ => (&sides, &sides),
            };
            let whether = if rule.wide {
                format!("at first and below it at last (the paper: between {from} and {to})")
            } else {
                format!(
                    "up to {from} and below it from {to} on, as geometric means, and no point decided against"
                )
            };
            format!("{figure}: {first} is above {second} {whether}{along}")
        }
        Judge::Jump(from, to) => {
            let place = if rule.wide {
                format!("in one place in every repeat (the paper: between {from} and {to})")
            } else {
                format!("between {from} and {to} in every repeat")
            };
            format!(
                "{figure} of {sides} has its largest step {place}, and it more than doubles{along}"
            )
        }
        Judge::Slope { linear } => {
            let straight = if *linear {
                ", both in a straight line"
            } else {
                ""
            };
            format!(
                "{figure}: {} with {axis}{among}{straight}",
                names(&rule.sides, " rises less than ")
            )
        }
        Judge::Reaches(share) => format!(
            "{figure}: {} reaches {} of its own largest value earlier{along} than {}, in most repeats (exact \
             binomial)",
            rule.sides.first().map_or("", |side| &side.name),
            percent(*share),
            rule.sides.get(1).map_or("", |side| &side.name),
        ),
        Judge::Spread(b) => {
            let over = match &rule.along {
                Some(axis) => format!("from step to step of {axis}{among}"),
                None => "from second to second".to_owned(),
            };
            format!(
                "standard deviation of {figure} {over}: {pairs} is {}",
                bounds(*b, &exact)
            )
        }
    };
    format!("{said}{}", conditions(rule))
}

/// The conditions of a rule: which cells, which trials, how compared.
fn conditions(rule: &ClaimRule) -> String {
    let mut words = Vec::new();
    let filter: &CellFilter = &rule.filter;
    let rest = filter
        .iter()
        .filter(|(key, _)| Some(*key) != rule.along.as_ref());
    words.extend(rest.map(|(key, values)| format!("{key} {}", listed(values, " or "))));
    if !rule.verdicts.is_empty() {
        let verdicts = match &rule.verdicts[..] {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            one => one.concat(),
        };
        words.push(format!("{verdicts} trials"));
    }
    if !rule.leave_out.is_empty() {
        words.push(format!(
            "cells with a trial that is {} left out",
            rule.leave_out.join(" or ")
        ));
    }
    if rule.paired {
        words.push("repeat by repeat".to_owned());
    }
    if rule.margin > 0.0 {
        words.push(format!("within {} a tie", percent(rule.margin)));
    }
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}
