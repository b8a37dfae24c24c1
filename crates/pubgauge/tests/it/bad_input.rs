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

/// One mistake in each field: what stands there, what is written instead, and a word of the
/// answer.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("name = \"right\"", "name = 5", "name"),
    ("name = \"right\"", "nam = \"right\"", "`name`"),
    (
        "systems = [\"simulated\"]",
        "systems = [\"simulatd\"]",
        "simulated",
    ),
    ("systems = [\"simulated\"]", "systems = []", "system"),
    ("seed = 7", "seed = -7", "seed"),
    ("repeats = 1", "repeats = 0", "repeats"),
    ("repeats = 1", "repeats = \"one\"", "repeats"),
    ("order = \"listed\"", "order = \"sorted\"", "random"),
    ("[phases]", "[phase]", "phases"),
    ("connect-rate = \"500/s\"", "connect-rate = \"500\"", "unit"),
    ("ready-within = \"10s\"", "ready-within = 10", "\"10s\""),
    ("warm-up = \"100ms\"", "warmup = \"100ms\"", "warm-up"),
    (
        "warm-up = \"100ms\"",
        "warm-up = \"100 parsecs\"",
        "100 parsecs",
    ),
    ("measure = \"300ms\"", "measure = \"0s\"", "longer than 0"),
    (
        "measure = \"300ms\"",
        "measure = { messages = 9, within = \"49h\" }",
        "at most 48 hours",
    ),
    (
        "warm-up = [\"100ms\"]",
        "warm-up = [\"7h\"]",
        "at most 6 hours",
    ),
    (
        "measure = \"300ms\"",
        "measure = { messages = 0, within = \"1s\" }",
        "messages",
    ),
    (
        "measure = \"300ms\"",
        "measure = { messages = 9 }",
        "within",
    ),
    (
        "drain-quiet = \"100ms\"",
        "drain-quiet = true",
        "drain-quiet",
    ),
    ("warm-up = [\"100ms\"]", "warm-up = []", "warm-up"),
    (
        "warm-up = [\"100ms\"]",
        "warmup = [\"100ms\"]",
        "unknown key",
    ),
    (
        "reliability = \"at-most-once\"",
        "reliability = \"always\"",
        "exactly-once",
    ),
    ("in-flight = 10", "in-flight = \"ten\"", "in-flight"),
    ("in-flight = 10", "inflight = 10", "in-flight"),
    ("batching = \"off\"", "batching = \"on\"", "adaptive"),
    ("[[workload]]", "[[workloads]]", "workload"),
    ("[[workload.flow]]", "[[workload.flows]]", "flow"),
    ("pattern = \"1-1\"", "pattern = \"1-2\"", "n-m"),
    ("publishers = 2", "publishers = -2", "publishers"),
    ("topics = 2", "topics = 1", "topics"),
    ("topic = \"a/b\"", "topic = \"a/+\"", "+"),
    ("topic = \"a/b\"", "topic = \"a/{x}\"", "x"),
    ("payload = \"64B\"", "payload = \"8B\"", "16"),
    ("payload = \"64B\"", "payload = 64", "\"64B\""),
    ("payload = \"64B\"", "payload = \"recorded\"", "replay"),
    ("rate = \"100/s\"", "rate = \"100\"", "10k/s"),
    ("rate = \"100/s\"", "rate = \"-1/s\"", "rate"),
    (
        "rate = \"100/s\"",
        "replay = { trace = \"nosuch\" }",
        "nosuch",
    ),
    (
        "arrivals = \"periodic\"",
        "arrivals = \"poison\"",
        "poisson",
    ),
    ("start = \"0s\"", "start = \"soon\"", "soon"),
    ("figure = \"lost\"", "figure = \"losst\"", "lost"),
    ("equals = 0", "equals = \"0ms\"", "plain number"),
    ("equals = 0", "equal = 0", "equals"),
    ("equals = 0", "equals = 0\nbelow = 1", "one comparison"),
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
fn a_mistake_in_each_field_is_shown_with_its_place() {
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

#[test]
fn files_that_are_no_studies() {
    let place = Place::new();
    place.write("empty.toml", "");
    assert!(refused(&place, "empty.toml").contains("empty.toml"));
    place.write(
        "binary.toml",
        [0x7f, b'E', b'L', b'F', 0, 1, 0xff, 0xfe, b'\n'],
    );
    assert!(refused(&place, "binary.toml").contains("binary.toml"));
    place.write("zeros.toml", [0; 5000]);
    assert!(refused(&place, "zeros.toml").contains("zeros.toml"));
    place.write("half.toml", &STUDY[..STUDY.len() / 2 - 3]);
    assert!(refused(&place, "half.toml").contains("half.toml"));
    std::fs::create_dir(place.path_to("folder.toml")).unwrap();
    assert!(refused(&place, "folder.toml").contains("folder.toml"));
    // 100 MB of it, written as a hole.
    let large = std::fs::File::create(place.path_to("large.toml")).unwrap();
    large.set_len(100 << 20).unwrap();
    let said = refused(&place, "large.toml");
    assert!(
        said.contains("large.toml") && said.contains("1 MiB"),
        "{said}"
    );
    // And one that never ends.
    let said = refused(&place, "/dev/zero");
    assert!(said.contains("/dev/zero"), "{said}");
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
    let cases: [(&str, Vec<u8>, &[&str]); 8] = [
        (
            "disordered.csv",
            right.replace("3.0", "1.5").into(),
            &[":4", "order"],
        ),
        (
            "no-size.csv",
            right.replace("size", "sise").into(),
            &[":1", "size"],
        ),
        (
            "no-device.csv",
            right.replace("device", "machine").into(),
            &[":1", "device"],
        ),
        (
            "words.csv",
            right.replace("2.0", "soon").into(),
            &[":3", "soon"],
        ),
        (
            "negative.csv",
            right.replace("2.0,a,64", "2.0,a,-1").into(),
            &[":3", "-1"],
        ),
        (
            "half.csv.gz",
            zipped[..zipped.len() / 2].to_vec(),
            &["half.csv.gz"],
        ),
        (
            "no.csv.gz",
            b"this is no gzip file at all".to_vec(),
            &["no.csv.gz"],
        ),
        ("empty.csv", Vec::new(), &["empty.csv"]),
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
    // The same in order is fine, and a disordered one can be sorted.
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
    place.write(
        "damaged/results.json",
        "{\"format\": \"pubgauge-results/99\"}",
    );
    place
        .run(&["report", "damaged"])
        .exits(3)
        .assert_says("newer version");
    place.write("damaged/results.json", [0xff; 100]);
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

/// What this machine does not allow is said before the first trial, and nothing of the run is on disk.
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
