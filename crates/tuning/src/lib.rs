//! Tuning: which settings to measure next, and whether the best ones are better than the default.
//!
//! A tuning is a list of what was seen, and two pure functions over it: [`next`] says what to measure next, [`conclude`] what
//! was found. A tuning that was cut off goes on from its list, and the same list always leads to the same step.
//!
//! Each factor is varied alone from the defaults at first, which explains. All of that then feeds a Tree-structured Parzen
//! estimator (Bergstra et al. 2011), which combines factors while there is time. What leads is measured again, so that it does
//! not lead by luck, and is compared with the default in pairs that were measured in turns: the trials that chose it take no part
//! in that. What tells nothing of the system, or was lost or overloaded, has no score and leads nothing.

#![forbid(unsafe_code)]

mod estimator;
mod factor;
mod finding;
mod outcome;
mod steps;

pub use factor::{Factor, Levels, Point, written};
pub use finding::{Finding, Objective, Purpose, Question, Seen, Side};
pub use outcome::{CannotTell, Conclusion, Effect, Gain, Verdict, conclude};
pub use steps::{Ended, Step, View, next};
