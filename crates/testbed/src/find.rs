//! Where the parts of a system are on this machine, and which version they are.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use pubgauge_driver::Drivers;

use crate::command;
use crate::external;
use crate::file::{Maven, SystemFile, SystemKind};
use crate::lock::lock;
use crate::package_manager::{InstallCommands, manager_tool};
use crate::template::{HOST, fill, fill_all};

/// File in the folder of an installation: the description it was made from.
pub(crate) const DESCRIPTION: &str = ".installed-from.json";

/// The parts of a system on this machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installation {
    /// The executable; absent for systems that have none.
    pub executable: Option<PathBuf>,
    /// The placeholders `{exe}`, `{cache}`, `{user}`, `{pubgauge}`, those of `find.paths` and
    /// those of `values`.
    pub values: BTreeMap<String, String>,
}

/// A system that is not on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{system} is not on this machine: {reason}\n  hint: {hint}")]
pub struct Missing {
    pub system: String,
    /// The names and places that were searched.
    pub reason: String,
    /// How it is installed, or what else the user must know.
    pub hint: String,
}

fn how_to_install(system: &SystemFile) -> String {
    match (install_commands(system).first(), &system.install.note) {
        (Some(first), _) => format!("install it with: {}", first.commands.join(" && ")),
        (None, Some(note)) => note.clone(),
        (None, None) => "put its executable on PATH, or name it in the system's file".to_owned(),
    }
}

/// The placeholder of the address at which clients reach a system that is on no emulated network.
pub(crate) fn loopback() -> BTreeMap<String, String> {
    [(HOST.to_owned(), Ipv4Addr::LOCALHOST.to_string())].into()
}

/// Looks for the parts of a system. `program` is pubgauge's own executable; one of `drivers` has to
/// speak to the address of a system that runs elsewhere.
///
/// # Errors
/// Says what was looked for, where, and how to install it.
pub(crate) fn find(
    system: &SystemFile,
    program: &Path,
    drivers: &Drivers,
) -> Result<Installation, Missing> {
    let missing = |reason: String| Missing {
        system: system.name.clone(),
        reason,
        hint: how_to_install(system),
    };
    let mut values = base_values(system);
    values.extend(loopback());
    values.insert("pubgauge".into(), program.display().to_string());
    let settings = system.settings.clone();
    values.insert("settings".into(), settings.unwrap_or_else(|| "{}".into()));
    let executable = match system.kind {
        SystemKind::Library => None,
        SystemKind::External => {
            if let Some(variable) = &system.find.variable {
                let address = external_address(system, variable, drivers).map_err(&missing)?;
                values.insert("address".into(), address);
            }
            None
        }
        SystemKind::Unavailable => {
            return Err(missing("it cannot be had".into()));
        }
        SystemKind::Builtin => Some(program.to_owned()),
        SystemKind::Process => Some(find_executable(system, &values).map_err(&missing)?),
    };
    if let Some(executable) = &executable {
        values.insert("exe".into(), executable.display().to_string());
    }
    for (name, candidates) in &system.find.paths {
        let candidates = fill_all(candidates, &values);
        let path = candidates
            .iter()
            .find_map(|pattern| glob(pattern).pop())
            .ok_or_else(|| missing(format!("there is no {}", candidates.join(", no "))))?;
        values.insert(name.clone(), path.display().to_string());
    }
    if let Some(maven) = &system.install.maven
        && is_outdated(maven)
    {
        let folder = cache_folder().join(&maven.folder);
        return Err(missing(format!(
            "{} was installed from another description than that of today",
            folder.display()
        )));
    }
    Ok(Installation { executable, values })
}

/// The version of a system that was found, where it is known without running anything: of the path of its files, or
/// of pubgauge itself.
pub(crate) fn version_at_rest(system: &SystemFile, found: &Installation) -> Option<String> {
    let query = &system.version;
    match &query.path {
        _ if !query.command.is_empty() => None,
        Some(path) => capture(&fill(path, &found.values), &query.pattern),
        None => (system.kind == SystemKind::Builtin).then(|| env!("CARGO_PKG_VERSION").to_owned()),
    }
}

