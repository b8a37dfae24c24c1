//! The implementations of a claim's sides.

use std::collections::BTreeMap;

use pubgauge_figures::rule::{CellFilter, Claim, ClaimPart, ClaimRule, Side};

/// The number of the alternative of each side.
pub(crate) type Choice = BTreeMap<String, usize>;

fn candidate_sides(claim: &Claim) -> impl Iterator<Item = &Side> {
    let rules = claim.parts.iter().flat_map(ClaimPart::rules);
    rules.flat_map(|rule| rule.sides.iter().chain(&rule.against))
}

pub(crate) fn combinations(claim: &Claim) -> Vec<Choice> {
    let several: BTreeMap<&str, usize> = candidate_sides(claim)
        .filter(|side| side.alternatives.len() > 1)
        .map(|side| (side.chosen_by(), side.alternatives.len()))
        .collect();
    several
        .into_iter()
        .fold(vec![Choice::new()], |choices, (name, count)| {
            let with = |choice: &Choice, nth| {
                let mut choice = choice.clone();
                choice.insert(name.to_owned(), nth);
                choice
            };
            choices
                .iter()
                .flat_map(|choice| (0..count).map(move |nth| with(choice, nth)))
                .collect()
        })
}

pub(super) fn choice_name(claim: &Claim, choice: &Choice) -> String {
    let names = choice
        .iter()
        .map(|(name, nth)| chosen_name(claim, name, *nth));
    names.collect::<Vec<_>>().join(" + ")
}

/// An alternative, named by what distinguishes it from the others of its side.
fn chosen_name(claim: &Claim, name: &str, nth: usize) -> String {
    let Some(side) = candidate_sides(claim).find(|s| s.chosen_by() == name) else {
        return name.to_owned();
    };
    let differs = |key: &String| {
        let mut values = side.alternatives.iter().map(|filter| filter.get(key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let words = side.alternatives.get(nth).map(|filter| {
        let told = filter.iter().filter(|(key, _)| differs(key));
        let told: Vec<String> = told.map(|(_, values)| values.join("/")).collect();
        told.join(" ")
    });
    words.unwrap_or_else(|| name.to_owned())
}

/// The cells of all rules of parts; of one choice among implementations, if it is given.
pub(crate) fn filters_of(parts: &[ClaimPart], choice: Option<&Choice>) -> Vec<CellFilter> {
    let rules = parts.iter().flat_map(ClaimPart::rules);
    let of_side = |rule: &ClaimRule, side: &Side| {
        let nth = choice.and_then(|choice| choice.get(side.chosen_by()).copied());
        let mut own = side.alternatives.iter().enumerate().collect::<Vec<_>>();
        own.retain(|(at, _)| nth.is_none_or(|nth| nth == *at));
        own.into_iter()
            .map(|(_, own)| rule.cells(own))
            .collect::<Vec<_>>()
    };
    let of_rule = |rule: &ClaimRule| {
        let sides = rule.sides.iter().chain(&rule.against);
        sides
            .flat_map(|side| of_side(rule, side))
            .collect::<Vec<_>>()
    };
    rules.flat_map(of_rule).collect()
}
