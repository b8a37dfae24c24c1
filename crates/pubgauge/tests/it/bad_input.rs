//! Files that are wrong: refused with the place, before anything starts, changing nothing.

use crate::common;

use std::io::Write;

use common::*;

const STUDY: &str = r#"name = "right"
systems = ["simulated"]
seed = 7
repeats = 1
order = "listed"

[phases]
connect-rate = "500/s"
ready-within = "10s"
warm-up = "100ms"
measure = "300ms"
drain-quiet = "100ms"
drain-within = "1s"

[grid]
warm-up = ["100ms"]

[[settings]]
name = "plain"
reliability = "at-most-once"
in-flight = 10
batching = "off"

[[workload]]
name = "pair"

[[workload.flow]]
name = "talk"
pattern = "1-1"
publishers = 2
subscribers = 2
topics = 2
topic = "a/b"
payload = "64B"
rate = "100/s"
arrivals = "periodic"
start = "0s"

[[criterion]]
figure = "lost"
equals = 0
"#;

/// A mistake of each kind that a study can have: what stands there, what is written instead, and words of the answer. Those
/// of all fields are in `crates/study/tests/it/wrong_files.rs`.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("[[criterion]]", "[[crit", "this is not TOML"),
    ("in-flight = 10", "inflight = 10", "`in-flight`"),
    ("payload = \"64B\"", "payload = 64", "\"64B\""),
    ("topics = 2", "topics = 1", "topics of their own"),
    (
        "systems = [\"simulated\"]",
        "systems = [\"simulatd\"]",
        "did you mean `simulated`?",
    ),
];

/// Runs a study that must be refused, and gives what was said.
#[track_caller]
fn refused(place: &Place, study: &str) -> String {
    let before = place.files();
    let done = place.run(&["run", study, "--out", "run"]).exits(3);
    assert_eq!(done.out, "");
    assert_eq!(place.files(), before, "bad input changes nothing on disk");
    place.is_clean();
    done.err
}

#[test]
fn the_study_itself_is_right() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    place.run(&["plan", "study.toml"]).exits(0);
}

#[test]
fn mistakes_are_shown_with_their_places_and_change_nothing() {
    let place = Place::new();
    for (right, wrong, word) in MISTAKES {
        let at = STUDY.find(right).unwrap_or_else(|| panic!("no {right}"));
        let line = STUDY[..at].matches('\n').count() + 1;
        place.write("study.toml", STUDY.replacen(right, wrong, 1));
        let said = refused(&place, "study.toml");
        assert!(said.contains(word), "{wrong}: no {word:?} in\n{said}");
        // At the mistake, or just below it where two lines contradict each other.
        let lines = line..=line + wrong.matches('\n').count();
        assert!(
            lines
                .clone()
                .any(|line| said.contains(&format!("study.toml:{line}:"))),
            "{wrong}: line {lines:?} is not named in\n{said}"
        );
    }
}

#[test]
fn several_mistakes_are_shown_at_once() {
    let place = Place::new();
    let study = STUDY
        .replace("warm-up =", "warmup =")
        .replace("rate = \"100/s\"", "rate = \"100\"");
    place.write("study.toml", study);
    let said = refused(&place, "study.toml");
    assert!(
        said.contains("study.toml:10:") && said.contains("study.toml:35:"),
        "{said}"
    );
}

/// A study that replays `trace.csv`, whatever the file's real name.
fn replay(file: &str) -> String {
    format!(
        "name = \"replay\"\nsystems = [\"simulated\"]\n[phases]\nmeasure = \"300ms\"\n\
         [trace.tape]\nfiles = [\"{file}\"]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         replay = {{ trace = \"tape\" }}\n"
    )
}

