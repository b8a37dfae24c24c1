//! Systems that carry one load at one start and another at the next: no load is the limit of both.

/// Factor between loads from which one that failed and one that stayed within are no matter of chance.
const APART: f64 = 1.25;
/// Trials at a load that has failed far below others, before the failure counts as chance.
const RETRIES: usize = 4;
/// Trials at either end that must agree.
const AGREE: usize = 3;

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

/// Trials by load, and whether each stayed within.
pub(crate) struct Outcomes(Vec<(f64, bool)>);

impl Outcomes {
    pub(crate) fn new(mut trials: Vec<(f64, bool)>) -> Outcomes {
        trials.sort_by(|a, b| a.0.total_cmp(&b.0));
        Outcomes(trials)
    }

    fn loads(&self, within: bool) -> impl DoubleEndedIterator<Item = f64> {
        let alike = self.0.iter().filter(move |(_, was)| *was == within);
        alike.map(|(load, _)| *load)
    }

    fn count(&self, at: f64) -> usize {
        self.0.iter().filter(|(load, _)| *load == at).count()
    }

    /// The loads that failed although trials at larger ones, one stray trial left out, stayed within.
    fn contradicted(&self) -> Vec<f64> {
        let second = self.loads(true).rev().nth(1).unwrap_or(0.0);
        self.loads(false)
            .filter(|load| load * APART <= second)
            .collect()
    }

    /// The two faces, if more than one trial shows them.
    pub(crate) fn faces(&self) -> Option<Faces> {
        if self.contradicted().len() < 2 {
            return None;
        }
        let (failed, within) = (self.loads(false).next()?, self.loads(true).next_back()?);
        Some(Faces {
            low: self.loads(true).rfind(|load| *load < failed),
            high: self.loads(false).find(|load| *load > within),
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
        match faces.low {
            None => return Some(faces.failed / APART),
            Some(low) if self.count(low) < AGREE => return Some(low),
            Some(low) if wide(low, faces.failed) => return Some((low * faces.failed).sqrt()),
            Some(_) => {}
        }
        match faces.high {
            None => Some(faces.within * APART),
            Some(high) if self.count(high) < AGREE => Some(high),
            Some(high) if wide(faces.within, high) => Some((faces.within * high).sqrt()),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stray_failure_is_no_face_and_is_tried_again() {
        let mut trials = vec![
            (700.0, false),
            (900.0, true),
            (950.0, true),
            (1_050.0, false),
        ];
        for _ in 0..3 {
            let outcomes = Outcomes::new(trials.clone());
            assert_eq!((outcomes.faces(), outcomes.next(0.1)), (None, Some(700.0)));
            trials.push((700.0, true));
        }
        let outcomes = Outcomes::new(trials.clone());
        assert_eq!((outcomes.faces(), outcomes.next(0.1)), (None, None));
        trials.push((700.0, false));
        assert!(Outcomes::new(trials).faces().is_some());
        // Near the limit either happens by chance.
        let near = Outcomes::new(vec![
            (900.0, false),
            (920.0, false),
            (950.0, true),
            (1_000.0, true),
        ]);
        assert_eq!((near.faces(), near.next(0.1)), (None, None));
    }
}
