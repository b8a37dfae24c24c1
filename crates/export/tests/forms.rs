//! Tables, OpenMetrics, JUnit and annotations of made-up trials, read back.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use pubgauge_driver::Mapping;
use pubgauge_export::check::{Check, CheckOutcome, github, junit};
use pubgauge_export::tables::NamedRun;
use pubgauge_export::{ExportColumn, Format, Table, benchmark, openmetrics, without_empty_columns};
use pubgauge_figures::Messages;
use pubgauge_figures::bursts::BurstFigures;
use pubgauge_figures::histogram::Interval;
use pubgauge_figures::model::*;
use pubgauge_fixtures::TrialBuilder;
use serde_json::{Value, json};

/// A table, read to its end.
struct Whole {
    name: &'static str,
    columns: Vec<ExportColumn>,
    rows: Vec<Vec<Value>>,
}

fn whole(table: Table<'_>) -> Whole {
    Whole {
        name: table.name,
        columns: table.columns,
        rows: table.rows.map(Result::unwrap).collect(),
    }
}

fn latency() -> Histogram<u64> {
    let mut values = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    (1..=1000u64).for_each(|ms| values.record(ms * 1_000_000).unwrap());
    values
}

fn trial(id: u32, system: &str, payload: &str, status: Status) -> Trial {
    let trial = TrialBuilder::periodic(500.0, 2.0)
        .id(id)
        .system(system)
        .axis("payload", payload)
        .status(status)
        .reason(Rule::Lost, "a \"reason\", with\na line")
        .latency(Distribution::from_histogram(&latency()))
        .steady_series(1.0)
        .flows(&["readings, all", "commands"]);
    let mut trial = trial.build();
    trial.system_cpu_s = (system != "far").then_some(0.25);
    // The third second is of the drain.
    trial.series.push(SeriesRecord {
        traffic: TrafficRecord {
            t_s: 3.0,
            ..TrafficRecord::default()
        },
        ..SeriesRecord::default()
    });
    trial
}

fn results() -> Results {
    Results {
        study: StudyInfo {
            name: "night \"1\"".into(),
            ..StudyInfo::default()
        },
        trials: vec![
            trial(0, "mosquitto", "64B", Status::Valid),
            trial(1, "far", "1KiB", Status::Lossy),
        ],
        ..Results::default()
    }
}

/// That run with a search of two trials of one load.
fn with_a_search() -> Results {
    use pubgauge_figures::search::*;

    let mut results = results();
    let loads = [
        (2, Purpose::FlatOut, None),
        (3, Purpose::Short, Some(40e3)),
        (4, Purpose::Short, Some(40e3)),
    ];
    for (id, purpose, load) in loads {
        results.trials.push(Trial {
            search: Some(SearchStep {
                search: 0,
                purpose,
                load,
            }),
            ..trial(id, "mosquitto", "64B", Status::Valid)
        });
    }
    results.searches = vec![Search {
        system: "mosquitto".into(),
        settings: "default".into(),
        workload: "fleet".into(),
        axes: results.trials[0].axes.clone(),
        axis: pubgauge_figures::search::Axis::Rate,
        low: Some(39.5e3),
        high: None,
        confirmed: Some(39.5e3),
        bound: LimitedBy::Client,
        gave_way: Some(GaveWay {
            what: pubgauge_figures::search::Bottleneck::Client,
            figure: 0.97,
            unit: pubgauge_figures::figure::Unit::Share,
            words: "a client thread was busy".into(),
        }),
        notes: ["one", "two"]
            .map(|text| {
                pubgauge_figures::search::SearchNote::new(
                    pubgauge_figures::search::NoteOf::Client,
                    text,
                )
            })
            .into(),
        bursts: Some(BurstFigures {
            messages: 1_000,
            sent: 12,
            whole: 12,
            in_time: 11,
            msgs_per_s: Some(2.5e6),
            arrival_ns: Some(700_000),
            ..BurstFigures::default()
        }),
        trials: Vec::new(),
    }];
    results
}

