//! The table of the terminal, and the answers above it.

use crate::sample;

use proptest::prelude::*;
use pubgauge_driver::{Mapping, Reliability, Settings};
use pubgauge_figures::model::Broker;
use pubgauge_figures::search::{Axis, LimitedBy, Search};
use pubgauge_figures::{Reason, Results, Rule, Status};
use pubgauge_report::summary::{Cell, Summary};
use pubgauge_report::wins::{Contest, ContestResult, answer};
use pubgauge_report::{page, table};
use pubgauge_results::verdict::judge;

fn answer_of(results: &Results, workload: &str, contest: Contest) -> ContestResult {
    let summary = Summary::summarize(results);
    let found = summary.workloads.iter().find(|w| w.name == workload);
    let cells: Vec<&Cell<'_>> = found.unwrap().cells.iter().collect();
    answer(&cells, contest)
}

#[test]
fn one_repeat() {
    insta::assert_snapshot!(table(&sample::run(1).0, 80));
}

#[test]
fn five_repeats() {
    insta::assert_snapshot!(table(&sample::run(5).0, 80));
}

#[test]
fn searches_stand_before_what_is_compared() {
    let (results, _) = sample::searches::run();
    insta::assert_snapshot!(table(&results, 80));
    // Beside trials of a plan, whose part of the table stays as it is.
    let (mut both, _) = sample::run(1);
    let alone = table(&both, 80);
    let first = both.trials.len() as u32;
    both.trials
        .extend(results.trials.into_iter().map(|mut trial| {
            trial.id += first;
            trial
        }));
    both.searches = results.searches;
    for step in both
        .searches
        .iter_mut()
        .flat_map(|search| &mut search.trials)
    {
        step.id += first;
    }
    let text = table(&both, 80);
    assert!(text.ends_with(&alone), "{text}");
    assert!(text.starts_with("meters (100 -> 1,"), "{text}");
}

/// A limit that no long trial stayed within is told from one that is confirmed; other tools read `null`.
#[test]
fn a_limit_that_is_not_confirmed_is_called_so() {
    let (mut results, logs) = sample::searches::run();
    let row = |results: &Results| {
        let text = table(results, 120);
        let row = text.lines().find(|line| line.starts_with(" mosquitto "));
        row.unwrap().to_owned()
    };
    let said = "; not confirmed; ";
    assert!(row(&results).contains(" 207k for 60 s "));
    let before = page(&results, &logs).matches(said).count();
    results.searches[0].confirmed = None;
    assert!(
        row(&results).contains(" not confirmed "),
        "{}",
        row(&results)
    );
    assert_eq!(page(&results, &logs).matches(said).count(), before + 1);
    // Where nothing stayed within, there was nothing to confirm.
    assert!(results.searches[2].low.is_none());
    assert_eq!(table(&results, 120).matches("not confirmed").count(), 1);
}

/// A search that was not told of, as after a crash, hides none of its trials.
#[test]
fn trials_without_their_search_are_rows() {
    let (mut results, _) = sample::searches::run();
    results.searches.clear();
    let text = table(&results, 80);
    assert!(text.contains("Does it carry this load?"), "{text}");
}

#[test]
fn searches_fit_at_every_width() {
    let (mut results, _) = sample::searches::run();
    for search in &mut results.searches {
        search.system.insert_str(0, "a-name-that-is-rather-long-");
        search.settings = "settings that are of several words".into();
    }
    results.searches[0].settings = "fast".into();
    for width in [72, 80, 100, 120] {
        let text = table(&results, width);
        let wide = text.lines().filter(|line| line.chars().count() > width);
        assert_eq!(wide.count(), 0, "{width}: {text}");
        for words in ["gave way", "at 90 %", "207k", "rather-long-"] {
            assert!(text.contains(words), "{width}: {words}: {text}");
        }
    }
}

