//! Groups as MQTT writes them into filters: `$share/GROUP/FILTER`.

/// How a study says that subscribers share, in its own words.
pub(super) const HINT: &str = "subscribers that share are written pattern = \"shared\", groups = 1, and `subscribe` has the filters without a \
                               group; filters of several groups are flows of their own";

const PREFIX: &str = "$share/";

/// The group that the filters of a subscriber name, if they do, and the filters without it. The error says why they are none
/// that one subscriber can have.
pub(super) fn taken_apart(filters: Vec<String>) -> Result<(Option<String>, Vec<String>), String> {
    if !filters.iter().any(|filter| names_group(filter)) {
        return Ok((None, filters));
    }
    let mut group: Option<String> = None;
    let mut plain = Vec::with_capacity(filters.len());
    for filter in &filters {
        let parts = filter
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('/'));
        let Some((named, rest)) = parts else {
            return Err(if names_group(filter) {
                format!("`{filter}` is no filter of a group; expected `$share/GROUP/FILTER`")
            } else {
                format!("`{filter}` is not shared and another filter of the same subscribers is")
            });
        };
        if named.is_empty() || named.contains(['+', '#']) || rest.is_empty() {
            return Err(format!(
                "`{filter}` is no filter of a group; expected `$share/GROUP/FILTER`, with a name that has neither `+` nor `#`"
            ));
        }
        if group.as_ref().is_some_and(|group| group != named) {
            return Err(format!(
                "`{filter}` is of another group than the filter before it, and a subscriber is in one"
            ));
        }
        group = Some(named.to_owned());
        plain.push(rest.to_owned());
    }
    Ok((group, plain))
}

/// Whether a filter is meant for a group. `$queue` is what EMQX had before `$share`.
fn names_group(filter: &str) -> bool {
    ["$share", "$queue"].contains(&filter.split('/').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(filters: &[&str]) -> Result<(Option<String>, Vec<String>), String> {
        taken_apart(filters.iter().map(|filter| (*filter).to_owned()).collect())
    }

    #[test]
    fn groups_of_filters() {
        let plain = |filters: &[&str]| filters.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
        assert_eq!(apart(&["a/#"]), Ok((None, plain(&["a/#"]))));
        assert_eq!(
            apart(&["$share/g/a/#"]),
            Ok((Some("g".into()), plain(&["a/#"])))
        );
        assert_eq!(
            apart(&["$share/g/a", "$share/g/+/b"]),
            Ok((Some("g".into()), plain(&["a", "+/b"])))
        );
        for (filters, says) in [
            (&["$share/g/a", "b"][..], "`b` is not shared"),
            (&["$share/g/a", "$share/h/b"], "of another group"),
            (&["$share/g"], "expected `$share/GROUP/FILTER`"),
            (&["$share/g/"], "expected `$share/GROUP/FILTER`"),
            (&["$share//a"], "expected `$share/GROUP/FILTER`"),
            (&["$share/+/a"], "expected `$share/GROUP/FILTER`"),
            (&["$queue/a"], "expected `$share/GROUP/FILTER`"),
        ] {
            let said = apart(filters).expect_err("refused");
            assert!(said.contains(says), "{filters:?}: {said}");
        }
    }
}
