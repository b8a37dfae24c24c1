//! Studies in which a value is searched for.

use std::path::Path;

use pubgauge_search::Axis;
use pubgauge_study::{KnownSystems, NoLoad, Plan, PlanOptions, ShareOfLimit, Study};
use pubgauge_workload::{Arrivals, SECOND, Until};

fn plan(text: &str) -> Result<Plan, String> {
    let study = Study::parse("study.toml", text, Path::new("")).expect("TOML");
    let options = PlanOptions {
        known: KnownSystems {
            all: vec!["a".into(), "b".into()],
            ..KnownSystems::default()
        },
        on: vec!["a".into(), "b".into()],
        repeats: None,
    };
    study.plan(&options).map_err(|error| error.to_string())
}

fn study(flow: &str, more: &str) -> String {
    format!("name = \"s\"\n{more}\n[[workload]]\nname = \"w\"\n[[workload.flow]]\n{flow}\n")
}

/// Messages a second of the only flow of a trial.
fn per_s(arrivals: &Arrivals) -> Option<f64> {
    match arrivals {
        Arrivals::Periodic { per_s } => Some(*per_s),
        _ => None,
    }
}

#[test]
fn a_search_asks_for_loads() {
    let text = study(
        "publishers = 4\nrate = \"find\"\npayload = \"64B\"",
        "[grid]\npayload = [\"64B\", \"1KiB\"]",
    );
    let plan = plan(&text).expect("a sound study");
    assert_eq!(plan.trials.len(), 4);
    let search = plan.search.as_ref().expect("a search");
    assert_eq!(search.long, 45 * SECOND);
    assert_eq!((plan.searches().count(), plan.plain().count()), (4, 0));
    for template in &plan.trials {
        assert_eq!(template.seeks(), Some(Axis::Rate));
        assert_eq!(template.workload.phases.measure, Until::Time(5 * SECOND));
        assert!(template.workload.flows[0].arrivals.is_flat_out());
        let trial = template
            .seeking(Some(1234.5), 7 * SECOND)
            .expect("possible");
        let flow = &trial.workload.flows[0];
        assert_eq!(per_s(&flow.arrivals), Some(1234.5));
        assert_eq!(
            flow.size, template.workload.flows[0].size,
            "the grid's payload stays"
        );
        assert_eq!(flow.publishers.len(), 4);
        assert_eq!(trial.workload.phases.measure, Until::Time(7 * SECOND));
        assert_eq!(trial.system, template.system);
        assert!(trial.cell.starts_with(&template.cell) && trial.cell.ends_with("rate=1234.5/s"));
        assert_eq!(trial.axes.last(), Some(&("rate".into(), "1234.5/s".into())));
        let flat_out = template.seeking(None, SECOND).expect("possible");
        assert!(flat_out.workload.flows[0].arrivals.is_flat_out());
    }
    assert_eq!(
        plan.duration_estimate(),
        4 * 8 * 60 * SECOND,
        "at most 8 min each"
    );
    // A stored search goes on as a search.
    let again = self::plan(&plan.resolved).expect("a sound study");
    assert!(again.trials.iter().all(|t| t.seeks() == Some(Axis::Rate)));
    assert_eq!(again.resolved, plan.resolved);
}

#[test]
fn a_searched_workload_has_its_own_length_before_the_studys() {
    let flow = "rate = \"find\"\npayload = \"64B\"";
    let measured = |text: &str| {
        let plan = plan(text).expect("a sound study");
        plan.trials[0].workload.phases.measure
    };
    let studys = study(flow, "[phases]\nmeasure = \"3s\"");
    assert_eq!(measured(&studys), Until::Time(3 * SECOND));
    let own = studys.replace(
        "name = \"w\"",
        "name = \"w\"\nphases = { measure = \"2s\" }",
    );
    assert_eq!(measured(&own), Until::Time(2 * SECOND));
    let neither = own.replace("[phases]\nmeasure = \"3s\"", "");
    assert_eq!(measured(&neither), Until::Time(2 * SECOND));
}

