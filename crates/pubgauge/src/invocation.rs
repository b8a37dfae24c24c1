//! How a run was begun, stored in its folder, so that `--resume DIR` needs no other flags.

use std::path::{Path, PathBuf, absolute};

use pubgauge_campaign::{AvailableSystems, ClientOptions, Prepared};
use pubgauge_command::exit::Ending;
use pubgauge_command::options::Login;
use pubgauge_place::shell::quoted;
use pubgauge_results::store::{self, INVOCATION_FILE as FILE};
use serde::{Deserialize, Serialize};

use crate::args::Selection;
use crate::stored_json;

/// Name and version of its format.
const FORMAT: &str = "pubgauge-invocation/1";
/// The largest file that is read, in bytes; the study in it has 1 MiB at most.
const MAX_BYTES: u64 = 16 << 20;

/// Everything that a run was begun with. It contains no password, only the file that one was read
/// from. Whoever resumes it may have got it from a stranger: what would run or be read on this machine is compared
/// with the command line ([`Invocation::said_here`]), never taken from here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    format: String,
    /// The study with all flags applied, as TOML.
    pub study: String,
    /// The folder that the study's relative paths start from.
    pub folder: PathBuf,
    pub on: Vec<String>,
    pub repeats: Option<u32>,
    /// `--scale`; it is applied to the study already.
    #[serde(default)]
    pub scale: Option<String>,
    /// `--claim`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    pub systems: Vec<PathBuf>,
    /// The systems that there were when the run began.
    pub found: AvailableSystems,
    /// How the client works.
    pub client: ClientOptions,
    /// How external systems are logged in to.
    pub login: Login,
    /// Number of other hosts that have the workers; absent if they are on the host of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// `--until-decided`: seconds that repeats for undecided claims may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_decided_s: Option<f64>,
}

impl Invocation {
    /// How a run begins. Paths are made absolute: a run may be resumed from another folder.
    ///
    /// # Errors
    /// If the current folder cannot be read.
    pub fn new(
        prepared: &Prepared,
        selection: &Selection,
        client: &ClientOptions,
        login: &Login,
        hosts: Option<u32>,
    ) -> std::io::Result<Invocation> {
        let file = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        let folder = if prepared.folder.as_os_str().is_empty() {
            std::env::current_dir()?
        } else {
            absolute(&prepared.folder)?
        };
        let systems = selection.systems.iter().map(absolute);
        Ok(Invocation {
            format: FORMAT.to_owned(),
            study: prepared.plan.resolved.clone(),
            folder,
            on: selection.on.clone(),
            repeats: selection.repeats,
            scale: selection.scale.clone(),
            claims: selection.claim.clone(),
            systems: systems.collect::<Result<_, _>>()?,
            found: prepared.found.clone(),
            client: client.clone(),
            login: Login {
                password_file: file(&login.password_file)?,
                ca: file(&login.ca)?,
                cert: file(&login.cert)?,
                key: file(&login.key)?,
                key_passphrase_file: file(&login.key_passphrase_file)?,
                alpn: login.alpn.clone(),
                insecure: login.insecure,
            },
            hosts,
            until_decided_s: None,
        })
    }

    /// As JSON, for the folder of the run.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// How the run in `dir` was begun; `None` if its folder has no record of it.
    ///
    /// # Errors
    /// If there is no run, or the file is damaged.
    pub fn read(dir: &Path) -> Result<Option<Invocation>, Ending> {
        let has_begun = !store::ended_before_it_began(dir).unwrap_or(false);
        if has_begun {
            store::load(dir).map_err(Ending::bad_input)?;
        }
        let format: (&str, fn(&Invocation) -> &str) = (FORMAT, |begun| &begun.format);
        let hint = "repeat the command with which the run began, with --resume for --out";
        stored_json::read(&dir.join(FILE), MAX_BYTES, format, !has_begun, hint)
    }

    /// The error for a folder without a record of how its run was begun.
    pub fn missing(dir: &Path) -> Ending {
        Ending::bad_input(format!(
            "{} does not say how its run was begun: there is no whole {FILE} in it\n  hint: repeat the command with which it began, with --resume {} for --out",
            dir.display(),
            quoted(dir)
        ))
    }

