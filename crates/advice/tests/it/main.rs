//! Advice over planted systems, and fleets as they are read.

mod boxes;
mod files;
mod fleets;
mod long;
mod stored;
mod truth;