#[test]
fn all_that_can_be_searched_for() {
    for axis in Axis::ALL {
        let text = study(
            &format!(
                "rate = \"8/s\"\npayload = \"64B\"\n{} = \"find\"",
                axis.name()
            ),
            "",
        );
        let text = match axis {
            // Back to back is no rate.
            Axis::Burst => text.replace("rate = \"8/s\"\n", ""),
            _ => text,
        };
        let keys = ["rate", "payload"].map(|key| (key, format!("{key} = \"find\"")));
        let mut lines: Vec<&str> = text.lines().collect();
        for (key, find) in &keys {
            if text.contains(find.as_str()) {
                lines.retain(|line| !line.starts_with(key) || *line == find);
            }
        }
        let plan = plan(&lines.join("\n")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(plan.trials[0].seeks(), Some(axis));
        let load = axis.range().0 * 4.0;
        let trial = plan.trials[0]
            .seeking(Some(load), SECOND)
            .expect("possible");
        assert!(
            trial
                .cell
                .ends_with(&format!("{}={}", axis.name(), axis.written(load)))
        );
        let workload = &trial.workload;
        let devices = workload.devices.len();
        match axis {
            Axis::Publishers => assert_eq!(workload.flows[0].publishers.len(), 4),
            Axis::Subscribers => assert_eq!(workload.flows[0].subscribers.len(), 4),
            Axis::Topics => assert_eq!(workload.flows[0].publishers[0].topics.len(), 4),
            Axis::Rate => assert_eq!(per_s(&workload.flows[0].arrivals), Some(4.0)),
            Axis::Payload => assert_eq!(devices, 2),
            Axis::Burst => assert_eq!(
                workload.flows[0].arrivals,
                Arrivals::Bursts {
                    messages: 4,
                    every: None
                }
            ),
        }
    }
}

#[test]
fn of_pairs_their_number_is_searched_for() {
    let flow = "pattern = \"1-1\"\npublishers = \"find\"\nrate = \"8/s-each\"\npayload = \"64B\"";
    let plan = plan(&study(flow, "")).expect("a sound study");
    let trial = &plan.trials[0];
    assert_eq!(trial.seeks(), Some(Axis::Publishers));
    for pairs in [1, 40, 600] {
        let trial = trial
            .seeking(Some(f64::from(pairs)), SECOND)
            .expect("possible");
        let flow = &trial.workload.flows[0];
        let ends = [flow.publishers.len(), flow.subscribers.len()];
        assert_eq!(ends, [pairs as usize; 2]);
        assert_eq!(per_s(&flow.arrivals), Some(8.0 * f64::from(pairs)));
        // Each topic has its own two ends.
        assert!(
            flow.publishers
                .iter()
                .all(|publisher| publisher.topics.len() == 1)
        );
        assert!(
            flow.subscribers
                .iter()
                .all(|subscriber| subscriber.filters.len() == 1)
        );
    }
}

#[test]
fn what_cannot_be_searched_for_is_said_at_its_place() {
    let says = |text: &str, at: &str, what: &str| {
        let error = plan(text).expect_err("not possible");
        assert!(error.contains(at) && error.contains(what), "{error}");
    };
    let rate = "rate = \"find\"\npayload = \"64B\"";
    says(
        &study("rate = \"find\"\npayload = \"find\"", ""),
        "study.toml:7:11",
        "one value of one flow",
    );
    says(
        &study(rate, "[grid]\nrate = [\"1/s\"]"),
        "study.toml:3:",
        "cannot vary over the grid too",
    );
    let own = "name = \"w\"\ngrid = { rate = [\"1/s\"] }";
    says(
        &study(rate, "").replace("name = \"w\"", own),
        "study.toml:5:10",
        "cannot vary over the grid too",
    );
    says(
        &study(rate, "[search]\nwidth = 3"),
        "study.toml:3:",
        "from 0.02 to 1",
    );
    says(
        &study(rate, "[search]\ntrials = 2"),
        "study.toml:3:",
        "from 6 to 1000",
    );
    says(
        &study(
            "rate = \"1/s\"\npayload = \"64B\"",
            "[grid]\nrate = [\"1/s\", \"find\"]",
        ),
        "study.toml:3:16",
        "a grid does not search",
    );
}

/// A workload that is searched, one at shares of its limit, and one at a rate of its own.
const MIXED: &str = r#"
name = "mixed"
repeats = 3
[phases]
measure = "2s"
[search]
budget = "60s"
[grid]
payload = ["64B", "1KiB"]
[[workload]]
name = "limit"
flow = [{ rate = "find" }]
[[workload]]
name = "near"
grid = { payload = ["64B", "1KiB"], rate = ["50% of limit", "150% of limit"] }
flow = [{ payload = "64B", rate = "max" }]
[[workload]]
name = "plain"
flow = [{ rate = "10/s" }]
"#;

#[test]
fn searches_stand_beside_other_trials() {
    let plan = plan(MIXED).unwrap_or_else(|error| panic!("{error}"));
    // Two systems and two sizes: a search each, whatever the repeats; two shares and a plain one, 3 times each.
    assert_eq!(
        (plan.searches().count(), plan.plain().count()),
        (4, 4 * 3 * 3)
    );
    assert!(
        plan.searches()
            .all(|search| plan.estimate(search) == 60 * SECOND)
    );
    let plain: u64 = plan.plain().map(|trial| trial.duration_estimate()).sum();
    assert_eq!(plan.duration_estimate(), 240 * SECOND + plain);
    for trial in plan.plain().filter(|trial| trial.workload.name == "near") {
        let (share, axis) = trial.share().expect("a share");
        assert_eq!((share.of.as_str(), axis), ("limit", Axis::Rate));
        let rate = &trial.axes[1];
        assert_eq!(*rate, ("rate".to_owned(), share.to_string()));
        let of: Vec<_> = plan
            .searches()
            .filter(|search| trial.is_share_of(search))
            .collect();
        assert_eq!(of.len(), 1, "{}", trial.cell);
        assert_eq!(
            (&of[0].system, &of[0].axes[0]),
            (&trial.system, &trial.axes[0])
        );
        let (load, end) = share
            .load(axis, Some(1000.0), Some(1100.0))
            .expect("a load");
        let expected = if share.share < 1.0 {
            (500.0, 1000.0)
        } else {
            (1650.0, 1100.0)
        };
        assert_eq!((load, end), expected);
        let loaded = trial.at_load(load).expect("possible");
        assert_eq!(per_s(&loaded.workload.flows[0].arrivals), Some(load));
        assert_eq!(loaded.workload.flows[0].size, trial.workload.flows[0].size);
        assert_eq!((&loaded.cell, loaded.repeat), (&trial.cell, trial.repeat));
        assert_eq!(loaded.workload.phases.measure, Until::Time(2 * SECOND));
    }
    let others = plan.plain().filter(|trial| trial.workload.name == "plain");
    assert!(
        others
            .map(|trial| trial.share())
            .all(|share| share.is_none())
    );
    // A stored search goes on as it began.
    let again = self::plan(&plan.resolved).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.resolved, plan.resolved);
    let cells =
        |plan: &Plan| -> Vec<String> { plan.trials.iter().map(|t| t.cell.clone()).collect() };
    assert_eq!(cells(&again), cells(&plan));
}