#[test]
fn traces_that_are_wrong() {
    let place = Place::new();
    let right = "time,device,size\n1.0,a,64\n2.0,a,64\n3.0,a,64\n";
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    for i in 0..3000 {
        let head = if i == 0 { "time,device,size\n" } else { "" };
        zipped
            .write_all(format!("{head}{i}.0,a,64\n").as_bytes())
            .unwrap();
    }
    let zipped = zipped.finish().unwrap();
    let cases: [(&str, Vec<u8>, &[&str]); 3] = [
        (
            "disordered.csv",
            right.replace("3.0", "1.5").into(),
            &[":4", "order"],
        ),
        (
            "packed.csv.bz2",
            b"BZh91AY&SY".to_vec(),
            &["compressed with bzip2", "bzip2 -dc"],
        ),
        (
            "damaged.csv.gz",
            [&zipped[..zipped.len() / 2], &[0; 40_000]].concat(),
            &["damaged.csv.gz:", "damaged after line"],
        ),
    ];
    for (name, bytes, words) in cases {
        place.write(name, bytes);
        let before = place.files();
        let shown = place.run(&["trace", "show", name]).exits(3);
        let converted = place.run(&[
            "trace", "convert", name, "--time", "time", "--device", "device", "--size", "size",
            "--out", "out.csv",
        ]);
        let converted = converted.exits(3);
        assert_eq!(place.files(), before, "{name}");
        place.write("replay.toml", replay(name));
        let replayed = refused(&place, "replay.toml");
        for said in [&shown.err, &converted.err, &replayed] {
            assert!(said.contains(name), "{name} is not named in\n{said}");
            for word in words {
                assert!(said.contains(word), "{name}: no {word:?} in\n{said}");
            }
        }
        std::fs::remove_file(place.path_to("replay.toml")).unwrap();
    }
    // Those records in order are fine, and disordered ones can be sorted.
    place.write("right.csv", right);
    place.run(&["trace", "show", "right.csv"]).exits(0);
    let mut args = argv("trace convert disordered.csv --time time --sort");
    args.extend(argv("--device device --size size --out sorted.csv"));
    place.run(&args).exits(0);
    place.run(&["trace", "show", "sorted.csv"]).exits(0);
}

#[test]
fn folders_that_hold_no_run() {
    let place = Place::new();
    std::fs::create_dir(place.path_to("damaged")).unwrap();
    place.write(
        "damaged/results.json",
        "{\"format\": \"pubgauge-results/2\", ",
    );
    place
        .run(&["report", "damaged"])
        .exits(3)
        .assert_says("results.json");
    assert!(!place.path_to("damaged/report.html").exists());
}

#[test]
fn files_without_end_are_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path_to("own")).unwrap();
    std::fs::create_dir(place.path_to("run")).unwrap();
    for link in ["own/endless.toml", "run/results.json", "endless.csv"] {
        std::os::unix::fs::symlink("/dev/zero", place.path_to(link)).unwrap();
    }
    for (args, said) in [
        (
            &["plan", "--systems", "own"][..],
            "endless.toml:1:1: cannot be read: it is a device",
        ),
        (&["report", "run"], "results.json: it is a device"),
        (&["compare", "run", "run"], "results.json: it is a device"),
        (&["export", "run"], "results.json: it is a device"),
        (&["plan", "/dev/zero"], "at most 1 MiB"),
        (&["trace", "show", "endless.csv"], "16 MiB"),
        (
            &argv("run --on mqtt://u@127.0.0.1:1 --rate 1/s --password-file /dev/zero"),
            "64 KiB",
        ),
    ] {
        place.run(args).exits(3).assert_says(said);
    }
}

#[test]
fn a_log_file_without_end_proves_nothing() {
    let place = Place::new();
    std::fs::create_dir(place.path_to("own")).unwrap();
    let system = r#"
name = "sleeps"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{port}"]
[find]
executables = ["/bin/sh"]
[run]
command = ["{exe}", "-c", "exec sleep 60"]
ports = ["port"]
[ready]
log-line = "ready"
log-file = "/dev/zero"
time-out-s = 1
"#;
    place.write("own/sleeps.toml", system);
    let args = [
        "run",
        "--systems",
        "own",
        "--on",
        "sleeps",
        "--rate",
        "10/s",
        "--out",
        "run",
    ];
    let said = "its log /dev/zero cannot be read: it is a device";
    place.run(&args).exits(2).assert_says(said);
    place.is_clean();
}

/// A study that this machine does not allow is refused before the first trial, and nothing of the run is on disk.
#[test]
fn a_priority_that_is_not_allowed_is_refused_before_anything_is_written() {
    let place = Place::new();
    let run = [
        "run",
        "--realtime",
        "10",
        "--on",
        "simulated",
        "--out",
        "run",
        "--rate",
        "100/s",
        "--duration",
        "150ms",
        "--warm-up",
        "50ms",
    ];
    // As a user has it: without CAP_SYS_NICE, and with the usual limit RLIMIT_RTPRIO of 0.
    let mut command = std::process::Command::new("setpriv");
    command.args([
        "--bounding-set=-sys_nice",
        "--inh-caps=-sys_nice",
        "prlimit",
        "--rtprio=0",
    ]);
    command.arg(program()).args(run);
    place.run_here(&mut command);
    place
        .finish(command)
        .exits(3)
        .assert_says("--realtime 10: ");
    assert!(!place.path_to("run").exists());
    place.run(&run).ran_to_its_end();
    assert!(place.path_to("run/results.json").exists());
}
