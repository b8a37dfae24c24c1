//! Rates that change over time: what the study's words become, and what is said of those that cannot be.

use std::path::Path;

use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, Study};
use pubgauge_workload::{Arrivals, RateCurve, RatePiece, SECOND};

fn study(flow: &str) -> Result<Study, InvalidInput> {
    let text = format!(
        "name = \"t\"\nphases = {{ measure = \"20s\" }}\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n\
         payload = \"64B\"\npublishers = 4\n{flow}"
    );
    Study::parse("study.toml", &text, Path::new("."))
}

fn plan(flow: &str) -> Result<Plan, InvalidInput> {
    study(flow)?.plan(&PlanOptions::with_systems(["mosquitto"]))
}

fn curve(flow: &str) -> (RateCurve, bool) {
    let plan = plan(flow).expect("sound");
    match &plan.trials[0].workload.flows[0].arrivals {
        Arrivals::Varying { curve, random } => ((**curve).clone(), *random),
        other => panic!("{other:?}"),
    }
}

#[test]
fn steps_ramps_and_days_become_lines() {
    let steps = "rate = { steps = [{ to = \"100/s\", for = \"10s\" }, { to = \"0/s\", for = \"5s\" }, { to = \"1/s-each\" }] }";
    let level = |per_s, s: u64| RatePiece::level(per_s, s * SECOND);
    let expected = RateCurve::steps(vec![level(100.0, 10), level(0.0, 5), level(4.0, 1)]);
    assert_eq!(curve(steps), (expected, false));

    let ramp = "rate = { ramp = { from = \"100/s\", to = \"10k/s\" } }\narrivals = \"poisson\"";
    let whole = |s: u64| RateCurve {
        stretched: true,
        ..RateCurve::ramp(100.0, 10_000.0, s * SECOND)
    };
    assert_eq!(curve(ramp), (whole(20), true));
    assert_eq!(curve(&format!("{ramp}\nstart = \"5s\"")), (whole(15), true));
    assert_eq!(curve(&format!("{ramp}\nlasts = \"7s\"")), (whole(7), true));
    let brief = "rate = { ramp = { from = \"1k/s\", to = \"0/s\", for = \"3s\" } }";
    assert_eq!(
        curve(brief),
        (RateCurve::ramp(1_000.0, 0.0, 3 * SECOND), false)
    );

    let day = "rate = { daily = { low = \"10/s\", high = \"1/s-each\", day = \"10s\" } }";
    let day = day.replace("10/s", "1/s");
    let expected = RateCurve::daily((1.0, 4.0), 10 * SECOND, 5 * SECOND);
    assert_eq!(curve(&day), (expected, false));
    let at = day.replace("day = ", "peak-at = \"2s\", day = ");
    let expected = RateCurve::daily((1.0, 4.0), 10 * SECOND, 2 * SECOND);
    assert_eq!(curve(&at), (expected, false));
}

/// A path leads into it, as grids and `--set` have them.
#[test]
fn its_values_are_those_of_a_grid() {
    let flow = "rate = { ramp = { from = \"1/s\", to = \"2/s\" } }\n[grid]\n\"workload.w.flow.rate.ramp.to\" = [\"10/s\", \"20/s\"]";
    let plan = plan(flow).expect("sound");
    let mut last: Vec<f64> = (plan.trials.iter())
        .map(|trial| match &trial.workload.flows[0].arrivals {
            Arrivals::Varying { curve, .. } => curve.pieces[0].to_per_s,
            other => panic!("{other:?}"),
        })
        .collect();
    last.sort_by(f64::total_cmp);
    assert_eq!(last, [10.0, 20.0]);
}

#[test]
fn steps_that_are_not_reached_are_told() {
    let steps = |s: u32| {
        format!(
            "rate = {{ steps = [{{ to = \"1/s\", for = \"{s}s\" }}, {{ to = \"9/s\", for = \"5s\" }}] }}"
        )
    };
    let told = |flow: &str| plan(flow).expect("sound").notes.join("\n");
    assert!(!told(&steps(10)).contains("not reached"));
    let note = told(&steps(20));
    assert!(
        note.contains("whole after 20 s, but it sends for 20 s"),
        "{note}"
    );
    let ramp = "rate = { ramp = { from = \"1/s\", to = \"9/s\", for = \"30s\" } }";
    assert!(told(ramp).contains("not reached"));
}

