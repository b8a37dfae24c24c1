//! A disk that is full: nothing is acknowledged, the session lives, and it goes on by itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use pubgauge_collect::Notice;
use pubgauge_collect::config::{self, Given};
use pubgauge_driver::Reliability;

use crate::common::*;

/// A file system of a given size in memory.
pub struct Disk(pub PathBuf);

impl Disk {
    pub fn new(at: &Path, mebibytes: u32) -> Disk {
        std::fs::create_dir(at).unwrap();
        let size = format!("size={mebibytes}m");
        let mut command = Command::new("mount");
        let status = command
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .status()
            .unwrap();
        assert!(status.success(), "this test mounts, which takes root");
        Disk(at.to_owned())
    }

    fn free_bytes(&self) -> u64 {
        let about = rustix::fs::statvfs(&self.0).unwrap();
        about.f_bavail * about.f_frsize
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// `reserve` is what the log leaves free; with 0 it runs into the end of the disk.
fn fills_up(reserve: &str) {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(&place.path().join("disk"), 8);
    let data = place.path().join("disk/data");
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![1; 4 << 20]).unwrap();
    let file = place.path().join("collect.toml");
    let rest = format!(
        "topics = [\"t/#\"]\n[session]\nkeep-alive = \"1s\"\n[log]\nsegment = \"1MiB\"\nreserve = {reserve:?}"
    );
    std::fs::write(&file, text(&data, &[broker.url()], &rest)).unwrap();
    let collecting = Collecting::begin(config::read(&file, &Given::default()).unwrap());
    collecting.connected(1);
    // Payloads of one byte each take little room once they are finished files, and that room is filled with ballast. With
    // a reserve, half a megabyte of it stays free to finish files in.
    let kept = if reserve == "0B" { 0 } else { 1_500_000 };
    let fill = || {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&ballast)
            .unwrap();
        let chunk = [1; 50_000];
        while disk.free_bytes() > kept && std::io::Write::write_all(&mut file, &chunk).is_ok() {}
    };
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let mut sent = BTreeSet::new();
    let stalled = |notice: &Notice| matches!(notice, Notice::Stalled { .. });
    until("the disk is full", || {
        sent.extend(publisher.publish("t/a", 500, 2000));
        fill();
        collecting.notices().iter().any(stalled)
    });
    // Files of the last segments may still be finished, which makes room once more.
    let mut stored = collecting.status.stored.get();
    until("the disk stays full", || {
        sent.extend(publisher.publish("t/a", 500, 2000));
        let before = stored;
        // Longer than the broker waits for a client that is silent.
        let end = Instant::now() + Duration::from_millis(2500);
        while Instant::now() < end {
            fill();
            std::thread::sleep(Duration::from_millis(5));
        }
        stored = collecting.status.stored.get();
        stored == before && stored < sent.len() as u64
    });
    let ill = collecting.status.ill().unwrap();
    assert!(ill.contains("cannot be stored"), "{ill}");
    assert!(collecting.status.acknowledged.get() <= stored);
    let connections =
        |collecting: &Collecting| collecting.status.brokers()[&broker.address()].connections;
    assert_eq!(connections(&collecting), 1, "{:?}", collecting.notices());
    std::fs::remove_file(&ballast).unwrap();
    collecting.told("it goes on", |notice| {
        matches!(notice, Notice::GoesOn { .. })
    });
    // Room for the rest is made as files are finished: 2 kB of one byte are some 100 B there.
    collecting.stored(sent.len() as u64);
    assert_eq!(connections(&collecting), 1);
    let summary = collecting.end();
    assert_eq!(summary.messages, sent.len() as u64);
    assert!(summary.complete);
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    all_is_well(&data);
}

#[test]
fn a_full_disk_loses_nothing() {
    fills_up("0B");
}

#[test]
fn a_disk_with_too_little_room_loses_nothing() {
    fills_up("2MiB");
}
