//! Data folders that somebody else wrote: what they hold in place of files is refused by its name, and nothing outside
//! them is read, sent or changed.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pubgauge_collect::{Collector, Config, EndsAfter, names, verify};
use pubgauge_driver::Reliability;

use crate::common::*;

const REST: &str = "topics = [\"t/#\"]\nname = \"c\"";

/// A data folder with a finished file and an empty log, and its configuration.
fn filled(place: &Path) -> Config {
    let broker = Broker::start();
    let config = config(&place.join("data"), &[broker.url()], REST);
    let collecting = Collecting::begin(config.clone());
    collecting.connected(1);
    Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 100, 50);
    collecting.stored(100);
    collecting.end();
    config
}

/// All files below a folder, with their content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            all.extend(contents(&path));
        } else if kind.is_file() {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

/// Output of a collector that begins there and ends at once.
fn collected(config: &Config) -> String {
    let ends = EndsAfter {
        time: Some(Duration::ZERO),
        ..EndsAfter::default()
    };
    let begun = Collector::new(config.clone(), names::system(), Arc::new(|_| {}));
    match begun.and_then(|collector| collector.run(ends, &AtomicBool::new(false))) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// Output of a verification.
fn verified(data: &Path) -> String {
    match verify::verify(data) {
        Err(error) => error.to_string(),
        Ok(found) => {
            let each = found.faults.iter();
            each.map(|fault| format!("{} {}\n", fault.place, fault.what))
                .collect()
        }
    }
}

/// The last name of a path.
fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn what_stands_in_place_of_a_file_or_a_folder_is_refused_by_its_name() {
    let place = tempfile::tempdir().unwrap();
    let (data, outside) = (place.path().join("data"), place.path().join("outside"));
    let config = filled(place.path());
    let own = data.join("collectors/c");
    let file = finished(&data).remove(0);
    let (hour, log) = (file.parent().unwrap(), own.join("log"));
    let segment = std::fs::read_dir(&log).unwrap().next().unwrap();
    let segment = segment.unwrap().path();
    let every = [
        own.join("files.ndjson"),
        own.join("sessions.json"),
        own.join("lock"),
        segment,
        log,
        own.clone(),
        data.join("collectors"),
        hour.to_owned(),
        hour.parent().unwrap().to_owned(),
        file.clone(),
    ];
    std::fs::create_dir(&outside).unwrap();
    let before = contents(&data);
    for path in &every {
        let kept = outside.join(name(path));
        std::fs::rename(path, &kept).unwrap();
        let there = contents(&outside);
        let plants: [(&str, &dyn Fn()); 4] = [
            ("a link to the same", &|| symlink(&kept, path).unwrap()),
            ("a link to a device", &|| {
                symlink("/dev/zero", path).unwrap()
            }),
            ("a link to nothing", &|| {
                symlink(outside.join("new"), path).unwrap()
            }),
            ("a pipe", &|| pipe(path)),
        ];
        for (what, plant) in plants {
            plant();
            let shown = path.display();
            // Verification reads neither of these.
            if !["sessions.json", "lock"].contains(&name(path)) {
                let words = verified(&data);
                assert!(words.contains(name(path)), "{what} as {shown}: {words}");
            }
            // A collector reads no finished file.
            if *path != file {
                let words = collected(&config);
                assert!(words.contains(name(path)), "{what} as {shown}: {words}");
            }
            std::fs::remove_file(path).unwrap();
        }
        assert_eq!(contents(&outside), there);
        std::fs::rename(&kept, path).unwrap();
    }
    assert_eq!(contents(&data), before);
    assert_eq!(verified(&data), "");
}

#[test]
fn what_is_not_whole_is_not_written_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (data, outside) = (place.path().join("data"), place.path().join("outside"));
    let config = filled(place.path());
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "theirs").unwrap();
    let own = data.join("collectors/c");
    for name in [".sessions.json.partial", "sessions.json.tmp"] {
        symlink(outside.join("file"), own.join(name)).unwrap();
    }
    // All names that the next files in this folder may have while they are made.
    let hour = finished(&data).remove(0);
    let hour = hour.parent().unwrap();
    symlink(outside.join("file"), hour.join(".c-0000000000000101.tmp")).unwrap();
    assert_eq!(collected(&config), "");
    assert_eq!(std::fs::read(outside.join("file")).unwrap(), b"theirs");
    assert_eq!(contents(&outside).len(), 1);
}

#[test]
fn files_and_segments_with_holes_take_neither_memory_nor_time() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let config = filled(place.path());
    let log = data.join("collectors/c/log");
    let segment = std::fs::read_dir(&log).unwrap().next().unwrap().unwrap();
    let file = finished(&data).remove(0);
    let list = data.join("collectors/c/files.ndjson");
    for path in [segment.path(), list, file] {
        let whole = std::fs::read(&path).unwrap();
        let opened = std::fs::File::options().write(true).open(&path).unwrap();
        opened.set_len(1 << 42).unwrap();
        let words = verified(&data);
        assert!(
            words.contains(name(&path)) && words.contains("4398046511104 bytes"),
            "{words}"
        );
        opened.set_len(whole.len() as u64).unwrap();
    }
    assert_eq!(verified(&data), "");
    assert_eq!(collected(&config), "");
}
