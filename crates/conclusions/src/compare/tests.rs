use std::sync::LazyLock;

use pubgauge_figures::model::{AxisValue, Results};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use sample::{QUIET, SLOWER, Scatter, of_system, results, run, systems, trial};

#[path = "sample.rs"]
pub(super) mod sample;

fn runs(a: &Results, b: &Results, margin: f64) -> Comparison {
    let all = Choice::default();
    let pairing = pair([a, b], [&all, &all], None).unwrap();
    compare(&pairing.pairs, &[], margin)
}

fn rows(comparison: &Comparison) -> Vec<(&str, Difference)> {
    let rows = comparison.sections.iter().flat_map(|s| &s.rows);
    rows.map(|row| (&*row.figure.name, row.verdict)).collect()
}

fn told_apart(comparison: &Comparison) -> bool {
    let apart = |(_, verdict)| matches!(verdict, Difference::Better | Difference::Worse);
    rows(comparison).into_iter().any(apart)
}

/// Verdicts of 100 comparisons, of two systems of one run and of two runs.
type Hundred = Vec<(Comparison, Comparison)>;

fn hundred(b: Scatter) -> Hundred {
    (1..=100)
        .map(|seed| {
            let both = run(seed, 5, QUIET, b);
            let of = |name: &str, from: &Results| {
                let mut trials = from.trials.clone();
                trials.retain(|t| t.system.name == name);
                results(trials)
            };
            let another = run(seed + 1000, 5, QUIET, b);
            (
                systems(&both, 0.05),
                runs(&of("a", &both), &of("b", &another), 0.05),
            )
        })
        .collect()
}

static SAME: LazyLock<Hundred> = LazyLock::new(|| hundred(QUIET));
static DIFFERENT: LazyLock<Hundred> = LazyLock::new(|| hundred(SLOWER));

#[test]
fn identical_systems_are_seldom_told_apart() {
    let paired = SAME.iter().filter(|(c, _)| told_apart(c)).count();
    let apart = SAME.iter().filter(|(_, c)| told_apart(c)).count();
    assert!(paired <= 5, "{paired} of 100 in one run");
    assert!(apart <= 5, "{apart} of 100 in two runs");
}

#[test]
fn ten_per_cent_are_found() {
    let finds = |c: &Comparison| {
        let rows = rows(c);
        let is = |name, verdict| rows.contains(&(name, verdict));
        for wrong in [Difference::Better, Difference::Same] {
            assert!(!is("latency.p50", wrong), "{rows:?}");
        }
        is("latency.p50", Difference::Worse) && c.verdict() == Difference::Worse
    };
    let paired = DIFFERENT.iter().filter(|(c, _)| finds(c)).count();
    let apart = DIFFERENT.iter().filter(|(_, c)| finds(c)).count();
    assert!(paired >= 80, "{paired} of 100 in one run");
    // Between runs, the drift that both have in common is not removed.
    assert!((1..paired).contains(&apart), "{apart} of 100 in two runs");
}

#[test]
fn enough_repeats_show_that_two_systems_are_the_same() {
    let c = systems(&run(1, 40, QUIET, QUIET), 0.05);
    assert_eq!(c.verdict(), Difference::Same, "{c:?}");
    let c = systems(&run(1, 40, QUIET, SLOWER), 0.05);
    let worse = ["latency.p50", "latency.p99", "cpu-per-message"];
    for (name, verdict) in rows(&c) {
        let expected = if worse.contains(&name) {
            Difference::Worse
        } else {
            Difference::Same
        };
        assert_eq!(verdict, expected, "{name}");
    }
    // In the other direction it is better; and 10 % are the same with a margin of 20 %.
    let faster = Scatter {
        times: 1.0 / 1.1,
        ..QUIET
    };
    let c = systems(&run(1, 40, QUIET, faster), 0.05);
    assert!(rows(&c).contains(&("latency.p99", Difference::Better)));
    assert!(c.verdict() < Difference::CannotTell);
    let c = systems(&run(1, 40, QUIET, SLOWER), 0.2);
    assert_eq!(c.verdict(), Difference::Same, "{c:?}");
}

