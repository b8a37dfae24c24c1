//! JSON Schemas in the form in which they are published: with an identifier, and descriptions without the links of rustdoc.

use schemars::Schema;
use schemars::transform::transform_subschemas;

/// A generated schema with the identifier of its format: `urn:pubgauge:results:2` for `pubgauge-results/2`.
///
/// # Panics
/// If it is no schema: neither an object nor a boolean.
pub fn published<S: TryInto<Schema>>(schema: S, format: &str) -> Schema {
    let Ok(mut schema) = schema.try_into() else {
        panic!("a generated schema is an object")
    };
    let name = format.strip_prefix("pubgauge-").unwrap_or(format);
    let id = format!("urn:pubgauge:{}", name.replace('/', ":"));
    schema.insert("$id".into(), id.into());
    describe_plainly(&mut schema);
    schema
}

/// Takes the links out of all descriptions.
fn describe_plainly(schema: &mut Schema) {
    let description = schema.get("description").and_then(|text| text.as_str());
    if let Some(plain) = description.map(without_links) {
        schema.insert("description".into(), plain.into());
    }
    transform_subschemas(&mut describe_plainly, schema);
}

/// A text without the links of rustdoc: ``[`Trial`]`` and ``[`Trial`](crate::Trial)`` are `` `Trial` ``, and `[it](super)` is
/// `it`. Addresses of the web stay.
fn without_links(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((label, after)) = from.split_once(']') else {
            plain.push('[');
            rest = from;
            continue;
        };
        let target = (after.strip_prefix('(')).and_then(|target| target.split_once(')'));
        let is_code = label.len() > 2 && label.starts_with('`') && label.ends_with('`');
        rest = match target {
            Some((target, after)) if !target.contains("://") => {
                plain.push_str(label);
                after
            }
            _ if is_code => {
                plain.push_str(label);
                after
            }
            _ => {
                plain.push('[');
                from
            }
        };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with a link to [`String`].
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Record {
        /// See [`Inner`](super::Inner) and [its value](Inner::value), of 1 to 3 values [0, 1].
        inner: Option<Inner>,
        /// [RFC 4180](https://www.rfc-editor.org/rfc/rfc4180).
        csv: String,
    }

    /// See [`Record::inner`].
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Inner {
        /// [`Inner`]s [
        value: u8,
    }

    #[test]
    fn schemas_have_an_identifier_and_no_links_of_rust() {
        let schema = published(schemars::schema_for!(Record), "pubgauge-records/3").to_value();
        assert_eq!(schema["$id"], "urn:pubgauge:records:3");
        assert_eq!(schema["description"], "A record with a link to `String`.");
        let own = &schema["properties"];
        assert_eq!(
            own["inner"]["description"],
            "See `Inner` and its value, of 1 to 3 values [0, 1]."
        );
        assert_eq!(
            own["csv"]["description"],
            "[RFC 4180](https://www.rfc-editor.org/rfc/rfc4180)."
        );
        let inner = &schema["$defs"]["Inner"];
        assert_eq!(inner["description"], "See `Record::inner`.");
        assert_eq!(inner["properties"]["value"]["description"], "`Inner`s [");
    }
}
