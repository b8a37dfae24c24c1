//! The format of `systems/NAME.toml`: one real system each, how it is found, installed,
//! configured, started, known ready, and stopped. Documented for users in
//! `docs/add-a-broker.md`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use pubgauge_driver::Capability;
use serde::{Deserialize, Serialize};

use crate::log::open_file;
use crate::spelling::spelling_hint;
use crate::template::{self, fill};
pub use counters::{Counter, Counters};
pub use fault::FileError;
pub use install::{Install, Maven};
pub use parts::{
    ConfigFile, Deviation, Find, Hook, Limits, Login, Origin, Probe, Ready, RunCommand, Signal,
    Stop, SystemKind, VersionQuery, When,
};
pub use tunable::{Tunable, TunableScale};

mod check;
mod check_counters;
mod counters;
mod fault;
pub(crate) mod install;
mod parts;
mod tunable;

/// Largest system file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A system as its file describes it.
///
/// In every string that is marked *template*, `{name}` stands for a value that is known only
/// when the system is started; see [`crate::template`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SystemFile {
    /// Its name in studies, on the command line and in results.
    pub name: String,
    /// The driver that speaks to it, for example `mqtt`.
    pub driver: String,
    /// One sentence for people.
    #[serde(default)]
    pub description: String,
    /// How it is started.
    #[serde(default)]
    pub kind: SystemKind,
    /// Its capabilities in the driver's words, for example `mqtt-3.1.1`, `mqtt-5`, `tls`.
    #[serde(default)]
    pub features: Vec<String>,
    /// Part of the first look, the study that runs where none is named: it starts in under a second
    /// and needs little of the machine.
    #[serde(default)]
    pub first_look: bool,
    /// Where it was measured not to keep what its protocol promises, and what it does instead: by
    /// the name of the capability (`reliability:exactly-once`, `last-value`) or of the check of
    /// the conformance suite (`sizes-16-b-to-2-mb`).
    #[serde(default)]
    pub deviations: BTreeMap<String, Deviation>,
    /// Measurements that a user should know of a capability, although the system has it
    /// on the whole.
    #[serde(default)]
    pub remarks: BTreeMap<String, String>,
    /// The variant that is taken if none is asked for; needed as soon as there are variants.
    #[serde(default)]
    pub default_variant: Option<String>,
    /// Where its parts are.
    #[serde(default)]
    pub find: Find,
    /// How its version is asked for.
    #[serde(default)]
    pub version: VersionQuery,
    #[serde(default)]
    pub install: Install,
    /// Addresses handed to the driver (templates), for example `mqtt://127.0.0.1:{port}`.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// User name and password of the private instance, if it wants them.
    #[serde(default)]
    pub login: Option<Login>,
    /// The command to execute, and its surroundings.
    #[serde(default)]
    pub run: RunCommand,
    /// Files written into the private folder before the start.
    #[serde(default)]
    pub files: Vec<ConfigFile>,
    /// How to know that it serves.
    #[serde(default)]
    pub ready: Ready,
    /// Where it publishes its own counts of messages; absent if it has none.
    #[serde(default)]
    pub counters: Option<Counters>,
    /// How it is stopped.
    #[serde(default)]
    pub stop: Stop,
    /// Commands to execute at certain moments of its life.
    #[serde(default)]
    pub hooks: Vec<Hook>,
    /// Its limits on the use of the machine.
    #[serde(default)]
    pub limits: Limits,
    /// Values of further placeholders.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Settings, and options of its own, that can be tuned.
    #[serde(default)]
    pub tunable: Vec<Tunable>,
    /// Named ways to run it, for example `memory` and `persistent`.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
    /// Where the description came from.
    #[serde(skip)]
    pub origin: Origin,
    /// The application's settings as JSON: the placeholder `{settings}`. `{}` if `None`.
    #[serde(skip)]
    pub settings: Option<String>,
    /// Values of its options, by name; the others have their defaults.
    #[serde(skip)]
    pub options: BTreeMap<String, serde_json::Value>,
}

/// A named way to run a system: what it changes of the description around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Variant {
    /// One sentence for people.
    pub description: String,
    /// Another driver, where a server speaks several protocols.
    pub driver: Option<String>,
    /// Features instead of the common ones.
    pub features: Option<Vec<String>>,
    /// Features beyond the others.
    pub add_features: Vec<String>,
    /// Deviations beyond or instead of the common ones.
    pub deviations: BTreeMap<String, Deviation>,
    /// Remarks beyond or instead of the common ones.
    pub remarks: BTreeMap<String, String>,
    /// Addresses instead of the common ones.
    pub endpoints: Option<Vec<String>>,
    /// Login instead of the common one.
    pub login: Option<Login>,
    /// Another command.
    pub command: Option<Vec<String>>,
    /// Environment beyond the common one.
    pub env: BTreeMap<String, String>,
    /// Values of placeholders, beyond or instead of the common ones.
    pub values: BTreeMap<String, String>,
    /// Files beyond or (same path) instead of the common ones.
    pub files: Vec<ConfigFile>,
    /// Readiness instead of the common one.
    pub ready: Option<Ready>,
    /// Counters instead of the common ones.
    pub counters: Option<Counters>,
}

