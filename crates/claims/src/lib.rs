//! Whether what a paper says holds for measured cells: repeats in, an outcome out.
//!
//! - [`rule`]: what a claim says, as plain data: figure, sides, axis, judge.
//! - [`mod@sentence`]: the same as a sentence.
//! - [`mod@judge`]: the judgement of a claim by a run.
//! - [`mod@open`]: which cells must be repeated for a claim that cannot be told.
//! - [`decide`]: whether a quantity lies in a range, or those of a curve do together.
//! - [`several`]: how findings are combined.
//! - [`curve`]: judges of a curve over an axis: crossing, jump, slope, spread.
//!
//! The unit is the repeat, never the message or the second. Positive figures are compared on
//! logarithms by Welch's t. What cannot be decided at 95 % is not decided: *cannot tell*.

#![forbid(unsafe_code)]

pub mod curve;
pub mod decide;
pub mod judge;
pub mod open;
pub mod rule;
pub mod sentence;
pub mod several;

pub use decide::{Finding, Outcome, Tells, Turn};
pub use judge::{
    Absent, CellKey, Curve, Figures, Observation, Picture, Point, RECORDING, Run, SearchedLimit,
    judge, pictures,
};
pub use open::{Open, open};
pub use rule::{
    Bounds, Claim, ClaimRule, Count, Filter, Group, Judge, LOSS_FREE, Needs, Part, Points,
    SUSTAINED, Side, Steps,
};
pub use sentence::words;
