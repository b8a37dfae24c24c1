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
        Some(axis) if rule.figure == SUSTAINED => format!("largest {axis} sustained"),
        _ => rule.figure.clone(),
    };
    let words = Words { rule, show, figure };
    format!("{}{}", words.judgement(), conditions(rule))
}

/// The words of a rule.
struct Words<'a> {
    rule: &'a ClaimRule,
    show: &'a dyn Fn(&str, f64) -> String,
    figure: String,
}

impl Words<'_> {
    /// The judgement itself, without the rule's conditions.
    fn judgement(&self) -> String {
        let (rule, figure) = (self.rule, &self.figure);
        let wide = |b: Bounds| if rule.wide { b.wide() } else { b };
        match &rule.judge {
            Judge::Value(b) => {
                let wanted = self.bounds(wide(*b));
                format!(
                    "{figure} of {} is {wanted}{}",
                    self.sides_clause(),
                    self.points_clause()
                )
            }
            Judge::Ratio(b) => self.ratio(*b),
            Judge::Difference(b) => {
                let wanted = self.bounds(*b);
                format!(
                    "{figure}: {} is {wanted}{}",
                    self.differences(),
                    self.points_clause()
                )
            }
            Judge::Equal(tolerance) => format!(
                "{figure}: {} is 1 up to {}{}",
                self.pairs(),
                percent(*tolerance),
                self.points_clause()
            ),
            Judge::Count(wanted) => {
                let wanted = match wanted {
                    Count::Exactly(count) => number(*count),
                    Count::Above(count) => format!("more than {}", number(*count)),
                };
                format!(
                    "{figure} of {} is {wanted} in every repeat{}",
                    self.sides_clause(),
                    self.points_clause()
                )
            }
            Judge::Rises(asked) => self.steps("rises", asked),
            Judge::Falls(asked) => self.steps("falls", asked),
            Judge::Flat(tolerance) => format!(
                "{figure} of {} is flat{}: trend from first to last within {2}, no point decided further than {2} from the mean",
                self.sides_clause(),
                self.axis_clause(),
                percent(*tolerance)
            ),
            Judge::Cross(from, to) => self.crossing(from, to),
            Judge::Jump(from, to) => self.jump(from, to),
            Judge::Slope { linear } => self.slope(*linear),
            Judge::Reaches(share) => format!(
                "{figure}: {} reaches {} of its own largest value earlier{} than {}, in most repeats (exact binomial)",
                rule.sides.first().map_or("", |side| &side.name),
                percent(*share),
                self.axis_clause(),
                rule.sides.get(1).map_or("", |side| &side.name),
            ),
            Judge::Spread(b) => {
                let over = match &rule.along {
                    Some(axis) => format!("from step to step of {axis}{}", self.values_clause()),
                    None => "from second to second".to_owned(),
                };
                format!(
                    "standard deviation of {figure} {over}: {} is {}",
                    self.pairs(),
                    bounds(*b, &exact)
                )
            }
        }
    }

    /// A value of the figure, or of a gap between sides, which has no unit.
    fn value(&self, value: f64) -> String {
        if self.rule.gap {
            exact(value)
        } else {
            (self.show)(&self.figure, value)
        }
    }

    fn bounds(&self, b: Bounds) -> String {
        bounds(b, &|value| self.value(value))
    }

    /// The sides, compared among themselves, or with others.
    fn compared(&self, among_themselves: &str, with_others: &str) -> String {
        let rule = self.rule;
        if rule.against.is_empty() {
            names(&rule.sides, among_themselves)
        } else {
            let against = names(&rule.against, " and ");
            format!("{}{with_others}{against}", names(&rule.sides, " and "))
        }
    }

    fn sides_clause(&self) -> String {
        if self.rule.gap {
            format!(
                "the largest of {} over the smallest",
                names(&self.rule.sides, ", ")
            )
        } else {
            self.compared(" and ", " over ")
        }
    }

    fn pairs(&self) -> String {
        if self.rule.against.is_empty() {
            names(&self.rule.sides, " over ")
        } else {
            self.sides_clause()
        }
    }

    fn differences(&self) -> String {
        self.compared(" minus ", " minus ")
    }

    fn axis(&self) -> &str {
        self.rule.along.as_deref().unwrap_or("the axis")
    }

    /// The values of the axis that count, where not all do.
    fn values_clause(&self) -> String {
        let rule = self.rule;
        let values = rule.along.as_ref().and_then(|axis| rule.filter.get(axis));
        values.map_or(String::new(), |values| {
            format!(" of {}", listed(values, ", "))
        })
    }

    fn axis_clause(&self) -> String {
        format!(" along {}{}", self.axis(), self.values_clause())
    }

    /// At which points of the axis.
    fn points_clause(&self) -> String {
        let rule = self.rule;
        let mean = match rule.judge {
            Judge::Difference(_) => "mean",
            _ if rule.figure == LOSS_FREE => "share",
            _ => "geometric mean",
        };
        let Some(axis) = rule.axis() else {
            return String::new();
        };
        let among = self.values_clause();
        match rule.points {
            Points::Every => format!(" at every {axis}{among}"),
            Points::Some => format!(" at one {axis} at least{among}"),
            Points::Mean => format!(", {mean} over {axis}{among}"),
            Points::Joint => {
                format!(", {mean} over {axis}{among}, and no point decided against")
            }
        }
    }

    /// How the figure rises or falls.
    fn steps(&self, word: &str, steps: &Steps) -> String {
        let Steps {
            tolerance,
            ends,
            plain,
        } = *steps;
        let most = if plain {
            self.value(tolerance)
        } else {
            percent(tolerance)
        };
        let within = if tolerance > 0.0 {
            format!(", no step decided back by more than {most}")
        } else {
            ", no step decided back".to_owned()
        };
        let ends = if plain {
            self.bounds(ends)
        } else {
            bounds(ends, &exact)
        };
        let sides = if plain && !self.rule.against.is_empty() {
            self.differences()
        } else {
            self.sides_clause()
        };
        format!(
            "{} of {sides} {word}{}{within}, trend from first to last {ends}",
            self.figure,
            self.axis_clause()
        )
    }

    fn ratio(&self, b: Bounds) -> String {
        let (rule, figure) = (self.rule, &self.figure);
        let ordered = |sign: &str| {
            format!(
                "{figure}: {}{}",
                names(&rule.sides, sign),
                self.points_clause()
            )
        };
        if rule.against.is_empty() && !rule.wide {
            if b == Bounds::above(1.0) {
                return ordered(" > ");
            }
            if b == Bounds::below(1.0) {
                return ordered(" < ");
            }
        }
        let (wanted, strict) = if rule.wide {
            let strict = format!(" (the paper's own machine: {})", bounds(b, &exact));
            (b.wide(), strict)
        } else {
            (b, String::new())
        };
        format!(
            "{figure}: {} is {}{}{strict}",
            self.pairs(),
            bounds(wanted, &exact),
            self.points_clause()
        )
    }

    fn crossing(&self, from: &str, to: &str) -> String {
        let (first, second) = match &self.rule.sides[..] {
            [first, second] => (first.name.clone(), second.name.clone()),
            _ => (self.sides_clause(), self.sides_clause()),
        };
        let whether = if self.rule.wide {
            format!("at first and below it at last (the paper: between {from} and {to})")
        } else {
            format!(
                "up to {from} and below it from {to} on, as geometric means, and no point decided against"
            )
        };
        let figure = &self.figure;
        format!(
            "{figure}: {first} is above {second} {whether}{}",
            self.axis_clause()
        )
    }

    fn slope(&self, linear: bool) -> String {
        let straight = if linear {
            ", both in a straight line"
        } else {
            ""
        };
        format!(
            "{}: {} with {}{}{straight}",
            self.figure,
            names(&self.rule.sides, " rises less than "),
            self.axis(),
            self.values_clause()
        )
    }

    fn jump(&self, from: &str, to: &str) -> String {
        let place = if self.rule.wide {
            format!("in one place in every repeat (the paper: between {from} and {to})")
        } else {
            format!("between {from} and {to} in every repeat")
        };
        format!(
            "{} of {} has its largest step {place}, and it more than doubles{}",
            self.figure,
            self.sides_clause(),
            self.axis_clause()
        )
    }
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
    if let Some(blocks) = rule.blocks {
        words.push(format!("each measurement in {blocks} blocks"));
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
