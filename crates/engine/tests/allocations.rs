//! The message path allocates nothing: ten times the messages cost no more allocations on the workers'
//! threads.

use std::cell::Cell;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use pubgauge_driver::{Clock, Driver, Mark, Reliability, Settings, Target};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_engine::assignment::Brief;
use pubgauge_engine::conductor::{Nobody, TrialEnd, TrialSpec, run};
use pubgauge_testing::allocator::ReportingAllocator;
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static WORKER: Cell<bool> = const { Cell::new(false) };
}

fn count(taken: usize, _: usize) {
    if taken > 0 && WORKER.try_with(Cell::get).unwrap_or(false) {
        ALLOCATIONS.fetch_add(1, Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator(count);

fn workload(arrivals: Arrivals, messages: u64) -> Workload {
    let mut workload = Workload::fan(1, 1, arrivals);
    workload.flows[0].window = Some(2_000);
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Count(messages, 60 * SECOND);
    workload
}

/// Allocations of the workers' threads for a whole trial of at least so many messages; with how many there were, and
/// how long it took, s.
fn allocations(arrivals: Arrivals, messages: u64, reliability: Reliability) -> (u64, u64, f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener
        .local_addr()
        .expect("a bound listener has an address");
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let broker = std::thread::spawn(move || {
        pubgauge_broker::serve(listener, pubgauge_broker::Options::default(), &stopped)
            .expect("the broker serves")
    });
    let settings = Settings {
        reliability: Some(reliability),
        ..Settings::default()
    };
    let brief = Brief::new(workload(arrivals, messages)).expect("a sound workload");
    let driver: Arc<dyn Driver> = Arc::new(MqttDriver);
    let target = Target {
        endpoints: vec![format!("mqtt://{address}")],
        ..Target::default()
    };
    let targets = vec![target];
    let spec = TrialSpec {
        settings: vec![settings],
        mark: Mark::from_seed(3),
        ..TrialSpec::local(brief, driver, targets, Clock::Monotonic, |_| {
            WORKER.with(|worker| worker.set(true));
            Ok(())
        })
    };
    let (before, begun) = (ALLOCATIONS.load(Relaxed), Instant::now());
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    assert_eq!(record.outcome, TrialEnd::Completed);
    let unique = record.sum().messages.unique;
    assert!(unique >= messages, "{unique}");
    let seconds = begun.elapsed().as_secs_f64();
    stop.store(true, Relaxed);
    broker.join().expect("the broker ends in order");
    (ALLOCATIONS.load(Relaxed) - before, unique, seconds)
}

#[test]
fn messages_cost_no_allocation() {
    // Two workers allocate twice for what each tells, at most a hundred times a second.
    let told_per_s = 400.0;
    let periodic = |per_s| Arrivals::Periodic { per_s };
    let bursts = |messages, every| Arrivals::Bursts { messages, every };
    let often = Some(SECOND / 100);
    // One test, because the counter is shared.
    for ((one, few), (other, many), reliability) in [
        (
            (Arrivals::FlatOut, 20_000),
            (Arrivals::FlatOut, 400_000),
            Reliability::AtMostOnce,
        ),
        (
            (periodic(2_000.0), 2_000),
            (periodic(20_000.0), 20_000),
            Reliability::AtMostOnce,
        ),
        (
            (Arrivals::FlatOut, 5_000),
            (Arrivals::FlatOut, 50_000),
            Reliability::AtLeastOnce,
        ),
        (
            (bursts(20, often), 2_000),
            (bursts(200, often), 20_000),
            Reliability::AtMostOnce,
        ),
        (
            (bursts(20, None), 1_000),
            (bursts(200, None), 10_000),
            Reliability::AtMostOnce,
        ),
    ] {
        let (small, few, before) = allocations(one, few, reliability);
        let (large, many, seconds) = allocations(other.clone(), many, reliability);
        let told = told_per_s * (seconds - before).max(0.0);
        let more = large.saturating_sub(small) as f64 - told;
        let per_message = more / many.saturating_sub(few).max(1) as f64;
        assert!(
            per_message < 0.01,
            "{other:?} {reliability:?}: {small} allocations for {few} messages, {large} for {many}"
        );
    }
}