#[test]
fn a_rate_that_falls_is_worse() {
    let mut run = run(2, 5, QUIET, QUIET);
    for t in run.trials.iter_mut().filter(|t| t.system.name == "b") {
        t.messages.delivered_msgs_per_s *= 0.5;
    }
    let c = systems(&run, 0.05);
    let row = c.sections[0]
        .rows
        .iter()
        .find(|r| r.figure.name == "delivered-rate")
        .unwrap();
    assert_eq!(row.verdict, Difference::Worse);
    let change = row.change.unwrap();
    assert!(
        change.relative && (change.effect + 0.5).abs() < 0.05,
        "{change:?}"
    );
    assert!(change.low < change.effect && change.effect < change.high);
}

#[test]
fn a_single_repeat_cannot_tell() {
    let c = systems(
        &run(
            3,
            1,
            QUIET,
            Scatter {
                times: 10.0,
                ..QUIET
            },
        ),
        0.05,
    );
    for row in &c.sections[0].rows {
        assert_eq!(row.verdict, Difference::CannotTell, "{row:?}");
        assert!(
            row.why.as_ref().unwrap().contains("a single repeat"),
            "{row:?}"
        );
        assert_eq!(row.change, None);
    }
    assert_eq!(c.intervals, 0);
}

#[test]
fn a_system_at_its_end_cannot_be_compared_and_a_spoilt_repeat_is_left_out() {
    let slow = Scatter {
        times: 2.0,
        ..QUIET
    };
    for (status, words) in [
        (Status::Overloaded, "B: 1 of 5 repeats overloaded"),
        (Status::Lossy, "B: 1 of 5 repeats lossy"),
        (Status::Broken, "B: 1 of 5 repeats broken"),
    ] {
        let mut run = run(4, 5, QUIET, slow);
        run.trials[3].verdict.status = status;
        let c = systems(&run, 0.05);
        for row in c.sections[0]
            .rows
            .iter()
            .filter(|r| r.figure.name != "loss-share")
        {
            assert_eq!(row.verdict, Difference::CannotTell, "{row:?}");
            assert_eq!(row.why.as_deref(), Some(words));
        }
    }
    for status in [Status::ClientBound, Status::Unsteady] {
        let mut run = run(4, 5, QUIET, slow);
        run.trials[3].verdict.status = status;
        let c = systems(&run, 0.05);
        let p50 = &c.sections[0].rows[0];
        assert_eq!(
            (&*p50.figure.name, p50.verdict),
            ("latency.p50", Difference::Worse)
        );
        assert_eq!(p50.a.unwrap().n, 4, "its partner is left out too");
        for t in run.trials.iter_mut().filter(|t| t.system.name == "b") {
            t.verdict.status = status;
        }
        assert_eq!(
            systems(&run, 0.05).sections[0].rows[0].verdict,
            Difference::CannotTell
        );
    }
}

#[test]
fn losses_are_compared_where_they_happened() {
    let mut run = run(5, 5, QUIET, QUIET);
    let loss = |c: &Comparison| {
        let row = c.sections[0]
            .rows
            .iter()
            .find(|r| r.figure.name == "loss-share");
        row.cloned().unwrap()
    };
    let none = loss(&systems(&run, 0.05));
    assert_eq!((none.verdict, none.why.clone()), (Difference::Same, None));
    for (n, t) in run
        .trials
        .iter_mut()
        .filter(|t| t.system.name == "b")
        .enumerate()
    {
        t.verdict.status = Status::Lossy;
        t.shortfall.lost = 100 + n as u64;
    }
    let some = loss(&systems(&run, 0.05));
    assert_eq!(some.verdict, Difference::Worse, "{some:?}");
    let change = some.change.unwrap();
    assert!(
        !change.relative && (change.effect - 0.0102).abs() < 1e-9,
        "{change:?}"
    );
    // A loss in one of five repeats may be chance.
    for t in &mut run.trials {
        t.shortfall.lost = 0;
    }
    run.trials[3].shortfall.lost = 7;
    assert_eq!(loss(&systems(&run, 0.05)).verdict, Difference::CannotTell);
}

