//! Studies that are wrong, each in one field, and what is said about them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{PlanOptions, Study};

fn options() -> PlanOptions {
    PlanOptions::with_systems(["mosquitto", "zeromq"])
}

fn complaint(text: &str) -> InvalidInput {
    let study = Study::parse("study.toml", text, Path::new("."));
    match study.and_then(|study| study.plan(&options())) {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(error) => error,
    }
}

/// A sound study with other lines in three places.
fn study(top: &str, flow: &str, end: &str) -> String {
    format!("name = \"t\"\n{top}\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n{flow}\n{end}\n")
}

const FLOW: &str = "payload = \"64B\"\nrate = \"1/s\"";

#[test]
fn each_mistake_has_its_message() {
    let flow = |line: &str| study("", &format!("{FLOW}\n{line}"), "");
    let top = |line: &str| study(line, FLOW, "");
    let end = |lines: &str| study("", FLOW, lines);
    let cases = [
        ("unknown key at the top", top("repaets = 3")),
        ("unknown key in a flow", flow("publisher = 3")),
        ("unknown key in settings", end("[[settings]]\nreliabilty = \"at-least-once\"")),
        ("connections that take too long", study("phases.connect-rate = \"10/s\"", &format!("{FLOW}\npattern = \"n-1\"\npublishers = 400"), "")),
        ("connections of a workload that take too long", study("", &format!("{FLOW}\npattern = \"n-1\"\npublishers = 400"), "[workload.phases]\nconnect-rate = \"10/s\"")),
        ("no brokers", top("topology.brokers = 0")),
        ("too many brokers", top("topology.brokers = 65")),
        ("brokers that are no number", top("topology.brokers = \"two\"")),
        ("more brokers than topics", top("topology.brokers = 2")),
        ("topics of one publisher on two brokers", study("topology.brokers = 2", &format!("{FLOW}\ntopics = 3\npublishers = 1"), "")),
        ("recording of an unknown trace", end("[recording.r]\ntrace = \"cars\"\nhours = { noon = \"11h..14h\" }")),
        ("recording without hours", end("[recording.r]\ntrace = \"cars\"\nhours = {}")),
        ("hours that overlap", end("[recording.r]\ntrace = \"cars\"\nhours = { day = [\"6h..14h\", \"12h..20h\"] }")),
        ("hours beyond the day", end("[recording.r]\ntrace = \"cars\"\nhours = { late = [\"22h..24h\", \"23h..25h\"] }")),
        ("unknown value of a setting", end("[[settings]]\nreliability = \"at-lest-once\"")),
        ("unknown pattern", flow("pattern = \"1-m\"")),
        ("size without unit", study("", "payload = 64\nrate = \"1/s\"", "")),
        ("size with a wrong unit", study("", "payload = \"64 kb\"\nrate = \"1/s\"", "")),
        ("size below the header", study("", "payload = \"8B\"\nrate = \"1/s\"", "")),
        ("wrong element of a list of sizes", study("", "payload = [\"64B\", 7]\nrate = \"1/s\"", "")),
        ("unknown distribution", study("", "payload = { gaussian = { mean = \"64B\" } }\nrate = \"1/s\"", "")),
        ("distribution lacks a key", study("", "payload = { normal = { mean = \"64B\" } }\nrate = \"1/s\"", "")),
        ("smallest above largest", study("", "payload = { uniform = { min = \"1kB\", max = \"64B\" } }\nrate = \"1/s\"", "")),
        ("rate without unit", study("", "payload = \"64B\"\nrate = 100", "")),
        ("rate of zero", study("", "payload = \"64B\"\nrate = \"0/s\"", "")),
        ("no rate", study("", "payload = \"64B\"", "")),
        ("no payload", study("", "rate = \"1/s\"", "")),
        ("negative count", flow("publishers = -1")),
        ("fraction of a publisher", flow("publishers = 1.5")),
        ("number out of range", flow("publishers = 99999999999999999999")),
        ("text for a number", flow("publishers = \"ten\"")),
        ("pairs that do not match", flow("pattern = \"1-1\"\npublishers = 3\nsubscribers = 2")),
        ("pairs with too few topics", flow("pattern = \"1-1\"\npublishers = 3\ntopics = 2")),
        ("two publishers in 1-n", flow("pattern = \"1-n\"\npublishers = 2")),
        ("groups without shared", flow("groups = 2")),
        ("template without values", flow("topic = \"site/{device}\"")),
        ("template with a misspelt name", flow("topic = \"site/{devise}\"\ndimensions = { device = 3 }")),
        ("template with an open brace", flow("topic = \"site/{device\"")),
        ("dimension that is not used", flow("topic = \"{a}\"\ndimensions = { a = 2, b = 2 }")),
        ("value that is no level", flow("topic = \"x/{a}\"\ndimensions = { a = [\"p/q\"] }")),
        ("template and publishers disagree", flow("topic = \"{a}\"\ndimensions = { a = 4 }\npublishers = 3")),
        ("too many repeats", study("", "payload = \"64B\"\nrate = \"1/s\"", "").replacen("name", "repeats = 100_000_000\nname", 1)),
        ("too many topics", flow("topic = \"{a}/{b}\"\ndimensions = { a = 100000, b = 100000 }")),
        ("wildcard in a topic", flow("topic = \"site/+\"")),
        ("bad filter", flow("topic = \"site\"\nsubscribe = \"site/#/x\"")),
        ("filters that overlap", flow("topic = \"site/a\"\nsubscribe = [\"site/+\", \"+/a\"]")),
        ("filters of two groups", flow("topic = \"site/a\"\nsubscribe = [\"$share/g/site/+\", \"$share/h/site/b\"]")),
        ("filter of a group and pattern", flow("pattern = \"shared\"\ntopic = \"site/a\"\nsubscribe = \"$share/g/site/+\"")),
        ("filter and pattern", flow("pattern = \"1-1\"\nsubscribe = \"#\"")),
        ("answers caught by a filter", flow("exchange = \"ping-pong\"\ntopic = \"t\"\nsubscribe = \"t/#\"")),
        ("start of a flow without publishers", flow("publishers = 0\nstart = \"2s\"\nlasts = \"1s\"")),
        ("ping-pong with nobody", flow("exchange = \"ping-pong\"\nsubscribers = 0")),
        ("window with a schedule", flow("window = 10")),
        ("bursts and poisson", flow("arrivals = \"poisson\"\nbursts = { on = \"1s\", off = \"1s\" }")),
        ("burst and a rate", flow("burst = 8")),
        ("burst and bursts", study("", "payload = \"64B\"\nburst = 8\nbursts = { on = \"1s\", off = \"1s\" }", "")),
        ("burst of nothing", study("", "payload = \"64B\"\nburst = 0", "")),
        ("bursts too soon", study("", "payload = \"64B\"\nburst = 8\nburst-every = \"10us\"", "")),
        ("time between no bursts", flow("burst-every = \"1s\"")),
        ("ping-pong in bursts", study("", "payload = \"64B\"\nburst = 8\nexchange = \"ping-pong\"", "")),
        ("arrivals flat out", study("", "payload = \"64B\"\nrate = \"max\"\narrivals = \"poisson\"", "")),
        ("recorded sizes without trace", study("", "payload = \"recorded\"\nrate = \"1/s\"", "")),
        ("unknown trace", study("", "replay = { trace = \"meter\" }", "[trace.meters]\nfiles = \"Cargo.toml\"")),
        ("replay and rate", study("", "rate = \"1/s\"\nreplay = { trace = \"meters\" }", "[trace.meters]\nfiles = \"Cargo.toml\"")),
        ("replay and burst", study("", "burst = 10\nburst-every = \"1s\"\nreplay = { trace = \"meters\" }", "[trace.meters]\nfiles = \"Cargo.toml\"")),
        ("trace that is not there", end("[trace.meters]\nfiles = \"nowhere.csv\"")),
        ("trace that is not there, replayed", study("", "replay = { trace = \"meters\" }", "[trace.meters]\nfiles = \"nowhere.csv\"")),
        ("trace of an unset variable", end("[trace.meters]\nfiles = \"${PUBGAUGE_NOT_SET}/x.csv\"")),
        ("duration without unit", top("phases = { measure = 10 }")),
        ("duration of a wrong unit", top("phases = { measure = \"10 sec\" }")),
        ("count without limit", top("phases = { measure = { messages = 10 } }")),
        ("measurement of nothing", top("phases = { measure = \"0s\" }")),
        ("unknown system", top("systems = [\"mosqito\"]")),
        ("system listed twice", top("systems = [\"zeromq\", \"zeromq\"]")),
        ("no repeats", top("repeats = 0")),
        ("order", top("order = \"randum\"")),
        ("grid path that leads nowhere", end("[grid]\n\"workload.x.flow.rate\" = [\"1/s\"]")),
        ("grid with an unknown key", end("[grid]\n\"workload.flow.paylod\" = [\"1B\", \"2B\"]")),
        ("grid with a wrong value", end("[grid]\npayload = [\"64B\", \"1 kilobyte\"]")),
        ("grid axis without values", end("[grid]\npayload = []")),
        ("grid axis that cannot vary", end("[grid]\nrepeats = [1, 2]")),
        ("unknown figure", end("[[criterion]]\nfigure = \"latency.p98\"\nbelow = \"10ms\"")),
        ("criterion without unit", end("[[criterion]]\nfigure = \"latency.p99\"\nbelow = 10")),
        ("criterion without comparison", end("[[criterion]]\nfigure = \"lost\"")),
        ("criterion with two", end("[[criterion]]\nfigure = \"lost\"\nequals = 0\nbelow = 1")),
        ("criterion on a flow's processor time", end("[[criterion]]\nfigure = \"system-cpu-share\"\nbelow = \"50%\"\nflow = \"f\"")),
        ("criterion on a verdict", end("[[criterion]]\nfigure = \"verdict\"\nequals = \"vald\"")),
        ("criterion on an unknown workload", end("[[criterion]]\nfigure = \"lost\"\nequals = 0\nworkload = \"v\"")),
        ("same name twice", end("[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"1/s\"")),
        ("workload without flow", "name = \"t\"\n[[workload]]\nname = \"w\"\n".into()),
        ("no workload", "name = \"t\"\n".into()),
        ("no name", "[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"1/s\"\n".into()),
        ("a table where a list is needed", "name = \"t\"\n[workload]\nname = \"w\"\n".into()),
        ("name that is a number", study("", FLOW, "").replacen("\"t\"", "5", 1)),
        ("unknown table", top("phase = { measure = \"1s\" }")),
        ("unknown list of tables", study("", FLOW, "[[workloads]]\nname = \"v\"")),
        ("unknown list in a workload", study("", FLOW, "[[workload.flows]]\nname = \"f\"")),
        ("unknown key in phases", top("phases = { warmup = \"1s\" }")),
        ("unknown axis", end("[grid]\nwarmup = [\"100ms\"]")),
        ("negative seed", top("seed = -7")),
        ("repeats that are a text", top("repeats = \"one\"")),
        ("rate of connecting without unit", top("phases = { connect-rate = \"500\" }")),
        ("warm-up beyond its limit", end("[grid]\nwarm-up = [\"7h\"]")),
        ("measurement beyond its limit", top("phases = { measure = { messages = 9, within = \"49h\" } }")),
        ("measurement of no message", top("phases = { measure = { messages = 0, within = \"1s\" } }")),
        ("truth for a duration", top("phases = { drain-quiet = true }")),
        ("text for a count of a setting", end("[[settings]]\nin-flight = \"ten\"")),
        ("unknown batching", end("[[settings]]\nbatching = \"on\"")),
        ("negative rate", study("", "payload = \"64B\"\nrate = \"-1/s\"", "")),
        ("unknown arrivals", flow("arrivals = \"poison\"")),
        ("start that is no duration", flow("start = \"soon\"")),
        ("criterion with a unit for a count", end("[[criterion]]\nfigure = \"lost\"\nequals = \"0ms\"")),
        ("criterion with an unknown comparison", end("[[criterion]]\nfigure = \"lost\"\nequal = 0")),
        ("no TOML in the middle", format!("{}[[crit", study("", FLOW, ""))),
        ("several mistakes at once", "name = 3\nrepaets = 1\n[[workload]]\nnam = \"w\"\n[[workload.flow]]\npayload = 64\nrate = \"fast\"\nwindow = \"x\"\n".into()),
        ("no TOML", "name = \"t\nx".into()),
        ("a key twice", "name = \"t\"\nname = \"u\"\n".into()),
        ("a date", "name = 2026-01-01\n".into()),
        ("empty", "".into()),
        ("only blanks", " \n\t\n".into()),
        ("nested deeply", format!("name = {}", "[".repeat(100_000))),
        ("a very long line", format!("name = \"{}\" x", "y".repeat(50_000))),
    ];
    let mut all = String::new();
    for (what, text) in cases {
        let error = complaint(&text);
        for problem in &error.problems {
            // Never a bare text: either a place or the whole file.
            assert!(
                !problem.message.is_empty() && problem.source == "study.toml",
                "{what}"
            );
        }
        writeln!(all, "--- {what}\n{error}\n").expect("a string");
    }
    let here = std::path::absolute(".").expect("a folder");
    let all = all.replace(&here.display().to_string(), "FOLDER");
    insta::assert_snapshot!("messages", all);
}

