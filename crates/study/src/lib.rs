//! Study files: reads TOML, returns a validated [`Plan`].
//!
//! A [`Study`] is read from a file, changed by `--set` flags ([`Study::apply_set`]) and planned
//! ([`Study::plan`]). All errors are reported at once, with file, line, column, what was expected
//! and the nearest right spelling. This crate starts nothing and writes nothing.

mod built_in;
mod cells;
mod claim;
mod clash;
mod compare;
mod conditions;
mod criterion;
mod daily;
mod file;
mod folder;
mod known;
mod load;
mod loads;
mod names;
mod phases;
mod places;
mod placing;
mod plan;
mod planned;
mod profile;
mod require;
mod resolve;
mod scale;
mod search;
mod study;
mod tree;
mod unknown_name;
mod window;
mod wishes;

pub use built_in::BuiltIn;
pub use claim::without_claims;
pub use compare::ComparePlan;
pub use daily::DailyFlags;
pub use file::*;
pub use folder::studies_in;
pub use known::{KnownSystems, PlanOptions};
pub use load::{NoLoad, ShareError, ShareOfLimit};
pub use planned::{Plan, PlannedTrial, UnsupportedTrial};
pub use profile::{
    Profile, TUNED, Tuned, add_profiles, all_profiles, check_profile_name, profiles, read_profiles,
    tuned,
};
pub use scale::FULL;
pub use search::SearchPlan;
pub use study::Study;

/// The JSON Schema of study files.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(StudyFile);
    schema.insert("title".into(), "pubgauge study file".into());
    schema.to_value()
}