#[test]
fn searches_are_columns_of_their_trials_and_a_table() {
    let results = with_a_search();
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    let trials = whole(run.trials());
    for column in ["search", "search_purpose", "search_load"] {
        assert_eq!(*get(&trials, 0, column), Value::Null, "{column}");
    }
    assert_eq!(*get(&trials, 2, "search"), json!(0));
    assert_eq!(*get(&trials, 2, "search_purpose"), "flat-out");
    assert_eq!(*get(&trials, 2, "search_load"), Value::Null);
    assert_eq!(*get(&trials, 3, "search_purpose"), "short");
    assert_eq!(*get(&trials, 3, "search_load"), json!(40e3));
    let searches = whole(run.searches());
    assert_eq!(searches.rows.len(), 1);
    assert_eq!(*get(&searches, 0, "axes"), "payload=64B");
    assert_eq!(*get(&searches, 0, "low"), json!(39.5e3));
    assert_eq!(*get(&searches, 0, "high"), Value::Null);
    assert_eq!(*get(&searches, 0, "bound"), "client");
    assert_eq!(*get(&searches, 0, "gave_way_figure"), json!(0.97));
    assert_eq!(*get(&searches, 0, "notes"), "one; two");
    assert_eq!(*get(&searches, 0, "bursts_whole"), json!(12));
    assert_eq!(*get(&searches, 0, "burst_msgs_per_s"), json!(2.5e6));
    assert_eq!(*get(&searches, 0, "burst_arrival_ns"), json!(700_000));
    for format in [Format::Csv, Format::Json, Format::Parquet] {
        assert!(!written(format, &searches).is_empty());
    }
    let names =
        |table: &Whole| -> Vec<String> { table.columns.iter().map(|c| c.name.clone()).collect() };
    let none = NamedRun {
        name: "none",
        results: &self::results(),
    };
    assert_eq!(names(&whole(none.searches())), names(&searches));
}

#[test]
fn openmetrics_of_a_search_is_well_formed() {
    let text = well_formed(&with_a_search());
    for line in [
        "workload=\"fleet\",settings=\"default\",axis_payload=\"64B\",search=\"0\",axis=\"rate\"} 39500",
        "repeat=\"1\",search=\"0\",load=\"40000\",trial=\"4\"",
        "# TYPE pubgauge_search_high gauge",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!well_formed(&results()).contains("pubgauge_search"));
}

fn logs(_: u32, name: &str) -> Result<Vec<Interval>, String> {
    let interval = |tag: &str| Interval {
        tag: Some(tag.into()),
        start: Default::default(),
        length: Default::default(),
        histogram: latency(),
    };
    Ok(match name {
        "latency" => ["readings__all", "commands", "commands"]
            .map(interval)
            .to_vec(),
        _ => Vec::new(),
    })
}

fn tables() -> Vec<Whole> {
    let results = results();
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    vec![
        whole(run.trials()),
        whole(run.flows()),
        whole(run.series()),
        whole(run.percentiles(logs)),
    ]
}

fn get<'a>(table: &'a Whole, row: usize, column: &str) -> &'a Value {
    let at = table.columns.iter().position(|c| c.name == column);
    &table.rows[row][at.unwrap_or_else(|| panic!("{}: no {column}", table.name))]
}

#[test]
fn a_row_for_each_observation_with_what_tells_it_apart() {
    let tables = tables();
    let sizes: Vec<(&str, usize)> = tables.iter().map(|t| (t.name, t.rows.len())).collect();
    // p0 to p99.9 of 1000 values can be quoted, and the largest: 13; of 2000 and 3000 p99.95 too.
    assert_eq!(sizes[..3], [("trials", 2), ("flows", 4), ("series", 6)]);
    assert_eq!(tables[3].rows.len(), 2 * (13 + 14 + 14));
    for table in &tables {
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len());
        }
        assert_eq!(*get(table, 0, "run"), "night-1");
        assert_eq!(*get(table, 0, "system"), "mosquitto");
        assert_eq!(*get(table, 0, "axis_payload"), "64B");
        assert_eq!(*get(table, table.rows.len() - 1, "verdict"), "lossy");
    }
    let trials = &tables[0];
    assert_eq!(*get(trials, 0, "delivered"), json!(1000));
    assert_eq!(*get(trials, 0, "latency_p99_ns"), json!(990_380_031));
    assert_eq!(
        *get(trials, 0, "latency_p99_9_ns"),
        Value::Null,
        "of 1000 messages, where it takes 2995"
    );
    assert_eq!(*get(trials, 0, "system_cpu_s"), json!(0.25));
    assert_eq!(*get(trials, 1, "system_cpu_s"), Value::Null);
    assert_eq!(*get(trials, 1, "round_trip_p50_ns"), Value::Null);
    assert_eq!(*get(trials, 1, "lost_share"), json!(0.0));
    assert_eq!(*get(&tables[1], 1, "flow"), "commands");
    assert_eq!(*get(&tables[2], 2, "phase"), "drain");
    let percentiles = &tables[3];
    assert_eq!(*get(percentiles, 0, "flow"), "readings, all");
    assert_eq!(*get(percentiles, 0, "percentile"), json!(0.0));
    assert_eq!(*get(percentiles, 12, "percentile"), json!(100.0));
    assert_eq!(
        *get(percentiles, 13, "count"),
        json!(2000),
        "two intervals of commands"
    );
    assert_eq!(*get(percentiles, 27, "flow"), Value::Null, "both flows");
    assert_eq!(*get(percentiles, 27, "count"), json!(3000));
    assert_eq!(*get(percentiles, 27 + 5, "value_ns"), json!(500_170_751));
}