#[test]
fn flags_are_named() {
    let mut all = String::new();
    for set in [
        "phases.measure",
        "=3",
        "a..b=3",
        "name.x=3",
        "workload.nope.flow.rate=1/s",
        "workload.7.flow.rate=1/s",
        "paylod=64B",
        "payload=64",
        "payload=lots",
        "workload.w.flow.pattern=1-m",
        "settings.reliability=twice",
        "phases.measure=10",
        "publishers=9999999999999999999999",
    ] {
        let study = Study::parse("study.toml", &study("", FLOW, ""), Path::new("."));
        let mut study = study.expect("TOML");
        let error = study
            .apply_set(set)
            .and_then(|()| study.plan(&options()))
            .expect_err(set);
        assert!(
            error
                .problems
                .iter()
                .all(|p| p.source == format!("--set {set}")),
            "{error}"
        );
        writeln!(all, "{error}\n").expect("a string");
    }
    insta::assert_snapshot!("flags", all);
}

#[test]
fn files_that_are_no_studies() {
    let folder = tempfile::tempdir().expect("a folder");
    let message = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        let error = Study::open(&path).expect_err(name).to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    let mut all = String::new();
    let mut add = |message: String| writeln!(all, "{message}\n").expect("a string");
    add(message("empty.toml", b""));
    add(message("binary.toml", &[0x7f, b'E', b'L', b'F', 0, 1, 2]));
    add(message(
        "latin.toml",
        b"name = \"t\"\nquestion = \"\xe4\"\n",
    ));
    add(message("trace.csv.gz", &[0x1f, 0x8b, 8, 0]));
    let big = folder.path().join("big.toml");
    let file = fs::File::create(&big).expect("made");
    // Sparse: its length is looked at, its content is not read.
    file.set_len(100_000_000).expect("long");
    add(Study::open(&big)
        .expect_err("big")
        .to_string()
        .replace(&folder.path().display().to_string(), "FOLDER"));
    add(Study::open(folder.path())
        .expect_err("folder")
        .to_string()
        .replace(&folder.path().display().to_string(), "FOLDER"));
    add(Study::open(&folder.path().join("none.toml"))
        .expect_err("none")
        .to_string()
        .replace(&folder.path().display().to_string(), "FOLDER"));
    insta::assert_snapshot!("files", all);
}