/// A search is named by what differs, as a row is; each workload has a table of its own.
#[test]
fn searches_are_named_by_what_differs() {
    let (mut results, _) = sample::searches::run();
    results.searches.truncate(1);
    let mut more = |change: &dyn Fn(&mut Search)| {
        let mut search = results.searches[0].clone();
        change(&mut search);
        results.searches.push(search);
    };
    more(&|search| search.workload = "commands".into());
    more(&|search| {
        search.axes = vec![pubgauge_figures::AxisValue {
            name: "settings.reliability".into(),
            value: "at-least-once".into(),
        }];
    });
    more(&|search| search.axis = Axis::Publishers);
    let text = table(&results, 120);
    // Of meters, of commands, and of the other axis.
    let rows = text.lines().filter_map(|line| line.split_once("207"));
    let names: Vec<&str> = rows.map(|(name, _)| name.trim()).collect();
    let reliable = "reliability = at-least-once";
    assert_eq!(names, ["mosquitto", reliable, "mosquitto", "mosquitto"]);
    assert_eq!(text.matches("How far does it go?").count(), 3, "{text}");
    assert!(text.contains("meters (? -> 1, 100 topics, 64 B,"), "{text}");
}

#[test]
fn loads_have_the_unit_of_what_was_searched_for() {
    for (axis, limit) in [
        (Axis::Payload, "202 KiB to 212 KiB"),
        (Axis::Publishers, "207 k to 217 k publishers"),
        (Axis::Topics, "207 k to 217 k topics"),
    ] {
        let (mut results, _) = sample::searches::run();
        results.searches[0].axis = axis;
        results.searches[0].bound = LimitedBy::Budget;
        let text = table(&results, 120);
        let limit = format!("{limit} (budget)");
        assert!(text.contains(&limit), "{limit}: {text}");
    }
}

#[test]
fn nothing_measured_says_so() {
    let (mut results, _) = sample::run(1);
    results.trials.clear();
    results.study.cut_off = true;
    let text = table(&results, 80);
    assert!(text.contains("No trial has been measured."), "{text}");
    assert!(text.contains("cut off after 0 of 15 trials"), "{text}");
}

/// A grid has columns of much that went wrong beside names that are long.
#[test]
fn names_have_room_at_every_width() {
    let (mut results, _) = sample::grid(2);
    for trial in &mut results.trials {
        (
            trial.shortfall.under_way,
            trial.messages.not_sent,
            trial.messages.duplicated,
        ) = (1, 2, 3);
        (trial.messages.reordered, trial.messages.refused) = (4, 5);
    }
    for width in [72, 80, 100, 120] {
        let text = table(&results, width);
        let wide: Vec<&str> = text
            .lines()
            .filter(|line| line.chars().count() > width)
            .collect();
        assert!(wide.is_empty(), "{width}: {wide:#?}");
        if width < 100 {
            continue;
        }
        for system in ["mosquitto", "zeromq-forwarder"] {
            let name = format!("{system} ");
            let of = |line: &&str| line.get(1..).is_some_and(|line| line.starts_with(&name));
            let row = text.lines().find(of);
            assert!(
                row.is_some_and(|row| row.contains("/s ")),
                "{width}: {system}: {text}"
            );
        }
        for counted in ["under", "refused", "sent"] {
            assert!(text.contains(counted), "{width}: {counted}: {text}");
        }
    }
}

/// The row of a setting that is the default, with the system's term for it.
fn mapping(setting: &str, term: &str) -> Mapping {
    Mapping {
        setting: setting.into(),
        value: "default".into(),
        native: "in many words".into(),
        term: Some(term.into()),
        qos: None,
    }
}