/// A load is read as numbers, whether or not a grid varies it, and a reader is not shown what nothing has a value in.
#[test]
fn loads_are_numbers_and_no_column_is_empty_throughout() {
    let mut results = results();
    for trial in &mut results.trials {
        trial.axes.clear();
        trial.workload.payload_bytes = Some(64.0);
        trial.workload.rate_msgs_per_s = Some(1_000.0);
    }
    let reliability = |native: &str, qos| Mapping {
        setting: "reliability".into(),
        value: "default".into(),
        native: native.into(),
        term: None,
        qos,
    };
    results.trials[0].mappings = vec![reliability("in words of MQTT", Some(1))];
    results.trials[1].mappings = vec![reliability("QoS 2, in another protocol's words", None)];
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    let all = whole(run.trials());
    let trials = whole(without_empty_columns(|| run.trials()).unwrap());
    assert_eq!(*get(&trials, 0, "workload_payload_bytes"), json!(64.0));
    assert_eq!(*get(&trials, 0, "workload_rate_msgs_per_s"), json!(1_000.0));
    assert_eq!(*get(&trials, 0, "workload_publishers"), json!(1));
    assert_eq!(*get(&trials, 0, "qos"), json!(1));
    assert_eq!(*get(&trials, 1, "qos"), Value::Null);
    assert!(trials.columns.len() < all.columns.len() - 50);
    for (at, column) in trials.columns.iter().enumerate() {
        let mut cells = trials.rows.iter().map(|row| &row[at]);
        let identifies = ["settings", "system_version"].contains(&column.name.as_str());
        assert!(
            identifies || cells.any(|cell| !cell.is_null() && *cell != ""),
            "{} is empty",
            column.name
        );
        for row in 0..trials.rows.len() {
            assert_eq!(trials.rows[row][at], *get(&all, row, &column.name));
        }
    }
    // Of no rows nothing is known.
    let none = whole(without_empty_columns(|| run.searches()).unwrap());
    assert_eq!(none.columns, whole(run.searches()).columns);
}

/// The form of github-action-benchmark: a list of name, unit and value, less or more of which is better.
#[test]
fn entries_of_a_benchmark_are_of_valid_trials_and_say_their_unit() {
    let flat_out = |system: &str, repeat, per_s| {
        let trial = TrialBuilder::flat_out(per_s, 2.0).system(system);
        trial.workload("flood").repeat(repeat).build()
    };
    let mut results = results();
    results.trials.push(flat_out("nats", 1, 90e3));
    results.trials.push(flat_out("nats", 2, 110e3));
    let [smaller, bigger] = benchmark::entries(&results);
    let p99 = smaller.iter().find(|of| of.name.ends_with("latency.p99"));
    let p99 = p99.unwrap();
    assert_eq!((p99.unit, p99.value), ("ms", 990.380031));
    assert!(p99.name.starts_with("fleet / mosquitto"), "{}", p99.name);
    assert_eq!(p99.range, None);
    assert!(
        p99.extra.starts_with("1 valid of 1 repeat"),
        "{}",
        p99.extra
    );
    assert!(
        !smaller.iter().any(|of| of.name.contains("far")),
        "a lossy one has no figure"
    );
    let [rate] = &bigger[..] else {
        panic!("{bigger:#?}")
    };
    assert_eq!(
        (rate.name.as_str(), rate.unit, rate.value),
        ("flood / nats / delivered-rate", "msg/s", 100e3)
    );
    assert_eq!(rate.range, None, "two repeats have no interval");
    let file: Value = serde_json::from_str(&benchmark::text(&bigger)).unwrap();
    assert_eq!(file[0]["value"], json!(100e3));
    assert!(file[0]["name"].is_string() && file[0]["unit"].is_string());
}