    /// The client arguments of the run, which no flag may change: all figures of a run come from
    /// one client.
    ///
    /// # Errors
    /// If flags ask for others.
    pub fn client(&self, given: &ClientOptions) -> Result<ClientOptions, Ending> {
        if *given == ClientOptions::default() || *given == self.client {
            return Ok(self.client.clone());
        }
        Err(Ending::bad_input(
            "this run began with other workers\n  hint: leave --publisher-workers, --subscriber-workers, --processes, --realtime and --pin out; they are taken from its folder",
        ))
    }

    /// Checks that the workers are on as many other hosts as when it began.
    ///
    /// # Errors
    /// If they are not.
    pub fn on_hosts(&self, given: Option<u32>) -> Result<(), Ending> {
        match self.hosts {
            hosts if hosts == given => Ok(()),
            Some(hosts) => Err(Ending::bad_input(format!(
                "this run began with its workers on {hosts} other hosts\n  hint: --load-host for each of them, or --hosts FILE"
            ))),
            None => Err(Ending::bad_input(
                "this run began with its workers on its own host\n  hint: leave --load-host and --hosts out",
            )),
        }
    }

    /// Checks that this command line names the systems that the run began with, or none.
    ///
    /// # Errors
    /// If it names others.
    pub fn on_systems(&self, given: &[String]) -> Result<(), Ending> {
        if given.is_empty() || given == self.on {
            return Ok(());
        }
        let was: Vec<String> = (self.on.iter())
            .map(|on| format!("--on {}", quoted(Path::new(on))))
            .collect();
        Err(Ending::bad_input(if was.is_empty() {
            "this run began without --on\n  hint: leave --on out".to_owned()
        } else {
            let was = was.join(" ");
            format!("this run began with {was}\n  hint: leave --on out, or repeat {was}")
        }))
    }

    /// Checks that this command line says itself what is to run or to be read on this machine: the folder may be a
    /// stranger's. Returns in words where it says something else than the one that began the run.
    ///
    /// # Errors
    /// With the flags that are missing.
    pub fn said_here(
        &self,
        systems: &[PathBuf],
        login: &Login,
        has_password: bool,
    ) -> Result<Vec<String>, Ending> {
        let here = |path: &Path| absolute(path).unwrap_or_else(|_| path.to_owned());
        let given = |path: &Option<PathBuf>| path.as_deref().map(here).into_iter().collect();
        let kept = |path: &Option<PathBuf>| path.clone().into_iter().collect();
        let (was, is) = (&self.login, login);
        let paths: [(&str, Vec<PathBuf>, Vec<PathBuf>, bool); 5] = [
            (
                "--systems",
                self.systems.clone(),
                systems.iter().map(|path| here(path)).collect(),
                false,
            ),
            (
                "--password-file",
                kept(&was.password_file),
                given(&is.password_file),
                has_password,
            ),
            ("--ca", kept(&was.ca), given(&is.ca), is.insecure),
            ("--cert", kept(&was.cert), given(&is.cert), false),
            ("--key", kept(&was.key), given(&is.key), false),
        ];
        let (mut missing, mut other) = (Vec::new(), Vec::new());
        for (flag, was, is, otherwise) in &paths {
            let flags = was.iter().map(|path| format!("{flag} {}", quoted(path)));
            match is.is_empty() {
                true if !otherwise => missing.extend(flags),
                false if was != is => {
                    let was: Vec<String> = flags.collect();
                    other.push(if was.is_empty() {
                        format!("this run began without {flag}")
                    } else {
                        format!("this run began with {}", was.join(" "))
                    });
                }
                _ => {}
            }
        }
        if was.insecure && !is.insecure && is.ca.is_none() {
            missing.push("--insecure".to_owned());
        }
        if missing.is_empty() {
            Ok(other)
        } else {
            Err(Ending::bad_input(format!(
                "this run began with more than its folder may decide: what runs or is read on this machine is said on this command line alone\n  hint: add {}, or what is to be taken instead",
                missing.join(" ")
            )))
        }
    }
}

/// The error where a resumed run needs its whole command.
pub fn repeat(why: &str) -> Ending {
    Ending::bad_input(format!(
        "{why}\n  hint: repeat the command with which the run began, with --resume for --out"
    ))
}
