//! Modes of the files of a data folder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::*;

/// Everything in the data folder of a collector under umask 0, with its modes.
fn modes_of_a_data_folder(access: &str) -> Vec<u32> {
    fn modes(path: &Path, found: &mut Vec<u32>) {
        let meta = path.symlink_metadata().unwrap();
        found.push(meta.mode() & 0o777);
        if meta.is_dir() {
            for entry in path.read_dir().unwrap() {
                modes(&entry.unwrap().path(), found);
            }
        }
    }
    let broker = Mosquitto::start();
    let place = new_place();
    let file = format!(
        "brokers = [{:?}]\ntopics = [\"m/#\"]\nto = \"data\"\n{access}\n",
        broker.address()
    );
    place.write("collect.toml", file);
    let mut command = Command::new("sh");
    command.args(["-c", r#"umask 0 && exec "$0" "$@""#]);
    command.args([PROGRAM, "--config", "collect.toml"]);
    command.current_dir(place.path_to(""));
    let mut collector = place.spawn(command);
    collector.until_said("connected");
    let port = broker.port.to_string();
    let mut publisher = Command::new("mosquitto_pub");
    publisher.args(["-p", &port, "-q", "1", "-t", "m/1", "-m", "1"]);
    assert!(publisher.status().unwrap().success());
    // Stored, and not in a file yet.
    collector.until("the message is in the log", || {
        let collectors = place
            .path_to("data/collectors")
            .read_dir()
            .unwrap()
            .flatten();
        let logs = collectors.filter_map(|one| one.path().join("log").read_dir().ok());
        let mut segments = logs.flatten().flatten();
        segments.any(|one| one.metadata().is_ok_and(|about| about.len() > 60))
    });
    let mut found = Vec::new();
    modes(&place.path_to("data"), &mut found);
    collector.signal(libc::SIGTERM);
    collector.wait_for_end().exits(0);
    modes(&place.path_to("data"), &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

#[test]
fn a_data_folder_is_open_to_those_whom_it_is_for() {
    for (access, modes) in [
        ("", [0o600, 0o700]),
        ("access = \"group\"", [0o640, 0o750]),
        ("access = \"umask\"", [0o666, 0o777]),
    ] {
        assert_eq!(modes_of_a_data_folder(access), modes, "{access}");
    }
}
