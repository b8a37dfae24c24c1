//! Runs with claims, and several studies.
#![allow(dead_code, reason = "each test file uses its part")]

use pubgauge_figures::claim::{ClaimCurve, ClaimOutcome, ClaimPicture, ClaimPoint, ClaimVerdict};
use pubgauge_figures::studies::Studies;
use pubgauge_figures::{FORMAT, Machine, Results, StudyInfo};
use pubgauge_report::studies::{collect_studies, outcome};

/// Two sides over three sizes; the last point of the second side is missing.
pub fn picture(part: &str) -> ClaimPicture {
    let side = |name: &str, values: &[(&str, f64, f64)]| ClaimCurve {
        side: name.into(),
        points: (values.iter())
            .map(|(at, number, value)| ClaimPoint {
                at: (*at).into(),
                number: Some(*number),
                value: *value,
                low: Some(value * 0.9),
                high: Some(value * 1.2),
            })
            .collect(),
    };
    ClaimPicture {
        part: part.into(),
        figure: "latency.p99".into(),
        axis: "payload".into(),
        sides: vec![
            side(
                "qos1",
                &[
                    ("64B", 64.0, 2e6),
                    ("1KiB", 1024.0, 3e6),
                    ("16KiB", 16384.0, 9e6),
                ],
            ),
            side("qos0", &[("64B", 64.0, 1e6), ("1KiB", 1024.0, 2e6)]),
        ],
    }
}

pub fn claim(id: &str, outcome: ClaimVerdict, pictures: Vec<ClaimPicture>) -> ClaimOutcome {
    ClaimOutcome {
        rule_is_later: false,
        kept_from: String::new(),
        stand_in: String::new(),
        id: id.into(),
        sentence: format!("QoS 1 costs | more than <QoS 0>, says {id}."),
        source: "nobody 2020, table 2".into(),
        rule: "latency.p99: qos1 > qos0 at every payload.".into(),
        outcome,
        reason: match outcome {
            ClaimVerdict::Holds => String::new(),
            _ => "the run has no nats".into(),
        },
        would_change: "qos1/qos0 at 64B: 1 instead of 2".into(),
        ours: "qos1/qos0 at 64B: 2 (1.9 to 2.1)".into(),
        papers: "1.6 times".into(),
        repeats_to_tell: None,
        pictures,
    }
}

pub fn results(name: &str, claims: Vec<ClaimOutcome>) -> Results {
    Results {
        format: FORMAT.into(),
        machine: Machine {
            cores: 2,
            cpu_model: "Some Processor".into(),
            memory_bytes: 8 << 30,
            os: "Debian 12".into(),
            kernel: "Linux 6.1.2-of-a-host".into(),
            ..Machine::default()
        },
        study: StudyInfo {
            name: name.into(),
            question: Some(format!("What does {name} <cost>?")),
            started: "2026-11-21T03:04:05Z".into(),
            ..StudyInfo::default()
        },
        trials: Vec::new(),
        searches: Vec::new(),
        not_measured: Vec::new(),
        claims,
        comparisons: Vec::new(),
        networks: Vec::new(),
    }
}

/// Two studies with claims, one with none.
pub fn three() -> Studies {
    let first = results(
        "first",
        vec![
            claim("C1", ClaimVerdict::Holds, vec![picture("")]),
            claim("C2", ClaimVerdict::NotApplicable, Vec::new()),
        ],
    );
    let second = results(
        "second",
        vec![
            claim(
                "C1",
                ClaimVerdict::DoesNotHold,
                vec![picture("a"), picture("b")],
            ),
            claim("D/4", ClaimVerdict::CannotTell, vec![picture("")]),
        ],
    );
    // In the order of their folders, whatever the order in which they are given.
    collect_studies(vec![
        outcome(&second, "b second"),
        outcome(&results("third", Vec::new()), "c"),
        outcome(&first, "a"),
    ])
}
