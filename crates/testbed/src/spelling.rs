//! The nearest right spelling of a wrong name.

/// The hint for a wrong name: the nearest known one, else all of them.
pub(crate) fn spelling_hint(wrong: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3);
    match (nearest, known) {
        (Some((_, name)), _) => format!("did you mean `{name}`?"),
        (None, []) => "there is nothing to choose from".to_owned(),
        (None, _) => format!("there are: {}", known.join(", ")),
    }
}
