//! Columns for what payloads say, checked.

use super::faults::Faults;
use super::file::{CollectFile, ColumnFile, ColumnType, PayloadForm};
use crate::columns::{Column, Columns, Form, Source};
use crate::files::OWN_COLUMNS;

pub(super) fn of(written: &CollectFile, faults: &mut Faults) -> Columns {
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
    if form.is_none() && (payload.keep.is_some() || !payload.columns.is_empty()) {
        faults.add(
            &["payload"],
            "raw payloads have no columns, and are always kept",
            Some("say what payloads are: form = \"json\""),
        );
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
        match source(column, form) {
            Ok(source) => columns.push(Column {
                name: column.name.clone(),
                source,
                of: column.of,
                unit: column.unit.unwrap_or_default(),
            }),
            Err((what, hint)) => faults.add(&["payload", "columns", &at, "path"], what, Some(hint)),
        }
    }
    Columns {
        form,
        keep_raw: payload.keep.unwrap_or(true),
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

fn source(column: &ColumnFile, form: Option<Form>) -> Result<Source, (String, &'static str)> {
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
        (format!("`{path}` is no JSON Pointer (RFC 6901)"), hint)
    })
}