/// The mean of three logarithms that are equal may be rounded to another number: that is no spread.
#[test]
fn three_equal_counts_tell_nothing() {
    use pubgauge_figures::on_request::{SyscallCounts, SystemCalls};
    let side = |name: &str, syncs: u64| {
        let mut trials = run(6, 3, QUIET, QUIET).trials;
        trials.retain(|t| t.system.name == name);
        for t in &mut trials {
            let system = Some(SyscallCounts {
                syncs,
                ..SyscallCounts::default()
            });
            t.system_calls = Some(SystemCalls {
                system,
                ..SystemCalls::default()
            });
        }
        results(trials)
    };
    let (a, b, all) = (side("a", 5), side("b", 6), Choice::default());
    let found = pair([&a, &b], [&all, &all], None).unwrap();
    let figures = [NamedFigure::named("system-sync-calls").unwrap()];
    let compared = compare(&found.pairs, &figures, 0.05);
    assert_eq!(compared.verdict(), Difference::CannotTell);
}

/// Counts are whole numbers: of few repeats all may be equal by chance. Before, two repeats told two sides apart.
#[test]
fn equal_repeats_are_told_apart_once_there_are_enough() {
    let loss = |pairs: u32, apart: bool| {
        let mut both = run(6, pairs, QUIET, QUIET);
        for t in &mut both.trials {
            t.verdict.status = Status::Lossy;
            t.shortfall.lost = 1 + u64::from(t.system.name == "b");
        }
        let figures = [NamedFigure::named("loss-share").unwrap()];
        let c = if apart {
            let of = |name: &str| {
                let mine = both.trials.iter().filter(|t| t.system.name == name);
                results(mine.cloned().collect())
            };
            let (a, b, all) = (of("a"), of("b"), Choice::default());
            let found = pair([&a, &b], [&all, &all], None).unwrap();
            compare(&found.pairs, &figures, 0.05)
        } else {
            let [a, b] = [of_system("a"), of_system("b")];
            let found = pair([&both, &both], [&a, &b], None).unwrap();
            compare(&found.pairs, &figures, 0.05)
        };
        c.verdict()
    };
    for (pairs, apart, verdict) in [
        (2, false, Difference::CannotTell),
        (5, false, Difference::CannotTell),
        (6, false, Difference::Worse),
        (2, true, Difference::CannotTell),
        (3, true, Difference::CannotTell),
        (4, true, Difference::Worse),
    ] {
        assert_eq!(loss(pairs, apart), verdict, "{pairs} pairs, {apart}");
    }
}

/// Repeats for undecided claims come after the rounds that were asked for, and not of every cell.
#[test]
fn a_run_with_more_repeats_of_some_cells_is_complete() {
    use pubgauge_figures::comparison::Ended;

    let mut trials = run(1, 5, QUIET, QUIET).trials;
    for t in &mut trials {
        t.cell.clone_from(&t.system.name);
    }
    let question = ComparisonRule {
        precision: None,
        margin: 0.05,
        guard: false,
        figures: Vec::new(),
        most: 3,
        seconds: f64::INFINITY,
        shuffled: None,
        ablation: None,
    };
    let cells = ["a", "b"].map(|name| CellOf {
        cell: name.into(),
        system: name.into(),
        settings: "default".into(),
        workload: "fleet".into(),
        axes: Vec::new(),
    });
    let ended = |trials: &[Trial]| conclude(&question, &cells, trials, 0.0)[0].ended;
    trials.retain(|t| t.repeat <= 3 || t.system.name == "a");
    assert_eq!(ended(&trials), Ended::Repeats);
    assert_eq!(ended(&trials[..5]), Ended::Cut);
}

/// A trial that a hypervisor slowed shows nothing of the system, whatever its verdict.
#[test]
fn what_a_hypervisor_slowed_is_spoilt() {
    use pubgauge_figures::model::{Reason, Rule};

    let mut slowed = run(1, 2, QUIET, QUIET).trials.remove(0);
    for status in [Status::Overloaded, Status::Lossy, Status::Valid] {
        slowed.verdict.status = status;
        slowed.verdict.reasons.clear();
        assert!(!spoilt(&slowed), "{status:?}");
        let stolen = Reason::new(Rule::TimeStolen, "a hypervisor took it");
        slowed.verdict.reasons.push(stolen);
        assert!(spoilt(&slowed), "{status:?}");
    }
}

