//! How a system is installed: commands of package managers, or Java archives from Maven Central.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fault::{FileFault, refuse_if};
use super::parts::ConfigFile;

/// How a system is installed: per package manager, the exact commands (templates, in which
/// `{cache}` is of use), executed by `/bin/sh`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Install {
    /// Debian, Ubuntu.
    pub apt: Vec<String>,
    /// Fedora, RHEL.
    pub dnf: Vec<String>,
    /// Arch.
    pub pacman: Vec<String>,
    /// openSUSE.
    pub zypper: Vec<String>,
    /// Alpine.
    pub apk: Vec<String>,
    /// Java archives from Maven Central.
    pub maven: Option<Maven>,
    /// Rust.
    pub cargo: Vec<String>,
    pub go: Vec<String>,
    /// Node.
    pub npm: Vec<String>,
    /// Python.
    pub pip: Vec<String>,
    /// Package managers whose package starts a service of its own at once, which then competes
    /// for the machine.
    pub starts_service: Vec<String>,
    /// The command that stops that service again.
    pub stop_service: Option<String>,
    /// Anything else the user must know.
    pub note: Option<String>,
}

/// The artifacts that Maven fetches into a folder of the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Maven {
    /// The folder's name below `{cache}`; all files end up in it.
    pub folder: String,
    /// Archives, as `GROUP:ARTIFACT:VERSION:tar.gz:CLASSIFIER`, unpacked into the folder.
    #[serde(default)]
    pub archives: Vec<String>,
    /// Jars, as `GROUP:ARTIFACT:VERSION`, which are put into its `lib` with all they depend on.
    #[serde(default)]
    pub jars: Vec<String>,
    /// Files written into the folder as they are (no templates).
    #[serde(default)]
    pub files: Vec<ConfigFile>,
    /// Those of the files that are Java sources, compiled against `lib` into `classes`.
    #[serde(default)]
    pub compile: Vec<String>,
    /// Download size in MB, approximately; not known if absent.
    #[serde(default)]
    pub download_mb: Option<u32>,
    /// SHA-256 of every file that Maven fetches, in hexadecimal, by its name; not checked if there is none.
    #[serde(default)]
    pub sha256: BTreeMap<String, String>,
}

impl Install {
    /// The commands of each package manager that has any.
    pub fn by_manager(&self) -> Vec<(&'static str, &[String])> {
        [
            ("apt", &self.apt),
            ("dnf", &self.dnf),
            ("pacman", &self.pacman),
            ("zypper", &self.zypper),
            ("apk", &self.apk),
            ("cargo", &self.cargo),
            ("go", &self.go),
            ("npm", &self.npm),
            ("pip", &self.pip),
        ]
        .into_iter()
        .filter(|(_, commands)| !commands.is_empty())
        .map(|(manager, commands)| (manager, commands.as_slice()))
        .collect()
    }

    /// How to stop the service that its package starts, to be appended to a sentence; empty if that is not known.
    pub(crate) fn remedy(&self) -> String {
        let command = self.stop_service.as_ref();
        command.map_or(String::new(), |command| {
            format!("; stop it with: {command}")
        })
    }
}

impl Maven {
    /// Checks what must hold beyond the types.
    pub(super) fn validate(&self) -> Result<(), FileFault> {
        refuse_if(
            !is_one_name(&self.folder) || self.folder.starts_with('.'),
            format!("`{}` is no name of a folder in the cache", self.folder),
            "one name without `/`, for example apache-artemis-2.40.0",
            "folder",
        )?;
        refuse_if(
            self.archives.is_empty() && self.jars.is_empty(),
            "nothing says what Maven is to fetch",
            "add archives = [\"GROUP:ARTIFACT:VERSION:tar.gz:bin\"] or jars = [\"GROUP:ARTIFACT:VERSION\"]",
            "[install.maven]",
        )?;
        for archive in &self.archives {
            refuse_if(
                !is_archive(archive),
                format!("`{archive}` is no archive"),
                "GROUP:ARTIFACT:VERSION:tar.gz, or GROUP:ARTIFACT:VERSION:tar.gz:CLASSIFIER",
                archive,
            )?;
        }
        for jar in &self.jars {
            refuse_if(
                coordinates(jar).len() != 3,
                format!("`{jar}` is no jar"),
                "GROUP:ARTIFACT:VERSION",
                jar,
            )?;
        }
        for file in &self.files {
            refuse_if(
                !file.is_inside(),
                format!("`{}` would not lie in the folder", file.path),
                "a relative path without `..`",
                &file.path,
            )?;
        }
        for hash in self.sha256.values() {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            refuse_if(
                hash.len() != 64 || !hash.bytes().all(is_digit),
                format!("`{hash}` is no SHA-256"),
                "64 digits from 0 to 9 and a to f, as sha256sum prints them",
                hash,
            )?;
        }
        for source in &self.compile {
            refuse_if(
                self.files.iter().all(|file| file.path != *source),
                format!("compile names `{source}`, which is none of the files"),
                "add it with [[install.maven.files]]",
                "compile",
            )?;
        }
        Ok(())
    }
}

fn is_one_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._".contains(&byte)
}

/// The parts of Maven coordinates; none if one of them is not a plain name.
pub(crate) fn coordinates(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.iter().all(|part| is_one_name(part)) {
        parts
    } else {
        Vec::new()
    }
}

fn is_archive(text: &str) -> bool {
    matches!(
        coordinates(text).as_slice(),
        [_, _, _, "tar.gz"] | [_, _, _, "tar.gz", _]
    )
}
