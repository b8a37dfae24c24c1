//! Systems that carry one load at one start and another at the next: no load is the limit of both.

/// Factor between loads from which one that failed and one that stayed within are no matter of chance.
const APART: f64 = 1.25;
/// Trials at a load that has failed far below others, before the failure counts as chance.
const RETRIES: usize = 4;
/// Trials at either end that must agree.
const AGREE: usize = 3;
/// Factor below loads that stayed within from which a load that failed is below the limit of these trials.
const BELOW: f64 = 1.05;
/// Trials at a load that all fail, from which neither face carries it.
const ALL: usize = 8;

/// A system of which some trials failed far below loads that others stayed within.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faces {
    /// The largest load that stayed within and below which none failed; `None` if there is none.
    pub low: Option<f64>,
    /// The smallest load above all that stayed within; `None` if none was tried.
    pub high: Option<f64>,
    /// The smallest load that failed.
    pub failed: f64,
    /// The largest load that stayed within.
    pub within: f64,
}

/// A trial of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) load: f64,
    pub(crate) within: bool,
    /// The rate that the system delivered, in the unit of the load; 0 where that is not known.
    pub(crate) achieved: f64,
    /// Whether it lasted long: what a system carries for a while may be more.
    pub(crate) long: bool,
}

/// Trials by load.
pub(crate) struct Outcomes(Vec<Outcome>);

impl Outcomes {
    pub(crate) fn new(trials: impl Iterator<Item = Outcome>) -> Outcomes {
        let mut trials: Vec<Outcome> = trials.collect();
        trials.sort_by(|a, b| a.load.total_cmp(&b.load));
        Outcomes(trials)
    }

    fn trials(&self, within: bool) -> impl DoubleEndedIterator<Item = &Outcome> {
        self.0.iter().filter(move |one| one.within == within)
    }

    fn loads(&self, within: bool) -> impl DoubleEndedIterator<Item = f64> {
        self.trials(within).map(|one| one.load)
    }

    fn count(&self, at: f64) -> usize {
        self.0.iter().filter(|one| one.load == at).count()
    }

    /// Short trials that failed and delivered far less than two others that stayed within, below whose loads theirs lay:
    /// a system that collapses under too much fails so above what it carries alone.
    fn fell_short(&self) -> impl Iterator<Item = &Outcome> {
        let mut within = self.trials(true).rev().filter(|one| !one.long);
        let second = within.nth(1).map_or(0.0, |one| one.load);
        self.trials(false).filter(move |one| {
            let far_less = one.achieved > 0.0 && one.achieved * APART <= second;
            !one.long && far_less && one.load * BELOW <= second
        })
    }

    /// The rate that the slower face delivers, where that is seen.
    fn slow(&self) -> Option<f64> {
        self.fell_short().map(|one| one.achieved).reduce(f64::min)
    }

    /// The loads that failed although trials at larger ones, one stray trial left out, stayed within.
    fn contradicted(&self) -> Vec<f64> {
        let second = self.loads(true).rev().nth(1).unwrap_or(0.0);
        let fell_short: Vec<&Outcome> = self.fell_short().collect();
        self.trials(false)
            .filter(|one| one.load * APART <= second || fell_short.contains(one))
            .map(|one| one.load)
            .collect()
    }

    /// The two faces, if more than one trial shows them.
    pub(crate) fn faces(&self) -> Option<Faces> {
        if self.contradicted().len() < 2 {
            return None;
        }
        let (failed, within) = (self.loads(false).next()?, self.loads(true).next_back()?);
        let slow = self.slow().unwrap_or(f64::INFINITY);
        // A failure of the slower face says nothing of the faster one, unless all trials there fail.
        let of_faster = |one: &&Outcome| {
            slow.is_infinite() || one.achieved > slow * APART || self.count(one.load) >= ALL
        };
        Some(Faces {
            low: self.loads(true).rfind(|load| *load < failed.min(slow)),
            high: self
                .trials(false)
                .filter(of_faster)
                .map(|one| one.load)
                .find(|load| *load > within),
            failed,
            within,
        })
    }