#[test]
fn the_header_names_qos_version_and_settings() {
    let (mut results, _) = sample::run(1);
    for trial in &mut results.trials {
        trial.settings_name = "default".into();
        if trial.system.name == "mosquitto" {
            trial.mappings.push(mapping("session", "MQTT 5"));
        }
        if let [_, readings] = &mut trial.flows[..] {
            readings.settings = Some(Settings {
                reliability: Some(Reliability::AtLeastOnce),
                ..Settings::default()
            });
            readings.mappings = vec![mapping("reliability", "QoS 1")];
        }
    }
    let head = |results: &Results| table(results, 140).lines().next().unwrap().to_owned();
    assert_eq!(
        head(&results),
        "fleet of meters (100 -> 1, 100 topics, 64 B, 10/s each, QoS 0, MQTT 5, settings default, readings: at-least-once QoS 1)"
    );
    for trial in &mut results.trials {
        trial.flows.clear();
        if trial.system.name == "rabbitmq" {
            trial.settings_name = "latency".into();
            trial.mappings.push(mapping("session", "MQTT 3.1.1"));
        }
    }
    assert!(
        head(&results).ends_with("QoS 0, MQTT 3.1.1 | MQTT 5, settings default | latency)"),
        "{}",
        head(&results)
    );
}

