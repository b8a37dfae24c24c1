//! The truths of [`super::truth`] over 1,000 seeds.

use super::truth::{names_the_best_first, names_what_carries, ranks_equal_ones_alike};

const SEEDS: u64 = 1_000;

#[test]
fn no_system_is_named_that_does_not_carry_what_is_asked_for() {
    names_what_carries(SEEDS);
}

#[test]
fn the_best_comes_first_or_one_that_cannot_be_told_from_it() {
    names_the_best_first(SEEDS);
}

#[test]
fn equal_systems_share_a_rank() {
    ranks_equal_ones_alike(SEEDS);
}