    /// The load to measure next so that the faces are known to `width`; `None` where they are, or where there is one face.
    pub(crate) fn next(&self, width: f64) -> Option<f64> {
        let wide = |low: f64, high: f64| high / low > 1.0 + width;
        let Some(faces) = self.faces() else {
            let doubtful = self.contradicted().first().copied();
            return doubtful.filter(|load| self.count(*load) < RETRIES);
        };
        let slow = self.slow();
        let fails = slow.map_or(faces.failed, |slow| slow.min(faces.failed));
        match faces.low {
            None => {
                return Some(slow.map_or(faces.failed / APART, |slow| slow / (1.0 + width / 2.0)));
            }
            Some(low) if self.count(low) < AGREE => return Some(low),
            Some(low) if wide(low, fails) => return Some((low * fails).sqrt()),
            Some(_) => {}
        }
        match faces.high {
            None => {
                // A load that the slower face failed at is tried until the faster one is met.
                let tried = self.loads(false).find(|load| *load > faces.within);
                Some(tried.unwrap_or(faces.within * APART))
            }
            Some(high) if slow.is_none() && self.count(high) < AGREE => Some(high),
            Some(high) if wide(faces.within, high) => Some((faces.within * high).sqrt()),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(trials: &[(f64, bool)]) -> Outcomes {
        Outcomes::new(trials.iter().map(|(load, within)| Outcome {
            load: *load,
            within: *within,
            achieved: 0.0,
            long: false,
        }))
    }

    #[test]
    fn one_stray_failure_is_no_face_and_is_tried_again() {
        let mut trials = vec![
            (700.0, false),
            (900.0, true),
            (950.0, true),
            (1_050.0, false),
        ];
        for _ in 0..3 {
            let told = outcomes(&trials);
            assert_eq!((told.faces(), told.next(0.1)), (None, Some(700.0)));
            trials.push((700.0, true));
        }
        let told = outcomes(&trials);
        assert_eq!((told.faces(), told.next(0.1)), (None, None));
        trials.push((700.0, false));
        assert!(outcomes(&trials).faces().is_some());
        // Near the limit either happens by chance.
        let near = outcomes(&[
            (900.0, false),
            (920.0, false),
            (950.0, true),
            (1_000.0, true),
        ]);
        assert_eq!((near.faces(), near.next(0.1)), (None, None));
    }

    #[test]
    fn what_a_failure_delivered_tells_the_slower_face() {
        let trial = |load: f64, limit: f64| Outcome {
            load,
            within: load < limit,
            achieved: load.min(limit),
            long: false,
        };
        let mut trials = vec![
            trial(950.0, 1000.0),
            trial(980.0, 1000.0),
            trial(880.0, 500.0),
            trial(900.0, 500.0),
            trial(1_050.0, 500.0),
        ];
        let told = Outcomes::new(trials.iter().copied());
        let faces = told.faces().expect("two faces");
        assert_eq!((faces.low, faces.high), (None, None));
        // Just below what the slower one delivered.
        let below = told.next(0.1).expect("a load");
        assert!((470.0..480.0).contains(&below), "{below}");
        trials.extend([
            trial(below, 1000.0),
            trial(below, 500.0),
            trial(below, 500.0),
        ]);
        let told = Outcomes::new(trials.iter().copied());
        assert_eq!(told.next(0.1), Some(1_050.0));
        trials.push(trial(1_050.0, 1_000.0));
        let told = Outcomes::new(trials.iter().copied());
        let faces = told.faces().expect("two faces");
        assert_eq!((faces.low, faces.high), (Some(below), Some(1_050.0)));
        assert_eq!(told.next(0.1), None);
        // One that collapses under too much.
        let collapsed = |load: f64| Outcome {
            achieved: 300.0,
            ..trial(load, 0.0)
        };
        let one = [
            trial(950.0, 1_000.0),
            trial(980.0, 1_000.0),
            collapsed(970.0),
            collapsed(1_050.0),
        ];
        assert_eq!(Outcomes::new(one.into_iter()).faces(), None);
    }
}
