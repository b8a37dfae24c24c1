//! Rounds of repeats of undecided claims: which cells they take, and that looking again and again makes no truth.

use std::collections::{BTreeMap, BTreeSet};

use crate::planted;

use planted::{World, above, cell, claim, rule};
use pubgauge_claims::{CellKey, Finding, Outcome, open};
use pubgauge_figures::rule::{Claim, ClaimRule};

const SIZES: [&str; 2] = ["64B", "1KiB"];
const FIRST: u32 = 5;
/// Rounds after the first; each doubles the repeats.
const ROUNDS: u32 = 4;

fn at(size: &str) -> ClaimRule {
    let mut at = rule(&["a", "b"], above(1.0));
    at.filter.insert("payload".into(), vec![size.into()]);
    at
}

/// Repeats of a cell whose truth is given, in one round.
fn repeat(w: &mut World, system: &str, size: &str, truth: f64, round: u32, repeats: u32) {
    let first = w.trials.len();
    w.plant(system, size, truth, 0.15, repeats);
    for trial in &mut w.trials[first..] {
        trial.round = round;
    }
}

/// Repeats what a claim needs, as a run does, until it is told or the rounds are over; with the repeats of each cell.
fn until_told(seed: u64, claim: &Claim, ratio: f64) -> (Finding, BTreeMap<CellKey, usize>) {
    let mut world = World::new(seed);
    world.in_rounds = true;
    let truth = |cell: &CellKey| if cell.system == "a" { ratio } else { 1.0 };
    let mut wanted: BTreeSet<CellKey> = ["a", "b"]
        .iter()
        .flat_map(|system| SIZES.map(|size| cell(system, size)))
        .collect();
    for round in 0..=ROUNDS {
        let more = if round == 0 {
            FIRST
        } else {
            FIRST << (round - 1)
        };
        for cell in &wanted {
            let size = cell.axes[0].1.clone();
            repeat(&mut world, &cell.system, &size, truth(cell), round, more);
        }
        match world.as_run(|run| open(claim, run)) {
            Some(open) => wanted = open.cells,
            None => break,
        }
    }
    let mut repeats = BTreeMap::new();
    for trial in &world.trials {
        *repeats.entry(trial.cell.clone()).or_insert(0) += 1;
    }
    (world.judge(claim), repeats)
}

#[test]
fn only_the_cells_of_what_is_undecided() {
    let mut world = World::new(1);
    for (size, ratio) in SIZES.iter().zip([3.0, 1.1]) {
        repeat(&mut world, "a", size, ratio, 0, FIRST);
        repeat(&mut world, "b", size, 1.0, 0, FIRST);
    }
    let both = claim(SIZES.map(at).to_vec());
    let open_cells = |claim: &Claim| world.as_run(|run| open(claim, run));
    let wanted = open_cells(&both).expect("it is undecided");
    let expected = ["a", "b"].map(|system| cell(system, "1KiB"));
    assert_eq!(wanted.cells, expected.into());
    assert!(wanted.repeats > FIRST);
    assert_eq!(open_cells(&claim(vec![at("64B")])), None);
    // Claims that no repeat can tell are not wanted.
    assert_eq!(open_cells(&claim(vec![at("4KiB")])), None);
}

#[test]
fn what_is_true_is_told_with_more_repeats() {
    let both = claim(SIZES.map(at).to_vec());
    for (ratio, outcome) in [(1.15, Outcome::Holds), (0.87, Outcome::DoesNotHold)] {
        let told = (0..100).map(|seed| until_told(seed, &both, ratio));
        let (mut right, mut trials) = (0, 0);
        for (finding, repeats) in told {
            right += u32::from(finding.outcome == outcome);
            trials += repeats.values().sum::<usize>();
        }
        assert!(right >= 95, "{ratio}: {right} of 100");
        // Most need less than all rounds: 80 repeats of four cells.
        assert!(trials < 100 * 200, "{ratio}: {trials} trials");
    }
}

/// Five looks at 95 % each would find what is not there in more than 5 of 100.
#[test]
fn looking_again_makes_no_truth() {
    let order = claim(vec![at("64B")]);
    let mut wrong = 0;
    for seed in 0..400 {
        let (finding, _) = until_told(seed, &order, 1.0);
        wrong += u32::from(finding.outcome.is_answer());
    }
    assert!(wrong <= 20, "{wrong} of 400");
}
