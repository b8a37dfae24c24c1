//! `pubgauge collect` runs `pubgauge-collect`, with a script in its place.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::*;

/// A place with a pubgauge of its own in `bin`, and nothing beside it.
fn place_with_program() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path_to("bin")).unwrap();
    let own = place.path_to("bin/pubgauge");
    // Where it is on another file system.
    if std::fs::hard_link(program(), &own).is_err() {
        std::fs::copy(program(), &own).unwrap();
    }
    place
}

/// That pubgauge, with this folder as the PATH.
fn command(place: &Place, path: &str, args: &[&str]) -> Command {
    let mut command = Command::new(place.path_to("bin/pubgauge"));
    command.args(args);
    place.run_here(&mut command);
    command.env("PATH", place.path_to(path));
    command
}

/// A program that prints where it is and each of its arguments, and ends with 7.
fn script(place: &Place, folder: &str) -> String {
    std::fs::create_dir_all(place.path_to(folder)).unwrap();
    let path = place.write(
        &format!("{folder}/pubgauge-collect"),
        "#!/bin/sh\nprintf '<%s>\\n' \"$0\" \"$@\"\nexit 7\n",
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn printed(program: &str, args: &[&str]) -> String {
    let words = [&[program], args].concat();
    words.iter().map(|word| format!("<{word}>\n")).collect()
}

#[test]
fn arguments_and_exit_code_pass_untouched() {
    let place = place_with_program();
    let own = script(&place, "bin");
    script(&place, "path");
    for args in [
        &[][..],
        &["--help"],
        &["-V"],
        &["--config", "a b.toml", "--once"],
        &["verify", "--", "-data"],
        &["--", "--json", ""],
        &["collect", "--on=mqtt://h"],
    ] {
        let typed = [&["collect"], args].concat();
        let done = place.finish(command(&place, "path", &typed)).exits(7);
        assert_eq!((done.out, done.err), (printed(&own, args), String::new()));
    }
}

#[test]
fn it_is_found_on_the_path_where_it_is_not_beside() {
    let place = place_with_program();
    let own = script(&place, "path");
    let done = place.finish(command(&place, "path", &["collect", "leave"]));
    assert_eq!(done.exits(7).out, printed(&own, &["leave"]));
}

#[test]
fn its_schema_and_its_manual_pages_are_its_own() {
    let place = place_with_program();
    let own = script(&place, "bin");
    for (typed, passed) in [
        ("schema collect", &["schema"][..]),
        ("man collect", &["man"]),
        ("man collect verify", &["man", "verify"]),
    ] {
        let done = place.finish(command(&place, "bin", &argv(typed))).exits(7);
        assert_eq!(done.out, printed(&own, passed), "{typed}");
    }
    let man = ["man", "--out", "man"];
    place.finish(command(&place, "bin", &man)).exits(0);
    let has_page = |name: &str| Path::exists(&place.path_to("man").join(name));
    assert!(has_page("pubgauge-compare.1") && !has_page("pubgauge-collect.1"));
    let help = place.run(&["help", "collect"]).exits(0);
    assert!(help.out.contains("Runs pubgauge-collect"), "{}", help.out);
}

#[test]
fn where_it_is_missing_it_is_told_how_to_get_it() {
    let place = place_with_program();
    std::fs::create_dir(place.path_to("path")).unwrap();
    let before = place.files();
    let missing = |args: &[&str]| {
        let done = place.finish(command(&place, "path", args)).exits(3);
        done.assert_says("error: pubgauge-collect is not installed")
            .assert_says("hint: it is a package of its own")
    };
    for line in ["collect", "collect --help", "schema collect", "man collect"] {
        assert_eq!(missing(&argv(line)).out, "", "{line}");
    }
    assert_eq!(place.files(), before);
    // A file that nobody may execute is no program.
    let path = script(&place, "bin");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let done = place.finish(command(&place, "path", &["collect"])).exits(3);
    done.assert_says("bin/pubgauge-collect cannot be started: Permission denied");
}
