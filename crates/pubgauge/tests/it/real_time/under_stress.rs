//! A real broker, stopped for a while or behind a throttle that plants what happens when a system is at its end: what
//! pubgauge reports of it against what was planted, and against the throttle's record.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::throttle::{Direction, Direction::*, Passage, Rules, Throttle};

use common::*;
use serde_json::Value;

/// Rates and delays are planted in real time: one test after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many messages a second.
fn rate(per_s: f64) -> Rules {
    Rules {
        per_s: Some(per_s),
        ..Rules::default()
    }
}

/// A mosquitto behind a throttle.
struct Planted {
    place: Place,
    throttle: Throttle,
    broker: Mosquitto,
    _alone: MutexGuard<'static, ()>,
}

fn planted(to_server: Rules, to_client: Rules) -> Planted {
    let alone = alone();
    let broker = Mosquitto::start();
    Planted {
        place: Place::new(),
        throttle: broker.throttled(to_server, to_client),
        broker,
        _alone: alone,
    }
}

/// A trial on a machine that does not stand still itself, for which the verdict would say so
/// instead: tried again, on a bench of its own, until it does not.
fn on_calm_machine(to_server: Rules, to_client: Rules, study: &str) -> (Planted, Value) {
    on_bench_that(|_| true, [to_server, to_client], study)
}

/// The same, where what was planted also came to pass by the throttle's own record.
fn on_bench_that(
    was_so: impl Fn(&Planted) -> bool,
    [to_server, to_client]: [Rules; 2],
    study: &str,
) -> (Planted, Value) {
    for _ in 0..5 {
        let bench = planted(to_server, to_client);
        let trial = bench.trial(study);
        if !crowded(&trial) && was_so(&bench) {
            return (bench, trial);
        }
    }
    panic!("this machine is too busy for these tests");
}

impl Planted {
    /// A trial of this study, which ends with exit code 0 (valid), or 2.
    fn trial(&self, study: &str) -> Value {
        self.started(study, || ())
    }

    /// The same, with something that happens meanwhile.
    fn started(&self, study: &str, meanwhile: impl FnOnce()) -> Value {
        std::fs::write(self.place.path_to("study.toml"), study).unwrap();
        let address = format!("mqtt://{}", self.throttle.address());
        let args = ["run", "study.toml", "--on", &address, "--out", "run"];
        let command = self.place.command(&args);
        let done = std::thread::scope(|scope| {
            let run = scope.spawn(|| self.place.finish(command));
            meanwhile();
            run.join().unwrap()
        });
        done.ran_to_its_end();
        let trial = self.place.trial("run");
        accounted(&trial);
        trial
    }

    /// How many messages came to the throttle.
    fn came(&self, direction: Direction) -> u64 {
        self.throttle.record(direction).len() as u64
    }

    /// How many it let through.
    fn passed(&self, direction: Direction) -> u64 {
        let record = self.throttle.record(direction);
        record.iter().filter(|of| of.passed_ns.is_some()).count() as u64
    }

