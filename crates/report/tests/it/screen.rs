//! The answer on one screen of the terminal.

use crate::sample;

use pubgauge_figures::claim::ClaimVerdict;
use pubgauge_figures::model::{Evidence, Verdict};
use pubgauge_figures::{Distribution, Reason, Results, Rule, Status};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_report::{Onward, markdown, screen};

fn onward() -> Onward {
    Onward {
        page: Some("first-look/report.html".into()),
        next: Some(("pubgauge find --on nats".into(), "how far each goes")),
    }
}

/// The lines of a screen of 80 columns, of which none is longer.
fn shown(results: &Results) -> String {
    let text = screen(results, 80, &onward());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    text
}

#[test]
fn one_repeat_leaves_contests_open() {
    insta::assert_snapshot!(shown(&sample::run(1).0));
}

#[test]
fn five_repeats_decide() {
    insta::assert_snapshot!(shown(&sample::run(5).0));
}

#[test]
fn searches_are_the_answer() {
    insta::assert_snapshot!(shown(&sample::searches::run().0));
}

/// Each cell that other programs spoilt is *cannot tell*, and they are named once.
#[test]
fn one_cause_is_told_once() {
    let (mut results, _) = sample::run(2);
    for trial in &mut results.trials {
        let reason = Reason::new(Rule::OthersBusy, "other programs kept 1.9 of 2 busy");
        let reason = reason.limited(Evidence::WaitedForOthers, 0.2, 0.05);
        trial.worker_load.machine_others = Some(1.9);
        trial.verdict = Verdict {
            status: Status::ClientBound,
            others_busy: Some(reason.clone()),
            reasons: vec![reason],
            ..Verdict::default()
        };
    }
    let text = shown(&results);
    assert_eq!(text.matches("other programs").count(), 1, "{text}");
    assert!(text.contains("others used up to 1.90 of them"), "{text}");
    assert!(text.contains("Run again"), "{text}");
}

/// The summary of a step in CI has the screen's words.
#[test]
fn the_answer_in_markdown() {
    insta::assert_snapshot!(markdown(&sample::run(5).0));
}

/// Searches have columns of their own, and a name is no markup.
#[test]
fn searches_and_odd_names_in_markdown() {
    let (mut results, _) = sample::searches::run();
    results.study.name = "a|b <img src=x> `c`".into();
    let text = markdown(&results);
    assert!(
        text.starts_with("### a\\|b \\<img src=x\\> \\`c\\`"),
        "{text}"
    );
    assert_eq!(text.matches("```").count() % 2, 0, "{text}");
    assert!(text.contains("at least"), "{text}");
}

/// A name from somebody's file must not control the terminal.
#[test]
fn names_have_no_control_characters() {
    let (mut results, _) = sample::run(1);
    for trial in &mut results.trials {
        trial.system.name = "a\u{1b}[2Jb".into();
        trial.workload.name = "w\r\n\u{7}".into();
    }
    results.study.name = "s\u{1b}c".into();
    let text = screen(&results, 80, &onward());
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!text.contains(is_control), "{text:?}");
}

/// Where nobody publishes, the matrix has how many clients were held, and the memory of the system for each.
#[test]
fn idle_clients_are_connections_with_their_memory() {
    let mut idle = TrialBuilder::periodic(1.0, 1.0)
        .system("mosquitto")
        .workload("idle")
        .status(Status::Valid)
        .build();
    (idle.workload.publishers, idle.workload.subscribers) = (0, 3000);
    idle.messages = Default::default();
    idle.messages.latency_ns = Distribution::default();
    idle.connections.made = 3000;
    idle.system_rss_bytes = Some(3000 * 9 * 1024);
    let text = shown(&Results {
        trials: vec![idle],
        ..Results::default()
    });
    assert!(text.contains("3000 idle clients"), "{text}");
    assert!(
        text.contains("yes 3000 connections, 9.00 KiB each"),
        "{text}"
    );
}

/// Where most systems ran few of the workloads, there is a line for each that was run, not a matrix of holes.
#[test]
fn few_cells_of_many_are_a_list() {
    let trials = (0..25).map(|number| {
        TrialBuilder::periodic(100.0, 10.0)
            .cell(format!("w{number} s{number}"))
            .system(format!("s{number}"))
            .workload(format!("w{number}"))
            .times(1_000_000, 2_000_000)
            .status(Status::Valid)
            .build()
    });
    let text = shown(&Results {
        trials: trials.collect(),
        ..Results::default()
    });
    let is_listed = |number: u32| {
        let line = |line: &&str| line.contains(&format!("w{number} ")) && line.contains("yes");
        text.lines().filter(line).count() == 1
    };
    assert!((0..18).all(is_listed), "{text}");
    assert!(
        !is_listed(18) && text.contains("and 7 more rows (-v, or the page)"),
        "{text}"
    );
}

/// Of many claims the screen has those that are decided, and how many there are of each outcome.
#[test]
fn many_claims_are_brief() {
    let (mut results, _) = sample::run(1);
    results.claims = (0..30)
        .map(|number| {
            let outcome = match number % 3 {
                0 => ClaimVerdict::Holds,
                _ => ClaimVerdict::CannotTell,
            };
            sample::claims::claim(&format!("K{number:02}"), outcome, Vec::new())
        })
        .collect();
    let text = shown(&results);
    for (id, is_told) in [("K00", true), ("K21", true), ("K24", false), ("K01", false)] {
        assert_eq!(text.contains(&format!("{id} ")), is_told, "{id}: {text}");
    }
    assert!(text.contains("and 2 more that are decided"), "{text}");
    assert!(text.contains("holds 10, cannot tell 20"), "{text}");
}

/// A workload of several flows has a column for each beside its own.
#[test]
fn flows_have_columns_of_their_own() {
    let trial = TrialBuilder::periodic(1000.0, 10.0)
        .system("mosquitto")
        .workload("meters")
        .times(1_000_000, 2_000_000)
        .status(Status::Valid)
        .flows(&["readings", "commands"])
        .build();
    let results = Results {
        trials: vec![trial],
        ..Results::default()
    };
    let text = shown(&results);
    let line = |start: &str| {
        text.lines()
            .find(|line| line.trim_start().starts_with(start))
            .unwrap()
    };
    let heads: Vec<&str> = line("meters").split_whitespace().collect();
    assert_eq!(heads, ["meters", "readings", "commands"], "{text}");
    assert_eq!(
        line("mosquitto").matches("yes p99 2.00 ms").count(),
        3,
        "{text}"
    );
    assert!(
        markdown(&results).contains(" readings | commands |"),
        "{text}"
    );
}
