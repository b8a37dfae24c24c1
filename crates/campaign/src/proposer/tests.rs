//! The choice of the next trials, over made-up results: nothing runs, and the limits are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pubgauge_figures::model::{Status, Trial};
use pubgauge_figures::search::LimitedBy;
use pubgauge_fixtures::TrialBuilder;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_study::{PlanOptions, Study};
use pubgauge_testbed::SystemFile;
use pubgauge_workload::Arrivals;

use super::*;
use crate::AvailableSystems;

/// Two systems, a search of each, shares of what it finds, and a workload of its own rate.
const STUDY: &str = r#"
name = "made-up"
systems = ["a", "b"]
repeats = 3
seed = 7
[phases]
measure = "2s"
[[workload]]
name = "limit"
flow = [{ payload = "64B", rate = "find" }]
[[workload]]
name = "near"
grid = { rate = ["50% of limit", "100% of limit", "120% of limit"] }
flow = [{ payload = "64B", rate = "max" }]
[[workload]]
name = "plain"
flow = [{ payload = "64B", rate = "10/s" }]
"#;

/// The plan of a study, over systems that nobody started.
pub(crate) fn prepared(text: &str) -> Prepared {
    let study = Study::parse("made-up.toml", text, Path::new("")).expect("TOML");
    let plan = study.plan(&PlanOptions::default());
    Prepared {
        given: String::new(),
        plan: plan.unwrap_or_else(|error| panic!("{error}")),
        systems: BTreeMap::new(),
        folder: PathBuf::new(),
        found: AvailableSystems::default(),
        processes: None,
    }
}

fn proposer(prepared: &Prepared) -> Proposer<'_> {
    match Proposer::new(prepared, &ClientOptions::default(), None) {
        Ok(proposer) => proposer,
        Err(error) => panic!("{error}"),
    }
}

/// A system with this capacity, and a client that can offer this load.
#[derive(Clone, Copy)]
struct Truth {
    limit: f64,
    client: f64,
}

/// The result of a trial over that system.
fn made(proposal: &Proposal, truth: Truth) -> Trial {
    let trial = &proposal.trial;
    let offered = match trial.workload.flows[0].arrivals {
        Arrivals::Periodic { per_s } => per_s,
        _ => truth.client.min(10.0 * truth.limit),
    };
    let status = match offered {
        load if load > truth.client => Status::ClientBound,
        load if load > truth.limit => Status::Overloaded,
        _ => Status::Valid,
    };
    let mut made = TrialBuilder::periodic(offered, 2.0)
        .carried(truth.limit.min(truth.client))
        .id(trial.order)
        .cell(trial.cell.clone())
        .system(trial.system.clone())
        .variant(trial.settings_name.clone())
        .workload(trial.workload.name.clone())
        .repeat(trial.repeat)
        .status(status);
    for (name, value) in &trial.axes {
        made = made.axis(name.clone(), value.clone());
    }
    Trial {
        search: proposal.search,
        limit_share: proposal.limit_share.clone(),
        ..made.build()
    }
}

/// Runs to the end; a proposer that knows nothing of what was before proposes the same.
fn run(prepared: &Prepared, truth: impl Fn(&str) -> Truth) -> Vec<Trial> {
    let on = proposer(prepared);
    let mut done: Vec<Trial> = Vec::new();
    loop {
        assert!(done.len() < 500, "there is an end");
        let next = |proposer: &Proposer<'_>| match proposer.next(&done) {
            Ok(proposal) => proposal,
            Err(error) => panic!("{error}"),
        };
        // Now and then a new proposer, which computes everything anew.
        let resumed = match done.len() % 4 {
            0 => next(&proposer(prepared)),
            _ => next(&on),
        };
        let proposal = next(&on);
        let said = |p: &Option<Proposal>| {
            p.as_ref().map(|p| {
                let trial = &p.trial;
                let told = (trial.order, trial.cell.clone(), trial.repeat, p.search);
                (told, p.limit_share.clone(), trial.workload.clone())
            })
        };
        assert_eq!(said(&proposal), said(&resumed));
        let Some(proposal) = proposal else {
            assert_eq!(on.planned(&done), done.len() as u32);
            return done;
        };
        assert_eq!(
            proposal.trial.order,
            done.len() as u32,
            "numbered as it runs"
        );
        assert!(on.planned(&done) > done.len() as u32);
        let truth = truth(&proposal.trial.system);
        done.push(made(&proposal, truth));
    }
}

