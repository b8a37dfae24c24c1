//! Memory that reading and writing the results of hundreds of trials takes: allocations are counted, and grow with the trials.

use std::cell::Cell;
use std::io::{BufWriter, Write};

use pubgauge_figures::model::Results;
use pubgauge_fixtures::TrialBuilder;
use pubgauge_results::store::{RESULTS_FILE, load, write_json};
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

/// Bytes that `of` holds in what it returns, and the most that it held meanwhile.
fn held<T>(of: impl FnOnce() -> T) -> (T, isize, isize) {
    let [before, _] = HELD.get();
    HELD.set([before; 2]);
    let made = of();
    let [after, most] = HELD.get();
    (made, after - before, most - before)
}

/// A run of so many trials of a minute.
fn run(trials: u32) -> Results {
    let trial = |id| {
        let trial = TrialBuilder::periodic(1_234_567.0, 60.0).id(id);
        let mut trial = trial
            .axis("rate", format!("{id}/s"))
            .steady_series(1.0)
            .build();
        trial.latency_ecdf = (0..100).map(|n| (n * 1_000, n as f64 / 100.0)).collect();
        trial
    };
    Results {
        trials: (0..trials).map(trial).collect(),
        ..Results::default()
    }
}

/// A folder with such a run, and the length of its results in bytes.
fn stored(trials: u32) -> (tempfile::TempDir, isize) {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join(RESULTS_FILE)).unwrap();
    let results = run(trials);
    let (mut out, _, most) = held(|| {
        let mut out = BufWriter::new(file);
        write_json(&results, &mut out).unwrap();
        out
    });
    assert!(most < 64 << 10, "{most} bytes to write {trials} trials");
    out.flush().unwrap();
    let length = out.get_ref().metadata().unwrap().len();
    (folder, length as isize)
}

/// Beside the results themselves nothing is held that grows with them: neither the text nor a tree of its values, which were 30
/// bytes for each byte of the text.
#[test]
fn results_are_read_as_they_come() {
    let [few, many] = [100, 400].map(|trials| {
        let (folder, length) = stored(trials);
        let (results, kept, most) = held(|| load(folder.path()).unwrap());
        assert_eq!(results.trials.len(), trials as usize);
        // Lists grow by doubling, and are moved then.
        assert!(most <= 2 * kept + (1 << 20), "{most} for {kept}");
        assert!(most < 3 * length, "{most} bytes for {length}");
        kept
    });
    assert!(many < 5 * few, "{few} for 100 trials, {many} for 400");
}
