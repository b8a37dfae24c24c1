//! Two clocks whose offset is known at every moment, and exchanges between them.

use pubgauge_clock::{Caps, Exchange};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Pareto};

/// Drift is constant for so long, ns.
const STEP: f64 = 10e6;
/// The far clock is ahead by so much at first, as it is when its host started four months earlier, ns.
pub const AHEAD: i64 = 10_368_000_123_456_789;

/// How the drift of the far clock behaves, never beyond 50 ppm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drift {
    /// Rises and falls as fast as the caps allow.
    Ramps,
    /// A sine.
    Sine,
    /// Jumps every two seconds, by as much as the caps allow at most.
    Jumps,
    /// Always the same.
    Constant,
}

impl Drift {
    pub const ALL: [Drift; 4] = [Drift::Ramps, Drift::Sine, Drift::Jumps, Drift::Constant];

    /// Drift for each step, ppm.
    fn course(self, steps: usize, caps: Caps, random: &mut StdRng) -> Vec<f64> {
        const MOST: f64 = 50.0;
        let change = caps.change_ppm_per_s;
        let mut drift: f64 = random.random_range(-MOST..MOST);
        let mut rising = if random.random_bool(0.5) { 1.0 } else { -1.0 };
        let size = random.random_range(1.0..MOST);
        let phase = random.random_range(0.0..std::f64::consts::TAU);
        let course = (0..steps).map(|step| {
            let seconds = step as f64 * STEP / 1e9;
            match self {
                Drift::Constant => {}
                Drift::Sine => drift = size * (seconds * change / size + phase).sin(),
                Drift::Ramps => {
                    if random.random_bool(0.0005) || (drift * rising) > MOST - change {
                        rising = -rising;
                    }
                    drift += rising * 0.999 * change * STEP / 1e9;
                }
                Drift::Jumps if step % 200 == 0 => {
                    let jump = random.random_range(-change..change);
                    let inside = (drift + jump).abs() < MOST;
                    drift += if inside { jump } else { -jump };
                }
                Drift::Jumps => {}
            }
            drift
        });
        course.collect()
    }
}

/// The true offset over time.
pub struct Truth {
    /// Beyond [`AHEAD`] at each step, ns.
    offsets: Vec<f64>,
    /// When the far clock is set, near clock, ns; and by how much, ns.
    pub set: Option<(f64, f64)>,
}

impl Truth {
    pub fn new(drift: Drift, seconds: f64, caps: Caps, random: &mut StdRng) -> Truth {
        let steps = (seconds * 1e9 / STEP) as usize + 2;
        let course = drift.course(steps, caps, random);
        let mut offset = 0.0;
        let offsets = course.iter().map(|ppm| {
            let now = offset;
            offset += ppm * 1e-6 * STEP;
            now
        });
        Truth {
            offsets: offsets.collect(),
            set: None,
        }
    }

    /// Far minus near clock beyond [`AHEAD`] when the near clock reads `near`, ns.
    pub fn offset(&self, near: f64) -> f64 {
        let step = ((near / STEP) as usize).min(self.offsets.len() - 2);
        let share = near / STEP - step as f64;
        let (from, to) = (self.offsets[step], self.offsets[step + 1]);
        let set = self.set.filter(|(when, _)| near >= *when);
        from + share * (to - from) + set.map_or(0.0, |(_, by)| by)
    }

    fn far(&self, near: f64) -> u64 {
        // In two parts, so that the sum keeps its nanoseconds.
        (AHEAD + (near + self.offset(near)).floor() as i64) as u64
    }
}

/// What lies between the clocks.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Least delay there and back, ns.
    pub base: [f64; 2],
    /// Scale and shape of what queues add (Pareto), ns.
    pub tail: (f64, f64),
    /// Share of exchanges that are lost.
    pub loss: f64,
}

impl Path {
    /// 20 to 400 us each way, one up to 20 times the other; some delays a thousand times that.
    pub fn any(random: &mut StdRng) -> Path {
        let base = |random: &mut StdRng| 20e3 * 20f64.powf(random.random());
        Path {
            base: [base(random), base(random)],
            tail: (
                random.random_range(2e3..50e3),
                random.random_range(1.1..2.0),
            ),
            loss: random.random_range(0.0..0.4),
        }
    }

    fn delay(&self, way: usize, random: &mut StdRng) -> f64 {
        let (scale, shape) = self.tail;
        let tail = Pareto::new(scale, shape).expect("a shape above 0");
        self.base[way] + tail.sample(random).min(3e9)
    }
}

/// Exchanges that were sent at `moments` (near clock, ns) and not lost, in no order. Those that outlast
/// the truth are lost.
pub fn exchanges(
    truth: &Truth,
    path: Path,
    moments: impl Iterator<Item = f64>,
    random: &mut StdRng,
) -> Vec<Exchange> {
    let end = (truth.offsets.len() - 1) as f64 * STEP;
    let mut all = Vec::new();
    for sent in moments {
        let received = sent + path.delay(0, random);
        let answered = received + random.random_range(500.0..20e3);
        let heard = answered + path.delay(1, random);
        if heard < end && !random.random_bool(path.loss) {
            all.push(Exchange {
                sent: sent.floor() as u64,
                received: truth.far(received),
                answered: truth.far(answered),
                heard: heard.floor() as u64,
            });
        }
    }
    all.shuffle(random);
    all
}

pub fn seeded(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}