impl SystemFile {
    /// Parses the text of a system file. `file` is only named in errors.
    ///
    /// # Errors
    /// With file, line, column, what was expected and the nearest right spelling.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let parsed: SystemFile =
            toml::from_str(text).map_err(|error| FileError::of_toml(&error, text, file))?;
        parsed
            .validate()
            .map_err(|fault| FileError::of_fault(fault, text, file))?;
        Ok(parsed)
    }

    /// Reads and parses a system file of the user's.
    ///
    /// # Errors
    /// As [`SystemFile::parse`], and if the file cannot be read, is over 1 MiB or no text.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        // At the end of `before`, the text that can be read.
        let fault = |what: String, before: &str| {
            let hint = "a system file is a small text file in TOML; see docs/add-a-broker.md";
            FileError::at_offset(&name, before, before.len(), what, Some(hint.into()))
        };
        let unreadable = |e: std::io::Error| fault(format!("cannot be read: {e}"), "");
        let file = open_file(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let what = "is longer than 1 MiB, which is the limit";
            return Err(fault(what.into(), ""));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let what = format!("is not UTF-8 text: byte {at} does not belong there");
            fault(what, &String::from_utf8_lossy(&error.as_bytes()[..at]))
        })?;
        let mut system = Self::parse(&text, &name)?;
        system.origin = Origin::File(path.to_owned());
        Ok(system)
    }

    /// Whether it has a certificate of the run, because it names the placeholder of that: clients then check it by
    /// that certificate's authority, and by nothing else.
    pub fn has_certificate(&self) -> bool {
        let files = self.files.iter().map(|file| &file.content);
        let templates = files.chain(self.values.values()).chain(&self.run.command);
        let mut templates = templates.chain(self.run.env.values());
        templates.any(|text| template::names(text).any(|name| name == template::CERT_FILE))
    }

    /// Its behaviour where it was measured not to keep the promise of a capability; `None`
    /// where it keeps it.
    pub fn deviation(&self, capability: Capability) -> Option<&Deviation> {
        self.deviations.get(&capability.to_string())
    }

    /// The files of the server's configuration, their values filled in. Placeholders of what differs from start to start
    /// (ports, addresses, folders) stay.
    pub fn configuration(&self) -> Vec<ConfigFile> {
        let filled = |file: &ConfigFile| ConfigFile {
            path: file.path.clone(),
            content: fill(&file.content, &self.values),
        };
        self.files.iter().map(filled).collect()
    }

    /// The description with a variant's changes applied: `None` takes the default variant.
    ///
    /// # Errors
    /// The names of the variants, if there is no such one.
    pub fn variant(&self, name: Option<&str>) -> Result<SystemFile, UnknownVariant> {
        let Some(name) = name.or(self.default_variant.as_deref()) else {
            return Ok(self.clone());
        };
        let unknown = || UnknownVariant {
            system: self.name.clone(),
            variant: name.to_owned(),
            known: self.variants.keys().cloned().collect(),
        };
        let variant = self.variants.get(name).cloned().ok_or_else(unknown)?;
        let mut system = self.clone();
        system.default_variant = Some(name.to_owned());
        system.driver = variant.driver.unwrap_or(system.driver);
        system.features = variant.features.unwrap_or(system.features);
        system.features.extend(variant.add_features);
        system.deviations.extend(variant.deviations);
        system.remarks.extend(variant.remarks);
        system.endpoints = variant.endpoints.unwrap_or(system.endpoints);
        system.login = variant.login.or(system.login);
        system.run.command = variant.command.unwrap_or(system.run.command);
        system.run.env.extend(variant.env);
        system.values.extend(variant.values);
        system.ready = variant.ready.unwrap_or(system.ready);
        system.counters = variant.counters.or(system.counters);
        for file in variant.files {
            system.files.retain(|common| common.path != file.path);
            system.files.push(file);
        }
        Ok(system)
    }
}

/// A variant that a system does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{system} has no variant `{variant}`\n  hint: {}",
    spelling_hint(variant, known)
)]
pub struct UnknownVariant {
    pub system: String,
    /// The name asked for.
    pub variant: String,
    /// The names there are.
    pub known: Vec<String>,
}
