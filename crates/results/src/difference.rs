//! Where two plans differ.

use std::collections::HashSet;

use serde_json::Value;

/// The first place at which two values differ, in words.
pub fn first_difference(at: &str, before: &Value, now: &Value) -> Option<String> {
    match (before, now) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: HashSet<&String> = a.keys().chain(b.keys()).collect();
            let mut keys: Vec<&String> = keys.into_iter().collect();
            keys.sort();
            keys.into_iter().find_map(|key| {
                let at = format!("{at}.{key}");
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => first_difference(&at, x, y),
                    (Some(_), None) => Some(format!("{at} is gone")),
                    _ => Some(format!("{at} is new")),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(i, (x, y))| first_difference(&format!("{at}[{i}]"), x, y)),
        (Value::Array(a), Value::Array(b)) => Some(format!(
            "{at} had {} entries and has {} now",
            a.len(),
            b.len()
        )),
        (x, y) if x == y => None,
        (x, y) => Some(format!("{at} was {x} and is {y} now")),
    }
}
