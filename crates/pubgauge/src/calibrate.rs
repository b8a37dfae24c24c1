//! `pubgauge calibrate`: what this machine and this tool can do, measured by the tool's own paths.

mod rehearsal;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pubgauge_command::exit::{Ending, FINE, NOT_VALID, tell};
use pubgauge_driver::{Clock, Driver, Mark, Settings, Target};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_engine::assignment::{Brief, Role};
use pubgauge_engine::conductor::{Nobody, TrialEnd, TrialRecord, TrialSpec, run};
use pubgauge_engine::times::{Measure, histogram};
use pubgauge_figures::model::Distribution;
use pubgauge_results::verdict::thresholds;
use pubgauge_runner::OwnCost;
use pubgauge_runner::simulated::with_behaviour;
use pubgauge_runner::worker_thread::prepare_thread;
use pubgauge_simulator::{Behaviour, Bus, SimulatedDriver, Truth, TruthRecord};
use pubgauge_testbed::{Catalog, NoiseMeter, Testbed};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};
use serde::{Deserialize, Serialize};

use crate::args::CalibrateArgs;
use crate::{drivers, stored_json};

/// The findings of a calibration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// When it was taken, RFC 3339.
    pub taken: String,
    /// Version of pubgauge that took it.
    pub pubgauge_version: String,
    /// How late a thread that only sleeps wakes up on the idle machine, ns.
    pub machine_noise_ns: Distribution,
    /// Lateness of sends on a schedule of [`TIMER_RATE`] messages a second, ns.
    pub send_lag_ns: Distribution,
    pub publish: PathCost,
    /// Cost of the receive path, with header check, ledger and histograms.
    pub receive: PathCost,
    /// Figures reported of the simulated system, against its true ones.
    pub truth: Agreement,
}

/// Messages of 64 B per processor second of the client, beside raw sockets in the same run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathCost {
    /// pubgauge.
    pub msgs_per_cpu_s: f64,
    /// A raw socket, one system call per message.
    pub raw_single_msgs_per_cpu_s: f64,
    /// A raw socket, 64 KiB per system call: the most that this machine can do.
    pub raw_batched_msgs_per_cpu_s: f64,
    /// pubgauge over the raw socket with one system call per message.
    pub over_raw_single: f64,
}

/// Reported against true figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Agreement {
    /// Quantiles of latency: (quantile, true ns, reported ns).
    pub latency: Vec<(f64, u64, u64)>,
    /// The largest relative error of these.
    pub worst_error: f64,
    /// (true, reported) lost.
    pub lost: (u64, u64),
    /// (true, reported) duplicated.
    pub duplicated: (u64, u64),
    /// (true, reported) reordered.
    pub reordered: (u64, u64),
}

/// Loads that the client on this machine can measure: where its own part stays below the share from which
/// a verdict calls a trial client-bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoodFor {
    /// Smallest median latency that can be measured, ns; absent if the send lag is not known.
    pub median_latency_above_ns: Option<f64>,
    /// Smallest 99th percentile of latency that can be measured, ns; absent likewise.
    pub p99_latency_above_ns: Option<f64>,
    /// Messages of 64 B published per second and client core.
    pub published_msgs_per_s_per_core: f64,
    /// Messages of 64 B received per second and client core.
    pub received_msgs_per_s_per_core: f64,
}

impl Calibration {
    /// The processor time that pubgauge itself takes for a message: the cost of its path beyond that of the same bytes through a bare
    /// socket, 64 KiB in each call.
    pub fn own_cost(&self) -> OwnCost {
        let beyond = |path: &PathCost| {
            let ns = |msgs_per_cpu_s: f64| SECOND as f64 / msgs_per_cpu_s.max(1.0);
            (ns(path.msgs_per_cpu_s) - ns(path.raw_batched_msgs_per_cpu_s)).max(0.0)
        };
        OwnCost {
            publish_ns: beyond(&self.publish),
            receive_ns: beyond(&self.receive),
        }
    }