#[test]
fn the_header_has_no_setting_that_no_flow_has() {
    let (mut results, _) = sample::run(1);
    for trial in &mut results.trials {
        trial.settings_name = "default".into();
        trial.mappings = vec![
            mapping("reliability", "QoS 0"),
            mapping("session", "MQTT 5"),
        ];
        for (n, flow) in trial.flows.iter_mut().enumerate() {
            flow.settings = Some(Settings {
                reliability: (n > 0).then_some(Reliability::AtLeastOnce),
                ..Settings::default()
            });
            let qos = ["QoS 0", "QoS 1"][n.min(1)];
            flow.mappings = vec![mapping("reliability", qos), mapping("session", "MQTT 5")];
        }
    }
    let head = |results: &Results| table(results, 140).lines().next().unwrap().to_owned();
    let words = head(&results);
    assert!(
        words.ends_with("10/s each, MQTT 5, alarms: QoS 0, readings: at-least-once QoS 1)"),
        "{words}"
    );
    for trial in &mut results.trials {
        trial.flows.remove(0);
    }
    let words = head(&results);
    assert!(
        words.ends_with("10/s each, at-least-once, QoS 1, MQTT 5)"),
        "{words}"
    );
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let text = table(&sample::hostile().0, 80);
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn the_lossy_and_the_reference_never_win() {
    let (mut results, _) = sample::run(5);
    let before = answer_of(&results, "flat out 1-1", Contest::THROUGHPUT);
    assert_eq!(before.winners.len(), 1);
    assert_eq!(before.winners[0].row, "zeromq");
    let ceiling = before.ceiling.unwrap().estimate.mean;
    assert!(
        ceiling > before.winners[0].estimate.mean,
        "the reference is faster"
    );
    assert_eq!(before.compared, 4, "without the reference");
    // Even the fastest figure does not win if messages were lost.
    for trial in &mut results.trials {
        if trial.system.name == "rabbitmq" {
            trial.messages.delivered_msgs_per_s = 1e9;
            trial.verdict.status = Status::Lossy;
        }
    }
    let after = answer_of(&results, "flat out 1-1", Contest::THROUGHPUT);
    assert_eq!(after.winners[0].row, "zeromq");
    assert_eq!(after.compared, 3);
    let table = table(&results, 80);
    assert!(table.contains("!rabbitmq"), "{table}");
}

/// Their rates are quoted as those of such a host: they do not stand under what is not to be quoted.
#[test]
fn rows_that_a_host_of_a_given_size_bounded_stand_apart() {
    let (mut results, logs) = sample::run(1);
    for trial in &mut results.trials {
        trial.verdict.status = match &*trial.system.name {
            "zeromq" => Status::HostBound,
            "rabbitmq" => Status::Lossy,
            _ => Status::Valid,
        };
        let (rule, text) = (Rule::HostFull, format!("because of {}", trial.system.name));
        trial.verdict.reasons = vec![Reason::new(rule, text)];
    }
    let table = table(&results, 80);
    let (_, lists) = table
        .split_once("Bound by the size of a client host")
        .unwrap();
    let (bound, not_valid) = lists.split_once("Not valid").unwrap();
    assert!(
        bound.contains("because of zeromq") && !bound.contains("because of rabbitmq"),
        "{bound}"
    );
    assert!(not_valid.contains("because of rabbitmq"), "{not_valid}");
    assert!(!not_valid.contains("because of zeromq"), "{not_valid}");
    let bound = results
        .trials
        .iter()
        .filter(|t| t.system.name == "zeromq")
        .count();
    let page = page(&results, &logs);
    assert!(page.contains(&format!("{bound} are host-bound: their rates")));
}

#[test]
fn ties_are_called_ties() {
    let (mut results, _) = sample::run(5);
    let means: Vec<f64> = results
        .trials
        .iter()
        .filter(|t| t.workload.name == "periodic 1-1" && t.system.name == "zeromq")
        .map(|t| t.messages.latency_ns.p99.unwrap() as f64)
        .collect();
    let mut next = means.iter();
    for trial in &mut results.trials {
        if trial.workload.name == "periodic 1-1" && trial.system.name == "mosquitto" {
            // Another run, two per cent slower: less than the repeats differ among themselves.
            trial.messages.latency_ns.p99 = Some((next.next().unwrap() * 1.002) as u64);
        }
    }
    let tied = answer_of(&results, "periodic 1-1", Contest::TAIL_LATENCY);
    assert_eq!(tied.winners.len(), 2, "{tied}");
    assert!(
        tied.to_string().contains("no clear winner among zeromq"),
        "{tied}"
    );
}

/// Percentiles are whole steps of a histogram: repeats may all be equal, which is no proof of a difference of a step.
#[test]
fn equal_repeats_a_step_apart_are_no_win() {
    let (mut results, _) = sample::run(2);
    for trial in &mut results.trials {
        let is_slower = trial.system.name == "mosquitto";
        trial.messages.latency_ns.p99 = Some(if is_slower { 1_001_000 } else { 1_000_000 });
    }
    let tied = answer_of(&results, "periodic 1-1", Contest::TAIL_LATENCY);
    assert_eq!(tied.winners.len(), tied.compared, "{tied}");
}

#[test]
fn one_repeat_claims_little() {
    let (results, _) = sample::run(1);
    let said = answer_of(&results, "flat out 1-1", Contest::THROUGHPUT).to_string();
    assert!(said.contains("one valid repeat: could be chance"), "{said}");
}

#[test]
fn round_trips_are_answered_where_there_are_any() {
    let (mut results, _) = sample::run(1);
    assert!(!table(&results, 80).contains("round trip"));
    for trial in results
        .trials
        .iter_mut()
        .filter(|t| t.workload.name == "periodic 1-1")
    {
        let mut twice = trial.messages.latency_ns;
        twice.p50 = twice.p50.map(|p50| p50 * 2);
        trial.messages.round_trip_ns = Some(twice);
    }
    let said = answer_of(&results, "periodic 1-1", Contest::ROUND_TRIP).to_string();
    assert!(
        said.starts_with("shortest median round trip: zeromq 143 µs"),
        "{said}"
    );
    assert!(table(&results, 80).contains("shortest median round trip"));
}

#[test]
fn no_valid_trial_no_winner() {
    let (mut results, _) = sample::run(1);
    for trial in &mut results.trials {
        trial.verdict.status = Status::Broken;
    }
    let said = answer_of(&results, "flat out 1-1", Contest::THROUGHPUT);
    assert!(said.winners.is_empty());
    assert_eq!(
        said.to_string(),
        "most delivered: no valid figure to compare"
    );
}

proptest! {
    /// No line is ever longer than asked for, whatever the names.
    #[test]
    fn every_line_fits(width in 72usize..140, name in ".{0,90}", reason in ".{0,300}") {
        let (mut results, _) = sample::run(1);
        for trial in &mut results.trials {
            trial.system.name = format!("{name}{}", trial.system.name);
            let reason = Reason::new(Rule::Lost, &reason);
            trial.verdict.reasons.push(reason);
        }
        let text = table(&results, width);
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{} > {width}: {line:?}", line.chars().count());
        }
    }
}

