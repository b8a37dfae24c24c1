//! Errors of files that are not as they must be.

use std::path::Path;

use pubgauge_strict_toml::{InvalidInput, MAX_FILE_BYTES, Noun, StrictFile};
use serde::Deserialize;

const RECIPE: Noun = Noun {
    name: "recipe",
    article: "a",
    missing: "look in the drawer",
    too_big: Some("a recipe is no book"),
    empty: "a recipe needs at least `dish`",
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // Whether it can be read is what is tested.
struct Recipe {
    dish: String,
    minutes: Option<u32>,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Step {
    stir: bool,
}

fn read(text: &str) -> Result<Recipe, InvalidInput> {
    StrictFile::parse("soup.toml", text, &RECIPE)?.decode()
}

fn open(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let error = StrictFile::open(file.path(), &RECIPE).unwrap_err();
    error.to_string()
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    let text = "dish = 7\nminuts = 3\n[[steps]]\nstir = \"no\"\n";
    let error = read(text).unwrap_err();
    let places: Vec<_> = error
        .problems
        .iter()
        .map(|problem| (problem.line, problem.column, problem.message.as_str()))
        .collect();
    assert_eq!(
        places,
        [
            (
                Some(1),
                Some(8),
                "this is the number 7; expected a text in quotes"
            ),
            (
                Some(2),
                Some(1),
                "unknown key `minuts` (did you mean `minutes`?)"
            ),
            (
                Some(4),
                Some(8),
                "this is the text \"no\"; expected true or false"
            ),
        ]
    );
    let shown = error.problems[1].to_string();
    assert_eq!(
        shown,
        "soup.toml:2:1: unknown key `minuts` (did you mean `minutes`?)\n  |\n2 | minuts = 3\n  | ^^^^^^\n  \
         hint: expected one of `dish`, `minutes`, `steps`"
    );
}

#[test]
fn a_key_that_is_missing_is_told_where_its_table_stands() {
    let error = read("dish = \"soup\"\n[[steps]]\n").unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains(":2:1: the key `stir` is missing here"),
        "{error}"
    );
}

#[test]
fn a_problem_of_ones_own_stands_where_its_key_stands() {
    let text = "dish = \"soup\"\nsteps = [{ stir = true }, { stir = false }]\n";
    let file = StrictFile::parse("soup.toml", text, &RECIPE).unwrap();
    let place = |steps: &[&str]| {
        let problem = file.problem(steps, "is wrong", None);
        (problem.line, problem.column)
    };
    assert_eq!(place(&["steps", "1", "stir"]), (Some(2), Some(36)));
    // Where a key is not there, what should have it.
    assert_eq!(place(&["steps", "1", "salt"]), (Some(2), Some(27)));
    assert_eq!(place(&["minutes"]), (None, None));
}

#[test]
fn what_is_no_such_file_is_told_what_it_is() {
    assert!(open(b"").contains("is empty\n  hint: a recipe needs at least `dish`"));
    assert!(open(b"\x1f\x8b\x08").contains("is a gzip file, not a recipe file"));
    assert!(open(b"dish = \"\0\"").contains(":1:9: is a binary file"));
    assert!(open(b"dish = 1\n\xff").contains(":2:1: is not UTF-8 text: byte 9"));
    assert!(open(b"dish = ").contains(":1:8: this is not TOML"));
    assert!(open(b"dish = 1\ndish = 2").contains(":2:1: this key is given twice"));
    let long = vec![b' '; MAX_FILE_BYTES as usize + 1];
    assert!(open(&long).contains("a recipe file has at most 1 MiB\n  hint: a recipe is no book"));
    let deep = format!("dish = {}", "[".repeat(100_000));
    assert!(open(deep.as_bytes()).contains("nested more than 24 levels deep"));
    let endless = StrictFile::open(Path::new("/dev/zero"), &RECIPE).unwrap_err();
    assert!(
        endless.to_string().contains("has at most 1 MiB"),
        "{endless}"
    );
    let missing = StrictFile::open(Path::new("/nowhere/soup.toml"), &RECIPE).unwrap_err();
    assert!(
        missing.to_string().contains("hint: look in the drawer"),
        "{missing}"
    );
}

#[test]
fn a_mark_of_byte_order_moves_nothing() {
    let error = read("\u{feff}dish = 7\n").unwrap_err();
    assert_eq!(error.problems[0].column, Some(8));
}
