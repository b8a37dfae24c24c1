//! Snapshots of the program's output, word for word.
//!
//! `INSTA_UPDATE=always cargo test -p pubgauge-collect --test program snapshots` accepts what it says now.

use super::*;

/// All verbs, as they are typed.
const VERBS: [&str; 8] = [
    "",
    "compact",
    "leave",
    "replay",
    "verify",
    "schema",
    "completions",
    "man",
];

#[test]
fn help_of_every_verb_fits_80_columns() {
    let place = new_place();
    for verb in VERBS {
        let mut args = argv(verb);
        args.push("--help");
        let done = place.run(&args).exits(0);
        for line in done.out.lines() {
            assert!(line.chars().count() <= 80, "{verb}: {line}");
        }
        let name = match verb {
            "" => "help".to_owned(),
            verb => format!("help-{verb}"),
        };
        insta::assert_snapshot!(name, done.out);
    }
}

#[test]
fn the_schema_is_the_committed_one() {
    let done = new_place().run(&["schema"]).exits(0);
    let committed = std::fs::read_to_string(repository("schema/collect.schema.json")).unwrap();
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parse(&done.out), parse(&committed));
}

#[test]
fn every_verb_has_a_manual_page_and_completions() {
    let place = new_place();
    place.run(&["man", "--out", "man"]).exits(0);
    for verb in VERBS {
        let page = match verb {
            "" => "man/pubgauge-collect.1".to_owned(),
            verb => format!("man/pubgauge-collect-{verb}.1"),
        };
        let written = std::fs::read(place.path_to(&page)).unwrap();
        let printed = place.run(&[&["man"], &argv(verb)[..]].concat()).exits(0);
        assert_eq!(printed.out.as_bytes(), written, "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).exits(0).out;
        for verb in VERBS {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
    place
        .run(&["man", "walk"])
        .exits(3)
        .assert_says("no verb `walk`");
}

#[test]
fn its_version_is_that_of_the_package() {
    let version = new_place().run(&["--version"]).exits(0);
    let expected = format!("pubgauge-collect {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.out, expected);
}
