//! A hostile day: for a tenth of the time of pubgauge's, with its seed, the collector is given brokers and data folders that
//! somebody has changed. `make hostile SECONDS=3600 SEED=7` does so, too.
//!
//! It must end within its time with one of its own exit codes, not panic, print nothing that a terminal obeys, and leave no
//! process behind; its memory stays below 1 GiB.

mod brokers;
mod data;

use pubgauge_testing::hostile::{Attempt, Day};

/// The kinds in their turns.
const TURNS: [(&str, Attempt); 2] = [
    ("data folders", data::changed),
    ("collected brokers", brokers::broker_misbehaves),
];

#[test]
fn a_hostile_day() {
    Day::spend(&TURNS, 0.1).was_survived();
}
