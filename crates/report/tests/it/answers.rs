//! Names of rows, who carries the load, and what bounds allow to say.

use crate::sample;

use pubgauge_figures::criterion::{Comparator, CriterionSpec, TrialFilter};
use pubgauge_figures::party::{PartyFigures, PartyName, SlowestParty};
use pubgauge_figures::*;
use pubgauge_fixtures::{TrialBuilder, distribution};
use pubgauge_report::answers;
use pubgauge_report::answers::{Carries, RowAnswer};
use pubgauge_report::summary::{Bound, Cell, Summary};
use pubgauge_report::wins::{Contest, ContestResult, answer};
use pubgauge_results::verdict::judge;

/// A trial with a rate and a p99, as flat out or paced as wanted.
fn trial(system: &str, status: Status, rate: f64, p99: u64) -> Trial {
    let why = format!("why it is {}", status.as_str());
    TrialBuilder::periodic(rate, 1000.0 / rate)
        .cell(system)
        .system(system)
        .workload("load")
        .times(p99 / 2, p99)
        .status(status)
        .reason(Rule::NotRun, why)
        .build()
}

fn results(trials: Vec<Trial>, specs: Vec<CriterionSpec>) -> Results {
    Results {
        study: StudyInfo {
            criterion_specs: specs,
            ..Default::default()
        },
        trials,
        ..Results::default()
    }
}

fn spec(figure: &str, comparison: Comparator, value: f64) -> CriterionSpec {
    CriterionSpec {
        text: String::new(),
        figure: figure.into(),
        comparison,
        value,
        filter: TrialFilter::default(),
    }
}

fn rows(trials: Vec<Trial>, specs: Vec<CriterionSpec>) -> Vec<RowAnswer> {
    let mut all = answers(&results(trials, specs));
    assert_eq!(all.len(), 1);
    all.remove(0).rows
}

fn labels(trials: Vec<Trial>) -> Vec<(String, String)> {
    let results = results(trials, Vec::new());
    let summary = Summary::summarize(&results);
    let cells = summary.workloads[0].cells.iter();
    cells
        .map(|cell| (cell.label.clone(), cell.row.clone()))
        .collect()
}

fn cell(system: &str, settings: &str, axes: &[(&str, &str)]) -> Trial {
    let axis = |(name, value): &(&str, &str)| AxisValue {
        name: (*name).into(),
        value: (*value).into(),
    };
    Trial {
        cell: format!("{system} {settings} {axes:?}"),
        settings_name: settings.into(),
        axes: axes.iter().map(axis).collect(),
        ..trial(system, Status::Valid, 1.0, 1)
    }
}

#[test]
fn by_default_gathered_messages_are_judged_from_their_send() {
    // Gathered for 100 ms: 100 ms of the latency is what the study asks for.
    let gathered = |within_ns: u64, from_send: u64| {
        let mut t = trial("m", Status::Valid, 1000.0, 120_000_000);
        t.circumstances.client.pacing_within = within_ns;
        t.messages.latency_from_send_ns = Distribution {
            p99: Some(from_send),
            ..t.messages.latency_ns
        };
        let answers = answers::answers(&results(vec![t], vec![]));
        (answers[0].rows[0].carries, answers[0].asked.join(", "))
    };
    let (carries, asked) = gathered(100_000_000, 20_000_000);
    assert_eq!(carries, Some(Carries::Yes), "{asked}");
    assert!(asked.contains("latency from send p99 <= 100 ms"), "{asked}");
    assert_eq!(gathered(100_000_000, 101_000_000).0, Some(Carries::No));
    assert_eq!(gathered(1_000_000, 20_000_000).0, Some(Carries::No));
}

