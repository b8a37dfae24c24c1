//! A host whose workers say more than a trial has room for: what they say is refused before it becomes anything, and the
//! host is named.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::common::hosts::{flags, paced};

/// Most memory of a run of which a host sends a frame of 120 MB, bytes.
const MOST: u64 = 200 << 20;

/// A host whose companion is pubgauge's own and whose worker says a greeting, and then runs this line of shell.
fn host_that(place: &Place, says: &str) -> Vec<String> {
    let greeting = format!(
        r#"{{"link":{},"pubgauge":"0.0.0"}}"#,
        pubgauge_engine::link::VERSION
    );
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--echo*) exec \"$@\" ;; esac\nprintf '\\000\\000\\000\\{:03o}%s' '{greeting}'\n{says}\n",
        greeting.len()
    );
    let program = place.write("host", script);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    flags("127.0.0.1", &[program.display().to_string()])
}

fn short(flags: &[String]) -> Vec<String> {
    let mut all = paced("run", flags);
    all.extend(["--duration", "1s", "--warm-up", "100ms"].map(str::to_owned));
    all
}

/// `[],` is three bytes of a frame, and 24 of memory, twice that while the list grows.
#[test]
fn a_frame_that_becomes_gigabytes_is_refused() {
    let place = Place::new();
    let head = r#"{"Recording":{"worker":0,"role":"publishers","flows":[],"series":["#;
    let length = 120_000_000 + head.len();
    let [a, b, c, d] = (length as u32).to_be_bytes();
    let says = format!(
        "printf '\\{a:03o}\\{b:03o}\\{c:03o}\\{d:03o}%s' '{head}'; yes '[],' | tr -d '\\n' | head -c 120000000; sleep 100"
    );
    let all = short(&host_that(&place, &says));
    place.run(&all).exits(2);
    is_broken(
        &place.trial("run"),
        &["worker ", "(host ", "bytes is too long"],
    );
    let most = most_memory();
    assert!(most < MOST, "{} MB", most >> 20);
    place.is_clean();
}

/// Frames that are short enough for a recording, of which one has too many values.
#[test]
fn a_frame_of_more_values_than_the_trial_has_is_refused() {
    let place = Place::new();
    let head = r#"{"Recording":{"worker":0,"role":"publishers","flows":[],"series":["#;
    let length = 1_500_000 + head.len();
    let [a, b, c, d] = (length as u32).to_be_bytes();
    let says = format!(
        "printf '\\{a:03o}\\{b:03o}\\{c:03o}\\{d:03o}%s' '{head}'; yes '[],' | tr -d '\\n' | head -c 1500000; sleep 100"
    );
    let all = short(&host_that(&place, &says));
    place.run(&all).exits(2);
    let because = [
        "(host ",
        "its report `Recording` has",
        "values, where one of this trial has",
    ];
    is_broken(&place.trial("run"), &because);
    place.is_clean();
}

/// The files without a name that a process has open, bytes.
fn unnamed_files(pid: i32) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let sizes = open.filter_map(|entry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        let is_unnamed = target.to_string_lossy().ends_with("(deleted)");
        is_unnamed
            .then(|| std::fs::metadata(entry.path()).ok())?
            .map(|file| file.len())
    });
    sizes.sum()
}

/// Standard error without end: it fills neither disk nor memory, and its end is told.
#[test]
fn standard_error_without_end_is_no_file() {
    let place = Place::new();
    let says =
        "yes 'a line of many' | head -c 30000000 >&2; echo the disk of node-7 is full >&2; exit 3";
    let all = short(&host_that(&place, says));
    let run = place.start(&all);
    let (pid, over) = (run.pid(), AtomicBool::new(false));
    let largest = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut largest = 0;
            while !over.load(Ordering::Relaxed) {
                largest = largest.max(unnamed_files(pid));
                std::thread::sleep(Duration::from_millis(5));
            }
            largest
        });
        run.ends_within(Duration::from_secs(100)).exits(2);
        over.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert!(largest < 1 << 20, "{largest} bytes of files");
    let because = ["exit code 3; its last words: the disk of node-7 is full"];
    is_broken(&place.trial("run"), &because);
    place.is_clean();
}
