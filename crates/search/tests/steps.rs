//! Single steps of a search.

use pubgauge_search::{Bound, Finding, Question, Seen, Step, found, next};

fn seen(step: Step, finding: Finding) -> Seen {
    Seen {
        step,
        achieved: 1000.0,
        finding,
        seconds: 5.0,
    }
}

#[test]
fn what_told_nothing_before_does_not_count_against_a_load() {
    let question = Question::default();
    let short = Step::Short(900.0);
    let mut all = vec![
        seen(Step::FlatOut, Finding::Nothing),
        seen(Step::FlatOut, Finding::Within),
        seen(short, Finding::Client),
        seen(short, Finding::Client),
    ];
    assert_eq!(next(&question, &all), short, "twice is not three times");
    all.push(seen(short, Finding::Client));
    assert_ne!(next(&question, &all), short);
    assert_eq!(found(&question, &all).bound, Bound::Client);
}

#[test]
fn three_trials_that_tell_nothing_end_it() {
    let question = Question::default();
    let mut all = vec![seen(Step::FlatOut, Finding::Nothing); 2];
    assert_eq!(next(&question, &all), Step::FlatOut);
    all.push(all[0]);
    assert_eq!(next(&question, &all), Step::End);
    let found = found(&question, &all);
    assert_eq!(
        (found.low, found.high, found.bound),
        (None, None, Bound::Budget)
    );
}

#[test]
fn a_client_at_its_end_flat_out_is_no_trouble() {
    let question = Question::default();
    let all = [seen(Step::FlatOut, Finding::Client)];
    assert_eq!(next(&question, &all), Step::Short(900.0));
}