#[test]
fn what_is_written_is_what_is_read_again() {
    for flow in [
        "rate = { steps = [{ to = \"100/s\", for = \"10s\" }, { to = \"0/s\" }] }",
        "rate = { ramp = { from = \"1/s-each\", to = \"10k/s\" } }",
        "rate = { daily = { low = \"0/s\", high = \"10/s\", day = \"60s\", peak-at = \"20s\" } }",
    ] {
        let file = study(flow).and_then(|study| study.file()).expect("sound");
        let rate = file.workload[0].flow[0].rate.clone().expect("given");
        let written = serde_json::to_value(&rate).expect("JSON");
        assert_eq!(
            serde_json::from_value(written.clone()).ok(),
            Some(rate),
            "{written}"
        );
    }
}

#[test]
fn what_is_no_rate_over_time_is_refused_where_it_is_written() {
    // The text that is pointed at, and what is said of it.
    for (rate, at, said) in [
        ("{}", "{}", "an empty table is no rate"),
        ("{ stairs = [] }", "{ stairs = [] }", "`stairs`"),
        ("100", "100", "lacks its unit"),
        ("{ steps = [] }", "[]", "1 to 1000"),
        (
            "{ steps = [{ to = \"1/s\" }, { to = \"2/s\" }] }",
            "{ to = \"1/s\" }",
            "for how long",
        ),
        (
            "{ steps = [{ to = \"1/s\", for = \"0s\" }] }",
            "\"0s\"",
            "longer than 0",
        ),
        (
            "{ steps = [{ to = \"0/s\" }] }",
            "[{ to = \"0/s\" }]",
            "no step sends",
        ),
        ("{ steps = [{ to = \"max\" }] }", "\"max\"", "a number"),
        ("{ steps = [{ to = 5 }] }", "5", "lacks its unit"),
        ("{ steps = [{ till = \"1/s\" }] }", "till", "`till`"),
        (
            "{ ramp = { from = \"1/s\" } }",
            "{ from = \"1/s\" }",
            "`to`",
        ),
        (
            "{ ramp = { from = \"1/s\", to = \"1/s\" } }",
            "\"1/s\"",
            "does not change",
        ),
        (
            "{ ramp = { from = \"fast\", to = \"1/s\" } }",
            "\"fast\"",
            "fast",
        ),
        (
            "{ ramp = { from = \"1/s\", to = \"2/s\" }, steps = [] }",
            "{ ramp = { from = \"1/s\", to = \"2/s\" }, steps = [] }",
            "both `ramp` and `steps`",
        ),
        (
            "{ daily = { low = \"2/s\", high = \"1/s\", day = \"9s\" } }",
            "\"1/s\"",
            "more than `low`",
        ),
        (
            "{ daily = { low = \"1/s\", high = \"2/s\", day = \"9ms\" } }",
            "\"9ms\"",
            "at the least",
        ),
        (
            "{ daily = { low = \"1/s\", high = \"2/s\", day = \"9s\", peak-at = \"9s\" } }",
            "\"9s\"",
            "within the day",
        ),
        (
            "{ ramp = { from = \"1/s\", to = \"find\" } }",
            "\"find\"",
            "find",
        ),
    ] {
        let error = plan(&format!("rate = {rate}")).expect_err(rate);
        let problem = &error.problems[0];
        let text = error.to_string();
        assert!(text.contains(said), "{rate}: {text}");
        assert_eq!(problem.line, Some(8), "{rate}: {text}");
        let line: Vec<char> = problem.source_line.chars().collect();
        let pointed: String = line[problem.caret.clone()].iter().collect();
        assert_eq!(pointed, at, "{rate}: {text}");
    }
    for (more, said) in [
        (
            "bursts = { on = \"1s\", off = \"1s\" }",
            "leave `bursts` out",
        ),
        ("burst = 3", "leave `rate` out"),
        ("window = 3", "keeps to its schedule"),
    ] {
        let flow = format!("rate = {{ ramp = {{ from = \"1/s\", to = \"2/s\" }} }}\n{more}");
        let text = plan(&flow).expect_err(more).to_string();
        assert!(text.contains(said), "{more}: {text}");
    }
}