/// A share up to 100 % is on or below the lower end, one above it on or above the upper end, whatever is rounded.
#[test]
fn a_share_lies_on_its_side_of_the_limit() {
    let share = |text: &str| text.parse::<ShareOfLimit>().expect("a share");
    let load =
        |text: &str, axis: Axis, low: f64, high: f64| share(text).load(axis, Some(low), Some(high));
    for (text, axis, expected) in [
        ("100% of l", Axis::Rate, 12_340.0),
        ("99.9% of l", Axis::Rate, 12_330.0),
        ("100.001% of l", Axis::Rate, 13_010.0),
        ("80% of l", Axis::Publishers, 9_876.0),
        ("150% of l", Axis::Publishers, 19_501.0),
        ("300% of l", Axis::Payload, 39_002.0),
        ("10% of l", Axis::Rate, 1_234.0),
    ] {
        let (low, high) = if axis == Axis::Rate {
            (12_345.6, 13_000.4)
        } else {
            (12_346.0, 13_000.6)
        };
        assert_eq!(
            load(text, axis, low, high).expect("a load").0,
            expected,
            "{text}"
        );
    }
    // 0.7 of 10 is 7, whatever its binary digits say.
    assert_eq!(
        load("70% of l", Axis::Publishers, 10.0, 11.0),
        Ok((7.0, 10.0))
    );
    assert_eq!(
        load("110% of l", Axis::Publishers, 9.0, 10.0),
        Ok((11.0, 10.0))
    );
    assert_eq!(load("50% of l", Axis::Rate, 3.0, 4.0), Ok((1.5, 3.0)));
    let none = |found: Result<(f64, f64), NoLoad>, why: &str| {
        let error = found.expect_err("no load").to_string();
        assert!(error.contains(why), "{error}");
    };
    none(
        load("50% of l", Axis::Publishers, 1.0, 2.0),
        "less than the smallest publishers",
    );
    assert_eq!(load("50% of l", Axis::Rate, 1.0, 2.0), Ok((0.5, 1.0)));
    none(
        share("110% of l").load(Axis::Rate, Some(5e3), None),
        "found at least 5000/s",
    );
    none(
        share("90% of l").load(Axis::Rate, None, Some(3.0)),
        "no load stayed within",
    );
    none(
        share("110% of l").load(Axis::Rate, None, None),
        "found no limit",
    );
}

