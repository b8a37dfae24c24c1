//! The name that was meant by a wrong one.

/// The name most similar to `wrong`, if any is similar.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    names
        .map(|name| {
            (
                strsim::damerau_levenshtein(&wrong, &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, name)| *distance <= name.len().max(wrong.len()).div_ceil(3))
        .min()
        .map(|(_, name)| name)
}

/// For the end of a message: that this name may have been meant.
pub(crate) fn suggestion(name: Option<&str>) -> String {
    name.map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}

/// For the end of a message about `wrong`: the name most similar to it, if any is similar.
pub fn did_you_mean<'a, S: AsRef<str> + ?Sized + 'a>(
    wrong: &str,
    names: impl IntoIterator<Item = &'a S>,
) -> String {
    suggestion(nearest(wrong, names.into_iter().map(S::as_ref)))
}