#[test]
fn cells_find_their_partners() {
    let with_axis = |value: &str, id: u32| {
        let mut draws = StdRng::seed_from_u64(7);
        let mut t = trial(&mut draws, 0.0, QUIET, id, "mosquitto", 1);
        t.cell = value.into();
        t.axes = vec![AxisValue {
            name: "payload".into(),
            value: value.into(),
        }];
        t
    };
    let a = results(vec![with_axis("64B", 0), with_axis("1KiB", 1)]);
    let mut b = results(vec![with_axis("1KiB", 0), with_axis("2KiB", 1)]);
    b.machine.kernel = "another".into();
    b.trials[0].system.version = "2".into();
    let all = Choice::default();
    let found = pair([&a, &b], [&all, &all], None).unwrap();
    assert_eq!(found.pairs.len(), 1);
    assert_eq!(found.pairs[0].title, "fleet, payload = 1KiB");
    let not_compared = found.not_compared.iter().map(ToString::to_string);
    assert_eq!(
        not_compared.collect::<Vec<_>>(),
        [
            "fleet, payload = 64B: only in A",
            "fleet, payload = 2KiB: only in B"
        ]
    );
    assert_eq!(
        found.remarks,
        [
            "the kernel differs:  in A, another in B",
            "the version of mosquitto differs: 1 in A, 2 in B"
        ]
    );
    // Runs of one system each are compared whatever its name; different workloads are not.
    b.trials[0].system.name = "nats".into();
    b.trials.truncate(1);
    assert_eq!(pair([&a, &b], [&all, &all], None).unwrap().pairs.len(), 1);
    b.trials[0].workload.payload = "1 KiB".into();
    let error = pair([&a, &b], [&all, &all], None).unwrap_err().to_string();
    assert!(
        error.contains("another workload under the same name"),
        "{error}"
    );
    // The error names what is missing, and what there is.
    let error = pair([&a, &b], [&of_system("nat"), &all], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "A has no system `nat`\n  hint: it has mosquitto"
    );
    let error = pair([&a, &a], [&all, &all], None).unwrap_err();
    assert!(error.to_string().contains("name a second run"), "{error}");
    let both = run(1, 2, QUIET, QUIET);
    let error = pair([&both, &both], [&all, &all], None).unwrap_err();
    assert!(error.to_string().contains("--systems a,b"), "{error}");
}

/// Trials of a search differ in load: they are no repeats of a cell.
#[test]
fn trials_of_searches_are_not_compared() {
    use pubgauge_figures::search::{LimitedBy, Purpose, Search, SearchStep};

    let mut both = run(1, 2, QUIET, QUIET);
    let [a, b] = [of_system("a"), of_system("b")];
    for trial in both.trials.iter_mut().filter(|t| t.repeat == 2) {
        trial.search = Some(SearchStep {
            search: 0,
            purpose: Purpose::Short,
            load: Some(1.0),
        });
    }
    let repeats = |r: &Results| pair([r, r], [&a, &b], None).unwrap().pairs[0].a.len();
    assert_eq!(repeats(&both), 2, "the run tells of no search");
    both.searches = vec![Search {
        system: "a".into(),
        settings: String::new(),
        workload: "w".into(),
        axes: Vec::new(),
        axis: pubgauge_figures::search::Axis::Rate,
        low: None,
        high: None,
        confirmed: None,
        bound: LimitedBy::System,
        gave_way: None,
        notes: Vec::new(),
        bursts: None,
        trials: Vec::new(),
    }];
    assert_eq!(repeats(&both), 1);
    both.trials.retain(|trial| trial.search.is_some());
    let error = pair([&both, &both.clone()], [&a, &b], None).unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("A: 2 trials of searches for a limit"),
        "{words}"
    );
}

#[test]
fn repeats_in_turns_are_pairs_and_others_are_not() {
    let mut both = run(1, 3, QUIET, QUIET);
    let [a, b] = [of_system("a"), of_system("b")];
    let in_turns = |r: &Results| pair([r, r], [&a, &b], None).unwrap().pairs[0].interleaved;
    assert!(in_turns(&both));
    // All trials of one system, then all of the other.
    for t in &mut both.trials {
        t.id = if t.system.name == "a" {
            t.repeat
        } else {
            10 + t.repeat
        };
    }
    assert!(!in_turns(&both));
}

