//! Checks of how drivers take settings.

use pubgauge_driver::{Driver, Settings, Target};
use serde_json::{Value, json};

/// Settings, as a study has them.
///
/// # Panics
/// If they are none.
#[track_caller]
pub fn settings(json: Value) -> Settings {
    serde_json::from_value(json).expect("settings")
}

/// Settings that a driver refuses, by name, with the reasons.
///
/// # Panics
/// If it takes them.
#[track_caller]
pub fn refused(driver: &dyn Driver, settings: &Settings, target: &Target) -> Vec<(String, String)> {
    let refused = driver.resolve(settings, target);
    let refused = refused.expect_err("something is refused");
    refused.into_iter().map(|u| (u.setting, u.reason)).collect()
}

/// Asserts that settings that change nothing have an answer for each name, in order, and none but those of the driver's
/// own in `more`.
///
/// # Panics
/// If that is not so.
#[track_caller]
pub fn every_setting_is_answered(
    driver: &dyn Driver,
    settings: &Settings,
    target: &Target,
    more: &[&str],
) {
    let rows = driver.resolve(settings, target).expect("nothing is asked");
    let names: Vec<_> = rows.iter().map(|row| row.setting.as_str()).collect();
    assert_eq!(names, [&Settings::NAMES[..], more].concat());
    let unanswered = rows.iter().find(|row| row.native.is_empty());
    assert_eq!(unanswered, None);
    if *settings == Settings::default() {
        let changed = rows.iter().find(|row| row.value != "default");
        assert_eq!(changed, None);
    }
}

/// Asserts that each of these settings alone is refused, and nothing else with it. Names of the driver's own settings
/// begin with `native.DRIVER.`.
///
/// # Panics
/// If one is taken, or another is refused.
#[track_caller]
pub fn refused_by_name(
    driver: &dyn Driver,
    cases: impl IntoIterator<Item = (&'static str, Value)>,
) {
    for (name, value) in cases {
        let parts = name.rsplit('.');
        let asked = parts.fold(value, |value, part| json!({ part: value }));
        let refused = refused(driver, &settings(asked.clone()), &Target::default());
        let names: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [name], "{asked}: {refused:?}");
        assert!(!refused[0].1.is_empty(), "{asked}: no reason");
    }
}

/// Asserts that settings which do not go together are refused, with nothing else: what is asked, the names refused in
/// their order, separated by commas, and words of the first reason.
///
/// # Panics
/// If they are taken, or something else is refused.
#[track_caller]
pub fn contradictions_are_refused(
    driver: &dyn Driver,
    cases: impl IntoIterator<Item = (Value, &'static str, &'static str)>,
) {
    for (asked, names, words) in cases {
        let refused = refused(driver, &settings(asked.clone()), &Target::default());
        let found: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(found.join(", "), names, "{asked}: {refused:?}");
        assert!(refused[0].1.contains(words), "{asked}: {refused:?}");
    }
}

/// Asserts that the driver's answers to these settings contain these words, each with the name of its setting, and that
/// they show the values asked for.
///
/// # Panics
/// If the settings are refused, or an answer has other words.
#[track_caller]
pub fn answers_contain(
    driver: &dyn Driver,
    asked: Value,
    answers: impl IntoIterator<Item = (&'static str, &'static str)>,
) {
    let rows = driver.resolve(&settings(asked.clone()), &Target::default());
    let rows = rows.unwrap_or_else(|refused| panic!("{asked}: {refused:?}"));
    for (name, words) in answers {
        let row = rows.iter().find(|row| row.setting == name);
        let row = row.unwrap_or_else(|| panic!("{asked}: no answer for {name}"));
        assert!(row.native.contains(words), "{asked}: {row:?}");
        let value = asked.pointer(&format!("/{}", name.replace('.', "/")));
        let value = value.map(|v| v.as_str().map_or(v.to_string(), str::to_owned));
        assert!(value.is_none_or(|value| value == row.value), "{row:?}");
    }
}