#[test]
fn shares_that_cannot_be() {
    let says = |from: &str, to: &str, at: &str, what: &str| {
        assert!(MIXED.contains(from), "{from}");
        let error = plan(&MIXED.replace(from, to)).expect_err(to);
        assert!(error.contains(at) && error.contains(what), "{to}: {error}");
        assert!(error.contains("hint: "), "{error}");
    };
    let shares = "\"50% of limit\", \"150% of limit\"";
    let at = "study.toml:15:45";
    says(shares, "\"50% of limti\"", at, "did you mean `limit`?");
    says(shares, "\"50% of plain\"", at, "`plain` is not searched");
    says(shares, "\"0% of limit\"", at, "is above 0%");
    says(shares, "\"-5% of limit\"", at, "no share of a limit");
    says(shares, "\"50%\"", at, "no share of a limit");
    says(shares, "\"50% of \"", at, "no share of a limit");
    says(shares, "\"1000% of limit\"", at, "no share of a limit");
    says(
        shares,
        "\"50% of near\"",
        at,
        "nothing can be a share of itself",
    );
    says(shares, "\"find\"", at, "a grid does not search");
    // A circle: neither is searched.
    let circle = MIXED.replace(
        "flow = [{ rate = \"find\" }]",
        "flow = [{ rate = \"90% of near\" }]",
    );
    let error = plan(&circle).expect_err("a circle");
    assert!(
        error.contains("study.toml:12:18") && error.contains("`near` is not searched"),
        "{error}"
    );
    assert!(
        error.contains(at) && error.contains("`limit` is not searched"),
        "{error}"
    );
    // Both in one workload.
    says(
        "flow = [{ rate = \"10/s\" }]",
        "flow = [{ name = \"a\", rate = \"find\" }, { name = \"b\", rate = \"50% of limit\" }]",
        "study.toml:19:",
        "one value of one flow",
    );
    says(
        "rate = \"10/s\"",
        "rate = \"10/s\", publishers = \"50% of limit\"",
        "study.toml:19:",
        "is searched for its rate",
    );
    // Limits of other cells tell nothing.
    says(
        "name = \"limit\"",
        "name = \"limit\"\nsystems = [\"a\"]",
        "study.toml:16:",
        "no search of `limit` is made for b /",
    );
    says(
        "name = \"limit\"",
        "name = \"limit\"\nrepeats = 0",
        "study.toml:16:",
        "no search of `limit` is made for a /",
    );
    says(
        "grid = { payload = [\"64B\", \"1KiB\"], ",
        "grid = { ",
        "study.toml:15:",
        "no search of `limit`",
    );
    says(
        "repeats = 3",
        "compare = { precision = \"3%\" }",
        "study.toml:3:",
        "compares nothing else",
    );
}

/// A scale of a study that searches can be chosen, and the search be left out of it with what depends on it.
#[test]
fn a_scale_leaves_searches_out() {
    let text = format!(
        "{MIXED}\n[scale.smoke]\nworkload = [{{ name = \"limit\", repeats = 0 }}, {{ name = \"near\", repeats = 0 }}]\n"
    );
    let full = plan(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(full.searches().count(), 4);
    let mut study = Study::parse("study.toml", &text, Path::new("")).expect("TOML");
    study.apply_scale("smoke").expect("a scale");
    let options = PlanOptions {
        on: vec!["a".into()],
        ..PlanOptions::default()
    };
    let smoke = study
        .plan(&options)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(smoke.search.is_none());
    assert!(
        smoke
            .trials
            .iter()
            .all(|trial| trial.workload.name == "plain")
    );
}
