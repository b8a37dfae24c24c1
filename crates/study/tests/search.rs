//! Studies in which a value is searched for.

use std::path::Path;

use pubgauge_study::{Axis, Known, Plan, PlanOptions, Study};
use pubgauge_workload::{Arrivals, SECOND, Until};

fn plan(text: &str) -> Result<Plan, String> {
    let study = Study::parse("study.toml", text, Path::new("")).expect("TOML");
    let options = PlanOptions {
        known: Known {
            all: vec!["a".into(), "b".into()],
            ..Known::default()
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
    assert_eq!(search.axis, Axis::Rate);
    assert_eq!((search.short, search.long), (5 * SECOND, 45 * SECOND));
    for template in &plan.trials {
        assert!(template.workload.flows[0].arrivals.is_flat_out());
        let trial = search
            .at(template, Some(1234.5), 7 * SECOND)
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
        let flat_out = search.at(template, None, SECOND).expect("possible");
        assert!(flat_out.workload.flows[0].arrivals.is_flat_out());
    }
    assert_eq!(
        plan.duration_estimate(),
        4 * 8 * 60 * SECOND,
        "at most 8 min each"
    );
    // What a run stores goes on as a search.
    let again = self::plan(&plan.resolved).expect("a sound study");
    assert_eq!(again.search.map(|s| s.axis), Some(Axis::Rate));
    assert_eq!(again.resolved, plan.resolved);
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
        let search = plan.search.expect("a search");
        assert_eq!(search.axis, axis);
        let load = axis.range().0 * 4.0;
        let trial = search
            .at(&plan.trials[0], Some(load), SECOND)
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
    let two = format!(
        "{}[[workload]]\nname = \"v\"\n[[workload.flow]]\nrate = \"1/s\"\n",
        study(rate, "")
    );
    says(&two, "study.toml:6:8", "has one workload");
}
