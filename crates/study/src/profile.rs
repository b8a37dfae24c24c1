//! Profiles: named settings, read from `profiles.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pubgauge_driver::Settings;
use serde::Deserialize;

/// The profile whose settings [`crate::Plan::tune`] fills in, driver by driver.
pub const TUNED: &str = "tuned";

/// A named bundle of settings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// As `--profile` and `profile = "..."` take it.
    pub name: String,
    /// Its purpose, in one sentence.
    pub about: String,
    /// Settings that it requires: a system that cannot honour one of them is left out.
    #[serde(default)]
    pub ask: Settings,
    /// Settings that it wishes for: a system that cannot honour one of them keeps its own value.
    #[serde(default)]
    pub wish: Settings,
}

/// Settings that the documentation of a driver's systems recommends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tuned {
    /// The source of each recommendation.
    pub sources: Vec<String>,
    #[serde(default)]
    always: Settings,
    #[serde(default)]
    paced: Settings,
    #[serde(default)]
    flat_out: Settings,
}

impl Tuned {
    /// The settings for workloads that keep to a schedule, or have a flow that is flat out.
    pub fn settings(&self, flat_out: bool) -> Settings {
        self.always.overridden_by(if flat_out {
            &self.flat_out
        } else {
            &self.paced
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    profile: Vec<Profile>,
    tuned: BTreeMap<String, Tuned>,
}

static BOOK: LazyLock<Book> = LazyLock::new(|| {
    toml::from_str(include_str!("../profiles.toml")).expect("the built-in profiles are tested")
});

static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| profiles().iter().map(|p| p.name.as_str()).collect());

/// All profiles, in the order in which they are shown.
pub fn profiles() -> &'static [Profile] {
    &BOOK.profile
}

/// The settings of `tuned`, by driver.
pub fn tuned() -> &'static BTreeMap<String, Tuned> {
    &BOOK.tuned
}

/// Names of the profiles.
pub(crate) fn names() -> &'static [&'static str] {
    &NAMES
}

pub(crate) fn profile(name: &str) -> Option<&'static Profile> {
    profiles().iter().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_are_sound() {
        let expected = [
            "default",
            "tuned",
            "latency",
            "throughput",
            "durable",
            "constrained",
        ];
        assert_eq!(names(), expected);
        for profile in profiles() {
            assert!(!profile.about.is_empty(), "{}", profile.name);
            assert!(profile.ask.native.is_empty() && profile.wish.native.is_empty());
            let both = |name: &&&str| profile.ask.has(name) && profile.wish.has(name);
            assert_eq!(Settings::NAMES.iter().find(both), None, "{}", profile.name);
        }
        for (driver, tuned) in tuned() {
            assert!(!tuned.sources.is_empty(), "{driver} names no source");
            for flat_out in [false, true] {
                // Only the application may ask for guarantees.
                let settings = tuned.settings(flat_out);
                for promise in ["reliability", "durability", "session", "pattern", "on-full"] {
                    assert!(!settings.has(promise), "{driver}: {promise}");
                }
            }
        }
    }
}
