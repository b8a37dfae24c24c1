//! Symbolic links in the folder of a stranger's run, wherever pubgauge writes: nothing outside the folder changes.

use std::os::unix::fs::symlink;

use pubgauge_testing::hostile::{Dice, copied, ended_well, files_below};

use super::short_run;
use crate::common::*;

/// Where a run and what is made of it are written, some under the names that they have while they are written.
const NAMES: [&str; 19] = [
    ".lock",
    "results.json",
    ".results.json.partial",
    "invocation.json",
    ".invocation.json.partial",
    "study.toml",
    ".study.toml.partial",
    "study.resolved.json",
    ".study.resolved.json.partial",
    "report.html",
    ".report.html.partial",
    "index.html",
    ".index.html.partial",
    ".index.json.partial",
    "export",
    "export/.trials.csv.partial",
    "trials",
    "trials/.0001.partial",
    "trials/0001",
];

/// A verb that works on the folder.
const VERBS: [&[&str]; 5] = [
    &["report", "stranger"],
    &["export", "stranger"],
    &["run", "--resume", "stranger"],
    &["report", "."],
    &["run", "--resume", "."],
];

/// Puts a link there to a file and a folder of the user's, and does this and that.
fn planted(place: &Place, name: &str, verbs: &[&[&str]]) {
    let stranger = place.path_to("stranger");
    let _ = std::fs::remove_dir_all(&stranger);
    copied(&place.path_to("run"), &stranger);
    let link = stranger.join(name);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    let theirs = if link.is_dir() || name == "export" {
        place.path_to("theirs")
    } else {
        place.path_to("theirs/file")
    };
    let _ = std::fs::remove_file(&link);
    let _ = std::fs::remove_dir_all(&link);
    symlink(&theirs, &link).unwrap();
    for verb in verbs {
        ended_well(&place.run(verb));
        let files = files_below(&place.path_to("theirs"));
        assert_eq!(files.len(), 2, "{name}, {verb:?}: {files:?}");
        let text = std::fs::read_to_string(place.path_to("theirs/file")).unwrap();
        assert_eq!(text, "theirs", "{name}, {verb:?}");
    }
}

/// A place with a run that lacks its last trial, and with what nobody may touch.
fn with_a_run() -> Place {
    let place = Place::new();
    place.run(&short_run("simulated"));
    std::fs::remove_dir_all(place.path_to("run/trials/0002")).unwrap();
    std::fs::create_dir_all(place.path_to("theirs/.0001.partial")).unwrap();
    place.write("theirs/file", "theirs");
    place.write("theirs/.0001.partial/trial.json", "theirs");
    place
}

/// At any of these places.
pub fn links(dice: &mut Dice) {
    let place = with_a_run();
    let name = dice.one_of(&NAMES);
    let verbs = [dice.one_of(&VERBS), dice.one_of(&VERBS)];
    planted(&place, name, &verbs);
}

#[test]
fn nothing_is_written_through_a_link() {
    let place = with_a_run();
    for name in NAMES {
        planted(&place, name, &VERBS[..3]);
    }
    // The whole folder of a study is a link.
    std::fs::remove_dir_all(place.path_to("stranger")).unwrap();
    std::fs::rename(place.path_to("run"), place.path_to("theirs/run")).unwrap();
    symlink(place.path_to("theirs/run"), place.path_to("stranger")).unwrap();
    let before = files_below(&place.path_to("theirs"));
    ended_well(&place.run(&["report", "."]));
    assert_eq!(files_below(&place.path_to("theirs")), before);
}
