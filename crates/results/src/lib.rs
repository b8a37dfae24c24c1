//! The versioned store of a run, and the rules of its verdicts.

pub mod model;
