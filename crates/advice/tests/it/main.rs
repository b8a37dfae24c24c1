//! Advice over planted systems, and fleets as they are read.

mod files;
mod fleets;
mod long;
mod stored;
mod truth;
