//! Finding a count in an answer: JSON, or metrics in Prometheus's text format.

use std::collections::BTreeMap;

use crate::file::Counter;

/// Both counts of one moment; `None` where there is none.
pub(super) type Pair<T> = [Option<T>; 2];

/// The greatest whole number below which a floating-point number has no gaps.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The count in the body of an answer.
pub(super) fn count(body: &str, counter: &Counter) -> Result<u64, String> {
    match (&counter.json, &counter.metric) {
        (Some(pointer), _) => in_json(body, pointer),
        (_, Some(metric)) => in_metrics(body, metric, &counter.labels),
        _ => Err("the file does not say where the count stands".into()),
    }
}

fn in_json(body: &str, pointer: &str) -> Result<u64, String> {
    let answer: serde_json::Value =
        serde_json::from_str(body).map_err(|error| format!("the answer is not JSON: {error}"))?;
    let value = (answer.pointer(pointer)).ok_or_else(|| format!("the answer has no {pointer}"))?;
    (value
        .as_u64()
        .or_else(|| value.as_f64().and_then(whole_number)))
    .ok_or_else(|| format!("{pointer} is {value}, not a count"))
}

/// The sum over all time series of a metric that have these labels, in the text format 0.0.4 of
/// Prometheus.
fn in_metrics(body: &str, metric: &str, labels: &BTreeMap<String, String>) -> Result<u64, String> {
    let mut sum = None;
    for line in body.lines() {
        let Some(rest) = line.trim_start().strip_prefix(metric) else {
            continue;
        };
        let malformed = || format!("the metric {metric} has a line that is none: {line}");
        let (own, rest) = match rest.chars().next() {
            Some('{') => read_labels(&rest[1..]).ok_or_else(malformed)?,
            Some(' ' | '\t') => (BTreeMap::new(), rest),
            // The name of another metric, which begins alike.
            _ => continue,
        };
        if labels
            .iter()
            .any(|(name, value)| own.get(name) != Some(value))
        {
            continue;
        }
        let value = rest.split_ascii_whitespace().next().ok_or_else(malformed)?;
        let value = value
            .parse()
            .ok()
            .and_then(whole_number)
            .ok_or_else(malformed)?;
        sum = Some(sum.unwrap_or(0_u64).saturating_add(value));
    }
    sum.ok_or_else(|| {
        if labels.is_empty() {
            format!("the answer has no metric {metric}")
        } else {
            format!("the answer has no metric {metric} with the labels {labels:?}")
        }
    })
}

/// The labels up to the closing brace, and what follows it.
fn read_labels(mut text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        text = text.trim_start_matches([' ', '\t', ',']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let mut value = String::new();
        let mut chars = rest.trim_start().strip_prefix('"')?.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => match chars.next()? {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                other => value.push(other),
            }
        }
        labels.insert(name.trim().to_owned(), value);
        text = chars.as_str();
    }
}

fn whole_number(value: f64) -> Option<u64> {
    ((0.0..MAX_EXACT).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

/// Whether this can be the name of a metric.
pub(crate) fn is_metric_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
    !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() && name.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const METRICS: &str = r#"# TYPE messages_total counter
# HELP messages_total Messages {all}
messages_total{protocol="amqp091"} 40
messages_total{protocol="mqtt\"\\\n", node="a b",} 2 1795303253818
 messages_total 0
messages_total_more{protocol="amqp091"} 1000
messages_totals 1000
big_total 1.23456789e+08
broken_total NaN
broken_too{a="} 3
broken_three{a="b"}
"#;

    fn labels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect()
    }

    #[test]
    fn time_series_are_chosen_and_added_up() {
        for (metric, own, expected) in [
            ("messages_total", &[][..], 42),
            ("messages_total", &[("protocol", "amqp091")][..], 40),
            ("messages_total", &[("protocol", "mqtt\"\\\n")][..], 2),
            ("messages_total", &[("node", "a b")][..], 2),
            ("messages_totals", &[][..], 1000),
            ("big_total", &[][..], 123_456_789),
        ] {
            assert_eq!(
                in_metrics(METRICS, metric, &labels(own)),
                Ok(expected),
                "{metric} {own:?}"
            );
        }
        for (metric, own) in [
            ("messages", &[][..]),
            ("messages_total", &[("protocol", "amqp")][..]),
            ("broken_total", &[][..]),
            ("broken_too", &[][..]),
            ("broken_three", &[][..]),
        ] {
            assert!(
                in_metrics(METRICS, metric, &labels(own)).is_err(),
                "{metric} {own:?}"
            );
        }
    }

    #[test]
    fn a_pointer_finds_a_count_in_json() {
        let body = r#"{"in_msgs": 18446744073709551615, "a": [{"b/c": 3.0}], "x": -1, "y": 1.5}"#;
        assert_eq!(in_json(body, "/in_msgs"), Ok(u64::MAX));
        assert_eq!(in_json(body, "/a/0/b~1c"), Ok(3));
        for wrong in ["/x", "/y", "/a", "/z", "/a/1"] {
            assert!(in_json(body, wrong).is_err(), "{wrong}");
        }
        assert!(in_json("{", "/a").is_err());
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(noise in "[a-z{}=\", \\\\\n0-9.#]{0,60}") {
            let _ = in_metrics(&noise, "a", &labels(&[("b", "c")]));
            let _ = in_json(&noise, "/a/0");
        }

        #[test]
        fn what_is_written_is_read(value in 0..1_u64 << 53, label in "[a-z \\\\\"\n{}=,]{0,9}") {
            let escaped = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let line = format!("m{{l=\"{escaped}\"}} {value}\nm{{l=\"{escaped}!\"}} 1\n");
            prop_assert_eq!(in_metrics(&line, "m", &labels(&[("l", &label)])), Ok(value));
        }
    }
}