    /// Derives it from the figures and the limits of the verdicts.
    pub fn good_for(&self) -> GoodFor {
        let above = |quantile| {
            let lag = self.send_lag_ns.quotable(quantile)?;
            Some(lag as f64 / thresholds::LAG_SHARE)
        };
        let below = |path: &PathCost| path.msgs_per_cpu_s * thresholds::PACED_RUNNING;
        GoodFor {
            median_latency_above_ns: above(0.5),
            p99_latency_above_ns: above(0.99),
            published_msgs_per_s_per_core: below(&self.publish),
            received_msgs_per_s_per_core: below(&self.receive),
        }
    }
}

impl Agreement {
    /// Whether every count is exact.
    pub fn counts_are_exact(&self) -> bool {
        [self.lost, self.duplicated, self.reordered]
            .iter()
            .all(|(real, reported)| real == reported)
    }
}

/// A calibration as JSON output.
#[derive(Serialize)]
struct CalibrationJson<'a> {
    #[serde(flatten)]
    calibration: &'a Calibration,
    good_for: GoodFor,
}

/// Messages per second of the timer test.
const TIMER_RATE: f64 = 10_000.0;
/// Length of each part, ns.
const PART: u64 = SECOND;
/// An MQTT 3.1.1 PUBLISH of 64 B at QoS 0 on a topic of six bytes, as the publish path writes it.
const WIRE_LEN: usize = 2 + 2 + 6 + 64;

/// Path of the newest calibration.
pub fn path() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("pubgauge/calibration.json"))
}

/// The newest calibration of this machine by this version.
pub fn stored() -> Option<Calibration> {
    let calibration: Calibration =
        serde_json::from_str(&std::fs::read_to_string(path()?).ok()?).ok()?;
    (calibration.pubgauge_version == env!("CARGO_PKG_VERSION")).then_some(calibration)
}

/// Stores a calibration for later runs.
///
/// # Errors
/// If it cannot be written.
pub fn store(calibration: &Calibration) -> Result<PathBuf> {
    let path =
        path().context("there is no home folder to keep the calibration in; set XDG_STATE_HOME")?;
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let text = serde_json::to_string_pretty(calibration)?;
    stored_json::write(&path, text).map_err(anyhow::Error::msg)?;
    Ok(path)
}

/// Measures everything, in some ten seconds. Calls `say` with each step.
///
/// # Errors
/// If a part cannot be run, with the reason.
pub fn measure(
    testbed: &Testbed,
    catalog: &Catalog,
    scratch: &Path,
    stop: &AtomicBool,
    mut say: impl FnMut(&str),
) -> Result<Calibration> {
    say("machine noise");
    let machine_noise_ns = noise()?;
    say("simulated truth");
    let truth = truth(stop)?;
    let reference = catalog.get("reference-broker")?;
    let running = testbed.start(&reference, None, scratch)?;
    say("timer");
    let timed = trial(
        pair(Arrivals::Periodic { per_s: TIMER_RATE }, 1),
        running.target.clone(),
        stop,
    )?;
    let send_lag_ns = Distribution::from_histogram(&timed.all_times(Measure::SendLag));
    say("receive path");
    let received = trial(pair(Arrivals::FlatOut, 1), running.target.clone(), stop)?;
    let receive = cost(
        &received,
        Role::Subscribers,
        received.in_measurement(None).unique,
        raw_receive()?,
    );
    running.stop();
    say("publish path");
    let sink = Sink::start()?;
    let published = trial(pair(Arrivals::FlatOut, 0), sink.target(), stop)?;
    let publish = cost(
        &published,
        Role::Publishers,
        published.in_measurement(None).published,
        raw_publish(&sink)?,
    );
    Ok(Calibration {
        taken: pubgauge_runner::trial::now().to_string(),
        pubgauge_version: env!("CARGO_PKG_VERSION").into(),
        machine_noise_ns,
        send_lag_ns,
        publish,
        receive,
        truth,
    })
}

fn noise() -> Result<Distribution> {
    let meter = NoiseMeter::start().context("cannot start the noise meter")?;
    std::thread::sleep(Duration::from_nanos(PART));
    let mut noise = histogram();
    for late in meter.stop() {
        noise.saturating_record(late.max(1));
    }
    Ok(Distribution::from_histogram(&noise))
}