fn of<'a>(done: &'a [Trial], workload: &'a str) -> impl Iterator<Item = &'a Trial> {
    let plain = done.iter().filter(|trial| trial.search.is_none());
    plain.filter(move |trial| trial.workload.name == workload)
}

#[test]
fn a_trial_that_is_gone_is_measured_again() {
    let prepared = prepared(STUDY);
    let truth = Truth {
        limit: 5_000.0,
        client: 1e9,
    };
    let mut done = run(&prepared, |_| truth);
    let last = done.last().expect("trials").id;
    let first = done.iter().position(|trial| trial.search.is_none());
    let gone = done.remove(first.expect("trials beside the searches"));
    let on = proposer(&prepared);
    let Ok(Some(again)) = on.next(&done) else {
        panic!("nothing to measure")
    };
    assert_eq!(
        (&again.trial.cell, again.trial.order),
        (&gone.cell, last + 1)
    );
    done.push(made(&again, truth));
    assert!(matches!(on.next(&done), Ok(None)));
}

#[test]
fn searches_come_first_and_shares_follow_from_them() {
    let prepared = prepared(STUDY);
    let limit = |system: &str| if system == "a" { 5_000.0 } else { 80_000.0 };
    let done = run(&prepared, |system| Truth {
        limit: limit(system),
        client: 1e9,
    });
    let searched = done
        .iter()
        .take_while(|trial| trial.search.is_some())
        .count();
    assert!(searched > 12 && done[searched..].iter().all(|t| t.search.is_none()));
    let proposer = proposer(&prepared);
    let searches = proposer.searches(&done);
    assert_eq!(searches.len(), 2);
    assert_eq!(
        (of(&done, "near").count(), of(&done, "plain").count()),
        (2 * 3 * 3, 2 * 3)
    );
    for trial in of(&done, "near") {
        let found = searches
            .iter()
            .find(|s| s.system == trial.system.name)
            .expect("a search");
        let (low, high) = (found.low.expect("a limit"), found.high.expect("a limit"));
        assert!(
            low <= limit(&found.system) && limit(&found.system) <= high,
            "{found:?}"
        );
        let share = trial.limit_share.as_ref().expect("a share");
        assert_eq!(
            (share.of.as_str(), share.axis, share.at_least),
            ("limit", Axis::Rate, false)
        );
        assert_eq!(
            trial.axes[0].value,
            format!("{}% of limit", share.share * 100.0)
        );
        assert_eq!(
            trial.messages.offered_msgs_per_s, share.load,
            "it ran at its load"
        );
        let end = if share.share > 1.0 { high } else { low };
        assert_eq!(share.end, end);
        assert!(
            (share.load / (share.share * end) - 1.0).abs() < 0.001,
            "{share:?}"
        );
        if share.share > 1.0 {
            assert!(share.load >= share.share * end && share.load > limit(&found.system))
        } else {
            assert!(share.load <= share.share * end && share.load <= limit(&found.system))
        }
    }
    // The plan's own order, each repeat before the next.
    let planned: Vec<_> = prepared.plan.plain().map(|t| (&t.cell, t.repeat)).collect();
    let ran: Vec<_> = done[searched..]
        .iter()
        .map(|t| (&t.cell, t.repeat))
        .collect();
    assert_eq!(ran, planned);
    assert!(proposer.not_measured(&done).is_empty());
    assert!(proposer.remaining(&done).is_empty());
}

