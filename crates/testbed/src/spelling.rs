//! The nearest right spelling of a wrong name.

use std::fmt::Display;

/// The hint for a wrong name: the nearest known one, else all of them.
pub(crate) fn spelling_hint(wrong: &str, known: impl IntoIterator<Item = impl Display>) -> String {
    let known: Vec<String> = known.into_iter().map(|name| name.to_string()).collect();
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3);
    match nearest {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there is nothing to choose from".to_owned(),
        None => format!("there are: {}", known.join(", ")),
    }
}