    /// Waits until so many have gone through to the server.
    fn published(&self, messages: u64) {
        let patience = Instant::now() + Duration::from_secs(60);
        while self.passed(ToServer) < messages {
            assert!(Instant::now() < patience, "the run publishes nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the broker for a while.
    fn freeze(&self, span: Duration) {
        self.broker.signal(libc::SIGSTOP);
        std::thread::sleep(span);
        self.broker.signal(libc::SIGCONT);
    }
}

/// One workload of one flow; QoS 1 if `reliability` says so.
fn study(flow: &str, phases: &str, reliability: &str) -> String {
    format!(
        "name = \"stress\"\n[phases]\nready-within = \"60s\"\n{phases}\n\
         [[settings]]\n{reliability}\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\n{flow}\n"
    )
}

/// That truth, seen by workers in processes of their own.
fn in_processes(study: &str) -> String {
    format!("{study}\n[client]\nprocesses = 1\n")
}

const AT_LEAST_ONCE: &str = "reliability = \"at-least-once\"";

#[track_caller]
fn within(figure: f64, truth: f64, share: f64) {
    let off = (figure - truth).abs();
    assert!(
        off <= share * truth,
        "{figure} is not within {share} of {truth}"
    );
}

fn delivered_per_s(trial: &Value) -> f64 {
    trial["delivered_msgs_per_s"].as_f64().unwrap()
}

#[test]
fn three_times_what_a_link_takes_is_overload_without_loss() {
    let phases = "warm-up = \"1s\"\nmeasure = \"4s\"\ndrain-within = \"2s\"";
    let (bench, trial) = on_calm_machine(
        rate(2_000.0),
        Rules::default(),
        &in_processes(&study("rate = \"6k/s\"", phases, "")),
    );
    assert_eq!(verdict(&trial), "overloaded", "{}", reasons(&trial));
    assert_eq!(count(&trial, "lost"), 0, "{}", brief(&trial));
    assert!(count(&trial, "under_way") > 4_000, "{}", brief(&trial));
    within(delivered_per_s(&trial), 2_000.0, 0.02);
    // Deliveries by the throttle's count, which goes on for the 2 s at most that closing may take.
    let came = count(&trial, "delivered") + count(&trial, "warm_up.delivered");
    let passed = bench.passed(ToClient);
    assert!(
        (came..=came + 4_200).contains(&passed),
        "{came} came of {passed}"
    );
    let sent = count(&trial, "published") + count(&trial, "warm_up.published");
    let taken = bench.came(ToServer);
    assert_eq!(taken, sent + count(&trial, "sentinels"));
    // Two thirds of the latencies are not known.
    assert_eq!(trial["latency_ns"]["p99"], Value::Null);
    let unknown = count(&trial, "latency_ns.censored");
    assert_eq!(
        unknown,
        count(&trial, "offered") - count(&trial, "delivered")
    );
}

/// Sentinels on 2,000 topics take 2 s on this link. They go out once, and the traffic, half of what the link
/// takes, does not wait behind them.
#[test]
fn sentinels_on_many_topics_leave_no_backlog() {
    let phases = "warm-up = \"200ms\"\nmeasure = \"3s\"";
    let (_bench, trial) = on_calm_machine(
        rate(1_000.0),
        Rules::default(),
        &study("topics = 2000\nrate = \"500/s\"", phases, ""),
    );
    assert_eq!(verdict(&trial), "valid", "{}", reasons(&trial));
    assert_eq!(count(&trial, "sentinels"), 2_000, "{}", brief(&trial));
    let longest = trial["latency_ns"]["max"].as_u64().unwrap();
    assert!(longest < 100_000_000, "{}", brief(&trial));
}

#[test]
fn flat_out_into_a_narrow_link_is_not_broken() {
    let phases = "warm-up = \"500ms\"\nmeasure = \"3s\"\ndrain-within = \"1s\"";
    let narrow = Rules {
        longest_wait: Some(Duration::from_millis(1_400)),
        ..rate(2_000.0)
    };
    let (_bench, trial) = on_calm_machine(
        narrow,
        Rules::default(),
        &study("rate = \"max\"", phases, ""),
    );
    // The buffers hold seconds of traffic: what was measured stands behind the warm-up's, or was not
    // even taken. The link's rate shows all the same.
    assert_eq!(count(&trial, "lost"), 0, "{}", brief(&trial));
    let backlog = trial["at_start"]["backlog"].as_u64().unwrap();
    let sent = count(&trial, "warm_up.published");
    assert!(backlog + 1_100 > sent, "{}", brief(&trial));
    assert_eq!(verdict(&trial), "overloaded", "{}", reasons(&trial));
    within(delivered_per_s(&trial), 2_000.0, 0.02);
}

/// 20 ms each way, and 20 messages without an acknowledgement: 500 a second, however fast the broker is. A window of 1,000
/// lets the same load through.
#[test]
fn a_window_over_a_long_path_is_the_limit_and_not_the_broker() {
    // The broker has a window of its own to each subscriber: these are near.
    let late = Rules {
        delay: Duration::from_millis(20),
        clients: "w-pub-",
        ..Rules::default()
    };
    let phases = "warm-up = \"1s\"\nmeasure = \"3s\"";
    for flow in ["rate = \"max\"", "rate = \"800/s\""] {
        let (_bench, trial) = on_calm_machine(late, late, &study(flow, phases, AT_LEAST_ONCE));
        assert_eq!(verdict(&trial), "setting-bound", "{}", reasons(&trial));
        assert!(
            reasons(&trial).starts_with("in-flight = 20: "),
            "{}",
            reasons(&trial)
        );
        let mean = trial["acknowledgement_ns"]["mean"].as_f64().unwrap();
        assert!(mean >= 40e6, "{mean}");
        within(delivered_per_s(&trial), 20e9 / mean, 0.05);
    }
    let wide = format!("{AT_LEAST_ONCE}\nin-flight = 1000");
    let (_bench, trial) = on_calm_machine(late, late, &study("rate = \"800/s\"", phases, &wide));
    assert_eq!(verdict(&trial), "valid", "{}", reasons(&trial));
}

#[test]
fn one_slow_subscriber_of_four_loses_nothing_at_qos_1() {
    let slow = Rules {
        clients: "w-sub-3-",
        ..rate(300.0)
    };
    let phases = "warm-up = \"1s\"\nmeasure = \"4s\"\ndrain-within = \"2s\"";
    let (_bench, trial) = on_calm_machine(
        Rules::default(),
        slow,
        &in_processes(&study(
            "subscribers = 4\nrate = \"600/s\"",
            phases,
            AT_LEAST_ONCE,
        )),
    );
    assert_eq!(verdict(&trial), "overloaded", "{}", reasons(&trial));
    assert_eq!(count(&trial, "lost"), 0, "{}", brief(&trial));
    assert!(count(&trial, "under_way") > 300, "{}", brief(&trial));
    within(delivered_per_s(&trial), 3.0 * 600.0 + 300.0, 0.02);
}

#[test]
fn a_freeze_across_the_end_loses_nothing() {
    let bench = planted(Rules::default(), Rules::default());
    let study = study("rate = \"1k/s\"", "warm-up = \"1s\"\nmeasure = \"4s\"", "");
    let trial = bench.started(&study, || {
        // 0.6 s before the end of the measurement.
        bench.published(4_400);
        bench.freeze(Duration::from_secs(2));
    });
    let lost = count(&trial, "lost") + count(&trial, "under_way");
    assert_eq!(
        (lost, count(&trial, "delivered")),
        (0, count(&trial, "published"))
    );
    assert_ne!(verdict(&trial), "lossy", "{}", reasons(&trial));
    assert_ne!(verdict(&trial), "valid", "{}", reasons(&trial));
    let p99 = trial["latency_ns"]["p99"].as_u64().unwrap();
    assert!(p99 > 1_400_000_000, "{p99}");
}

/// A message belongs to the window it was due in, however late it came.
#[test]
fn windows_tell_a_freeze_from_what_was_before_and_after() {
    let bench = planted(Rules::default(), Rules::default());
    let windows = "window = [{ name = \"before\", from = \"0s\", to = \"2s\" }, { name = \"during\", from = \"2s\", to = \"4s\" }, \
                   { name = \"after\", from = \"4s\", to = \"5s\" }]";
    let phases = format!("warm-up = \"1s\"\nmeasure = \"5s\"\n{windows}");
    let study = study("rate = \"1k/s\"", &phases, "");
    let trial = bench.started(&study, || {
        // 2.2 s after the start of the measurement, up to 3.2 s.
        bench.published(3_200);
        bench.freeze(Duration::from_secs(1));
    });
    let windows = trial["windows"].as_array().unwrap();
    let of = |field: &str| -> Vec<u64> { windows.iter().map(|w| count(w, field)).collect() };
    assert_eq!(of("offered"), [2_000, 2_000, 1_000], "{windows:?}");
    assert_eq!(of("delivered"), of("published"), "{windows:?}");
    assert_eq!(
        of("delivered").iter().sum::<u64>(),
        count(&trial, "delivered")
    );
    assert_eq!(of("lost"), [0, 0, 0]);
    let latency = |w: usize, figure: &str| windows[w]["latency_ns"][figure].as_u64().unwrap();
    // Half of what was due during the freeze waited for half of it or more.
    assert!(latency(1, "max") > 900_000_000, "{windows:?}");
    assert!(latency(1, "p90") > 300_000_000, "{windows:?}");
    for calm in [0, 2] {
        assert!(latency(calm, "p50") < 100_000_000, "{calm}: {windows:?}");
    }
    // Messages that had waited came within that window.
    within(
        windows[1]["delivered_msgs_per_s"].as_f64().unwrap(),
        1_000.0,
        0.05,
    );
}

#[test]
fn what_a_link_drops_is_lost_to_the_message() {
    let phases = "warm-up = \"500ms\"\nmeasure = \"2s\"";
    let (bench, trial) = on_calm_machine(
        Rules::default(),
        Rules {
            loss: 0.05,
            ..Rules::default()
        },
        &study("subscribers = 2\nrate = \"1k/s\"", phases, ""),
    );
    assert_eq!(verdict(&trial), "lossy", "{}", reasons(&trial));
    assert_eq!(count(&trial, "under_way"), 0);
    let record = bench.throttle.record(ToClient);
    let dropped = record.iter().filter(|of| of.due_ns.is_none()).count() as u64;
    let warm_up = 2 * count(&trial, "warm_up.published") - count(&trial, "warm_up.delivered");
    let known = count(&trial, "lost") + warm_up;
    // Sentinels are dropped too, and are not counted one by one.
    let sentinels = 2 * count(&trial, "sentinels");
    assert!(
        (known..=known + sentinels).contains(&dropped),
        "{known} of {dropped}"
    );
}

#[test]
fn a_window_of_one_is_kept() {
    let delay = Duration::from_millis(5);
    let bench = planted(
        Rules {
            delay,
            ..Rules::default()
        },
        Rules::default(),
    );
    let phases = "warm-up = \"500ms\"\nmeasure = \"3s\"";
    for window in [1, 2, 7] {
        let flow = format!("rate = \"max\"\nwindow = {window}");
        let before = bench.throttle.record(ToServer).len();
        let study = study(&flow, phases, "");
        let trial = match window {
            2 => bench.trial(&in_processes(&study)),
            _ => bench.trial(&study),
        };
        let per_s = delivered_per_s(&trial);
        let most = f64::from(window) * 200.0;
        assert!(per_s <= most && per_s > 0.6 * most, "{per_s} of {most}");
        // By the throttle: never more inside it than the window.
        let record = &bench.throttle.record(ToServer)[before..];
        let passed = |of: &Passage| Some((of.entered_ns, of.passed_ns?));
        let spans: Vec<(u64, u64)> = record.iter().filter_map(passed).collect();
        let mut steps: Vec<(u64, i32)> = spans.iter().map(|span| (span.0, 1)).collect();
        steps.extend(spans.iter().map(|span| (span.1, -1)));
        steps.sort_unstable();
        let inside = steps.iter().scan(0, |now, (_, step)| {
            *now += step;
            Some(*now)
        });
        assert!(inside.max() <= Some(window), "window {window}");
        std::fs::remove_dir_all(bench.place.path_to("run")).unwrap();
    }
}

#[test]
fn a_cut_on_purpose_is_no_breakage() {
    let bench = planted(Rules::default(), Rules::default());
    let phases = "warm-up = \"500ms\"\nmeasure = \"3s\"\nreconnect-after = \"200ms\"\n\
                  allow-disconnects = true\nallow-losses = true";
    let study = study("publishers = 2\nrate = \"500/s\"", phases, "");
    let trial = bench.started(&study, || {
        bench.published(1_000);
        assert_eq!(bench.throttle.cut("w-pub-1-"), 1);
    });
    assert_eq!(count(&trial, "connections.lost"), 1, "{}", brief(&trial));
    assert_eq!(count(&trial, "connections.remade"), 1, "{}", brief(&trial));
}

/// All connections are lost and made again 1.2 s later. What fell due meanwhile is a count of its own and reached
/// nobody, percentiles are those of all that was due, and the silence is as long as the outage.
#[test]
fn an_outage_is_told_as_an_outage() {
    let bench = planted(Rules::default(), Rules::default());
    let phases = "warm-up = \"500ms\"\nmeasure = \"5s\"\nreconnect-after = \"1200ms\"\n\
                  allow-disconnects = true";
    let study = study("publishers = 2\nrate = \"1k/s\"", phases, "");
    let trial = bench.started(&study, || {
        bench.published(1_500);
        assert_eq!(bench.throttle.cut(""), 3);
    });
    let out = count(&trial, "not_connected");
    assert_eq!(count(&trial, "refused"), 0, "{}", brief(&trial));
    assert_eq!(count(&trial, "connections.remade"), 3, "{}", brief(&trial));
    assert!(out >= 1_190, "{}", brief(&trial));
    assert!(count(&trial, "lost") >= out, "{}", brief(&trial));
    let silence = count(&trial, "longest_silence_ns");
    assert!(silence >= 1_190_000_000, "{}", brief(&trial));
    for figure in ["p90", "p99", "max"] {
        assert_eq!(trial["latency_ns"][figure], Value::Null, "{figure}");
    }
    assert_eq!(verdict(&trial), "lossy", "{}", reasons(&trial));
    let told = format!("{out} messages fell due while their publisher was not connected");
    assert!(reasons(&trial).contains(&told), "{}", reasons(&trial));
}

/// The server's side stops reading from one publisher of two, QoS 1: what it never acknowledged, by the throttle's
/// count what has entered and not passed, is under way.
#[test]
fn a_publisher_that_is_not_read_loses_nothing() {
    let second = Rules {
        clients: "w-pub-1-",
        ..Rules::default()
    };
    let bench = planted(second, Rules::default());
    let phases = "warm-up = \"500ms\"\nmeasure = \"3s\"\ndrain-within = \"5s\"";
    let settings = format!("{AT_LEAST_ONCE}\nin-flight = 10");
    let study = study("publishers = 2\nrate = \"400/s\"", phases, &settings);
    let trial = bench.started(&study, || {
        bench.published(800);
        let forever = Duration::from_secs(3_600);
        bench
            .throttle
            .change(ToServer, |rules| rules.delay = forever);
    });
    let inside = bench.came(ToServer) - bench.passed(ToServer);
    assert_eq!(inside, 10, "{}", brief(&trial));
    assert_eq!(count(&trial, "lost"), 0, "{}", brief(&trial));
    assert_eq!(count(&trial, "under_way"), inside, "{}", brief(&trial));
    assert_eq!(verdict(&trial), "overloaded", "{}", reasons(&trial));
    let told = "never acknowledged their messages";
    assert!(reasons(&trial).contains(told), "{}", reasons(&trial));
}

/// Batches of 500 messages, each larger than a socket's buffer, leave whole, the last one too. The throttle, whose
/// threads go before others, would keep the workers waiting at a higher rate.
#[test]
fn what_is_gathered_leaves_whole() {
    let phases = "warm-up = \"500ms\"\nmeasure = \"1s\"";
    let gathered = format!(
        "{}\n[client]\npacing-within = \"100ms\"\n",
        study("rate = \"5k/s\"", phases, "").replace("64B", "1KiB")
    );
    let (bench, trial) = on_calm_machine(Rules::default(), Rules::default(), &gathered);
    assert_eq!(count(&trial, "not_sent"), 0, "{}", brief(&trial));
    assert_eq!(count(&trial, "published"), 5_000, "{}", brief(&trial));
    let sent = count(&trial, "published") + count(&trial, "warm_up.published");
    let taken = bench.came(ToServer);
    assert_eq!(taken, sent + count(&trial, "sentinels"));
}

/// Two runs at once on one broker, on default topics and on a topic that both were told to use.
#[test]
fn two_runs_at_once_do_not_count_each_other() {
    for topic in ["", "topic = \"site/meter\""] {
        let (_alone, broker) = (alone(), Mosquitto::start());
        let places = [Place::new(), Place::new()];
        let phases = "warm-up = \"500ms\"\nmeasure = \"3s\"";
        let text = study(&format!("rate = \"500/s\"\n{topic}"), phases, AT_LEAST_ONCE);
        let address = broker.address();
        let args = ["run", "study.toml", "--on", &address, "--out", "run"];
        let trials = std::thread::scope(|scope| {
            let runs = places.each_ref().map(|place| {
                place.write("study.toml", &text);
                scope.spawn(move || place.run(&args))
            });
            runs.into_iter().for_each(|run| drop(run.join().unwrap()));
            places.each_ref().map(|place| place.trial("run"))
        });
        for trial in &trials {
            assert_eq!(count(trial, "published"), 1_500);
            assert_eq!(count(trial, "delivered"), 1_500, "{}", brief(trial));
            assert_eq!(count(trial, "duplicated") + count(trial, "reordered"), 0);
            assert_eq!(count(trial, "connections.lost"), 0, "{}", reasons(trial));
            match topic {
                "" => assert_eq!(count(trial, "odd.foreign"), 0),
                _ => assert_eq!(verdict(trial), "broken", "{}", reasons(trial)),
            }
        }
    }
}

/// Processors that other programs take, against what this program knows that it took: two threads
/// that compute for 6 of every 20 ms. Others may take something as well; nobody takes more than there is.
#[test]
fn what_other_programs_take_is_told() {
    let _alone = alone();
    // Time that a hypervisor takes from the threads counts as theirs, and not as others' work.
    let (trial, took) = tried_until(beside_threads_that_compute, |(trial, _)| !stolen(trial));
    let others = trial["worker_load"]["machine_others"].as_f64().unwrap();
    let client = trial["client_cpu_s"]["publishers"].as_f64().unwrap();
    let most = std::thread::available_parallelism().unwrap().get() as f64 - client / 5.0;
    assert!(took > 0.2, "{took}");
    assert!(
        (took - 0.1..=most + 0.1).contains(&others),
        "{others}, {took}: {}",
        brief(&trial)
    );
}

/// Four programs that compute without end: mosquitto, which sends a few hundred messages a second on, gets its processors
/// at once, the workers wait some milliseconds for theirs.
#[test]
fn a_tail_beside_busy_programs_is_not_quoted() {
    let _alone = alone();
    let place = Place::new();
    let flags = ["--publishers", "10", "--rate", "850/s", "--on", "mosquitto"];
    let phases = ["--warm-up", "500ms", "--duration", "4s"];
    let over = AtomicBool::new(false);
    let burn = || {
        while !over.load(Relaxed) {
            std::hint::spin_loop();
        }
    };
    let processors = std::thread::available_parallelism().unwrap().get();
    std::thread::scope(|scope| {
        (0..2 * processors).for_each(|_| drop(scope.spawn(burn)));
        for run in ["run-1", "run-2", "run-3", "run-4"] {
            place.run(&[&["run", "--out", run], &flags[..], &phases].concat());
        }
        over.store(true, Relaxed);
    });
    for run in ["run-1", "run-2", "run-3", "run-4"] {
        let trial = place.trial(run);
        let tail = count(&trial, "latency_ns.p99");
        assert!(
            verdict(&trial) != "valid" || tail < 1_500_000,
            "{}",
            brief(&trial)
        );
    }
}

/// A trial beside these threads, and the processors that this program used meanwhile.
fn beside_threads_that_compute() -> (Value, f64) {
    let place = Place::new();
    let text = study(
        "rate = \"500/s\"",
        "warm-up = \"500ms\"\nmeasure = \"5s\"",
        "",
    );
    std::fs::write(place.path_to("study.toml"), text).unwrap();
    let over = AtomicBool::new(false);
    let burn = || {
        while !over.load(Relaxed) {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(6) {
                std::hint::spin_loop();
            }
            std::thread::sleep(Duration::from_millis(20).saturating_sub(begun.elapsed()));
        }
    };
    let (begun, before) = (Instant::now(), own_processor_time());
    let (done, took) = std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(burn)));
        let done = place.run(&["run", "study.toml", "--on", "mosquitto", "--out", "run"]);
        let took = (own_processor_time() - before).div_duration_f64(begun.elapsed());
        over.store(true, Relaxed);
        (done, took)
    });
    // Their use of the processors may make sends late, which makes the client the limit.
    done.ran_to_its_end();
    (place.trial("run"), took)
}

