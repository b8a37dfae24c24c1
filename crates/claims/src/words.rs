//! A rule as a sentence.

use crate::rule::{Bounds, Claim, Filter, Judge, Points, Rule};

/// A number with three significant digits; whole ones in full.
pub fn digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let places = 2 - value.abs().log10().floor() as i32;
    match places {
        ..=0 => format!("{value:.0}"),
        places if places > 6 => format!("{value:.1e}"),
        places => {
            let text = format!("{value:.*}", places as usize);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// A number of a claim as the study writes it.
fn exact(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The rule of a claim in words; `show` gives a figure's value its unit.
pub fn words(claim: &Claim, show: &dyn Fn(&str, f64) -> String) -> String {
    if let Some(why) = &claim.needs.never {
        return format!("Not judged: {why}.");
    }
    let parts: Vec<String> = claim
        .parts
        .iter()
        .map(|part| {
            let said = match (&part.rule, &part.needs.never) {
                (_, Some(why)) => format!("not judged: {why}"),
                (Some(rule), None) => sentence(rule, show),
                (None, None) => "no rule".to_owned(),
            };
            match part.name.as_str() {
                "" => said,
                name => format!("({name}) {said}"),
            }
        })
        .collect();
    let parts = parts.join("; ");
    match claim.share {
        Some(share) => format!(
            "At more than {} % of the points that can be decided: {parts}.",
            digits(100.0 * share)
        ),
        None => format!("{parts}."),
    }
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
    format!("{} %", digits(100.0 * share))
}

fn names(sides: &[crate::rule::Side], with: &str) -> String {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    names.join(with)
}

fn sentence(rule: &Rule, show: &dyn Fn(&str, f64) -> String) -> String {
    let figure = &rule.figure;
    let wide = |b: Bounds| if rule.wide { b.wide() } else { b };
    let unit = |value: f64| show(figure, value);
    let each = |b: Bounds| bounds(b, &unit);
    let sides = match rule.against.is_empty() {
        true => names(&rule.sides, " and "),
        false => format!(
            "{} over {}",
            names(&rule.sides, " and "),
            names(&rule.against, " and ")
        ),
    };
    let pairs = match rule.against.is_empty() {
        true => names(&rule.sides, " over "),
        false => sides.clone(),
    };
    let axis = rule.along.as_deref().unwrap_or("the axis");
    let values = rule.along.as_ref().and_then(|axis| rule.filter.get(axis));
    let among = values.map_or(String::new(), |values| format!(" of {}", values.join(", ")));
    let at = match (&rule.along, rule.points) {
        (None, _) => String::new(),
        (Some(axis), Points::Every) => format!(" at every {axis}{among}"),
        (Some(axis), Points::Some) => format!(" at one {axis} at least{among}"),
        (Some(axis), Points::Mean) => format!(", geometric mean over {axis}{among}"),
    };
    let along = format!(" along {axis}{among}");
    let ordered = |sign: &str| format!("{figure}: {}{at}", names(&rule.sides, sign));
    let steps = |word: &str, tolerance: f64, ends: Bounds| {
        let within = match tolerance > 0.0 {
            true => format!(", no step back by more than {}", percent(tolerance)),
            false => ", each step clearly".to_owned(),
        };
        let ends = bounds(ends, &exact);
        format!("{figure} of {sides} {word}{along}{within}, last over first {ends}")
    };
    let chain = rule.against.is_empty() && !rule.wide;
    let said = match &rule.judge {
        Judge::Value(b) => format!("{figure} of {sides} is {}{at}", each(wide(*b))),
        Judge::Ratio(b) if chain && *b == Bounds::above(1.0) => ordered(" > "),
        Judge::Ratio(b) if chain && *b == Bounds::below(1.0) => ordered(" < "),
        Judge::Ratio(b) => {
            let strict = match rule.wide {
                true => format!(" (the paper's own machine: {})", bounds(*b, &exact)),
                false => String::new(),
            };
            format!(
                "{figure}: {pairs} is {}{at}{strict}",
                bounds(wide(*b), &exact)
            )
        }
        Judge::Difference(b) => {
            let minus = match rule.against.is_empty() {
                true => names(&rule.sides, " minus "),
                false => format!(
                    "{} minus {}",
                    names(&rule.sides, " and "),
                    names(&rule.against, " and ")
                ),
            };
            format!("{figure}: {minus} is {}{at}", each(*b))
        }
        Judge::Equal(tolerance) => {
            format!("{figure}: {pairs} is 1 up to {}{at}", percent(*tolerance))
        }
        Judge::Count { least, most } => {
            let wanted = match most {
                Some(most) if most == least => digits(*least),
                Some(most) => format!("{} to {}", digits(*least), digits(*most)),
                None => format!("{} or more", digits(*least)),
            };
            format!("{figure} of {sides} is {wanted} in every repeat{at}")
        }
        Judge::Rises { tolerance, ends } => steps("rises", *tolerance, *ends),
        Judge::Falls { tolerance, ends } => steps("falls", *tolerance, *ends),
        Judge::Flat(tolerance) => {
            format!(
                "{figure} of {sides} is within {} of its mean{along}",
                percent(*tolerance)
            )
        }
        Judge::Cross(from, to) => {
            let (first, second) = match &rule.sides[..] {
                [first, second] => (&first.name, &second.name),
                _ => (&sides, &sides),
            };
            let whether = match rule.wide {
                true => {
                    format!("at first and below it at last (the paper: between {from} and {to})")
                }
                false => format!("up to {from} and below it from {to} on"),
            };
            format!("{figure}: {first} is above {second} {whether}{along}")
        }
        Judge::Jump(from, to) => {
            let place = match rule.wide {
                true => {
                    format!("in one place in every repeat (the paper: between {from} and {to})")
                }
                false => format!("between {from} and {to} in every repeat"),
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

/// Which cells, which trials, how compared.
fn conditions(rule: &Rule) -> String {
    let mut words = Vec::new();
    let filter: &Filter = &rule.filter;
    let rest = filter
        .iter()
        .filter(|(key, _)| Some(*key) != rule.along.as_ref());
    words.extend(rest.map(|(key, values)| format!("{key} {}", values.join(" or "))));
    if !rule.verdicts.is_empty() {
        words.push(format!("{} trials", rule.verdicts.join(" and ")));
    }
    if rule.paired {
        words.push("repeat by repeat".to_owned());
    }
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}
