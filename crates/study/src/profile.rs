//! Profiles: named settings, read from `profiles.toml`.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use pubgauge_driver::Settings;
use serde::{Deserialize, Serialize};

/// The profile whose settings [`crate::Plan::tune`] fills in, driver by driver.
pub const TUNED: &str = "tuned";

/// A named bundle of settings.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
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

/// Profiles of the user's own.
static OWN: OnceLock<Vec<Profile>> = OnceLock::new();

static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| all_profiles().map(|p| p.name.as_str()).collect());

/// A file of profiles of the user's own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnBook {
    #[serde(default)]
    profile: Vec<Profile>,
}

/// The profiles in the text of a user's own file.
///
/// # Errors
/// If it cannot be understood, or a profile has the name of a built-in one, or of another.
pub fn read_profiles(text: &str) -> Result<Vec<Profile>, String> {
    let book: OwnBook = toml::from_str(text).map_err(|error| error.to_string())?;
    for (nth, own) in book.profile.iter().enumerate() {
        check_profile_name(&own.name)?;
        if book.profile[..nth]
            .iter()
            .any(|before| before.name == own.name)
        {
            return Err(format!("the profile `{}` is there twice", own.name));
        }
    }
    Ok(book.profile)
}

/// Checks that a profile of the user's own may have this name.
///
/// # Errors
/// Why it may not.
pub fn check_profile_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "`{name}` cannot be the name of a profile; expected letters, digits, `-`, `_` and `.`"
        ));
    }
    if profiles().iter().any(|built_in| built_in.name == name) {
        return Err(format!("`{name}` is a profile that comes with pubgauge"));
    }
    Ok(())
}

/// Adds the user's own profiles to those that studies and flags may name; once, before a study is read.
pub fn add_profiles(own: Vec<Profile>) {
    let _ = OWN.set(own);
}

/// All profiles that may be named: those that come with pubgauge, then the user's own.
pub fn all_profiles() -> impl Iterator<Item = &'static Profile> {
    profiles().iter().chain(OWN.get().into_iter().flatten())
}

/// All profiles, in the order in which they are shown.
pub fn profiles() -> &'static [Profile] {
    &BOOK.profile
}

/// The settings of `tuned`, by driver.
pub fn tuned() -> &'static BTreeMap<String, Tuned> {
    &BOOK.tuned
}

/// Names of the profiles that come with pubgauge.
pub(crate) fn built_in_names() -> Vec<&'static str> {
    profiles()
        .iter()
        .map(|profile| profile.name.as_str())
        .collect()
}

/// Names of all profiles.
pub(crate) fn names() -> &'static [&'static str] {
    &NAMES
}

pub(crate) fn profile(name: &str) -> Option<&'static Profile> {
    all_profiles().find(|profile| profile.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_users_own_is_read_strictly() {
        let own = read_profiles(
            "[[profile]]\nname = \"mine\"\nabout = \"x\"\n[profile.wish]\nin-flight = 7\noptions.mosquitto.max-inflight = 20\n",
        );
        let own = own.expect("a profile");
        assert_eq!(
            (own[0].name.as_str(), own[0].wish.in_flight),
            ("mine", Some(7))
        );
        assert!(own[0].wish.has("options.mosquitto.max-inflight"));
        let written = toml::to_string(&own[0]).expect("TOML");
        assert!(written.contains("in-flight = 7"), "{written}");
        for (text, why) in [
            (
                "[[profile]]\nname = \"tuned\"\nabout = \"\"\n",
                "comes with pubgauge",
            ),
            (
                "[[profile]]\nname = \"a b\"\nabout = \"\"\n",
                "cannot be the name",
            ),
            (
                "[[profile]]\nname = \"a\"\nabout = \"\"\n[profile.wish]\nin-fligt = 1\n",
                "in-fligt",
            ),
            (
                "[[profile]]\nname = \"a\"\nabout = \"\"\n[[profile]]\nname = \"a\"\nabout = \"\"\n",
                "twice",
            ),
        ] {
            let error = read_profiles(text).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }

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
