//! Real recordings, read by the converter, have the statistics that independent scripts found.
//!
//! The recordings are not part of the repository: `PUBGAUGE_DATA` names their folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pubgauge_workload::schedule::{Replay, ReplayMode};
use pubgauge_workload::trace::days::{DAY, DayReadings, Days};
use pubgauge_workload::trace::{OnChange, TimeFormat, TraceColumn, TraceFormat};
use pubgauge_workload::{
    Arrivals, Exchange, Flow, Publisher, SECOND, Schedule, Sizes, Trace, TraceSource,
};

fn data() -> PathBuf {
    PathBuf::from(std::env::var_os("PUBGAUGE_DATA").expect(
        "PUBGAUGE_DATA must name the folder with the recorded data (tracebase, oslo-bysykkel, \
         trafficcam-sizes)",
    ))
}

fn name(column: &str) -> TraceColumn {
    TraceColumn::Name(column.into())
}

/// Nearest-rank quantiles: minimum, 10 %, 50 %, 90 %, 99 %, maximum.
fn quantiles(mut values: Vec<u64>) -> [u64; 6] {
    values.sort_unstable();
    [0.0, 0.1, 0.5, 0.9, 0.99, 1.0].map(|q| {
        let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
        values[rank - 1]
    })
}

/// Gaps within devices, in seconds.
fn gaps(trace: &Trace) -> Vec<u64> {
    let mut gaps = Vec::new();
    for device in 0..trace.devices.len() as u32 {
        let at: Vec<u64> = trace.of_device(device).map(|r| r.at).collect();
        gaps.extend(at.windows(2).map(|pair| (pair[1] - pair[0]) / SECOND));
    }
    gaps
}

fn sizes(trace: &Trace) -> Vec<u64> {
    trace.readings.iter().map(|r| u64::from(r.size)).collect()
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

/// Fewest, median and most readings of a device.
fn per_device(trace: &Trace) -> [u64; 3] {
    let counts = (0..trace.devices.len() as u32).map(|d| trace.of_device(d).len() as u64);
    let q = quantiles(counts.collect());
    [q[0], q[2], q[5]]
}

fn tracebase() -> TraceSource {
    let folder = data().join("tracebase");
    let entries = std::fs::read_dir(&folder).expect("tracebase");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "gz"))
        .collect();
    files.sort();
    TraceSource {
        files,
        format: Some(TraceFormat {
            delimiter: Some(';'),
            header: Some(false),
            time: TraceColumn::Number(1),
            time_format: Some(TimeFormat::DmyHms),
            device_from_file: Some("*__{device}_*.csv.gz".into()),
            size_of_json: Some(BTreeMap::from([
                ("t".to_string(), name("$time")),
                ("dev".to_string(), name("$device")),
                ("p1".to_string(), TraceColumn::Number(2)),
                ("p8".to_string(), TraceColumn::Number(3)),
            ])),
            ..TraceFormat::default()
        }),
        sort: false,
    }
}