#[test]
fn several_brokers_are_told_of() {
    let (mut results, logs) = sample::run(1);
    let (plain, page) = (table(&results, 80), pubgauge_report::page(&results, &logs));
    assert!(!plain.contains("brokers") && !page.contains("Its brokers"));
    let broker = |number: u64| Broker {
        address: format!("mqtt://127.0.0.1:{number}"),
        connections: 10 + number,
        cpu_s: Some(0.25 * number as f64),
        rss_bytes: Some(8_000_000),
        busiest_thread_cpu: None,
        published: Some(1_000 + number),
        delivered: None,
    };
    results.trials[0].brokers = vec![broker(1), broker(2)];
    let name = results.trials[0].system.name.clone();
    let text = table(&results, 200);
    let sentence = format!(
        "{name}: 2 brokers, each: clients 11 to 12, processor time 0.25 s to 0.50 s, memory 7.63 MiB"
    );
    assert!(text.contains(&sentence), "{text}");
    assert!(
        !text.contains("MiB, busiest thread"),
        "nobody knows it:\n{text}"
    );
    let page = pubgauge_report::page(&results, &logs);
    for shown in [
        "Its brokers",
        "mqtt://127.0.0.1:2",
        "<td class=\"n\">1002</td>",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn other_programs_on_the_machine_are_told_of() {
    let (mut results, logs) = sample::run(1);
    for trial in &mut results.trials {
        trial.circumstances.cores = 4;
        trial.worker_load.machine_others = Some(0.9);
    }
    let said = "Other programs kept";
    assert!(!table(&results, 200).contains(said), "a little");
    let trial = &mut results.trials[0];
    trial.worker_load.machine_others = Some(3.8);
    trial.verdict.others_busy = judge(trial).others_busy;
    let sentence = format!(
        "Other programs kept up to 3.80 of the machine's 4 processors busy ({}): what was slow",
        results.trials[0].system.name
    );
    assert!(
        table(&results, 200).contains(&sentence),
        "{}",
        table(&results, 200)
    );
    assert!(pubgauge_report::page(&results, &logs).contains(&sentence));
}

#[test]
fn what_was_counted_is_told_of() {
    use pubgauge_figures::on_request::{InterfaceTraffic, SyscallCounts, SystemCalls};
    let (mut results, logs) = sample::run(1);
    let said = "system calls were counted, which slows them";
    assert!(!table(&results, 200).contains(said));
    let trial = &mut results.trials[0];
    let deliveries = (trial.messages.delivered_msgs_per_s * trial.duration_s).round() as u64;
    trial.system_calls = Some(SystemCalls {
        client: Some(SyscallCounts {
            all: 7 * deliveries,
            ..SyscallCounts::default()
        }),
        ..SystemCalls::default()
    });
    trial.interface = Some(InterfaceTraffic {
        interface: "lo".into(),
        bytes: 300 * deliveries,
        packets: 4 * deliveries,
        payload_bytes: Some(100 * deliveries),
        ..InterfaceTraffic::default()
    });
    let sentence = format!(
        "{said}, 7.00 of the client for each delivery, 3.00 B crossed lo for each payload byte, in 4.00 packets for \
         each delivery"
    );
    let text = table(&results, 300);
    assert!(text.contains(&sentence), "{text}");
    assert!(pubgauge_report::page(&results, &logs).contains(&sentence));
    let interface = results.trials[0].interface.as_mut().unwrap();
    interface.not_told = Some("others sent over it".into());
    let text = table(&results, 300);
    assert!(
        text.contains("what crossed lo tells nothing of its messages"),
        "{text}"
    );
}
