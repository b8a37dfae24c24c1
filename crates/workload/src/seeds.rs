//! Seeds of flows and of repeats.

use std::sync::Arc;

use crate::draws::{GOLDEN, mix};
use crate::model::Workload;

impl Workload {
    /// The seed of a flow's draws, by its number.
    pub fn seed_of(&self, flow: u32) -> u64 {
        self.seed ^ (u64::from(flow) + 1).wrapping_mul(GOLDEN)
    }

    /// The workload of a repeat, from 1: what is random in it is drawn anew for each, and is the same for all cells of one.
    pub fn in_repeat(self: &Arc<Self>, repeat: u32) -> Arc<Workload> {
        let mut drawn = self.clone();
        if repeat > 1 {
            let own = Arc::make_mut(&mut drawn);
            own.seed = mix(own
                .seed
                .wrapping_add(u64::from(repeat).wrapping_mul(GOLDEN)));
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Arrivals;

    #[test]
    fn each_repeat_has_draws_of_its_own() {
        let workload = Arc::new(Workload::fan(1, 1, Arrivals::Poisson { per_s: 10.0 }));
        let seed = |repeat| workload.in_repeat(repeat).seed;
        assert_eq!(seed(1), workload.seed);
        assert_eq!(seed(2), seed(2), "alike for all cells of a repeat");
        let seeds: BTreeSet<u64> = (1..=100).map(seed).collect();
        assert_eq!(seeds.len(), 100);
    }
}