#[test]
fn the_default_is_on_top_of_each_trials_own_path() {
    let over = |system: &str, path_ms: Option<u64>, p99_ms: u64| {
        let mut t = trial(system, Status::Valid, 1000.0, p99_ms * 1_000_000);
        t.network = Some(network::NetworkTraffic {
            path_ns: path_ms.map(|ms| ms * 1_000_000),
            ..Default::default()
        });
        t
    };
    let far = over("far", Some(100), 101);
    let both = vec![
        far.clone(),
        over("further", Some(120), 221),
        over("near", None, 101),
    ];
    let answers = |trials| answers::answers(&results(trials, vec![])).remove(0);

    let answer = answers(vec![far]);
    assert_eq!(
        answer.asked.last().unwrap(),
        "p99 <= 200 ms (100 ms + 100 ms of the path)"
    );
    assert_eq!(
        answer.rows[0].decided_by,
        "p99 101 ms, 1.98 times below the 200 ms allowed"
    );
    let answer = answers(both);
    assert_eq!(
        answer.asked[2..],
        [
            "p99 <= 200 ms (100 ms + 100 ms of the path)",
            "p99 <= 220 ms (100 ms + 120 ms of the path)",
            "p99 <= 100 ms",
        ]
    );
    let carries: Vec<_> = answer.rows.iter().map(|row| row.carries).collect();
    assert_eq!(carries, [Carries::Yes, Carries::No, Carries::No].map(Some));
}

#[test]
fn what_was_not_measured_cannot_be_told() {
    let decided = |t: Trial| {
        let rows = rows(vec![t], vec![]);
        (rows[0].carries, rows[0].decided_by.clone())
    };
    let mut few = trial("m", Status::Valid, 1.0, 367);
    few.messages.latency_ns.count = 298;
    let (carries, why) = decided(few.clone());
    assert_eq!(carries, Some(Carries::CannotTell));
    assert_eq!(
        why,
        "p99 not measured: 298 messages are too few, it takes 299"
    );
    few.messages.latency_ns.count = 299;
    assert_eq!(decided(few).0, Some(Carries::Yes));

    let mut broken = trial("m", Status::Broken, 0.0, 0);
    broken.circumstances.not_run = Some("it was never ready: connection refused".into());
    broken.duration_s = 0.0;
    assert_eq!(decided(broken.clone()).0, Some(Carries::CannotTell));
    // Without subscribers, too.
    broken.messages.expected = 0;
    assert_eq!(decided(broken.clone()).0, Some(Carries::CannotTell));
    broken.circumstances.system_died = vec!["it ended by signal 9".into()];
    broken.verdict = judge(&broken);
    assert_eq!(decided(broken).0, Some(Carries::No));
}

#[test]
fn a_row_is_named_by_what_was_varied_and_nothing_else() {
    let named = |trials: Vec<Trial>| -> Vec<String> {
        labels(trials).into_iter().map(|(label, _)| label).collect()
    };
    // Systems alone; settings of one name everywhere and axes of one value are not varied.
    assert_eq!(
        named(vec![
            cell("nats", "safe", &[("payload", "1KiB")]),
            cell("mosquitto", "safe", &[("payload", "1KiB")])
        ]),
        ["mosquitto", "nats"]
    );
    // Settings and axes, the load's apart from the settings' own; points in rising order.
    let both = |system| {
        let of = |settings, payload, window| {
            cell(
                system,
                settings,
                &[
                    ("workload.x.flow.payload", payload),
                    ("settings.safe.in-flight", window),
                ],
            )
        };
        vec![
            of("safe", "4KiB", "20"),
            of("safe", "64B", "20"),
            of("fast", "64B", "1"),
        ]
    };
    let all = labels([both("nats"), both("mosquitto")].concat());
    assert_eq!(
        all.iter().map(|(label, _)| &label[..]).collect::<Vec<_>>(),
        [
            "mosquitto, fast, in-flight = 1, payload = 64 B",
            "mosquitto, safe, in-flight = 20, payload = 64 B",
            "nats, fast, in-flight = 1, payload = 64 B",
            "nats, safe, in-flight = 20, payload = 64 B",
            "mosquitto, safe, in-flight = 20, payload = 4 KiB",
            "nats, safe, in-flight = 20, payload = 4 KiB",
        ]
    );
    assert_eq!(all[0].1, "mosquitto, fast, in-flight = 1");
    // One system is not varied either.
    assert_eq!(
        labels(vec![
            cell("nats", "", &[("rate", "5k/s")]),
            cell("nats", "", &[("rate", "10k/s")])
        ]),
        [
            ("rate = 5k/s".into(), "nats".into()),
            ("rate = 10k/s".into(), "nats".into())
        ]
    );
    // Axes that end alike keep their paths.
    assert_eq!(
        named(vec![
            cell(
                "nats",
                "",
                &[
                    ("workload.a.flow.rate", "1/s"),
                    ("workload.b.flow.rate", "1/s")
                ]
            ),
            cell(
                "nats",
                "",
                &[
                    ("workload.a.flow.rate", "2/s"),
                    ("workload.b.flow.rate", "2/s")
                ]
            ),
        ])[1],
        "workload.a.flow.rate = 2/s, workload.b.flow.rate = 2/s"
    );
}