fn written(format: Format, table: &Whole) -> Vec<u8> {
    let mut bytes = Vec::new();
    let rows = table.rows.iter().cloned().map(Ok);
    let table = Table {
        name: table.name,
        columns: table.columns.clone(),
        rows: Box::new(rows),
    };
    format.write(table, &mut bytes).unwrap();
    bytes
}

/// The cells of a table, as texts.
fn texts(table: &Whole) -> Vec<Vec<String>> {
    let text = |cell: &Value| match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap().to_string(),
        other => other.to_string(),
    };
    table
        .rows
        .iter()
        .map(|row| row.iter().map(text).collect())
        .collect()
}

#[test]
fn csv_reads_back() {
    for table in tables() {
        let bytes = written(Format::Csv, &table);
        let mut csv = csv::Reader::from_reader(&bytes[..]);
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(csv.headers().unwrap(), names);
        let rows: Vec<Vec<String>> = csv.deserialize().map(Result::unwrap).collect();
        assert_eq!(rows, texts(&table), "{}", table.name);
    }
}

#[test]
fn json_reads_back() {
    for table in tables() {
        let rows: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_slice(&written(Format::Json, &table)).unwrap();
        assert_eq!(rows.len(), table.rows.len());
        for (row, cells) in rows.iter().zip(texts(&table)) {
            for (column, cell) in table.columns.iter().zip(cells) {
                let value = match &row[&column.name] {
                    serde_json::Value::Null => String::new(),
                    serde_json::Value::String(text) => text.clone(),
                    serde_json::Value::Number(n) if n.is_f64() => n.as_f64().unwrap().to_string(),
                    other => other.to_string(),
                };
                assert_eq!(value, cell, "{}", column.name);
            }
        }
    }
}

#[test]
fn parquet_reads_back() {
    for table in tables() {
        let bytes = written(Format::Parquet, &table);
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows: Vec<Vec<String>> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| {
                let row = row.unwrap();
                let text = |(_, field): (&String, &Field)| match field {
                    Field::Null => String::new(),
                    Field::Str(text) => text.clone(),
                    Field::Long(number) => number.to_string(),
                    Field::Double(number) => number.to_string(),
                    Field::Bool(yes) => yes.to_string(),
                    other => panic!("{other:?}"),
                };
                row.get_column_iter().map(text).collect()
            })
            .collect();
        assert_eq!(rows, texts(&table), "{}", table.name);
    }
}

#[test]
fn a_run_without_trials_has_the_same_columns() {
    let results = Results {
        trials: Vec::new(),
        ..results()
    };
    let run = NamedRun {
        name: "empty",
        results: &results,
    };
    let full = tables();
    for (empty, full) in [whole(run.trials()), whole(run.flows()), whole(run.series())]
        .iter()
        .zip(&full)
    {
        let names = |t: &Whole| -> Vec<String> {
            let names = t.columns.iter().map(|c| c.name.clone());
            names.filter(|name| name != "axis_payload").collect()
        };
        assert_eq!(names(empty), names(full));
        for format in [Format::Csv, Format::Json, Format::Parquet] {
            assert!(!written(format, empty).is_empty());
        }
    }
}

/// The text of a run, held against what the grammar of OpenMetrics 1.0 demands, as far as it shows
/// line by line.
fn well_formed(results: &Results) -> String {
    let text = {
        let mut bytes = Vec::new();
        openmetrics::write_run("night-1", results, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert!(text.ends_with("\n# EOF\n") && !text.contains("\n\n"));
    let mut family = ("", "");
    let mut seen = Vec::new();
    let mut samples = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split_once(' ').unwrap();
            assert!(!seen.contains(&family.0), "{line}: families are contiguous");
            seen.push(family.0);
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').unwrap();
            assert!(
                name == family.0 && name.ends_with(&format!("_{unit}")),
                "{line}"
            );
        } else if line.starts_with('#') {
            assert!(line == "# EOF" || line.starts_with(&format!("# HELP {} ", family.0)));
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            let (name, labels) = name.split_once('{').unwrap();
            let suffix = name.strip_prefix(family.0).unwrap();
            let allowed: &[&str] = match family.1 {
                "counter" => &["_total"],
                "info" => &["_info"],
                "summary" => &["", "_count", "_sum"],
                _ => &[""],
            };
            assert!(allowed.contains(&suffix), "{line}");
            assert!(
                labels.contains("run=\"night-1\",study=\"night \\\"1\\\"\""),
                "{line}"
            );
            assert!(samples.insert((name, labels)), "{line}: twice");
        }
    }
    text
}

