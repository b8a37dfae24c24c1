//! Quantities: how studies write them, how readers see them, and what repeats tell of them.
//!
//! - [`Size`], [`Span`], [`BitRate`], [`Rate`], [`Percent`]: `64B`, `100ms`, `95Mbit/s`, `10k/s`, `3%` as types.
//! - [`written`]: the number that a quantity stands for, whatever its unit.
//! - [`shown`]: numbers with units for readers: measured ones in three digits, given ones in full.
//! - [`stats`]: estimates over repeats with their intervals, quantiles, lines.
//! - [`spelling`]: the name that was meant by a wrong one.
//! - [`lists`]: lists without repeats; [`text`]: lines of limited width; [`schema`]: JSON Schemas as they are published.

#![forbid(unsafe_code)]

pub mod lists;
mod quoted;
pub mod schema;
mod share;
pub mod shown;
pub mod spelling;
pub mod stats;
pub mod text;
mod units;
pub mod written;

pub use quoted::UnitError;
pub use share::Share;
pub use units::{BitRate, Size, Span};
pub use written::{Percent, Rate};