#[test]
fn what_is_no_text_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    for (bytes, place) in [
        (&b""[..], ":1:1: is empty"),
        (b"\n \n", ":1:1: is empty"),
        (b"name = \"a\"\nx = \0\n", ":2:5: is a binary file"),
        ("é = \"µ\"\nlängd".as_bytes(), ":2:"),
        (b"a = 1\nb\xe9 = 2", ":2:2: is not UTF-8 text: byte 7"),
        (b"\x1f\x8b\x08", ":1:1: is a gzip file"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let study = Study::open(&path).and_then(|study| study.plan(&options()));
        let said = study.expect_err("it is none").to_string();
        assert!(said.contains(place), "{place}: {said}");
    }
}

#[test]
fn a_long_topic_is_cut_in_messages() {
    for topic in ["x".repeat(65_530) + "#", "a b/`".repeat(13_000) + "#"] {
        let text = study("", &format!("{FLOW}\ntopic = \"{topic}\""), "");
        let said = complaint(&text).to_string();
        assert!(
            said.chars().count() < 4000,
            "{} characters",
            said.chars().count()
        );
        assert!(said.contains("characters ...]"), "{said}");
        assert!(
            said.contains("cannot be used"),
            "the end is missing: {said}"
        );
    }
}

const VALID: &str = include_str!("../../../../studies/first-look.toml");

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens to a study, it is planned or refused; nothing panics, and every problem
    /// says something.
    #[test]
    fn mutated_studies_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "\\PC{0,8}|[\\[\\]{}=\"'.#\n0-9-]{0,6}"), 1..6),
    ) {
        let mut text: Vec<char> = VALID.chars().collect();
        for (at, removed, inserted) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        let text: String = text.into_iter().collect();
        // Counts grown into the millions are legal but slow.
        prop_assume!(!text.as_bytes().windows(5).any(|w| w.iter().all(u8::is_ascii_digit)));
        let study = Study::parse("study.toml", &text, Path::new("."));
        if let Err(error) = study.and_then(|study| study.plan(&options())) {
            prop_assert!(!error.problems.is_empty());
            prop_assert!(error.problems.iter().all(|p| !p.message.is_empty()));
            prop_assert!(error.problems.iter().all(|p| p.line.is_some() && p.column.is_some()), "{}", error);
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