/// Processor time of this process since it began.
fn own_processor_time() -> Duration {
    // SAFETY: the call writes to a valid local structure.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1_000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// A margin on each side of what a link takes.
#[test]
fn slightly_too_much_is_told_from_slightly_too_little() {
    for (rate, overloaded) in [(2_014.0, true), (1_980.0, false)] {
        let phases = "warm-up = \"1s\"\nmeasure = \"10s\"";
        let (_bench, trial) = on_bench_that(
            |bench| waits_as_planted(bench, rate),
            [self::rate(LINK_PER_S), Rules::default()],
            &study(&format!("rate = \"{rate}/s\""), phases, ""),
        );
        let said = verdict(&trial) == "overloaded";
        assert_eq!(said, overloaded, "{}", reasons(&trial));
    }
}

/// Rate of the link of that test, in messages per second.
const LINK_PER_S: f64 = 2_000.0;

/// Whether messages waited before this link as one waits whose excess alone has to: to 10 ms. A
/// sender or a link that stood still for a moment plants a step of its own.
fn waits_as_planted(bench: &Planted, per_s: f64) -> bool {
    let record = bench.throttle.record(ToServer);
    let excess = (per_s / LINK_PER_S - 1.0).max(0.0);
    record.iter().all(|of| {
        let since = (of.entered_ns - record[0].entered_ns) as f64;
        let passed = of.passed_ns.map(|at| (at - of.entered_ns) as f64);
        passed.is_some_and(|waited| (waited - excess * since).abs() < 10e6)
    })
}
