//! Whether what a paper says holds for measured cells: repeats in, an outcome out.
//!
//! - [`mod@sentence`]: the rule of a claim as a sentence.
//! - [`mod@judge`]: the judgement of a claim by a run.
//! - [`mod@open`]: which cells must be repeated for a claim that cannot be told.
//! - [`finding`]: an outcome with what decided it.
//! - [`decide`]: whether a quantity lies in a range, or those of a curve do together.
//! - [`several`]: how findings are combined.
//! - [`curve`]: judges of a curve over an axis: crossing, jump, slope, spread.
//!
//! The unit is the repeat, never the message or the second. Positive figures are compared on
//! logarithms by Welch's t. What cannot be decided at 95 % is not decided: *cannot tell*.

#![forbid(unsafe_code)]

pub mod curve;
pub mod decide;
pub mod finding;
pub mod judge;
pub mod open;
pub mod sentence;
pub mod several;

pub use finding::{Finding, Outcome, Tells, TurningPoint};
pub use judge::{
    Absent, CellKey, Curve, Figures, MeasuredRun, Observation, Picture, Point, RECORDING,
    SearchedLimit, is_about_recording, judge, pictures,
};
pub use open::{Open, is_judged_by, open};
pub use sentence::rule_sentence;