/// A spoilt trial that was repeated in its round is not a pair, whatever the figure.
#[test]
fn of_a_round_the_last_trial_counts() {
    let mut again = run(3, 8, QUIET, SLOWER);
    let plain = systems(&again, 0.05);
    let mut spoilt = again.trials[2].clone();
    spoilt.verdict.status = Status::ClientBound;
    (spoilt.shortfall.lost, spoilt.messages.duplicated) = (5_000, 5_000);
    again.trials.insert(2, spoilt);
    for (id, trial) in (0..).zip(&mut again.trials) {
        trial.id = id;
    }
    assert_eq!(systems(&again, 0.05).sections, plain.sections);
}

#[test]
fn speeds_of_counted_trials_are_compared_with_those_of_counted_ones_alone() {
    use pubgauge_figures::on_request::SystemCalls;
    let figures =
        ["latency.p50", "delivered-rate", "loss-share"].map(|n| NamedFigure::named(n).unwrap());
    let rows = |which: &[&str]| {
        let mut both = run(1, 40, QUIET, SLOWER);
        for trial in &mut both.trials {
            let counted = which.contains(&trial.system.name.as_str());
            trial.system_calls = counted.then(SystemCalls::default);
        }
        let [a, b] = [of_system("a"), of_system("b")];
        let pairing = pair([&both, &both], [&a, &b], None).unwrap();
        let comparison = compare(&pairing.pairs, &figures, 0.05);
        let rows = comparison.sections.into_iter().flat_map(|s| s.rows);
        rows.map(|row| (row.verdict, row.why)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[]), rows(&["a", "b"]));
    assert_eq!(rows(&[])[0].0, Difference::Worse);
    for one in ["a", "b"] {
        let rows = rows(&[one]);
        let [latency, rate, loss] = &rows[..] else {
            panic!("three rows")
        };
        for (verdict, why) in [latency, rate] {
            assert_eq!(*verdict, Difference::CannotTell);
            assert!(
                why.as_ref().unwrap().contains("were counted in some"),
                "{why:?}"
            );
        }
        // Lost messages count, however fast the trial was.
        assert_eq!(loss.0, Difference::Same);
    }
}

/// Only what holds whatever the verdict is compared where the client was the limit; a worker's load is not.
#[test]
fn shares_of_the_client_are_of_valid_trials_alone() {
    let mut both = run(1, 40, QUIET, SLOWER);
    for trial in &mut both.trials {
        trial.verdict.status = Status::ClientBound;
        trial.worker_load.publishers_running = 0.9;
    }
    let figures = ["publishers-load", "client-cpu-share", "loss-share"];
    let figures = figures.map(|name| NamedFigure::named(name).unwrap());
    let [a, b] = [of_system("a"), of_system("b")];
    let pairing = pair([&both, &both], [&a, &b], None).unwrap();
    let rows = compare(&pairing.pairs, &figures, 0.05).sections.into_iter();
    let told: Vec<_> = rows.flat_map(|s| s.rows).map(|row| row.verdict).collect();
    let cannot = Difference::CannotTell;
    assert_eq!(told, [cannot, cannot, Difference::Same]);
}

/// A figure that is 0 in some repeats has no relative change, and only shares have percentage points.
#[test]
fn a_count_that_is_0_in_some_repeats_has_no_change() {
    use pubgauge_figures::on_request::{SyscallCounts, SystemCalls};
    let mut both = run(1, 40, QUIET, SLOWER);
    for trial in &mut both.trials {
        trial.shortfall.lost = u64::from(trial.repeat % 2) * 10;
        let system = SyscallCounts {
            syncs: u64::from(trial.repeat % 2),
            ..SyscallCounts::default()
        };
        trial.system_calls = Some(SystemCalls {
            system: Some(system),
            ..SystemCalls::default()
        });
    }
    let figures = ["system-sync-calls", "loss-share"].map(|name| NamedFigure::named(name).unwrap());
    let [a, b] = [of_system("a"), of_system("b")];
    let pairing = pair([&both, &both], [&a, &b], None).unwrap();
    let comparison = compare(&pairing.pairs, &figures, 0.05);
    let shown = format!("{comparison:?}");
    let rows: Vec<_> = comparison
        .sections
        .into_iter()
        .flat_map(|s| s.rows)
        .collect();
    assert!(
        rows[0].change.is_none() && rows[0].why.as_ref().unwrap().contains("0 in some"),
        "{shown}"
    );
    assert!(
        rows[1].change.is_some_and(|change| !change.relative),
        "{shown}"
    );
    assert!(
        NamedFigure::named("lost").is_none(),
        "shares are compared instead"
    );
}