#[test]
fn results_of_before_names_were_stored_are_told_apart() {
    let mapped = |cell: &str, version: &str, value: &str| {
        let mut one = trial("rabbitmq", Status::Valid, 1.0, 1);
        one.cell = cell.into();
        one.system.version = version.into();
        one.mappings = vec![pubgauge_driver::Mapping {
            setting: "reliability".into(),
            value: value.into(),
            native: "half a page of mapping text".into(),
            term: None,
            qos: None,
        }];
        one
    };
    let named = |trials: Vec<Trial>| -> Vec<String> {
        labels(trials).into_iter().map(|(label, _)| label).collect()
    };
    assert_eq!(
        named(vec![
            mapped("a", "3", "at-least-once"),
            mapped("b", "3", "exactly-once")
        ]),
        ["reliability = at-least-once", "reliability = exactly-once"]
    );
    assert_eq!(
        named(vec![mapped("a", "3", "x"), mapped("b", "4", "x")]),
        ["3", "4"]
    );
    assert_eq!(
        named(vec![mapped("a", "3", "x"), mapped("b", "3", "x")]),
        ["#1", "#2"]
    );
}

#[test]
fn the_default_asks_for_no_loss_no_growing_queue_and_p99() {
    let one = |status, p99| rows(vec![trial("a", status, 10.0, p99)], Vec::new()).remove(0);
    let yes = one(Status::Valid, 4_000_000);
    assert_eq!(yes.carries, Some(Carries::Yes));
    assert_eq!(
        (&yes.figure[..], &yes.decided_by[..]),
        (
            "p99 4.00 ms",
            "p99 4.00 ms, 25.0 times below the 100 ms allowed"
        )
    );
    let slow = one(Status::Valid, 230_000_000);
    assert_eq!(
        (slow.carries, &slow.decided_by[..]),
        (
            Some(Carries::No),
            "p99 230 ms, more than the 100 ms allowed"
        )
    );
    // Three digits must not hide on which side of the limit a figure lies.
    assert_eq!(
        one(Status::Valid, 100_040_000).decided_by,
        "p99 100.04 ms, more than the 100 ms allowed"
    );
    for status in [Status::Overloaded, Status::Lossy] {
        let no = one(status, 1_000);
        assert_eq!(
            (no.carries, &no.figure[..]),
            (Some(Carries::No), status.as_str())
        );
        assert_eq!(no.reason, Some(format!("why it is {}", status.as_str())));
    }
    for status in [Status::ClientBound, Status::Unsteady, Status::Broken] {
        assert_eq!(
            one(status, 1_000).carries,
            Some(Carries::CannotTell),
            "{status:?}"
        );
    }
    let mut answer = answers(&results(
        vec![trial("a", Status::Valid, 1.0, 1)],
        Vec::new(),
    ));
    assert_eq!(
        answer.remove(0).asked,
        ["nothing lost", "no growing queue", "p99 <= 100 ms"]
    );
}

#[test]
fn every_repeat_must_carry_it() {
    let repeat = |n, status, p99| Trial {
        repeat: n,
        ..trial("a", status, 10.0, p99)
    };
    let said = |trials| rows(trials, Vec::new()).remove(0);
    let one = said(vec![
        repeat(1, Status::Valid, 1_000),
        repeat(2, Status::Valid, 5_000_000),
    ]);
    assert_eq!(
        (one.carries, &one.figure[..]),
        (Some(Carries::Yes), "p99 5.00 ms"),
        "the nearest to the limit"
    );
    let two = said(vec![
        repeat(1, Status::Valid, 1_000_000),
        repeat(2, Status::ClientBound, 1_000),
    ]);
    assert_eq!(two.carries, Some(Carries::CannotTell));
    assert_eq!(
        two.decided_by,
        "client-bound in 1 of 2 repeats; else p99 1.00 ms, 100 times below the 100 ms allowed"
    );
    let three = said(vec![
        repeat(1, Status::ClientBound, 1_000),
        repeat(2, Status::Overloaded, 1_000),
    ]);
    assert_eq!(
        (three.carries, &three.decided_by[..]),
        (Some(Carries::No), "overloaded in 1 of 2 repeats")
    );
}