#[test]
fn openmetrics_is_well_formed() {
    let text = well_formed(&results());
    for line in [
        "pubgauge_lost_deliveries_total{",
        "pubgauge_latency_seconds_count{",
        "pubgauge_verdict=\"lossy\"} 1",
        "quantile=\"0.99\"} 0.990380031",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(
        !text.contains("quantile=\"0.9999\""),
        "no percentile that is none"
    );
    insta::assert_snapshot!(text);
}

fn checks() -> Vec<Check> {
    let check = |group: &str, name: &str, outcome, words: &str| Check {
        group: group.into(),
        name: name.into(),
        outcome,
        words: words.into(),
    };
    vec![
        check(
            "criteria",
            "lost equals 0",
            CheckOutcome::Passed,
            "all 3 trials",
        ),
        check(
            "criteria",
            "latency.p99 < 10ms",
            CheckOutcome::Failed,
            "a: 50 % more\nb, too: \u{1b}[31m",
        ),
        check(
            "criteria",
            "\"x\" & y",
            CheckOutcome::Undecided,
            "cannot tell",
        ),
        check("trials", "mosquitto", CheckOutcome::Aside, "client-bound"),
    ]
}

#[test]
fn junit_is_xml_with_what_ci_servers_look_for() {
    let text = junit("night <1>", &checks());
    let mut reader = quick_xml::Reader::from_str(&text);
    let mut elements = Vec::new();
    loop {
        use quick_xml::events::Event;
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(e) | Event::Empty(e) => {
                let attributes = e.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    let value = attribute
                        .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                        .unwrap();
                    (attribute.key.as_ref().to_owned(), value.into_owned())
                });
                let attributes: BTreeMap<_, _> = attributes.collect();
                elements.push((e.name().as_ref().to_owned(), attributes));
            }
            _ => {}
        }
    }
    for (name, count) in [
        ("testsuite", 2),
        ("testcase", 4),
        ("failure", 1),
        ("error", 1),
        ("skipped", 1),
    ] {
        assert_eq!(
            elements.iter().filter(|(e, _)| e == name).count(),
            count,
            "{name}"
        );
    }
    let of = |element: &str, attribute: &str| {
        let mut found = elements.iter().filter(|(name, _)| name == element);
        found.next().unwrap().1[attribute].clone()
    };
    for (attribute, value) in [
        ("name", "night <1>"),
        ("tests", "4"),
        ("failures", "1"),
        ("errors", "1"),
        ("skipped", "1"),
    ] {
        assert_eq!(of("testsuites", attribute), value);
    }
    assert_eq!(of("testcase", "classname"), "night <1>.criteria");
    // An attribute is one line to whoever reads it; the text has all lines.
    assert_eq!(of("failure", "message"), "a: 50 % more b, too: ");
    assert!(text.contains(">a: 50 % more\nb, too: </failure>"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn annotations_are_one_line_each() {
    let text = github("night: 1, 2", Some("studies/x.toml"), &checks());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "::error file=studies/x.toml,title=pubgauge night%3A 1%2C 2::not met: latency.p99 < 10ms: a: 50 %25 more%0Ab, too: \u{1b}[31m",
            "::error file=studies/x.toml,title=pubgauge night%3A 1%2C 2::undecided: \"x\" & y: cannot tell",
            "::notice file=studies/x.toml,title=pubgauge night%3A 1%2C 2::mosquitto: client-bound",
        ]
    );
    assert_eq!(github("night", None, &checks()[..1]), "");
}