/// One publisher and `subscribers` subscribers on one topic of six bytes.
fn pair(arrivals: Arrivals, subscribers: u32) -> Workload {
    const TOPIC: &str = "gauge1";
    let mut workload = Workload::fan(1, subscribers, arrivals);
    let flow = &mut workload.flows[0];
    flow.publishers[0].topics = vec![TOPIC.into()];
    for subscriber in &mut flow.subscribers {
        subscriber.filters = vec![TOPIC.into()];
    }
    workload.phases.warm_up = Until::Time(PART / 4);
    workload.phases.measure = Until::Time(PART);
    workload
}

/// A trial from its beginning to its end.
fn carried_out(
    workload: Workload,
    driver: Arc<dyn Driver>,
    target: Target,
    settings: Settings,
    mark: Mark,
    stop: &AtomicBool,
) -> Result<TrialRecord> {
    let brief = Brief::new(workload)?;
    let (targets, clock) = (vec![target], Clock::Monotonic);
    let spec = TrialSpec {
        settings: vec![settings],
        mark,
        ..TrialSpec::local(brief, driver, targets, clock, prepare_thread)
    };
    let record = run(&spec, &mut Nobody, stop);
    match &record.outcome {
        TrialEnd::Completed => Ok(record),
        TrialEnd::NotReady(why) | TrialEnd::Aborted(why) => {
            bail!("a part of the calibration failed: {why}")
        }
        TrialEnd::Interrupted => bail!("interrupted"),
    }
}

/// A trial over MQTT.
fn trial(workload: Workload, target: Target, stop: &AtomicBool) -> Result<TrialRecord> {
    let mut settings = Settings::default();
    let own = settings.native.entry("mqtt".into()).or_default();
    own.insert("version".into(), "3.1.1".into());
    let (driver, mark) = (Arc::new(MqttDriver), Mark::random());
    carried_out(workload, driver, target, settings, mark, stop)
}

fn cost(
    record: &TrialRecord,
    role: Role,
    messages: u64,
    (single, batched): (f64, f64),
) -> PathCost {
    let cpu: u64 = record
        .recordings
        .iter()
        .filter(|r| r.role == role)
        .map(|r| r.usage.running)
        .sum();
    let msgs_per_cpu_s = messages as f64 / (cpu.max(1) as f64 / SECOND as f64);
    PathCost {
        msgs_per_cpu_s,
        raw_single_msgs_per_cpu_s: single,
        raw_batched_msgs_per_cpu_s: batched,
        over_raw_single: msgs_per_cpu_s / single,
    }
}

/// Compares reported with true figures over the simulated system in real time.
fn truth(stop: &AtomicBool) -> Result<Agreement> {
    let mark = Mark::random();
    let behaviour = Behaviour {
        delay_median_ns: 5_000_000,
        delay_sigma: 0.5,
        ordered: false,
        loss: 0.01,
        duplication: 0.01,
        ..Behaviour::default()
    };
    let bus = Arc::new(Bus::new(behaviour.clone(), Clock::Monotonic, mark));
    let settings = with_behaviour(Settings::default(), &behaviour);
    let mut workload = pair(Arrivals::Poisson { per_s: 4000.0 }, 1);
    workload.phases.measure = Until::Time(2 * PART);
    let target = SimulatedDriver::target(bus.clone());
    let driver = Arc::new(SimulatedDriver);
    let record = carried_out(workload, driver, target, settings, mark, stop)?;
    Ok(compare(&record, &bus.truth()))
}

fn compare(record: &TrialRecord, truth: &[TruthRecord]) -> Agreement {
    let real = Truth::count(truth, record.epoch);
    let reported = record.all_times(Measure::Latency);
    let latency: Vec<(f64, u64, u64)> = [0.5, 0.9, 0.99, 0.999]
        .into_iter()
        .map(|q| (q, real.quantile(q), reported.value_at_quantile(q)))
        .collect();
    let sum = record.sum();
    Agreement {
        worst_error: latency
            .iter()
            .map(|(_, real, reported)| reported.abs_diff(*real) as f64 / (*real).max(1) as f64)
            .fold(0.0, f64::max),
        latency,
        lost: (real.lost, sum.lost()),
        duplicated: (real.duplicated, sum.messages.duplicated()),
        reordered: (real.reordered, sum.messages.reordered),
    }
}

