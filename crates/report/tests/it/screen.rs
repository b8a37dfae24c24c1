//! The answer on one screen of the terminal.

use crate::sample;

use pubgauge_figures::model::{Evidence, Verdict};
use pubgauge_figures::{Reason, Results, Rule, Status};
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