#[test]
fn the_studys_criteria_stand_before_the_default() {
    let paced = |status| trial("a", status, 900.0, 4_000_000);
    let p99 = spec("latency_ns.p99", Comparator::AtMost, 1e6);
    let rate = spec("delivered_msgs_per_s", Comparator::AtLeast, 800.0);
    let both = rows(vec![paced(Status::Valid)], vec![p99.clone(), rate.clone()]).remove(0);
    assert_eq!(
        (both.carries, &both.decided_by[..]),
        (Some(Carries::No), "p99 4.00 ms, more than the 1 ms allowed")
    );
    let one = rows(vec![paced(Status::Valid)], vec![rate.clone()]).remove(0);
    assert_eq!(
        (one.carries, &one.decided_by[..]),
        (
            Some(Carries::Yes),
            "delivered 900/s, 1.12 times the 800/s asked for"
        )
    );
    // Losses are the study's to judge; a growing queue is none that anybody carries.
    let lost = spec("lost_share", Comparator::AtMost, 0.01);
    let share = |status, lost: u64| Trial {
        shortfall: Shortfall {
            lost,
            ..paced(status).shortfall
        },
        messages: Messages {
            delivered: 1000 - lost,
            ..paced(status).messages
        },
        ..paced(status)
    };
    let few = rows(vec![share(Status::Lossy, 5)], vec![lost.clone()]).remove(0);
    assert_eq!(
        (few.carries, &few.decided_by[..]),
        (
            Some(Carries::Yes),
            "lost 0.5 %, 2.00 times below the 1 % allowed"
        )
    );
    let memory = spec("client_rss_bytes", Comparator::Less, 1e12);
    assert_eq!(
        rows(vec![paced(Status::Overloaded)], vec![memory])
            .remove(0)
            .carries,
        Some(Carries::No)
    );
    // A criterion of another system leaves this one to the default; one of a flow names it.
    let mut other = p99.clone();
    other.filter.systems = vec!["b".into()];
    let mixed = answers(&results(vec![paced(Status::Valid)], vec![other])).remove(0);
    assert!(mixed.by_default && mixed.rows[0].carries == Some(Carries::Yes));
    let mut flow = p99;
    flow.filter.flow = Some("readings".into());
    let mut with_flow = paced(Status::Valid);
    with_flow.flows = vec![FlowFigures {
        messages: Messages {
            latency_ns: with_flow.messages.latency_ns,
            ..Messages::default()
        },
        name: "readings".into(),

        ..Default::default()
    }];
    assert_eq!(
        rows(vec![with_flow], vec![flow]).remove(0).figure,
        "readings: p99 4.00 ms"
    );
}

#[test]
fn where_nobody_listens_what_was_taken_counts() {
    let mut idle = trial("a", Status::Valid, 1_000.0, 1);
    (idle.messages.expected, idle.messages.delivered) = (0, 0);
    idle.messages.delivered_msgs_per_s = 0.0;
    idle.messages.latency_ns = Distribution::default();
    let said = |status| {
        let mut one = idle.clone();
        one.verdict.status = status;
        rows(vec![one], Vec::new()).remove(0)
    };
    assert_eq!(said(Status::Valid).decided_by, "took all of 1000 messages");
    // Flat out, and in the column of rates.
    let mut flat_out = idle.clone();
    flat_out.workload.flat_out = true;
    flat_out.messages.published_msgs_per_s = 37_600.0;
    let taken = rows(vec![flat_out.clone()], Vec::new()).remove(0);
    assert_eq!(taken.decided_by, "takes 37.6 k/s; nobody subscribes");
    assert_eq!(taken.figure, "takes 37.6 k/s");
    let answer = answers(&results(vec![flat_out], Vec::new())).remove(0);
    assert_eq!(answer.wins[0].what, "most taken (nobody subscribes)");
    assert!(
        answer.wins[0].who.contains("37.6 k/s"),
        "{}",
        answer.wins[0].who
    );
    assert_eq!(said(Status::Overloaded).carries, Some(Carries::No));
    assert_eq!(said(Status::ClientBound).carries, Some(Carries::CannotTell));
}

