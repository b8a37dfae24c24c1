//! The nearest right spelling of a wrong name.

use std::fmt::Display;

use pubgauge_quantities::spelling::nearest;

/// The hint for a wrong name: the nearest known one, else all of them.
pub(crate) fn spelling_hint(wrong: &str, known: impl IntoIterator<Item = impl Display>) -> String {
    let known: Vec<String> = known.into_iter().map(|name| name.to_string()).collect();
    match nearest(wrong, known.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there is nothing to choose from".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    }
}
