//! The versioned store of a run, the rules of its verdicts, and the judgement of its criteria.
//!
//! - [`store`]: the folder of a run; every finished trial is on disk before the next begins.
//! - [`verdict`]: whether the figures of a trial can be trusted, by written rules.
//! - [`criterion`]: whether a run met its study's criteria.
//! - [`schema`]: the JSON Schema of `results.json`.

pub mod criterion;
mod difference;
pub mod schema;
pub mod store;
pub mod verdict;

pub use difference::first_difference;
