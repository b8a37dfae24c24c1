//! Data folders of a collector that somebody has changed: bytes of any of its files, or something else in place of one.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::OnceLock;

use pubgauge_testing::free_port;
use pubgauge_testing::hostile::{Dice, copied, files_below, mutated, reads};
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::program::Place;

use super::brokers::publish_numbers;
use crate::new_place;

/// A data folder with finished files, and with messages in the log of a collector that was killed.
fn known() -> &'static Place {
    static KNOWN: OnceLock<Place> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let place = new_place();
        let broker = Mosquitto::start();
        let address = broker.address();
        let args = ["--topic", "m/#", "--to", "data", "--on", &address];
        let begin = |form: &str| {
            let mut command = place.command(&args);
            command.args(["--form", form, "--listen", "0", "--log", "json"]);
            let mut run = place.spawn(command);
            run.until_said("\"session_present\"");
            publish_numbers(broker.port);
            run
        };
        for form in ["parquet", "ndjson"] {
            let run = begin(form);
            run.signal(libc::SIGTERM);
            run.wait_for_end().exits(0);
        }
        let run = begin("parquet");
        let log = place.path_to("data/collectors");
        let holds = || {
            files_below(&log).iter().any(|file| {
                let name = file.extension().is_some_and(|extension| extension == "log");
                name && file.metadata().is_ok_and(|about| about.len() > 1000)
            })
        };
        while !holds() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        run.signal(libc::SIGKILL);
        drop(run);
        place
    })
}

/// Another file, link, folder or pipe where a file of the folder was.
fn put_in_place(place: &Place, file: &std::path::Path, dice: &mut Dice) {
    std::fs::remove_file(file).unwrap();
    match dice.below(5) {
        0 => symlink(place.path_to("theirs"), file).unwrap(),
        1 => symlink("/dev/zero", file).unwrap(),
        2 => std::fs::create_dir(file).unwrap(),
        3 => assert!(Command::new("mkfifo").arg(file).status().unwrap().success()),
        _ => {
            let hole = std::fs::File::create(file).unwrap();
            hole.set_len(1 << (20 + dice.below(20))).unwrap();
        }
    }
}

/// Verifies a changed folder, and collects into it from nobody.
pub fn changed(dice: &mut Dice) {
    let place = new_place();
    copied(&known().path_to("data"), &place.path_to("data"));
    place.write("theirs", "theirs");
    let files = files_below(&place.path_to("data"));
    for _ in 0..=dice.below(2) {
        let file = &files[dice.below(files.len())];
        let Ok(text) = std::fs::read(file) else {
            continue;
        };
        if dice.below(3) > 0 {
            std::fs::write(file, mutated(&text, dice)).unwrap();
        } else {
            put_in_place(&place, file, dice);
        }
    }
    reads(&place, &["verify", "data"]);
    let nobody = format!("mqtt://127.0.0.1:{}", free_port());
    let args = ["--topic", "m/#", "--to", "data", "--on", &nobody];
    reads(&place, &[&args[..], &["--for", "100ms"]].concat());
    reads(&place, &["verify", "data"]);
    assert_eq!(std::fs::read(place.path_to("theirs")).unwrap(), b"theirs");
}
