//! Topic filters, checked.

use pubgauge_mqtt_codec::topic;

use super::faults::Faults;
use super::file::CollectFile;

pub(super) fn filters(written: &CollectFile, faults: &mut Faults) -> Vec<String> {
    if written.topics.is_empty() {
        faults.add(
            &["topics"],
            "at least one topic filter is needed",
            Some("\"#\" stands for all topics"),
        );
    }
    let group = written.group.as_deref();
    if let Some(group) =
        group.filter(|group| group.is_empty() || group.contains(['/', '+', '#', '\0']))
    {
        let hint = "a group's name has no `/`, `+` and `#`";
        faults.add(
            &["group"],
            format!("`{group}` cannot be a group's name"),
            Some(hint),
        );
    }
    let mut filters: Vec<String> = Vec::new();
    for (nth, topic) in written.topics.iter().enumerate() {
        let at = nth.to_string();
        if let Err(error) = topic::check_filter(topic) {
            let hint =
                "`+` stands for one level, `#` for all that follow, both only as whole levels";
            faults.add(
                &["topics", &at],
                format!("`{topic}` is no topic filter: {}", error.what),
                Some(hint),
            );
        } else if group.is_some() && topic.starts_with('$') {
            let message = format!("`{topic}` cannot be shared by a group as well");
            faults.add(
                &["topics", &at],
                message,
                Some("leave out `group`, or what begins with `$`"),
            );
        }
        let filter = match group {
            Some(group) => format!("$share/{group}/{topic}"),
            None => topic.clone(),
        };
        if filters.contains(&filter) {
            faults.add(&["topics", &at], format!("`{topic}` is given twice"), None);
        }
        filters.push(filter);
    }
    filters
}