/// Asks a system that was found for its version; this may run its command. `None` if it does not report one.
///
/// The answer is kept for the life of this process: a Java server takes a second to answer.
pub fn version(system: &SystemFile, found: &Installation) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let query = &system.version;
    if query.command.is_empty() {
        return version_at_rest(system, found);
    }
    let argv = fill_all(&query.command, &found.values);
    let key = format!("{argv:?} {}", query.pattern);
    if let Some(known) = lock(&KNOWN).get(&key) {
        return known.clone();
    }
    let output = command::run(&argv, &[], Path::new("/"), Duration::from_secs(20));
    let text = output.map(|output| output.text).unwrap_or_default();
    let version = capture(&text, &query.pattern);
    lock(&KNOWN).insert(key, version.clone());
    version
}

/// The version in `text`: what stands in place of `{version}` in `pattern`, from a digit on.
fn capture(text: &str, pattern: &str) -> Option<String> {
    let (before, after) = pattern.split_once("{version}").unwrap_or((pattern, ""));
    text.match_indices(before).find_map(|(at, _)| {
        let rest = &text[at + before.len()..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || ".+~-_".contains(c)))
            .unwrap_or(rest.len());
        let mut word = &rest[..end];
        let mut tail = &rest[end..];
        // The text after the version may itself be made of the version's letters: "-bin.jar".
        if !after.is_empty() && !tail.starts_with(after) {
            let cut = word.find(after)?;
            (word, tail) = (&word[..cut], &rest[cut..]);
        }
        let word = word.trim_end_matches(['.', '-', '_']);
        (tail.starts_with(after) && word.starts_with(|c: char| c.is_ascii_digit()))
            .then(|| word.to_owned())
    })
}

/// How a system is installed: with pubgauge's own command where that can do it, then the commands
/// of package managers, the one of this machine first.
pub(crate) fn install_commands(system: &SystemFile) -> Vec<InstallCommands> {
    let values = base_values(system);
    let of = |manager: &str, commands| InstallCommands {
        manager: manager.to_owned(),
        commands,
    };
    let by_manager = system.install.by_manager().into_iter();
    let mut all: Vec<InstallCommands> = by_manager
        .map(|(manager, commands)| of(manager, fill_all(commands, &values)))
        .collect();
    all.sort_by_key(|one| on_path(manager_tool(&one.manager)).is_none());
    if system.install.maven.is_some() {
        let command = format!("pubgauge systems --install {}", system.name);
        all.insert(0, of("maven", vec![command]));
    }
    all
}

/// The address of an external system, from an environment variable.
fn external_address(
    system: &SystemFile,
    variable: &str,
    drivers: &Drivers,
) -> Result<String, String> {
    let address = std::env::var(variable).unwrap_or_default();
    if !address.contains("://") {
        return Err(format!(
            "the environment variable {variable} does not give its address, for example {variable}={}://HOST:PORT",
            system.driver
        ));
    }
    let there =
        external::from_address(&address, drivers).map_err(|e| format!("{variable}: {e}"))?;
    if there.driver == system.driver {
        Ok(address)
    } else {
        Err(format!(
            "{variable}: the driver {} does not speak to {address}",
            system.driver
        ))
    }
}

/// The values that do not depend on what is found.
pub(crate) fn base_values(system: &SystemFile) -> BTreeMap<String, String> {
    let mut values = system.values.clone();
    values.insert("user".into(), user_name());
    values.insert("cache".into(), cache_folder().display().to_string());
    values
}

/// Where downloaded systems are kept: `PUBGAUGE_CACHE`, else `pubgauge` in the user's cache folder, also of a user
/// without `HOME`.
pub fn cache_folder() -> PathBuf {
    let folder = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    folder("PUBGAUGE_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("pubgauge")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/pubgauge")))
        // The user's home by the list of users. Never a folder in which others can put programs.
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache/pubgauge")))
        .unwrap_or_else(|| PathBuf::from("/root/.cache/pubgauge"))
}

