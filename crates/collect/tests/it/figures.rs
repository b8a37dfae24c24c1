//! The figures of a collector at work, beside what the disk says.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_collect::Message;
use pubgauge_driver::Reliability;

use crate::back_pressure::Disk;
use crate::common::*;

const HOUR: Duration = Duration::from_secs(3600);

/// The segments in the log of a collector.
fn segments(data: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(data.join("collectors/c/log")).unwrap();
    let paths = names.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect()
}

fn bytes_of(paths: &[PathBuf]) -> u64 {
    let len = |path: &PathBuf| path.metadata().unwrap().len();
    paths.iter().map(len).sum()
}

/// Free space by the system's word.
fn free_at(folder: &Path) -> u64 {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).unwrap();
    // SAFETY: the structure is plain data, and both pointers live through the call.
    let about = unsafe {
        let mut about = std::mem::zeroed::<libc::statvfs>();
        assert_eq!(libc::statvfs(path.as_ptr(), &raw mut about), 0);
        about
    };
    about.f_bavail * about.f_frsize
}

#[test]
fn the_figures_are_those_of_the_disk_and_of_the_messages() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(&place.path().join("disk"), 64);
    let data = disk.0.join("data");
    let rest = "topics = [\"t/#\"]\nname = \"c\"\n[log]\nreserve = \"1MiB\"";
    let began = Instant::now();
    let commits = Arc::new([const { AtomicU64::new(0) }; 2]);
    let counted = commits.clone();
    let tap = Box::new(move |messages: &mut dyn Iterator<Item = Message<'_>>| {
        let count = messages.count() as u64;
        counted[0].fetch_add(u64::from(count > 0), Relaxed);
        counted[1].fetch_add(count, Relaxed);
    });
    let collecting = Collecting::tapped(config(&data, &[broker.url()], rest), tap);
    collecting.connected(1);
    let status = collecting.status.clone();
    let heard_at = || status.brokers()[&broker.address()].heard_at;
    let known_at = heard_at();
    assert!(known_at >= began);
    until("an empty log", || status.log.bytes() == Some(28));
    assert_eq!(
        status.log.oldest(Instant::now() + HOUR),
        Some(Duration::ZERO)
    );

    let published_at = Instant::now();
    assert!(published_at >= known_at);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    for size in [50, 3000] {
        publisher.publish("t/a", 500, size);
    }
    until("all acknowledged", || status.acknowledged.get() == 1000);
    let heard = heard_at();
    assert!(heard >= published_at && heard <= Instant::now());
    let silent = status.brokers()[&broker.address()].silent_for(heard + HOUR);
    assert_eq!(silent, HOUR);

    let files = segments(&data);
    assert_eq!(status.log.bytes(), Some(bytes_of(&files)));
    let later = published_at + HOUR;
    let oldest = status.log.oldest(later).unwrap();
    assert!(
        oldest <= HOUR && oldest >= HOUR - published_at.elapsed(),
        "{oldest:?}"
    );

    let [commits, messages] = [0, 1].map(|at| commits[at].load(Relaxed));
    assert_eq!(messages, 1000);
    let (times, sizes) = (status.commit_ns.counted(), status.commit_bytes.counted());
    assert_eq!((times.count, sizes.count), (commits, commits));
    assert_eq!(sizes.sum, bytes_of(&files) - 28 * files.len() as u64);
    assert!(u128::from(times.sum) <= began.elapsed().as_nanos());

    let known = || status.log.disk().unwrap();
    assert_eq!(known().reserve, 1 << 20);
    until("the free room", || known().free == free_at(&disk.0));
    let before = known().free;
    std::fs::write(disk.0.join("ballast"), vec![1; 8 << 20]).unwrap();
    until("less of it", || known().free == free_at(&disk.0));
    assert!(known().free <= before - (8 << 20), "{before}");

    // The log as a kill would leave it.
    let killed = disk.0.join("killed");
    std::fs::create_dir_all(killed.join("collectors/c/log")).unwrap();
    for path in &files {
        let name = path.file_name().unwrap();
        std::fs::copy(path, killed.join("collectors/c/log").join(name)).unwrap();
    }
    let summary = collecting.end();
    assert_eq!(summary.messages, 1000);
    assert_eq!(status.log.bytes(), Some(bytes_of(&segments(&data))));
    assert_eq!(
        status.log.oldest(Instant::now() + HOUR),
        Some(Duration::ZERO)
    );
    assert_eq!(status.log.bytes(), Some(28));

    let again = Collecting::begin(config(&killed, &[broker.url()], rest));
    until("what was found is finished", || {
        again.status.files.get() == 1
    });
    until("the log is empty", || again.status.log.bytes() == Some(28));
    assert_eq!(again.status.file_messages.get(), 1000);
    again.end();
}