#[test]
fn above_a_limit_that_is_only_known_as_at_least_nothing_is_measured() {
    let prepared = prepared(STUDY);
    let done = run(&prepared, |system| Truth {
        limit: 1e9,
        client: if system == "a" { 20_000.0 } else { 1e7 },
    });
    let proposer = proposer(&prepared);
    let searches = proposer.searches(&done);
    assert!(
        searches
            .iter()
            .all(|s| s.bound == LimitedBy::Client && s.high.is_none()),
        "{searches:?}"
    );
    assert_eq!(
        of(&done, "near").count(),
        2 * 2 * 3,
        "half of it and all of it are known"
    );
    for trial in of(&done, "near") {
        let share = trial.limit_share.as_ref().expect("a share");
        assert!(share.at_least && share.share <= 1.0);
    }
    let absent = proposer.not_measured(&done);
    let cells: Vec<&str> = absent.iter().map(|cell| cell.cell.as_str()).collect();
    assert_eq!(cells.len(), 2, "{cells:?}");
    for cell in &absent {
        assert_eq!(
            (cell.workload.as_str(), cell.axes[0].value.as_str()),
            ("near", "120% of limit")
        );
        assert!(
            cell.reason.contains("no load is 120% of limit"),
            "{}",
            cell.reason
        );
        assert!(cell.reason.contains("found at least"), "{}", cell.reason);
        assert!(
            cell.reason.contains("the client was the bottleneck"),
            "{}",
            cell.reason
        );
    }
    assert_eq!(of(&done, "plain").count(), 6, "all else is measured");
}

#[test]
fn where_no_limit_is_found_nothing_is_a_share_of_it() {
    let prepared = prepared(STUDY);
    let done = run(&prepared, |system| Truth {
        limit: if system == "a" { 0.5 } else { 700.0 },
        client: 1e9,
    });
    let proposer = proposer(&prepared);
    let absent = proposer.not_measured(&done);
    let shares = |system: &str| absent.iter().filter(|cell| cell.system == system).count();
    // Above what was too much, a load is known.
    assert_eq!((shares("a"), shares("b")), (2, 0), "{absent:?}");
    assert!(
        absent
            .iter()
            .all(|cell| cell.reason.contains("no load stayed within")),
        "{absent:?}"
    );
    let a = |trial: &&Trial| trial.system.name == "a";
    assert_eq!(of(&done, "near").filter(a).count(), 3);
    assert_eq!(of(&done, "plain").count(), 6);
}

/// Several searches of a cell serve its repeats in turn.
#[test]
fn repeats_take_their_turns_at_several_searches() {
    let text = STUDY.replace("name = \"limit\"", "name = \"limit\"\nrepeats = 2");
    let prepared = prepared(&text);
    // Each search finds another limit.
    let searches = std::cell::Cell::new(0.0);
    let done = run(&prepared, |_| {
        searches.set(searches.get() + 1.0);
        Truth {
            limit: 1_000.0 + searches.get(),
            client: 1e9,
        }
    });
    let found = proposer(&prepared).searches(&done);
    assert_eq!(found.len(), 4);
    let half = |repeat: u32| {
        let mut of = of(&done, "near").filter(|t| t.system.name == "b" && t.repeat == repeat);
        let share = of.find_map(|t| t.limit_share.as_ref().filter(|s| s.share == 0.5));
        share.expect("a share").end
    };
    assert_eq!(half(1), half(3));
    assert_ne!(half(1), half(2));
}

#[test]
fn by_default_searches_that_gather_messages_count_latency_from_the_send() {
    let gathered = "name = \"gathered\"\nclient = { pacing-within = \"100ms\" }";
    let told = |text: &str| -> Vec<(String, Vec<String>)> {
        let specs = specs(&prepared(text)).into_iter();
        specs
            .map(|spec| (spec.figure, spec.filter.workloads))
            .collect()
    };
    let alone = &STUDY[..STUDY.find("[[workload]]\nname = \"near\"").unwrap()];
    let from_intended = "latency_ns.p99".to_owned();
    let from_send = "latency_from_send_ns.p99".to_owned();
    assert_eq!(told(alone), [(from_intended.clone(), vec![])]);
    let gathering = alone.replace("name = \"limit\"", gathered);
    assert_eq!(told(&gathering), [(from_send.clone(), vec![])]);
    let second = &gathering[gathering.find("[[workload]]").unwrap()..];
    assert_eq!(
        told(&format!("{alone}{second}")),
        [
            (from_intended, vec!["limit".into()]),
            (from_send, vec!["gathered".into()])
        ]
    );
}