/// A server that accepts MQTT connections and discards what it gets.
struct Sink {
    address: std::net::SocketAddr,
    over: Arc<AtomicBool>,
}

impl Sink {
    fn start() -> Result<Sink> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free loopback port")?;
        let address = listener.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let ending = over.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ending.load(Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                std::thread::spawn(move || swallow(stream));
            }
        });
        Ok(Sink { address, over })
    }

    fn target(&self) -> Target {
        Target {
            endpoints: vec![format!("mqtt://{}", self.address)],
            ..Target::default()
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // Wakes the listener so that it sees the flag.
        let _ = TcpStream::connect(self.address);
    }
}

fn swallow(mut stream: TcpStream) {
    let mut buffer = vec![0u8; 1 << 18];
    let mut first = true;
    while let Ok(n) = stream.read(&mut buffer) {
        if n == 0 {
            return;
        }
        // MQTT 3.1.1 section 3.1: CONNECT is the first packet; section 3.2: accepted.
        if std::mem::take(&mut first)
            && buffer[0] == 0x10
            && stream.write_all(&[0x20, 2, 0, 0]).is_err()
        {
            return;
        }
    }
}

/// Messages per processor second of blocking writes into the sink: one each, and 64 KiB each.
fn raw_publish(sink: &Sink) -> Result<(f64, f64)> {
    let rate = |per_call: usize| -> Result<f64> {
        let mut stream = TcpStream::connect(sink.address)?;
        stream.set_nodelay(true)?;
        let bytes = vec![0x30u8; WIRE_LEN * per_call];
        per_cpu_second(per_call, || stream.write_all(&bytes))
    };
    Ok((rate(1)?, rate(65536 / WIRE_LEN)?))
}

/// Messages per processor second of blocking reads: one each, and up to 64 KiB each.
fn raw_receive() -> Result<(f64, f64)> {
    let rate = |per_call: usize| -> Result<f64> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let bytes = vec![0x30u8; WIRE_LEN * 800];
            while stream.write_all(&bytes).is_ok() {}
        });
        let mut stream = TcpStream::connect(address)?;
        let mut buffer = vec![0u8; WIRE_LEN * per_call];
        per_cpu_second(per_call, || stream.read_exact(&mut buffer))
    };
    Ok((rate(1)?, rate(65536 / WIRE_LEN)?))
}

fn per_cpu_second(per_call: usize, mut call: impl FnMut() -> std::io::Result<()>) -> Result<f64> {
    let (began, cpu) = (Instant::now(), thread_cpu());
    let mut calls = 0u64;
    while began.elapsed() < Duration::from_nanos(PART / 2) {
        for _ in 0..16 {
            call()?;
        }
        calls += 16;
    }
    let used = (thread_cpu() - cpu).max(1) as f64 / SECOND as f64;
    Ok(calls as f64 * per_call as f64 / used)
}

/// Processor time of the calling thread, ns.
pub fn thread_cpu() -> u64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `ts` is a valid, writable timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut ts) };
    ts.tv_sec as u64 * SECOND + ts.tv_nsec as u64
}

/// `pubgauge calibrate`.
pub fn calibrate(args: &CalibrateArgs) -> Result<i32, Ending> {
    if let Some(searches) = args.search {
        return rehearsal::rehearse(searches, args);
    }
    let stop = crate::signals::install().map_err(Ending::not_valid)?;
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let catalog = Catalog::load(&[]).map_err(Ending::bad_input)?;
    let scratch = crate::signals::scratch().map_err(Ending::not_valid)?;
    let calibration = measure(&testbed, &catalog, scratch.path(), &stop, |part| {
        args.output.remark(&format!("measuring: {part}"));
    })
    .map_err(|e| Ending::not_valid(format!("{e:#}")))?;
    let kept = (!args.no_store).then(|| store(&calibration)).transpose();
    let kept = kept.map_err(|e| Ending::not_valid(format!("{e:#}")))?;
    let shown = CalibrationJson {
        calibration: &calibration,
        good_for: calibration.good_for(),
    };
    args.output.print_result(&shown, || {
        let kept = kept.map_or(String::new(), |path| {
            let path = path.display();
            format!("kept in {path}; later runs carry it in their results\n")
        });
        describe(&calibration) + &kept
    });
    let exact = calibration.truth.counts_are_exact() && calibration.truth.worst_error <= 0.02;
    if !exact {
        tell!(
            "what was reported of the simulated system differs from what happened: figures of this machine deserve doubt"
        );
    }
    Ok(if exact { FINE } else { NOT_VALID })
}

