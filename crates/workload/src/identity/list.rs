//! Identities from a table: CSV with a line of headings, one row for each device.

use csv::{ByteRecord, ReaderBuilder};

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRow {
    /// Line of its beginning, from 1.
    pub line: u64,
    /// Client identifier.
    pub id: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// Password, or its place.
    pub password: Option<PasswordSource>,
}

/// The password of a row, or where it stands.
#[derive(Clone, PartialEq, Eq)]
pub enum PasswordSource {
    /// In the table itself.
    Given(String),
    /// The content of this file.
    File(String),
    /// The content of this variable of the environment.
    Variable(String),
}

impl std::fmt::Debug for PasswordSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PasswordSource::Given(_) => f.write_str("Given((secret))"),
            PasswordSource::File(name) => f.debug_tuple("File").field(name).finish(),
            PasswordSource::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
        }
    }
}

/// A fault in a table. It never shows what a field with a password holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ListError {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
    pub message: String,
    pub hint: Option<String>,
}

/// Headings of the table.
const HEADINGS: [&str; 5] = [
    "id",
    "user",
    "password",
    "password-file",
    "password-variable",
];

/// Reads a table of identities, of which the first `wanted` rows are needed.
///
/// # Errors
/// The first fault: no table, other columns, too few rows, an empty or repeated client identifier, an empty user, more
/// than one password in a row.
pub fn read_list(text: &str, wanted: usize) -> Result<Vec<IdentityRow>, ListError> {
    // A byte order mark is no part of the first heading.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut record = ByteRecord::new();
    // Bytes that were checked to be UTF-8 make no other fault.
    let mut next = |record: &mut ByteRecord| reader.read_byte_record(record).unwrap_or(false);
    if !next(&mut record) {
        let hint = "the first line has the headings: id,user,password-variable";
        return Err(wrong((1, 1), "the table is empty", hint));
    }
    let table = Table::headed(text, &record)?;
    let mut rows: Vec<IdentityRow> = Vec::with_capacity(wanted);
    let mut lines_of_ids = std::collections::HashMap::new();
    while rows.len() < wanted {
        if !next(&mut record) {
            let what = format!(
                "the table ends after {} row{}, and there are {wanted} clients",
                rows.len(),
                if rows.len() == 1 { "" } else { "s" }
            );
            let end = (text.lines().count() as u64 + 1, 1);
            return Err(wrong(end, &what, "a row for each client, in their order"));
        }
        let row = table.row(&record)?;
        if let Some(id) = &row.id
            && let Some(first) = lines_of_ids.insert(id.clone(), row.line)
        {
            let what = format!("the id {id} is that of line {first}, too");
            let hint = "a server takes one connection of each id: the second throws the first out";
            return Err(wrong(table.field_place(&record, "id"), &what, hint));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn wrong((line, column): (u64, u64), message: &str, hint: &str) -> ListError {
    ListError {
        line,
        column,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
    }
}

/// The columns of a table.
struct Table<'a> {
    text: &'a str,
    headings: Vec<&'static str>,
}

impl<'a> Table<'a> {
    fn headed(text: &'a str, record: &ByteRecord) -> Result<Table<'a>, ListError> {
        let mut headings: Vec<&'static str> = Vec::new();
        for (nth, field) in record.iter().enumerate() {
            let name = String::from_utf8_lossy(field);
            let known = HEADINGS.iter().find(|known| **known == name.trim());
            let place = place_of(text, record, nth);
            let Some(known) = known else {
                let what = format!("there is no column `{}` of identities", name.trim());
                let hint = format!("the first line has headings: {}", HEADINGS.join(", "));
                return Err(wrong(place, &what, &hint));
            };
            if headings.contains(known) {
                let what = format!("the column `{known}` is there twice");
                return Err(wrong(place, &what, "leave one of them out"));
            }
            headings.push(known);
        }
        Ok(Table { text, headings })
    }

    fn row(&self, record: &ByteRecord) -> Result<IdentityRow, ListError> {
        let line = place_of(self.text, record, 0).0;
        if record.len() != self.headings.len() {
            let what = format!(
                "this row has {} fields, and there are {} headings",
                record.len(),
                self.headings.len()
            );
            let hint = "a field with a comma or a quote in it stands between quotes";
            return Err(wrong((line, 1), &what, hint));
        }
        let mut row = IdentityRow {
            line,
            id: None,
            user: None,
            password: None,
        };
        for (heading, field) in self.headings.iter().zip(record) {
            let place = || self.field_place(record, heading);
            let Ok(field) = std::str::from_utf8(field) else {
                return Err(wrong(
                    place(),
                    "this is no UTF-8",
                    "save the table as UTF-8",
                ));
            };
            // A password may begin or end with a space.
            let name = field.trim();
            if heading.starts_with("password") {
                let source = match *heading {
                    "password" => PasswordSource::Given(field.to_owned()),
                    "password-file" => PasswordSource::File(name.to_owned()),
                    _ => PasswordSource::Variable(name.to_owned()),
                };
                if name.is_empty() {
                    continue;
                }
                if row.password.replace(source).is_some() {
                    let what = "this row has more than one password";
                    return Err(wrong(place(), what, "leave all fields but one empty"));
                }
                continue;
            }
            if name.is_empty() || name.chars().any(char::is_control) {
                let what = if name.is_empty() {
                    format!("the {heading} is empty")
                } else {
                    format!("the {heading} has a control character")
                };
                let hint = "each row names a client; leave the column out where clients have none";
                return Err(wrong(place(), &what, hint));
            }
            match *heading {
                "id" => row.id = Some(name.to_owned()),
                _ => row.user = Some(name.to_owned()),
            }
        }
        Ok(row)
    }

    /// Line and column of a field, by its heading.
    fn field_place(&self, record: &ByteRecord, heading: &str) -> (u64, u64) {
        let nth = self.headings.iter().position(|one| *one == heading);
        place_of(self.text, record, nth.unwrap_or(0))
    }
}

/// Line and column of the nth field of a record; of the record, if the field is not found.
fn place_of(text: &str, record: &ByteRecord, nth: usize) -> (u64, u64) {
    let begin = record.position().map_or(0, |at| at.byte() as usize);
    // The reader counts lines that are empty to the record after them.
    let begin = begin + text[begin..].len() - text[begin..].trim_start_matches(['\r', '\n']).len();
    let (mut left, mut quoted, mut at) = (nth, false, begin);
    for (offset, character) in text[begin..].char_indices() {
        if left == 0 {
            break;
        }
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                left -= 1;
                at = begin + offset + 1;
            }
            '\n' if !quoted => break,
            _ => {}
        }
    }
    let before = &text[..at];
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default();
    (line, column.chars().count() as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str, wanted: usize) -> (u64, u64, String) {
        let error = read_list(text, wanted).unwrap_err();
        assert!(error.hint.is_some(), "{error}");
        assert!(!error.message.contains("hush"), "{error}");
        (error.line, error.column, error.message)
    }

    #[test]
    fn rows_are_read_with_their_passwords() {
        let text = "\u{feff}id, user ,password,password-file\nm0,u0,\" hush,\",\n\nm1,u1,,secrets/m1\nm2,u1,,\n";
        let rows = read_list(text, 3).unwrap();
        let row = |line, id: &str, user: &str, password| IdentityRow {
            line,
            id: Some(id.into()),
            user: Some(user.into()),
            password,
        };
        let given = PasswordSource::Given(" hush,".into());
        assert!(!format!("{given:?}").contains("hush"));
        assert_eq!(
            rows,
            [
                row(2, "m0", "u0", Some(given)),
                row(
                    4,
                    "m1",
                    "u1",
                    Some(PasswordSource::File("secrets/m1".into()))
                ),
                row(5, "m2", "u1", None),
            ]
        );
        assert_eq!(read_list(text, 1).unwrap().len(), 1);
    }

    #[test]
    fn faults_have_their_place() {
        for (text, wanted, line, column, words) in [
            ("", 1, 1, 1, "empty"),
            ("id,name\nm0,n\n", 1, 1, 4, "no column `name`"),
            ("id,id\n", 1, 1, 4, "twice"),
            ("id,user\nm0,u\n", 2, 3, 1, "after 1 row, and there are 2"),
            ("id,user\nm0,u\nm1,\n", 2, 3, 4, "the user is empty"),
            ("id,user\nm0,u\n,u\n", 2, 3, 1, "the id is empty"),
            ("user,id\nu,m0\n\"u,1\",m0\n", 2, 3, 7, "that of line 2"),
            ("id,user\nm0\n", 1, 2, 1, "1 fields"),
            (
                "id,password,password-variable\nm0,hush,V\n",
                1,
                2,
                9,
                "more than one password",
            ),
            ("id\n\"m\u{1}0\"\n", 1, 2, 1, "control character"),
        ] {
            let (at, in_line, message) = fault(text, wanted);
            assert_eq!((at, in_line), (line, column), "{text:?}: {message}");
            assert!(message.contains(words), "{message}");
        }
    }
}