fn find_executable(
    system: &SystemFile,
    values: &BTreeMap<String, String>,
) -> Result<PathBuf, String> {
    if let Some(variable) = &system.find.variable
        && let Some(path) = std::env::var_os(variable).filter(|value| !value.is_empty())
    {
        let path = PathBuf::from(path);
        return if is_executable(&path) {
            Ok(path)
        } else {
            Err(format!(
                "the environment variable {variable} names {}, which is no executable file",
                path.display()
            ))
        };
    }
    let candidates = fill_all(&system.find.executables, values);
    candidates
        .iter()
        .find_map(|name| on_path(name))
        .ok_or_else(|| {
            let variable = match &system.find.variable {
                Some(variable) => format!(", nor does the environment variable {variable} name it"),
                None => String::new(),
            };
            format!("there is no {} on PATH{variable}", candidates.join(", no "))
        })
}

/// The executable of that name: as it is if it has a `/`, else from `PATH` or the folders of
/// system programs, which an ordinary user's `PATH` lacks.
pub fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return glob(name)
            .into_iter()
            .rev()
            .find(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Paths that match a pattern with at most one `*` in each component, lowest version first.
fn glob(pattern: &str) -> Vec<PathBuf> {
    let root = if pattern.starts_with('/') { "/" } else { "" };
    let mut paths = vec![PathBuf::from(root)];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let Some((before, after)) = part.split_once('*') else {
            paths.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let entries = paths.iter().filter_map(|path| std::fs::read_dir(path).ok());
        let mut matching: Vec<PathBuf> = entries
            .flatten()
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.len() >= before.len() + after.len()
                    && name.starts_with(before)
                    && name.ends_with(after)
            })
            .map(|entry| entry.path())
            .collect();
        matching.sort_by_cached_key(|path| version_key(&path.to_string_lossy()));
        paths = matching;
    }
    paths.retain(|path| path.exists());
    paths
}

/// Orders `2.10` after `2.9`: runs of digits compare as numbers.
fn version_key(text: &str) -> Vec<(u64, String)> {
    let mut key = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let words = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (word, tail) = rest.split_at(words);
        let digits = tail
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(tail.len());
        key.push((0, word.to_owned()));
        key.push((tail[..digits].parse().unwrap_or(0), String::new()));
        rest = &tail[digits..];
    }
    key
}

fn user_name() -> String {
    // SAFETY: geteuid cannot fail.
    let uid = unsafe { libc::geteuid() };
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| std::env::var("USER").unwrap_or_else(|_| uid.to_string()))
}

/// The content of [`DESCRIPTION`] for this description.
pub(crate) fn description(maven: &Maven) -> std::io::Result<String> {
    serde_json::to_string_pretty(maven).map_err(std::io::Error::other)
}

/// Whether the folder of an installation was made from another description than the present one: by
/// an older pubgauge, or from an earlier state of the user's file. `false` for a folder without a
/// description, which the user made.
fn is_outdated(maven: &Maven) -> bool {
    let path = cache_folder().join(&maven.folder).join(DESCRIPTION);
    match (std::fs::read_to_string(path), description(maven)) {
        (Ok(there), Ok(wanted)) => there != wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_cut_out_of_what_a_program_says() {
        let cases = [
            (
                "mosquitto version 2.0.11\n\nusage",
                "mosquitto version {version}",
                Some("2.0.11"),
            ),
            (
                "nats-server: v2.9.10",
                "nats-server: v{version}",
                Some("2.9.10"),
            ),
            (
                "/c/apache-activemq-5.18.3",
                "apache-activemq-{version}",
                Some("5.18.3"),
            ),
            (
                "/c/hivemq-2024.3-embedded.jar",
                "hivemq-{version}-embedded.jar",
                Some("2024.3"),
            ),
            (
                "version unknown, then version 3.1.",
                "version {version}",
                Some("3.1"),
            ),
            ("nothing", "version {version}", None),
            ("", "", None),
        ];
        for (text, pattern, expected) in cases {
            assert_eq!(
                capture(text, pattern).as_deref(),
                expected,
                "{text} / {pattern}"
            );
        }
    }

    #[test]
    fn of_several_matches_the_highest_version_wins() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x-2.9.1", "x-2.10.0", "x-2.10.0.bak", "y-3"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("a.jar"), "").unwrap();
        }
        let pattern = format!("{}/x-*/*.jar", folder.path().display());
        let found = glob(&pattern);
        assert_eq!(found.len(), 3);
        let pattern = format!("{}/x-*0", folder.path().display());
        assert!(glob(&pattern).last().unwrap().ends_with("x-2.10.0"));
        assert!(glob("/nowhere/at/all").is_empty());
    }
}
