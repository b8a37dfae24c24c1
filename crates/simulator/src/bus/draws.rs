//! Random draws of the simulated system.

use pubgauge_driver::clock::Nanos;
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, LogNormal};

use crate::behaviour::Behaviour;

pub(super) fn chance(rng: &mut StdRng, probability: f64) -> bool {
    probability > 0.0 && rng.random_bool(probability.min(1.0))
}

pub(super) fn draw_delay(rng: &mut impl Rng, b: &Behaviour) -> Nanos {
    if b.delay_sigma == 0.0 {
        return b.delay_median_ns;
    }
    match LogNormal::new((b.delay_median_ns as f64).ln(), b.delay_sigma) {
        Ok(distribution) => distribution.sample(rng) as Nanos,
        Err(_) => b.delay_median_ns,
    }
}
