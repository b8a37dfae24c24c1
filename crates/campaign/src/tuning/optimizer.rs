//! Somebody else who leads a tuning.

use pubgauge_tuning::{Point, Seen};

/// Names combinations in place of the estimator.
pub trait Optimizer {
    /// The next combination, after all that was seen; `None` if there is no more.
    ///
    /// # Errors
    /// If there is no sense in what it says.
    fn ask(&mut self, seen: &[Seen]) -> Result<Option<Point>, String>;

    /// The combination that it named last was measured before: this is what was seen of it.
    ///
    /// # Errors
    /// If it listens no more.
    fn tell_known(&mut self, known: &Seen) -> Result<(), String>;
}
