//! Quantities: how studies write them, how readers see them, and what repeats tell of them.
//!
//! - [`written`]: `64B`, `100ms`, `10k/s`, `3%`, `95Mbit/s` as types, read and written.
//! - [`shown`]: numbers with units for readers: measured ones in three digits, given ones in full.
//! - [`stats`]: estimates over repeats with their intervals, quantiles, lines.
//! - [`spelling`]: the name that was meant by a wrong one.

#![forbid(unsafe_code)]

pub mod shown;
pub mod spelling;
pub mod stats;
pub mod written;

pub use written::{BitRate, Percent, Rate, Size, Span, UnitError};