fn describe(c: &Calibration) -> String {
    use pubgauge_quantities::shown::{rate, time};
    let times = |d: &Distribution| {
        let at = |quantile| {
            let value = d.quotable(quantile);
            value.map_or("not known".to_owned(), |ns| time(ns as f64))
        };
        format!("p50 {}, p99 {}, largest {}", at(0.5), at(0.99), at(1.0))
    };
    let path = |name: &str, p: &PathCost| {
        format!(
            "{name}, 64 B, messages per client processor second:\n    pubgauge {}\n    raw socket, a call each {} ({:.1} times as many)\n    raw socket, 64 KiB a call {}\n",
            rate(p.msgs_per_cpu_s),
            rate(p.raw_single_msgs_per_cpu_s),
            p.over_raw_single,
            rate(p.raw_batched_msgs_per_cpu_s)
        )
    };
    let t = &c.truth;
    format!(
        "machine: a sleeping thread wakes late by {}\nschedule of {TIMER_RATE} msgs/s: sends late by {}\n{}{}simulated system, reported against true:\n    latency p50 to p99.9: within {:.2} %\n    lost {} of {}, duplicated {} of {}, reordered {} of {}\n",
        times(&c.machine_noise_ns),
        times(&c.send_lag_ns),
        path("publish", &c.publish),
        path("receive", &c.receive),
        t.worst_error * 100.0,
        t.lost.1,
        t.lost.0,
        t.duplicated.1,
        t.duplicated.0,
        t.reordered.1,
        t.reordered.0
    ) + &good_for(&c.good_for())
}

/// The text of [`GoodFor`].
fn good_for(good: &GoodFor) -> String {
    use pubgauge_quantities::shown::{rate, time};
    let above = |ns: Option<f64>| ns.map_or("not known".to_owned(), time);
    format!(
        "good enough for: latencies above {} (medians) and {} (99th percentiles), where the client's\n    lag is below {:.0} %; rates below {} published and {} received per client core, 64 B each\n",
        above(good.median_latency_above_ns),
        above(good.p99_latency_above_ns),
        thresholds::LAG_SHARE * 100.0,
        rate(good.published_msgs_per_s_per_core),
        rate(good.received_msgs_per_s_per_core),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_enough_is_where_the_client_takes_a_tenth() {
        let mut lag = histogram();
        (0..10_000u64)
            .for_each(|n| lag.saturating_record(if n < 9_800 { 40_000 } else { 300_000 }));
        let path = |msgs_per_cpu_s| PathCost {
            msgs_per_cpu_s,
            raw_single_msgs_per_cpu_s: 1.0,
            raw_batched_msgs_per_cpu_s: 1.0,
            over_raw_single: 1.0,
        };
        let mut calibration = Calibration {
            taken: String::new(),
            pubgauge_version: String::new(),
            machine_noise_ns: Distribution::default(),
            send_lag_ns: Distribution::from_histogram(&lag),
            publish: path(1e6),
            receive: path(2e6),
            truth: Agreement {
                latency: Vec::new(),
                worst_error: 0.0,
                lost: (0, 0),
                duplicated: (0, 0),
                reordered: (0, 0),
            },
        };
        assert_eq!(
            good_for(&calibration.good_for()),
            "good enough for: latencies above 400 µs (medians) and 3.00 ms (99th percentiles), where the client's\n    lag is below 10 %; rates below 700 k/s published and 1.40 M/s received per client core, 64 B each\n"
        );
        calibration.send_lag_ns = Distribution::default();
        assert!(good_for(&calibration.good_for()).contains("above not known (medians)"));
    }
}