/// Over each network the default is on top of its path, and a system without a broker crosses no broker's link.
#[test]
fn by_default_searches_over_different_paths_have_different_limits() {
    let alone = &STUDY[..STUDY.find("[[workload]]\nname = \"near\"").unwrap()];
    let far = "[[workload]]\nname = \"far\"\nflow = [{ payload = \"64B\", rate = \"find\" }]\n\
               grid = { \"testbed.network.broker.delay\" = [\"0ms\", \"20ms\"] }\n\
               [workload.testbed.network]\nbroker = { hosts = 1 }\n\
               publisher = { hosts = 1, delay = \"50ms\" }\nsubscriber = { hosts = 1, delay = \"10ms\" }\n";
    let mut prepared = prepared(&format!("{alone}{far}"));
    let told = |prepared: &Prepared| -> Vec<(String, Vec<String>)> {
        let specs = specs(prepared).into_iter();
        specs
            .map(|spec| (spec.limit(), spec.filter.workloads))
            .collect()
    };
    let [near, far] = ["limit", "far"].map(|name| vec![name.to_owned()]);
    let each = [
        ("100 ms".to_owned(), near),
        (
            "160 ms (100 ms + 60 ms of the path)".to_owned(),
            far.clone(),
        ),
        ("200 ms (100 ms + 100 ms of the path)".to_owned(), far),
    ];
    assert_eq!(told(&prepared), each);
    let library = || Chosen {
        file: SystemFile {
            kind: SystemKind::Library,
            ..SystemFile::default()
        },
        variant: None,
        driver: Arc::new(SimulatedDriver),
        tls: None,
    };
    let systems = ["a", "b"].map(|name| (name.to_owned(), library()));
    prepared.systems = BTreeMap::from(systems);
    assert_eq!(told(&prepared), each[..2]);
}

/// Criteria say what is within a limit, and are judged for trials beside it alone.
#[test]
fn searches_have_criteria_of_their_own() {
    let criteria = "[[criterion]]\nfigure = \"lost\"\nequals = 0\nworkload = \"limit\"\n\
                    [[criterion]]\nfigure = \"lost\"\nequals = 0\n";
    let with = prepared(&format!("{STUDY}{criteria}"));
    let specs = specs(&with);
    assert_eq!(specs.len(), 3, "{specs:?}");
    assert_eq!(
        specs[2].filter.workloads,
        ["limit"],
        "no other workload is held to it"
    );
    let judged: Vec<_> = evaluated(&with.plan, &specs).collect();
    assert_eq!(judged, [&specs[1]]);
    let alone = STUDY
        .split("[[workload]]\nname = \"near\"")
        .next()
        .expect("a part");
    let alone = prepared(&format!("{alone}{criteria}"));
    let specs = super::specs(&alone);
    assert!(specs[2].filter.workloads.is_empty());
    assert_eq!(evaluated(&alone.plan, &specs).count(), 0);
}

/// Where one system alone is asked for a latency, the others are held to the default.
#[test]
fn a_latency_of_one_system_is_not_that_of_the_others() {
    let alone = &STUDY[..STUDY.find("[[workload]]\nname = \"near\"").unwrap()];
    let asked = "[[criterion]]\nfigure = \"latency.p99\"\nat-most = \"20ms\"\nsystem = \"a\"\n";
    let mut prepared = prepared(&format!("{alone}{asked}"));
    let specs = specs(&prepared);
    let systems: Vec<_> = specs.iter().map(|spec| &spec.filter.systems[..]).collect();
    assert_eq!(systems, [["a".to_owned()], ["b".to_owned()]]);
    // A criterion that bears on no trial at all is told, as in a study without a search.
    prepared.plan.trials.retain(|trial| trial.system == "b");
    let specs = super::specs(&prepared);
    let judged: Vec<_> = evaluated(&prepared.plan, &specs).collect();
    assert_eq!(judged, [&specs[0]]);
}

/// A criterion of one variant of the settings counts in its searches too.
#[test]
fn criteria_of_settings_bear_on_searches() {
    let text = format!(
        "{STUDY}[[settings]]\nname = \"x\"\n[[settings]]\nname = \"y\"\n\
         [[criterion]]\nfigure = \"latency.p99\"\nbelow = \"1us\"\nsettings = \"x\"\n"
    );
    let prepared = prepared(&text);
    let done = run(&prepared, |_| Truth {
        limit: 5_000.0,
        client: 1e9,
    });
    for search in proposer(&prepared).searches(&done) {
        // Its latency is 1 ms at any load.
        assert_eq!(search.low.is_some(), search.settings == "y", "{search:?}");
    }
}