#[test]
fn smart_meters() {
    let mut source = tracebase();
    let trace = Trace::open(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(trace.readings.len(), 1_632_552);
    assert_eq!(trace.devices.len(), 37);
    assert_eq!(per_device(&trace), [8111, 55_078, 73_173]);
    let gaps = gaps(&trace);
    assert_eq!(quantiles(gaps.clone()), [0, 1, 2, 3, 6, 390]);
    assert!((mean(&gaps) - 1.878).abs() < 0.0005, "{}", mean(&gaps));
    let sizes = sizes(&trace);
    assert_eq!(quantiles(sizes.clone()), [46, 49, 49, 52, 60, 64]);
    assert!((mean(&sizes) - 49.8).abs() < 0.05, "{}", mean(&sizes));

    // A thousand meters drawn from the recording have its rate and its sizes.
    let drawn = |mode| Flow {
        name: "meters".into(),
        publishers: (0..1000)
            .map(|p| Publisher {
                device: p,
                topics: vec![format!("meter/{p}")],
            })
            .collect(),
        subscribers: vec![],
        arrivals: Arrivals::Replay(Box::new(Replay {
            source: source.clone(),
            mode,
            ..Replay::default()
        })),
        size: Sizes::Recorded,
        start_offset: None,
        active_for: Some(300 * SECOND),
        exchange: Exchange::OneWay,
        window: None,
        topic_zipf: None,
        subscribers_take: None,
        answered_by_last: false,
        presence: None,
        settings: 0,
    };
    let flow = drawn(ReplayMode::Drawn {
        interval: 900 * SECOND,
    });
    let sizes: Vec<u64> = Schedule::new(&flow, 0..1000, 1)
        .map(|d| u64::from(d.size))
        .collect();
    let expected = trace.readings.len() as f64 / 37.0 * 1000.0 * 300.0 / 86_400.0;
    assert!(
        (sizes.len() as f64 / expected - 1.0).abs() < 0.05,
        "{} of {expected}",
        sizes.len()
    );
    assert!((mean(&sizes) - 49.8).abs() < 0.3, "{}", mean(&sizes));

    // Send on change: 2 W or 5 %.
    source.format.as_mut().expect("there").on_change = vec![OnChange {
        column: TraceColumn::Number(2),
        absolute: Some(2.0),
        relative: Some(0.05),
    }];
    let changes = Trace::read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(changes.readings.len(), 433_111);
    assert_eq!(changes.remarks.unchanged, 1_632_552 - 433_111);
}

#[test]
fn bike_stations() {
    let format = TraceFormat {
        time: name("feed_last_updated"),
        time_format: Some(TimeFormat::EpochS),
        device: Some(name("station_id")),
        size: Some(name("json_bytes")),
        ..TraceFormat::default()
    };
    let mut source = TraceSource {
        files: vec![data().join("oslo-bysykkel/oslo_station_status_14d.csv.gz")],
        format: Some(format),
        sort: false,
    };
    let trace = Trace::read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((trace.readings.len(), trace.devices.len()), (260_113, 265));
    assert_eq!(per_device(&trace), [675, 983, 983]);
    assert_eq!(quantiles(sizes(&trace)), [218, 219, 221, 248, 249, 250]);
    assert!((mean(&sizes(&trace)) - 230.5).abs() < 0.05);
    source.format.as_mut().expect("there").on_change = ["bikes", "docks"]
        .map(|column| OnChange {
            column: name(column),
            absolute: None,
            relative: None,
        })
        .into();
    let changes = Trace::read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(changes.readings.len(), 65_977);
}

/// A sensor on a tower: send on change keeps more readings about noon than in the rest of the day.
#[test]
fn a_sensor_on_a_tower() {
    const HOUR: u64 = 3600 * SECOND;
    let folder = data().join("campusiot-lorawan");
    let change = |column: &str, absolute| OnChange {
        column: name(column),
        absolute: Some(absolute),
        relative: None,
    };
    let source = TraceSource {
        files: vec![folder.join("TourPerret__ems-tourperret-A81758FFFE04B1C1.ndjson.gz")],
        format: Some(TraceFormat {
            time: name("_timestamp"),
            time_format: Some(TimeFormat::EpochMs),
            device: Some(name("dev_eui")),
            size: Some(name("payload_size")),
            skip_incomplete: Some(true),
            on_change: vec![
                change("/decoded/payload/temperature", 0.5),
                change("/decoded/payload/humidity", 2.0),
            ],
            ..TraceFormat::default()
        }),
        sort: true,
    };
    let days = Days {
        utc_offset: HOUR as i64,
        hours: vec![
            vec![11 * HOUR..14 * HOUR],
            vec![0..11 * HOUR, 14 * HOUR..DAY],
        ],
        least: 3,
        ..Days::default()
    };
    let found = days.read(&source).unwrap_or_else(|error| panic!("{error}"));
    let share = |of: &[DayReadings]| {
        let each = of.iter().map(|day| day.kept as f64 / day.readings as f64);
        each.sum::<f64>() / of.len() as f64
    };
    let [noon, rest] = [share(&found[0]), share(&found[1])];
    assert_eq!(found[0].len(), 157);
    assert!((noon - 0.668).abs() < 0.005, "{noon}");
    assert!((0.44..0.50).contains(&rest), "{rest}");
}

#[test]
fn cameras() {
    let read = |file: &str, format: TraceFormat| {
        let source = TraceSource {
            files: vec![data().join("trafficcam-sizes").join(file)],
            format: Some(format),
            sort: true,
        };
        Trace::read(&source).unwrap_or_else(|error| panic!("{error}"))
    };
    let by_epoch = || TraceFormat {
        time: name("epoch_s"),
        device: Some(name("camera_id")),
        size: Some(name("jpeg_bytes")),
        ..TraceFormat::default()
    };
    let singapore = read("sg_checkpoint_camera_sizes.csv", by_epoch());
    assert_eq!(
        (singapore.readings.len(), singapore.devices.len()),
        (323, 5)
    );
    assert_eq!(
        quantiles(sizes(&singapore)),
        [116_240, 134_688, 157_451, 201_608, 230_176, 322_010]
    );
    assert_eq!(per_device(&singapore), [10, 74, 83]);
    let distinct = read(
        "sg_checkpoint_camera_sizes.csv",
        TraceFormat {
            drop_repeats: Some(name("git_blob_sha1")),
            ..by_epoch()
        },
    );
    assert_eq!(distinct.remarks.unchanged, 21);
    let webcam = read("webcam_feed_sizes_19d.csv", by_epoch());
    assert_eq!(webcam.readings.len(), 1479);
    let helios = read(
        "uk_helios_camera_sizes_2016-08-10.csv",
        TraceFormat {
            time: name("utc_time"),
            time_format: Some(TimeFormat::Pattern("%Y-%m-%dT%H-%M-%S%.fZ".into())),
            device: Some(name("camera_id")),
            size: Some(name("jpeg_bytes")),
            ..TraceFormat::default()
        },
    );
    assert_eq!((helios.readings.len(), helios.devices.len()), (100, 100));
}