#[test]
fn headroom_and_cost_stand_beside_the_answer() {
    let mut broker = trial("a", Status::Valid, 1000.0, 1);
    broker.system_busiest_thread_cpu = Some(0.35);
    broker.system_cpu_s = Some(0.02);
    broker.client_cpu_s.publishers = 0.01;
    let mut library = trial("b", Status::Valid, 1.0, 1);
    library.circumstances.system_in_client = true;
    library.worker_load.subscribers_running = 0.4;
    let said = rows(vec![broker, library], Vec::new());
    assert_eq!(said[0].headroom, ["its busiest thread uses 35 % of a core"]);
    assert_eq!(said[0].cpu_us_per_msg, Some(30.0));
    assert_eq!(
        said[1].headroom,
        ["the busiest client thread, with the library in it, uses 40 % of a core"]
    );
}

fn flat(system: &str, status: Status, rate: f64) -> Trial {
    let mut one = trial(system, status, rate, 1_000);
    one.workload.flat_out = true;
    one
}

/// Repeats of one system that differ by a percent.
fn repeats(system: &str, status: Status, rate: f64) -> Vec<Trial> {
    let each = (1..=3).map(|n| Trial {
        repeat: n,
        ..flat(system, status, rate * (1.0 + 0.01 * f64::from(n)))
    });
    each.collect()
}

fn most(trials: Vec<Trial>) -> ContestResult {
    let results = results(trials, Vec::new());
    let summary = Summary::summarize(&results);
    let cells: Vec<&Cell<'_>> = summary.workloads[0].cells.iter().collect();
    answer(&cells, Contest::THROUGHPUT)
}

fn winners(trials: Vec<Trial>) -> Vec<String> {
    most(trials)
        .winners
        .into_iter()
        .map(|place| place.row)
        .collect()
}

#[test]
fn bounds_are_ranked_as_far_as_they_go() {
    use Status::{Broken, ClientBound, Lossy, Overloaded, Unsteady, Valid};
    // A lower bound above what another carried: more, by at least so much.
    let said = most(
        [
            repeats("zeromq", ClientBound, 2.36e6),
            repeats("mosquitto", Overloaded, 97.6e3),
        ]
        .concat(),
    );
    assert_eq!((said.winners.len(), said.compared), (1, 2));
    assert_eq!(said.winners[0].bound, Bound::AtLeast);
    let who = said.winner_sentence();
    assert!(
        who.starts_with(
            "zeromq 2.41 M/s or more (client-bound), then mosquitto 99.6 k/s under overload: 2"
        ) && who.ends_with(" times apart at least"),
        "{who}"
    );
    // A lower bound below what another carried says nothing: more may have been possible.
    let open = most(
        [
            repeats("nats", Valid, 8e5),
            repeats("zeromq", ClientBound, 5e5),
        ]
        .concat(),
    );
    assert_eq!(
        open.winner_sentence(),
        "no clear order among nats 816 ±20 k/s, zeromq 510 k/s or more (client-bound)"
    );
    // Two lower bounds are never in order; what both exceed is named behind the best.
    let two = most(
        [
            repeats("a", ClientBound, 2e6),
            repeats("b", ClientBound, 1e6),
            repeats("c", Overloaded, 1e5),
        ]
        .concat(),
    );
    assert_eq!(two.winners.len(), 2);
    assert!(
        two.winner_sentence()
            .ends_with("; a is ahead of c 102 k/s under overload"),
        "{}",
        two.winner_sentence()
    );
    // Deliveries under overload are a figure like one that is valid.
    assert_eq!(
        winners([repeats("a", Overloaded, 2e5), repeats("b", Valid, 1e5)].concat()),
        ["a"]
    );
    assert_eq!(
        winners([repeats("a", Overloaded, 1e5), repeats("b", Valid, 1e5)].concat()),
        ["a", "b"]
    );
    // One repeat each: within ten per cent they are equal.
    assert_eq!(
        winners(vec![
            flat("a", ClientBound, 1.05e6),
            flat("b", Overloaded, 1e6)
        ]),
        ["a", "b"]
    );
    assert_eq!(
        winners(vec![
            flat("a", ClientBound, 1.2e6),
            flat("b", Overloaded, 1e6)
        ]),
        ["a"]
    );
    // The others say nothing of what can be carried.
    for status in [Lossy, Unsteady, Broken] {
        assert_eq!(
            winners([repeats("a", status, 9e9), repeats("b", Valid, 1e5)].concat()),
            ["b"],
            "{status:?}"
        );
    }
    // An overload beside a client's limit leaves it open; a valid repeat decides alone.
    let mixed = |own: Vec<Trial>| [own, repeats("b", Valid, 5e5)].concat();
    let both = [
        repeats("a", Overloaded, 1e5),
        vec![flat("a", ClientBound, 1e5)],
    ]
    .concat();
    assert_eq!(winners(mixed(both)), ["b", "a"]);
    let valid = [vec![flat("a", Valid, 1e5)], repeats("a", ClientBound, 1e5)].concat();
    assert_eq!(winners(mixed(valid)), ["b"]);
}

