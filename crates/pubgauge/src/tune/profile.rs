//! Profiles of the user's own: the file, and what a tuning adds to it.

use std::path::PathBuf;

use pubgauge_command::exit::{Ending, tell};
use pubgauge_study::{add_profiles, check_profile_name, read_profiles};
use pubgauge_tuning::Verdict;

use super::findings::{Findings, toml_line};
use crate::stored_json;

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The file of the user's own profiles.
fn path() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))?;
    Some(config.join("pubgauge/profiles.toml"))
}

/// The text of that file; empty where there is none.
fn text() -> Result<String, Ending> {
    let Some(path) = path().filter(|path| path.exists()) else {
        return Ok(String::new());
    };
    pubgauge_results::store::read_text(&path, MOST_BYTES)
        .map_err(|error| Ending::bad_input(format!("{}: {error}", path.display())))
}

/// Makes the user's own profiles known to studies and flags.
///
/// # Errors
/// If the file is there and wrong.
pub fn load() -> Result<(), Ending> {
    let text = text()?;
    if text.is_empty() {
        return Ok(());
    }
    let own = read_profiles(&text).map_err(|why| {
        let path = path().unwrap_or_default();
        Ending::bad_input(format!("{}: {}", path.display(), why.trim_end()))
    })?;
    add_profiles(own);
    Ok(())
}

/// Checks, before a tuning, that a profile of this name can be added.
///
/// # Errors
/// If it cannot: its name is no name, or there is one.
pub fn check(name: &str) -> Result<(), Ending> {
    let wrong = |why: String| Ending::bad_input(format!("--save-profile {name}: {why}"));
    check_profile_name(name).map_err(wrong)?;
    let Some(path) = path() else {
        return Err(wrong(
            "there is no home folder to keep it in; set XDG_CONFIG_HOME".to_owned(),
        ));
    };
    let own = read_profiles(&text()?).map_err(wrong)?;
    if own.iter().any(|profile| profile.name == name) {
        let there = path.display();
        return Err(wrong(format!(
            "there is one in {there}\n  hint: take another name, or take it out there"
        )));
    }
    Ok(())
}

/// Adds the best settings of a tuning to the user's own profiles, if they are better.
///
/// # Errors
/// If the file cannot be written.
pub fn save(name: &str, findings: &Findings) -> Result<(), Ending> {
    let (Verdict::Better { pairs, gain }, Some(best)) =
        (&findings.conclusion.verdict, &findings.conclusion.best)
    else {
        tell!("--save-profile {name}: nothing is kept, because nothing was shown to be better");
        return Ok(());
    };
    let path = path().unwrap_or_default();
    let failed = |error: String| Ending::not_valid(format!("--save-profile {name}: {error}"));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| failed(format!("cannot make {}: {error}", folder.display())))?;
    }
    let about = format!(
        "tuned for {} of {} on {}: {:.2} times the default in {pairs} pairs",
        findings.objective.name(),
        findings.workload,
        findings.system,
        gain.ratio
    );
    let mut text = text()?;
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    let values = best.iter().map(|(path, value)| toml_line(path, value));
    let values: Vec<String> = values.collect();
    text += &format!(
        "[[profile]]\nname = {name:?}\nabout = {about:?}\n[profile.wish]\n{}\n",
        values.join("\n")
    );
    // A file that could not be read again would be of no use.
    read_profiles(&text).map_err(failed)?;
    stored_json::write(&path, text).map_err(failed)?;
    tell!("kept as the profile {name} in {}", path.display());
    Ok(())
}