#[test]
fn windows_are_rows_of_all_flows_and_of_each() {
    let mut results = results();
    let window = |lost| pubgauge_figures::window::WindowFigures {
        messages: Messages {
            expected: 100,
            ..Messages::default()
        },
        name: "during".into(),
        from_s: 30.0,
        to_s: 40.0,

        lost,
        ..Default::default()
    };
    results.trials[0].windows = vec![window(None)];
    for flow in &mut results.trials[0].flows {
        flow.windows = vec![window(Some(5))];
    }
    let run = NamedRun {
        name: "r",
        results: &results,
    };
    let table = whole(run.windows());
    let column = |name: &str| {
        let at = table.columns.iter().position(|c| c.name == name);
        let at = at.unwrap_or_else(|| panic!("no column {name}"));
        table
            .rows
            .iter()
            .map(move |row| row[at].clone())
            .collect::<Vec<_>>()
    };
    let text = |text: &str| json!(text);
    assert_eq!(
        column("flow"),
        [Value::Null, text("readings, all"), text("commands")]
    );
    assert_eq!(column("window"), vec![text("during"); 3]);
    assert_eq!(column("to_s"), vec![json!(40.0); 3]);
    let five = json!(0.05);
    assert_eq!(column("lost_share"), [Value::Null, five.clone(), five]);
    assert!(table.columns.iter().any(|c| c.name == "latency_p99_ns"));
}

/// Messages that were never acknowledged are slower than all that were, in the rows of a flow too.
#[test]
fn percentiles_know_what_was_never_acknowledged() {
    let mut results = results();
    results.trials.truncate(1);
    results.trials[0].flows.truncate(1);
    results.trials[0].messages.acknowledgement_ns = Some(Distribution::censored(&latency(), 200));
    let logs = |_: u32, name: &str| {
        let one = Interval {
            tag: Some("readings__all".into()),
            start: Default::default(),
            length: Default::default(),
            histogram: latency(),
        };
        Ok::<_, String>(if name == "acknowledgement" {
            vec![one]
        } else {
            Vec::new()
        })
    };
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    let table = whole(run.percentiles(logs));
    // 1000 of 1200 came.
    assert_eq!(
        *get(&table, table.rows.len() - 1, "percentile"),
        json!(75.0)
    );
}

/// A second in which nothing came has no latency.
#[test]
fn silence_has_no_latency() {
    let results = results();
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    let series = whole(run.series());
    assert_eq!(*get(&series, 1, "latency_p50_ns"), json!(500_170_751));
    assert_eq!(*get(&series, 2, "latency_p50_ns"), Value::Null);
}

/// Bytes that a table has been written to so far.
#[derive(Clone, Default)]
struct Counted(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let add = std::sync::atomic::Ordering::Relaxed;
        self.0.fetch_add(bytes.len(), add);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A table of thousands of trials is written as it is read: each log once, and what came of the logs before is in the file
/// by then, but for a buffer or a row group.
#[test]
fn a_table_is_written_while_its_logs_are_read() {
    let mut results = results();
    let template = results.trials[0].clone();
    results.trials = (0..2_000)
        .map(|id| Trial {
            id,
            ..template.clone()
        })
        .collect();
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    for (format, of_a_trial, buffered) in [
        (Format::Csv, 3_000, 8 << 10),
        (Format::Json, 8_000, 1),
        // Encoded, 41 rows take little; 31,250 rows are a group.
        (Format::Parquet, 30, 800),
    ] {
        let out = Counted::default();
        let (before, mut reads) = (out.clone(), 0);
        let table = run.percentiles(|id, name| {
            assert_eq!(reads / 5, id, "each log once, in turn");
            reads += 1;
            let so_far = before.0.load(std::sync::atomic::Ordering::Relaxed);
            let least = (id as usize).saturating_sub(buffered) * of_a_trial;
            let least = if format == Format::Csv {
                (id as usize * of_a_trial).saturating_sub(buffered)
            } else {
                least
            };
            assert!(
                so_far >= least,
                "{format:?}: {so_far} bytes before trial {id}"
            );
            logs(id, name)
        });
        let rows = format.write(table, &mut out.clone()).unwrap();
        assert_eq!(rows, 2_000 * 41);
    }
}

/// A log that cannot be read ends its table with what was wrong.
#[test]
fn a_damaged_log_is_told() {
    let results = results();
    let run = NamedRun {
        name: "night-1",
        results: &results,
    };
    let table = run.percentiles(|id, _| match id {
        0 => logs(id, "latency"),
        _ => Err("line 3 is damaged".to_owned()),
    });
    let error = Format::Csv.write(table, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "line 3 is damaged");
}