#[test]
fn flat_out_nothing_is_asked_and_the_rate_is_the_answer() {
    let said = rows(repeats("a", Status::ClientBound, 2.36e6), Vec::new()).remove(0);
    assert_eq!(
        (said.carries, &said.decided_by[..]),
        (None, "2.41 M/s or more (client-bound)")
    );
    assert_eq!(
        said.carried.map(|carried| carried.bound),
        Some(Bound::AtLeast)
    );
    let said = rows(vec![flat("a", Status::Overloaded, 97_600.0)], Vec::new()).remove(0);
    assert_eq!(said.decided_by, "97.6 k/s under overload");
    // Latencies of queues without end are not quoted.
    let text = pubgauge_report::table(
        &results(vec![flat("a", Status::Overloaded, 1e5)], Vec::new()),
        80,
    );
    assert!(text.contains("100 k/s       -       -      0"), "{text}");
    // A study may ask for a rate: what a client reached it reached.
    let asked = spec("delivered_msgs_per_s", Comparator::AtLeast, 1e6);
    let said = rows(vec![flat("a", Status::ClientBound, 2e6)], vec![asked]).remove(0);
    assert_eq!(
        (said.carries, &said.decided_by[..]),
        (
            Some(Carries::Yes),
            "delivered 2.00 M/s or more, 2.00 times the 1 M/s asked for"
        )
    );
}

#[test]
fn answers_are_json() {
    let (results, _) = sample::run(2);
    let json = serde_json::to_value(answers(&results)).unwrap();
    // Mosquitto's second repeat was cut short of processor time, and in time all the same.
    let all: Vec<&str> = json[0]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["carries"].as_str().unwrap())
        .collect();
    // RabbitMQ's 99th percentile is above the study's 5 ms.
    assert_eq!(all, ["yes", "no", "yes", "yes", "yes"]);
    assert_eq!(json[2]["rows"][0]["carried"]["bound"], "exact");
    assert!(json[2]["rows"][0]["carries"].is_null());
    assert_eq!(json[0]["wins"][0]["what"], "lowest median latency");
}

/// One repeat of a system over its limit, another within it.
#[test]
fn the_share_of_the_limit_is_that_of_the_deciding_repeat() {
    let slow = Trial {
        repeat: 2,
        ..trial("a", Status::Valid, 1000.0, 250_000_000)
    };
    let said = rows(
        vec![trial("a", Status::Valid, 1000.0, 1_000_000), slow],
        Vec::new(),
    );
    assert_eq!(said[0].carries, Some(Carries::No));
    assert_eq!((said[0].used, said[0].repeat), (Some(2.5), Some(2)));
    // A verdict is no figure.
    let said = rows(
        vec![trial("a", Status::Overloaded, 1000.0, 1_000_000)],
        Vec::new(),
    );
    assert_eq!((said[0].used, said[0].repeat), (None, Some(1)));
}

/// Readings of 4 ms and commands of `commands_ms`, of which `lost` are lost.
fn two_flows(status: Status, commands_ms: u64, lost: u64) -> Trial {
    let trial = TrialBuilder::periodic(2000.0, 10.0)
        .system("a")
        .workload("meters")
        .times(2_000_000, 4_000_000)
        .status(status)
        .flows(&["readings", "commands"]);
    let mut trial = trial.build();
    trial.flows[1].messages.latency_ns =
        distribution(10_000 - lost, 1_000_000, commands_ms * 1_000_000);
    trial.flows[1].shortfall.lost = lost;
    trial
}

fn of_flows(trial: Trial, specs: Vec<CriterionSpec>) -> Vec<(Option<Carries>, String)> {
    let row = rows(vec![trial], specs).remove(0);
    let flows = row.flows.into_iter();
    flows.map(|flow| (flow.carries, flow.brief)).collect()
}

