//! The page for a decision: on one sheet, readable, and nothing of a fleet's text runs in it.

use pubgauge_advice::{
    Advice, BoxCount, BoxPlan, Evidence, EvidenceOf, FORMAT, KnownBy, LeftOut, MachineFile,
    NotCounted, NotTold, OtherFleet, Recommendation, Source, Undecided, Variation, WhyNotTold,
    WhyOut,
};
use pubgauge_conclusions::Carries;
use pubgauge_driver::Mapping;
use pubgauge_report::advice_page;

use crate::chromium::Browser;

const STARTED: &str = "2026-11-28T10:00:00Z";

const FLEET: &str =
    "name = \"meters\"\n[[devices]]\ncount = 5000\nevery = \"30s\"\npayload = \"120B\"\n";

fn evidence(figure: EvidenceOf, source: Source) -> Evidence {
    Evidence {
        figure,
        source,
        stored: Vec::new(),
    }
}

fn choice(rank: u32, system: &str, at_most: Option<f64>) -> Recommendation {
    Recommendation {
        rank,
        system: system.into(),
        version: Some("2.0.11".into()),
        repeats: 3,
        headroom_at_least: 12.0,
        headroom_at_most: at_most,
        p99_ms: Some(1.25),
        cost_us: Some(21.5),
        cost_half_width_us: Some(0.4),
        memory_bytes: Some(8.2e6),
        settings: "name = \"at-least-once\"\nreliability = \"at-least-once\"\n".into(),
        client: vec![Mapping {
            setting: "reliability".into(),
            value: "at-least-once".into(),
            native: "QoS 1 published, QoS 1 subscribed".into(),
            ..Mapping::default()
        }],
        evidence: vec![
            evidence(EvidenceOf::Fleet, Source::Measured),
            evidence(EvidenceOf::P99, Source::Measured),
            evidence(EvidenceOf::Limit, Source::NotMeasured),
        ],
        server_files: vec![format!("{system}.conf")],
    }
}

fn boxes() -> BoxPlan {
    let count = |boxes: u32, at_least: f64, at_most: f64, known_by: KnownBy| BoxCount {
        boxes,
        at_least,
        at_most: Some(at_most),
        known_by,
    };
    BoxPlan {
        system: Some("mosquitto".into()),
        size: Some(MachineFile {
            cores: 0.1,
            memory: None,
        }),
        headroom: 3.0,
        boxes: Some(3),
        counts: vec![
            count(1, 1.1, 1.2, KnownBy::Measured),
            count(2, 2.2, 2.4, KnownBy::Measured),
            count(3, 3.2, 3.6, KnownBy::Independence),
            count(4, 4.3, 4.7, KnownBy::Measured),
        ],
        shared: vec!["caches and memory bandwidth".into()],
        not_told: vec![NotTold {
            why: WhyNotTold::OtherHardware,
            because: "boxes of other hardware".into(),
        }],
        remarks: vec!["mosquitto is the best of those that carry it and have a broker".into()],
        server_files: Vec::new(),
    }
}

pub fn sample() -> Advice {
    Advice {
        format: FORMAT.into(),
        fleet: "meters".into(),
        headroom: 3.0,
        choices: vec![
            choice(1, "mosquitto", Some(14.0)),
            choice(1, "hivemq", None),
            choice(2, "rabbitmq", Some(4.0)),
        ],
        undecided: vec![Undecided {
            system: "artemis".into(),
            because: "3 times the fleet: other programs used 1.9 of 2 processors".into(),
        }],
        left_out: vec![LeftOut {
            system: "zeromq-direct".into(),
            why: WhyOut::Lacks,
            asked: "delivery = \"at-least-once\"".into(),
            because: "ZeroMQ PUB/SUB has no acknowledgements".into(),
        }],
        others: vec![OtherFleet {
            change: Variation::Rate(10.0),
            system: "mosquitto".into(),
            carries: Carries::Yes,
            source: Source::Stored,
        }],
        boxes: Some(boxes()),
        remarks: vec!["readings: an absence of 8h is measured as one of 10 s".into()],
        not_measured: vec!["10 times the devices".into()],
        not_counted: vec![NotCounted::new("results/older", None, "another kernel")],
    }
}

#[test]
fn a_decision_is_on_one_sheet() {
    let mut browser = Browser::start();
    browser.media("", "light");
    browser.open(&advice_page(&sample(), STARTED, FLEET));
    let pdf = browser.pdf();
    let count = |what: &[u8]| pdf.windows(what.len()).filter(|w| *w == what).count();
    assert_eq!(count(b"/Type /Page") - count(b"/Type /Pages"), 1);
    let words = browser.eval("document.body.innerText");
    let words = words.as_str().expect("text");
    for part in [
        "Which middleware for meters?",
        "3 times the fleet · 5 systems, 3 carry it",
        "12 to 14",
        "3 boxes of 0.1 cores with mosquitto carry 3 times the fleet: 3.2 to 3.6 times (follows from the others)",
        "caches and memory bandwidth",
        "12 or more",
        "21.5 ±0.4 us",
        "10 times as often: mosquitto yes (stored)",
        "the fleet, p99: measured; the limit: not measured",
        "results/older: another kernel",
        "QoS 1 published, QoS 1 subscribed",
        "ZeroMQ PUB/SUB has no acknowledgements",
        "an absence of 8h is measured as one of 10 s",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(browser.errors.is_empty(), "{:#?}", browser.errors);
}

#[test]
fn the_text_of_a_fleet_runs_nothing() {
    let hostile = "# </pre><script>document.title = 'broken out'</script>\n";
    let mut advice = sample();
    advice.left_out[0].because = "<img src=x onerror=\"document.title='broken out'\">".into();
    let mut browser = Browser::start();
    browser.open(&advice_page(&advice, STARTED, hostile));
    let title = browser.eval("document.title");
    assert!(
        title
            .as_str()
            .expect("text")
            .starts_with("Which middleware"),
        "{title}"
    );
    assert_eq!(browser.eval("document.querySelectorAll('img').length"), 0);
}
