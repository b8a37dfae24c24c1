//! Memory that a page of hundreds of trials takes: allocations are counted.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use pubgauge_figures::histogram::Interval;
use pubgauge_figures::model::{Distribution, Results};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_report::{LatencyLogs, page};
use pubgauge_testing::allocator::ReportingAllocator;

thread_local! {
    /// Bytes that are held, and the most that were.
    static HELD: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

fn count(more: usize, less: usize) {
    let _ = HELD.try_with(|held| {
        let [now, most] = held.get();
        let now = now + more as isize - less as isize;
        held.set([now, most.max(now)]);
    });
}

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator(count);

fn latency() -> Histogram<u64> {
    let mut values = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    (1..=1_000u64).for_each(|us| values.record(us * 1_000).unwrap());
    values
}

/// Logs that are made when they are asked for, and how often each was.
#[derive(Default)]
struct Asked(RefCell<BTreeMap<u32, u32>>);

impl LatencyLogs for Asked {
    fn intervals(&self, trial: u32) -> Option<Cow<'_, [Interval]>> {
        *self.0.borrow_mut().entry(trial).or_default() += 1;
        let interval = Interval {
            tag: None,
            start: Default::default(),
            length: Default::default(),
            histogram: latency(),
        };
        Some(Cow::Owned(vec![interval]))
    }
}

/// A run of so many cells, each with so many repeats.
fn run(cells: u32, repeats: u32) -> Results {
    let latency_ns = Distribution::from_histogram(&latency());
    let trial = |id: u32| {
        let trial = TrialBuilder::periodic(100.0, 10.0)
            .id(id)
            .repeat(id % repeats + 1);
        let trial = trial.axis("rate", format!("{}/s", id / repeats + 1));
        trial.latency(latency_ns).steady_series(1.0).build()
    };
    Results {
        trials: (0..cells * repeats).map(trial).collect(),
        ..Results::default()
    }
}

/// Length of the page of such a run, and the most bytes that were held while it was made.
fn page_of(cells: u32, repeats: u32) -> (isize, isize) {
    let results = run(cells, repeats);
    let logs = Asked::default();
    let [before, _] = HELD.get();
    HELD.set([before; 2]);
    let length = page(&results, &logs).len();
    let [_, most] = HELD.get();
    let asked = logs.0.into_inner();
    assert_eq!(asked.len() as u32, cells * repeats);
    assert!(asked.values().all(|times| *times == 1), "each log once");
    (length as isize, most - before)
}

/// Each log is read once, and given back before the next: a histogram takes 270 KB.
#[test]
fn the_logs_of_a_run_are_not_held_together() {
    let (_, most) = page_of(2, 150);
    assert!(most < 20 << 20, "{most} bytes for 300 trials");
}

/// A page of four times the rows takes four times as much, and no row as much as the curve of a single one would.
#[test]
fn a_page_grows_with_its_rows() {
    let (short, little) = page_of(100, 1);
    let (long, much) = page_of(400, 1);
    assert!(long < 5 * short, "{short} bytes, {long} bytes");
    assert!(much < 5 * little, "{little} bytes, {much} bytes");
}

/// Of thousands of rows the curves have fewer points, which the page says.
#[test]
fn the_curves_of_thousands_of_rows_have_fewer_points() {
    let of = |cells| page(&run(cells, 1), &Asked::default());
    let said = "Of so many rows each curve has";
    assert!(!of(100).contains(said));
    let long = of(2_000);
    assert!(long.contains("Of so many rows each curve has 50 points."));
    assert!(long.len() < 60 << 20, "{} bytes", long.len());
}

#[test]
fn a_page_of_ten_thousand_cells_takes_no_gigabyte() {
    let (length, most) = page_of(10_000, 1);
    assert!(length < 100 << 20, "{length} bytes");
    assert!(most < 500 << 20, "{most} bytes");
}
