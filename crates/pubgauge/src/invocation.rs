//! How a run was begun, stored in its folder, so that `--resume DIR` needs no other flags.

use std::path::{Path, PathBuf, absolute};

use pubgauge_results::shell::quoted;
use pubgauge_results::store::{self, INVOCATION_FILE as FILE};
use serde::{Deserialize, Serialize};

use crate::args::{ClientArgs, Login, Selection};
use crate::exit::Ending;
use crate::prepared::{Found, Prepared};
use crate::whole;

/// Name and version of its format.
const FORMAT: &str = "pubgauge-invocation/1";
/// The largest file that is read, in bytes; the study in it has 1 MiB at most.
const MAX_BYTES: u64 = 16 << 20;

/// Everything that a run was begun with. It contains no password, only the file that one was read
/// from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    /// [`FORMAT`].
    format: String,
    /// The study with all flags applied, as TOML.
    pub study: String,
    /// The folder that the study's relative paths start from.
    pub folder: PathBuf,
    /// `--on`.
    pub on: Vec<String>,
    /// `--repeats`.
    pub repeats: Option<u32>,
    /// `--scale`; it is applied to the study already.
    #[serde(default)]
    pub scale: Option<String>,
    /// `--systems`.
    pub systems: Vec<PathBuf>,
    /// The systems that there were when the run began.
    pub found: Found,
    /// How the client works.
    pub client: ClientArgs,
    /// How external systems are logged in to.
    pub login: Login,
    /// Number of other hosts that have the workers; absent if they are on the host of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
}

impl Invocation {
    /// How a run begins. Paths are made absolute: a run may be resumed from another folder.
    ///
    /// # Errors
    /// If the current folder cannot be read.
    pub fn new(
        prepared: &Prepared,
        selection: &Selection,
        client: &ClientArgs,
        login: &Login,
        hosts: Option<u32>,
    ) -> std::io::Result<Invocation> {
        let file = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        let folder = match prepared.folder.as_os_str().is_empty() {
            true => std::env::current_dir()?,
            false => absolute(&prepared.folder)?,
        };
        let systems = selection.systems.iter().map(absolute);
        Ok(Invocation {
            format: FORMAT.to_owned(),
            study: prepared.plan.resolved.clone(),
            folder,
            on: selection.on.clone(),
            repeats: selection.repeats,
            scale: selection.scale.clone(),
            systems: systems.collect::<Result<_, _>>()?,
            found: prepared.found.clone(),
            client: client.clone(),
            login: Login {
                password_file: file(&login.password_file)?,
                ca: file(&login.ca)?,
                cert: file(&login.cert)?,
                key: file(&login.key)?,
                insecure: login.insecure,
            },
            hosts,
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
        whole::read(&dir.join(FILE), MAX_BYTES, format, !has_begun, hint)
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
    pub fn client(&self, given: &ClientArgs) -> Result<ClientArgs, Ending> {
        if *given == ClientArgs::default() || *given == self.client {
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
                "this run began with its workers on {hosts} other hosts\n  hint: add --workers-from join --hosts {hosts}"
            ))),
            None => Err(Ending::bad_input(
                "this run began with its workers on its own host\n  hint: leave --workers-from out",
            )),
        }
    }

    /// The login arguments given; those that are absent are taken from the beginning of the run.
    pub fn login(&self, given: &Login) -> Login {
        let kept = &self.login;
        let own_certificate = given.cert.is_some();
        let or = |given: &Option<PathBuf>, kept: &Option<PathBuf>| given.clone().or(kept.clone());
        Login {
            password_file: or(&given.password_file, &kept.password_file),
            ca: or(&given.ca, &kept.ca),
            cert: or(&given.cert, &kept.cert),
            key: match own_certificate {
                true => given.key.clone(),
                false => kept.key.clone(),
            },
            insecure: given.insecure || kept.insecure && given.ca.is_none(),
        }
    }
}
