//! The search for a limit: the highest load at which a system stays within what is asked of it.
//!
//! A search is a list of what was seen, and two pure functions over it: [`next`] says what to measure
//! next, [`estimate_limit`] between which loads the limit lies. A search that was cut off goes on from its list,
//! and the same list always leads to the same step.
//!
//! Bayesian search over a noisy threshold. Each trial is within what was asked for or beyond it; the
//! chance of being within falls from 1 to 0 around the limit, over a spread that is not known either.
//! All limits and spreads of a grid are weighed by what was seen ([`threshold`]). The next load lies
//! near the median of the limits so weighed, alternately some way below and above it; the search ends
//! where the 95 % interval is narrow enough. A long trial at its lower end then shows that the limit
//! holds for longer than a search's trials last.

#![forbid(unsafe_code)]

mod axis;
mod faces;
mod question;
mod steps;
pub mod threshold;
mod wander;

pub use axis::Axis;
pub use faces::Faces;
pub use question::{LimitEstimate, LimitedBy, Question, Step, StepOutcome, StepTaken};
pub use steps::{estimate_limit, next};
pub use wander::Wander;