#[test]
fn each_flow_has_an_answer_of_its_own() {
    use Carries::{CannotTell, No, Yes};
    let by_default =
        |status, commands_ms, lost| of_flows(two_flows(status, commands_ms, lost), Vec::new());
    let words = |carries, brief: &str| (Some(carries), brief.to_owned());
    let readings = |carries| words(carries, "p99 4.00 ms");
    assert_eq!(
        by_default(Status::Valid, 200, 0),
        [readings(Yes), words(No, "p99 200 ms")]
    );
    // Losses of one flow do not count against the other; where a queue grows, nobody knows whose it is.
    assert_eq!(
        by_default(Status::Lossy, 5, 7),
        [readings(Yes), words(No, "lost 7")]
    );
    assert_eq!(
        by_default(Status::Overloaded, 200, 0),
        [readings(CannotTell), words(No, "p99 200 ms")]
    );
    assert_eq!(
        by_default(Status::ClientBound, 5, 0),
        [readings(CannotTell), words(CannotTell, "p99 5.00 ms")]
    );
    // A criterion for one of them asks nothing of the other; one for all asks it of each.
    let mut commands = spec("latency.p99", Comparator::AtMost, 10e6);
    commands.filter.flow = Some("commands".into());
    assert_eq!(
        of_flows(two_flows(Status::Valid, 5, 0), vec![commands]),
        [(None, "p99 4.00 ms".to_owned()), words(Yes, "p99 5.00 ms")]
    );
    let all = spec("latency.p99", Comparator::AtMost, 3e6);
    assert_eq!(
        of_flows(two_flows(Status::Valid, 2, 0), vec![all]),
        [readings(No), words(Yes, "p99 2.00 ms")]
    );
    // One slow subscriber of a flow is that flow's.
    let slow = |flow: &str, at_least_ns| SlowestParty {
        percentile: "p99".into(),
        party: PartyName {
            name: format!("{flow}-1"),
            flow: Some(flow.into()),
            ..PartyName::default()
        },
        deliveries: 5_000,
        at_least_ns,
    };
    let mut one_slow = two_flows(Status::Valid, 5, 0);
    one_slow.parties = Some(PartyFigures {
        slowest: vec![slow("readings", 300_000_000), slow("commands", 6_000_000)],
        ..PartyFigures::default()
    });
    let told = of_flows(one_slow, Vec::new());
    assert_eq!((told[0].0, told[1].0), (Some(No), Some(Yes)), "{told:?}");
    assert!(told[0].1.contains("subscriber `readings-1`"), "{told:?}");
    // Neither the verdict nor figures that flows do not have are asked of a flow.
    let whole = ["verdict", "cpu-per-message"];
    let whole = whole.map(|figure| spec(figure, Comparator::AtMost, 1.0));
    let told = of_flows(two_flows(Status::Valid, 5, 0), whole.to_vec());
    assert!(
        told.iter().all(|(carries, _)| carries.is_none()),
        "{told:?}"
    );
    // One flow is the workload.
    assert!(of_flows(trial("a", Status::Valid, 1000.0, 1), Vec::new()).is_empty());
}

/// In every seed: flows whose planted latency is within the limit and that lost nothing are carried, the others are not.
#[test]
fn planted_flows_are_answered_as_they_were_planted() {
    let mut draws = sample::Draws::new(7);
    for _ in 0..1000 {
        let count = 2 + (draws.uniform() * 4.0) as usize;
        let names: Vec<String> = (0..count).map(|nth| format!("f{nth}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut trial = TrialBuilder::periodic(1000.0 * count as f64, 10.0)
            .times(2_000_000, 4_000_000)
            .status(Status::Valid)
            .flows(&names)
            .build();
        let mut planted = Vec::new();
        for flow in &mut trial.flows {
            let p99_ms = 1 + (draws.uniform() * 200.0) as u64;
            let lost = (draws.uniform() * 4.0) as u64 / 3;
            flow.messages.latency_ns = distribution(10_000 - lost, 500_000, p99_ms * 1_000_000);
            flow.shortfall.lost = lost;
            trial.shortfall.lost += lost;
            planted.push(lost == 0 && p99_ms <= 100);
        }
        if trial.shortfall.lost > 0 {
            trial.verdict.status = Status::Lossy;
        }
        let told = of_flows(trial, Vec::new()).into_iter();
        let told: Vec<bool> = told
            .map(|(carries, _)| carries == Some(Carries::Yes))
            .collect();
        assert_eq!(told, planted);
    }
}
