//! Columns for what payloads say, checked.

use pubgauge_mqtt_codec::topic::check_filter;

use super::faults::Faults;
use super::file::{CollectFile, ColumnFile, ColumnType, PayloadForm};
use crate::columns::{Column, Columns, Form, Source};
use crate::files::OWN_COLUMNS;

pub(super) fn check_columns(written: &CollectFile, faults: &mut Faults) -> Columns {
    let Some(payload) = &written.payload else {
        return Columns::default();
    };
    let form = match payload.form.unwrap_or_default() {
        PayloadForm::Raw => None,
        PayloadForm::Json => Some(Form::Json),
        PayloadForm::Cbor => Some(Form::Cbor),
        PayloadForm::SenmlJson => Some(Form::SenmlJson),
        PayloadForm::SenmlCbor => Some(Form::SenmlCbor),
    };
    let hint = Some("say what payloads are: form = \"json\"");
    if form.is_none() && payload.keep.is_some() {
        faults.add(&["payload", "keep"], "raw payloads are always kept", hint);
    }
    if form.is_none()
        && payload
            .columns
            .iter()
            .any(|column| column.topic_level.is_none())
    {
        let what = "columns of raw payloads are levels of their topics (`topic-level`)";
        faults.add(&["payload"], what, hint);
    }
    if form.is_some() && payload.columns.is_empty() {
        faults.add(
            &["payload"],
            "at least one column is needed",
            Some("columns = [{ name = \"watts\", type = \"double\" }]"),
        );
    }
    let mut columns: Vec<Column> = Vec::new();
    for (nth, column) in payload.columns.iter().enumerate() {
        let at = nth.to_string();
        if let Err((what, hint)) = name(&column.name, &columns) {
            faults.add(&["payload", "columns", &at, "name"], what, Some(hint));
        }
        if column.unit.is_some() && column.of != ColumnType::Timestamp {
            faults.add(
                &["payload", "columns", &at, "unit"],
                "only timestamps have a unit",
                None,
            );
        }
        if let Some(topics) = &column.topics
            && let Err(why) = filter(topics)
        {
            faults.add(&["payload", "columns", &at, "topics"], why, None);
        }
        match source(column, form) {
            Ok(source) => columns.push(Column {
                name: column.name.clone(),
                source,
                of: column.of,
                unit: column.unit.unwrap_or_default(),
                topics: column.topics.clone(),
            }),
            Err((key, what, hint)) => {
                faults.add(&["payload", "columns", &at, key], what, Some(hint));
            }
        }
    }
    Columns {
        form,
        keep_raw: form.is_none() || payload.keep.unwrap_or(true),
        columns,
    }
}

fn name(name: &str, others: &[Column]) -> Result<(), (String, &'static str)> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || name.len() > 64
        || !name.chars().all(fits)
        || name.starts_with(|c: char| c.is_ascii_digit())
    {
        let hint = "expected up to 64 letters, digits and `_`, of which a digit is not the first";
        return Err((format!("`{name}` cannot be a column's name"), hint));
    }
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    if OWN_COLUMNS.iter().any(|own| same(own)) {
        return Err((
            format!("each file has a column `{name}` already"),
            "choose another name, and say with `path` where the value is",
        ));
    }
    if others.iter().any(|other| same(&other.name)) {
        return Err((
            format!("`{name}` is given twice"),
            "names of columns differ in more than capitals",
        ));
    }
    Ok(())
}

fn filter(topics: &str) -> Result<(), String> {
    if topics.starts_with("$share/") {
        return Err("expected a topic filter; the group stands in `group`".into());
    }
    check_filter(topics).map_err(|error| error.to_string())
}

/// Where the value of a column is; or the key that says it wrongly, what is wrong, and a hint.
fn source(
    column: &ColumnFile,
    form: Option<Form>,
) -> Result<Source, (&'static str, String, &'static str)> {
    if let Some(level) = column.topic_level {
        let wrong = |what: &str, hint| Err(("topic-level", what.to_owned(), hint));
        let Some(nth) = usize::from(level).checked_sub(1) else {
            return wrong("levels of topics count from 1", "in a/b/c, level 1 is a");
        };
        if column.path.is_some() {
            return wrong(
                "a column is a level of the topic, or a value of the payload",
                "leave out `path` or `topic-level`",
            );
        }
        if !matches!(column.of, ColumnType::String | ColumnType::Int64) {
            return wrong(
                "a level of the topic is text",
                "take type = \"string\", or \"int64\" for whole numbers",
            );
        }
        return Ok(Source::TopicLevel(nth));
    }
    if matches!(form, Some(Form::SenmlJson | Form::SenmlCbor)) {
        return Ok(Source::Record(
            column.path.clone().unwrap_or_else(|| column.name.clone()),
        ));
    }
    let path = column
        .path
        .clone()
        .unwrap_or_else(|| format!("/{}", column.name));
    Source::pointer(&path).ok_or_else(|| {
        let hint = "expected names of objects and numbers of elements, each behind a `/`: /meter/watts, /values/0; `~1` stands for `/`, `~0` for `~`";
        (
            "path",
            format!("`{path}` is no JSON Pointer (RFC 6901)"),
            hint,
        )
    })
}
