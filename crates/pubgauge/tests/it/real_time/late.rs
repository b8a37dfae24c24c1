//! Late subscribers where nothing makes messages late.

use crate::late::four_of_five;

use crate::common::count;

/// Messages that were due in the 2 s after it, but for those that a machine that stands still made late.
#[test]
fn what_was_due_after_the_asking_comes_live() {
    for system in ["mosquitto", "nats:mqtt"] {
        let (_, late) = four_of_five(system);
        let live = count(&late, "live");
        assert!((1_400..=1_604).contains(&live), "{system}: {late}");
    }
}
