//! Criteria that the command line adds to a study: `--require 'p99 < 10ms'`.

use std::ops::Range;

use pubgauge_figures::figure::Figure;
use pubgauge_strict_toml::{Entry, InvalidInput, Node, TomlValue};

use crate::study::Study;
use crate::window;

/// The comparisons, and the keys of `[[criterion]]` that they stand for. Longer signs come first.
const COMPARISONS: [(&str, &str); 6] = [
    ("<=", "at-most"),
    (">=", "at-least"),
    ("==", "equals"),
    ("<", "below"),
    (">", "above"),
    ("=", "equals"),
];

/// Short names of figures, as people type them.
const SHORT_NAMES: [(&str, &str); 5] = [
    ("loss", "loss-share"),
    ("throughput", "delivered-rate"),
    ("rate", "delivered-rate"),
    ("memory", "system-memory"),
    ("cpu", "system-cpu-per-message"),
];

impl Study {
    /// Adds a criterion, as `--require` asks: `p99 < 10ms`, `lost = 0`, `delivered-rate >= 10k/s`. A percentile
    /// alone is one of `latency`.
    ///
    /// # Errors
    /// When it is not FIGURE, comparison and bound. Whether there is such a figure and the bound has its unit is
    /// checked by [`Study::plan`], in messages that name the flag.
    pub fn require(&mut self, criterion: &str) -> Result<(), InvalidInput> {
        let flag = format!("--require '{criterion}'");
        let wrong = |message: &str| {
            let hint = "for example --require 'p99 < 10ms', --require 'lost = 0'";
            InvalidInput::plain(&flag, message, Some(hint))
        };
        let found = COMPARISONS.iter().filter_map(|(sign, key)| {
            let at = criterion.find(sign)?;
            Some((at, *sign, *key))
        });
        // Of `<=` and `<` at one place the longer one is meant, which stands first.
        let Some((at, sign, key)) = found.min_by_key(|(at, ..)| *at) else {
            return Err(wrong("expected a figure, one of < <= > >= = and a bound"));
        };
        let figure = criterion[..at].trim();
        let bound = criterion[at + sign.len()..].trim();
        if figure.is_empty() || bound.is_empty() {
            return Err(wrong(
                "expected a figure before the sign and a bound after it",
            ));
        }
        let start = self.sources.add(&flag, criterion, true);
        let span = start..start + criterion.len();
        let entries = vec![
            Entry::at_span(&span, "figure", TomlValue::Text(full_name(figure))),
            Entry::at_span(&span, key, plain_value(bound)),
        ];
        self.push("criterion", span, TomlValue::Table(entries));
        Ok(())
    }

    /// Adds an element to a list at the top of the study.
    fn push(&mut self, list: &str, span: Range<usize>, value: TomlValue) {
        let element = Node::at_span(&span, value);
        if let Some(elements) = self.tree.list_mut(list) {
            elements.push(element);
        } else if let TomlValue::Table(entries) = &mut self.tree.value {
            entries.push(Entry::at_span(&span, list, TomlValue::List(vec![element])));
        }
    }
}

/// The name of a figure in studies: `latency.p99` for `p99`, `latency.p99@storm` for `p99@storm`.
fn full_name(typed: &str) -> String {
    let (name, window) = window::split(typed);
    let short = SHORT_NAMES.iter().find(|(short, _)| *short == name);
    let of_latency = format!("latency.{name}");
    let full = match short {
        _ if Figure::named(name).is_some() => name,
        Some((_, full)) => full,
        None if Figure::named(&of_latency).is_some() => &of_latency,
        None => name,
    };
    match window {
        Some(window) => format!("{full}@{window}"),
        None => full.to_owned(),
    }
}

/// A number where it is one, else a text with its unit, with or without quotes.
fn plain_value(bound: &str) -> TomlValue {
    if let Ok(count) = bound.parse() {
        return TomlValue::Integer(count);
    }
    match bound.parse::<f64>() {
        Ok(number) if number.is_finite() => TomlValue::Float(number),
        _ => TomlValue::Text(bound.trim_matches(['"', '\'']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanOptions;

    /// The criteria of the first look with these, in words and by their recorded figures, or the error.
    fn required(criteria: &[&str]) -> Result<Vec<(String, String)>, String> {
        let mut study = Study::first_look();
        for criterion in criteria {
            study
                .require(criterion)
                .map_err(|error| error.to_string())?;
        }
        let options = PlanOptions {
            on: vec!["mosquitto".into()],
            ..PlanOptions::with_systems(["mosquitto"])
        };
        let plan = study.plan(&options).map_err(|error| error.to_string())?;
        let specs = plan.criteria.into_iter();
        Ok(specs.map(|spec| (spec.text, spec.figure)).collect())
    }

    #[test]
    fn each_requirement_is_a_criterion_of_the_plan() {
        let all = required(&[
            "p99<10ms",
            "lost = 0",
            "p99.9 <= 1s",
            "throughput >= 1k/s",
            "verdict = valid",
            "loss <= 0.1%",
        ]);
        let shown: Vec<String> = all.unwrap().into_iter().map(|(text, _)| text).collect();
        let expected = [
            "latency.p99 below 10ms",
            "lost equals 0",
            "latency.p99.9 at most 1s",
            "delivered-rate at least 1k/s",
            "verdict equals valid",
            "loss-share at most 0.1%",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_wrong_requirement_names_the_flag_and_a_way_out() {
        for (typed, said) in [
            ("p99 10ms", "expected a figure, one of"),
            ("< 10ms", "a figure before the sign"),
            ("p99 <", "a bound after it"),
            ("p98 < 10ms", "`p98` is not a figure"),
            ("p99 < 10", "expected"),
            ("p99 < 10 parsecs", "10 parsecs"),
        ] {
            let error = required(&[typed]).expect_err(typed);
            assert!(error.contains("--require"), "{error}");
            assert!(error.contains(said), "{typed}: {error}");
        }
    }
}
