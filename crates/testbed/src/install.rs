//! Installing a system: the steps, as data that can be shown, and their execution.
//!
//! The machine's package managers do what their commands say, and are never ended: one that is killed leaves
//! packages half installed and no longer installs anything. Java servers are fetched by Maven
//! into a working folder, which gets its final name once all is done: an installation that is
//! interrupted leaves nothing behind, and two at the same time do not collide.

mod dpkg;
mod pinned;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pubgauge_driver::Drivers;
use rustix::fs::{FlockOperation, flock};

use crate::command;
use crate::file::install::coordinates;
use crate::file::{Maven, SystemFile, SystemKind};
use crate::find::{
    DESCRIPTION, Installation, Missing, base_values, cache_folder, description, find, on_path,
    version,
};
use crate::log::last_lines;
use crate::owned::OwnedFolder;
use crate::package_manager::manager_tool;
use crate::start::Testbed;
use crate::template::fill_all;
pub use dpkg::{Unsound, sound};

/// Maven, with checksums that do not match as an error, not a warning.
const MVN: &str = "mvn --batch-mode --quiet --strict-checksums";
/// The plug-in that copies artifacts, at a fixed version: an installation always does the same.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1";
/// Package managers that change the machine and so need root.
const OF_THE_MACHINE: [&str; 5] = ["apt", "dnf", "pacman", "zypper", "apk"];
/// Placeholder in steps: the folder in which the installation is prepared.
const WORK: &str = "{work}";

/// The steps of an installation.
#[derive(Clone, Debug)]
pub struct InstallPlan {
    pub system: String,
    /// The package manager.
    pub manager: &'static str,
    /// The steps, in order, as a user would type them.
    pub steps: Vec<String>,
    /// Whether it needs root.
    pub needs_root: bool,
    /// The folder it makes; `None` where the package manager decides.
    pub folder: Option<PathBuf>,
    /// Download size in MB, approximately; `None` if not known.
    pub download_mb: Option<u32>,
    /// Notes to read before saying yes.
    pub notes: Vec<String>,
    /// The command to execute.
    argvs: Vec<Vec<String>>,
    /// How many of those, the first ones, only fetch.
    fetches: usize,
    maven: Option<Maven>,
    file: SystemFile,
}

/// Why there is nothing to do, or nothing that can be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// It is installed already.
    #[error("{system} is installed already{}", version.as_ref().map(|v| format!(": {v}")).unwrap_or_default())]
    Already {
        system: String,
        /// Its version, if it tells.
        version: Option<String>,
    },
    /// Nothing can be installed: it runs elsewhere, or is unavailable.
    #[error("{system} cannot be installed: {why}")]
    NotInstallable { system: String, why: String },
    /// A tool is missing.
    #[error("{system} cannot be installed: there is no {tool} on PATH\n  hint: {hint}")]
    NoTool {
        system: String,
        tool: String,
        /// The command that adds it.
        hint: String,
    },
}

/// Why an installation failed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The cache folder cannot be written.
    #[error("{system} cannot be installed in {}: {error}\n  hint: is there room, and may you write there? another folder: PUBGAUGE_CACHE", folder.display())]
    Folder {
        system: String,
        folder: PathBuf,
        error: std::io::Error,
    },
    /// A step cannot be executed.
    #[error("{system}: {step}: {error}")]
    Execute {
        system: String,
        step: String,
        error: std::io::Error,
    },
    /// A step failed.
    #[error("{system} was not installed: `{step}` {end}; {said}\n  hint: {hint}")]
    Step {
        system: String,
        step: String,
        end: String,
        /// Its last lines.
        said: String,
        hint: String,
    },
    /// All steps were done, and it is still not found.
    #[error(
        "{system} was installed, but is still not found: {reason}\n  hint: compare [find] and [install] in its file"
    )]
    StillMissing {
        system: String,
        /// The program that is missing.
        reason: String,
    },
    /// The fetched file is not the one that the system's file was written for.
    #[error(
        "{system} was not installed: {what}; nothing of it was unpacked or executed\n  hint: it was exchanged on the way or where it is kept; where you trust it, write its hash into [install.maven.sha256] of a system file of your own (--systems DIR)"
    )]
    NotAsPinned {
        system: String,
        /// The difference.
        what: String,
    },
    /// The user ended it.
    #[error("{system} was not installed: ended by the user; nothing is left of it")]
    Cancelled { system: String },
    /// The user ended pubgauge, but not the package manager.
    #[error(
        "{system}: pubgauge was ended by the user; `{step}` (process {process}) finishes in the background, because a package manager that is ended leaves packages half installed\n  hint: when it is done: pubgauge systems --install {system}"
    )]
    InBackground {
        system: String,
        /// The step that goes on; those after it do not begin.
        step: String,
        process: u32,
    },
}

/// The progress of an installation.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The step, from 0.
    pub step: usize,
    /// How many there are.
    pub of: usize,
    /// The step as a user would type it.
    pub shown: &'a str,
    /// How long this step has taken so far.
    pub elapsed: Duration,
}

impl InstallPlan {
    /// The steps that installing `system` would take here.
    ///
    /// # Errors
    /// If it is here already, cannot be installed at all, or a tool is missing for it.
    pub fn new(system: &SystemFile, testbed: &Testbed) -> Result<InstallPlan, NoPlan> {
        if let Ok(found) = testbed.find(system) {
            return Err(NoPlan::Already {
                system: system.name.clone(),
                version: version(system, &found),
            });
        }
        let install = &system.install;
        let no_tool = |tool: &str| NoPlan::NoTool {
            system: system.name.clone(),
            tool: tool.to_owned(),
            hint: tool_hint(tool),
        };
        let not = |why: String| NoPlan::NotInstallable {
            system: system.name.clone(),
            why,
        };
        if matches!(system.kind, SystemKind::External | SystemKind::Unavailable) {
            let why = install.note.clone();
            return Err(not(why.unwrap_or_else(|| "it runs elsewhere".into())));
        }
        let here = |manager: &str| on_path(manager_tool(manager)).is_some();
        let commands = install.by_manager();
        let at_hand = commands.iter().find(|(manager, _)| here(manager));
        match (at_hand, &install.maven) {
            (Some((manager, commands)), None) => Ok(by_commands(system, manager, commands)),
            (Some((manager, commands)), Some(_)) if OF_THE_MACHINE.contains(manager) => {
                Ok(by_commands(system, manager, commands))
            }
            (_, Some(maven)) => by_maven(system, maven).map_err(|tool| no_tool(&tool)),
            (None, None) => Err(match commands.first() {
                Some((manager, _)) => no_tool(manager_tool(manager)),
                None => not(install.note.clone().unwrap_or_else(|| {
                    "its file does not say how; see docs/add-a-broker.md".into()
                })),
            }),
        }
    }

    /// Executes the steps. Calls `watch` about ten times a second with the progress; when that returns `false`,
    /// Maven is ended, and a package manager finishes its step in the background. Steps that several plans share, such as
    /// bringing package lists up to date, are noted in `done` and executed once.
    ///
    /// # Errors
    /// [`InstallError`]; of a Maven installation only Maven's own cache is then left.
    pub fn execute(
        &self,
        done: &mut BTreeSet<String>,
        watch: &mut dyn FnMut(At<'_>) -> bool,
    ) -> Result<(), InstallError> {
        match &self.maven {
            None => self.steps(done, watch)?,
            Some(maven) => self.fetch(maven, watch)?,
        }
        self.find()
            .map(|_| ())
            .map_err(|missing| InstallError::StillMissing {
                system: self.system.clone(),
                reason: missing.reason,
            })
    }

    /// Looks for the parts of what was installed. It has no address that a driver must speak to.
    fn find(&self) -> Result<Installation, Missing> {
        let program = Path::new("/proc/self/exe");
        find(&self.file, program, &Drivers::default())
    }

    fn fetch(
        &self,
        maven: &Maven,
        watch: &mut dyn FnMut(At<'_>) -> bool,
    ) -> Result<(), InstallError> {
        let cache = cache_folder();
        let folder_error = |error| InstallError::Folder {
            system: self.system.clone(),
            folder: cache.clone(),
            error,
        };
        std::fs::create_dir_all(&cache).map_err(folder_error)?;
        let cache = cache.canonicalize().map_err(folder_error)?;
        let prefix = format!(".installing-{}-", maven.folder);
        let work = OwnedFolder::create(&cache, &prefix).map_err(folder_error)?;
        write_files(maven, work.path()).map_err(folder_error)?;
        self.steps_in(work.path(), 0..self.fetches, watch)?;
        if !maven.sha256.is_empty() {
            let [archives, lib] = ["archives", "lib"].map(|name| work.path().join(name));
            pinned::check(&maven.sha256, &[&archives, &lib]).map_err(|what| {
                InstallError::NotAsPinned {
                    system: self.system.clone(),
                    what,
                }
            })?;
        }
        self.steps_in(work.path(), self.fetches..self.argvs.len(), watch)?;
        let description = description(maven).map_err(folder_error)?;
        std::fs::write(work.path().join(DESCRIPTION), description).map_err(folder_error)?;
        // One at a time from here: another installation may have finished first.
        let lock = std::fs::File::create(cache.join(".lock")).map_err(folder_error)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|e| folder_error(e.into()))?;
        if self.find().is_ok() {
            return Ok(());
        }
        let target = cache.join(&maven.folder);
        if target.exists() {
            // A folder of that name, but without what the system's file looks for: made by the
            // user, or damaged.
            let old = OwnedFolder::create(&cache, ".replaced-").map_err(folder_error)?;
            std::fs::rename(&target, old.path().join("old")).map_err(folder_error)?;
        }
        work.into_place(&target).map_err(folder_error)
    }

    /// Executes the commands of a package manager, each to its end.
    fn steps(
        &self,
        done: &mut BTreeSet<String>,
        watch: &mut dyn FnMut(At<'_>) -> bool,
    ) -> Result<(), InstallError> {
        // Debian's package manager would otherwise ask questions that nobody sees.
        let env = [("DEBIAN_FRONTEND", "noninteractive")];
        for (step, argv) in self.argvs.iter().enumerate() {
            if !done.insert(self.steps[step].clone()) {
                continue;
            }
            let mut go_on = self.progress(step, watch);
            let ended = command::run_to_its_end(argv, &env, &mut go_on);
            match ended.map_err(|error| self.not_executed(step, error))? {
                Ok(output) => self.succeeded(step, output)?,
                Err(process) => {
                    return Err(InstallError::InBackground {
                        system: self.system.clone(),
                        step: self.steps[step].clone(),
                        process,
                    });
                }
            }
        }
        Ok(())
    }

    /// Executes some of the steps of a Maven installation in its working folder.
    fn steps_in(
        &self,
        work: &Path,
        steps: Range<usize>,
        watch: &mut dyn FnMut(At<'_>) -> bool,
    ) -> Result<(), InstallError> {
        let place = work.display().to_string();
        for step in steps {
            let argv = &self.argvs[step];
            let argv: Vec<String> = argv.iter().map(|a| a.replace(WORK, &place)).collect();
            let mut go_on = self.progress(step, watch);
            let output = command::run_watched(&argv, work, &mut go_on);
            match output.map_err(|error| self.not_executed(step, error))? {
                Some(output) => self.succeeded(step, output)?,
                None => {
                    return Err(InstallError::Cancelled {
                        system: self.system.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Tells `watch` how long a step has taken.
    fn progress<'a>(
        &'a self,
        step: usize,
        watch: &'a mut dyn FnMut(At<'_>) -> bool,
    ) -> impl FnMut() -> bool + 'a {
        let begin = Instant::now();
        move || {
            watch(At {
                step,
                of: self.steps.len(),
                shown: &self.steps[step],
                elapsed: begin.elapsed(),
            })
        }
    }

    fn not_executed(&self, step: usize, error: std::io::Error) -> InstallError {
        InstallError::Execute {
            system: self.system.clone(),
            step: self.steps[step].clone(),
            error,
        }
    }

    fn succeeded(&self, step: usize, output: command::Output) -> Result<(), InstallError> {
        if output.success {
            return Ok(());
        }
        Err(InstallError::Step {
            system: self.system.clone(),
            step: self.steps[step].clone(),
            end: output.end,
            said: last_lines(&[output.text], 10),
            hint: match self.manager {
                "maven" => {
                    "is Maven Central within reach? a mirror or proxy goes into ~/.m2/settings.xml"
                        .into()
                }
                manager => format!(
                    "try that command by hand; is the network within reach of {}?",
                    manager_tool(manager)
                ),
            },
        })
    }
}

fn by_commands(system: &SystemFile, manager: &'static str, commands: &[String]) -> InstallPlan {
    let values = base_values(system);
    let install = &system.install;
    let mut steps = fill_all(commands, &values);
    if manager == "apt" {
        // Package lists may be old, or there may be none, as in a fresh container.
        steps.insert(0, "apt-get update".into());
    }
    let by_shell = |step: &String| vec!["/bin/sh".into(), "-c".into(), step.clone()];
    let argvs = steps.iter().map(by_shell).collect();
    let mut plan = plan_of(system, manager, steps, argvs);
    if install.starts_service.iter().any(|m| m == manager) {
        let remedy = install.remedy();
        plan.notes.push(format!(
            "the package starts a service of its own, which disturbs measurements{remedy}"
        ));
    }
    plan
}

/// A plan that makes no folder of its own.
fn plan_of(
    system: &SystemFile,
    manager: &'static str,
    steps: Vec<String>,
    argvs: Vec<Vec<String>>,
) -> InstallPlan {
    InstallPlan {
        system: system.name.clone(),
        manager,
        steps,
        needs_root: OF_THE_MACHINE.contains(&manager),
        folder: None,
        download_mb: None,
        notes: system.install.note.clone().into_iter().collect(),
        argvs,
        fetches: 0,
        maven: None,
        file: system.clone(),
    }
}

/// The error is the tool that is missing.
fn by_maven(system: &SystemFile, maven: &Maven) -> Result<InstallPlan, String> {
    let compiler = (!maven.compile.is_empty()).then_some("javac");
    let unpacker = (!maven.archives.is_empty()).then_some("tar");
    for tool in ["java", "mvn"].into_iter().chain(compiler).chain(unpacker) {
        if on_path(tool).is_none() {
            return Err(tool.to_owned());
        }
    }
    let words = |line: String| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    let mut argvs = Vec::new();
    for archive in &maven.archives {
        argvs.push(words(format!(
            "{MVN} {PLUGIN}:copy -Dartifact={archive} -DoutputDirectory={WORK}/archives"
        )));
    }
    if !maven.jars.is_empty() {
        argvs.push(words(format!(
            "{MVN} --file={WORK}/pom.xml {PLUGIN}:copy-dependencies -DoutputDirectory={WORK}/lib"
        )));
    }
    let fetches = argvs.len();
    for archive in &maven.archives {
        let name = archive_name(archive);
        argvs.push(words(format!(
            "tar -xzf {WORK}/archives/{name} -C {WORK} --strip-components=1"
        )));
    }
    if !maven.archives.is_empty() {
        argvs.push(words(format!("rm -r {WORK}/archives")));
    }
    if !maven.compile.is_empty() {
        let mut javac = words(format!("javac -cp {WORK}/lib/* -d {WORK}/classes"));
        javac.extend(maven.compile.iter().map(|s| format!("{WORK}/{s}")));
        argvs.push(javac);
    }
    let folder = cache_folder().join(&maven.folder);
    let place = folder.display().to_string();
    let quoted = |argument: &String| {
        let argument = argument.replace(WORK, &place);
        if argument.contains([' ', '*']) {
            format!("'{argument}'")
        } else {
            argument
        }
    };
    let shown = |argv: &Vec<String>| argv.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let steps = argvs.iter().map(shown).collect();
    Ok(InstallPlan {
        folder: Some(folder),
        download_mb: maven.download_mb,
        fetches,
        maven: Some(maven.clone()),
        ..plan_of(system, "maven", steps, argvs)
    })
}

/// The file name under which Maven copies an archive.
fn archive_name(archive: &str) -> String {
    match coordinates(archive).as_slice() {
        [_, artifact, version, kind, classifier] => {
            format!("{artifact}-{version}-{classifier}.{kind}")
        }
        [_, artifact, version, kind] => format!("{artifact}-{version}.{kind}"),
        _ => unreachable!("checked when the file was read"),
    }
}

/// Writes what Maven and the compiler need.
fn write_files(maven: &Maven, folder: &Path) -> std::io::Result<()> {
    for file in &maven.files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, &file.content)?;
    }
    if !maven.jars.is_empty() {
        std::fs::write(folder.join("pom.xml"), pom(maven))?;
    }
    Ok(())
}

/// A Maven project that depends on the jars, so that Maven finds their dependencies.
fn pom(maven: &Maven) -> String {
    let mut dependencies = String::new();
    for jar in &maven.jars {
        if let [group, artifact, version] = coordinates(jar).as_slice() {
            dependencies.push_str(&format!(
                "  <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>\n"
            ));
        }
    }
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>pubgauge</groupId><artifactId>{}</artifactId><version>1</version>\n  <dependencies>\n{dependencies}  </dependencies>\n</project>\n",
        maven.folder
    )
}

/// The programs of package managers, and the commands by which they add a package.
const ADDING: [(&str, &str); 5] = [
    ("apt-get", "apt-get install -y"),
    ("dnf", "dnf install -y"),
    ("pacman", "pacman -S --noconfirm"),
    ("zypper", "zypper install -y"),
    ("apk", "apk add"),
];

/// The command that adds a tool, for the package manager of this machine.
fn tool_hint(tool: &str) -> String {
    // In the order of `ADDING`.
    let packages = match tool {
        "mvn" => ["maven"; 5],
        "java" | "javac" => [
            "default-jdk-headless",
            "java-17-openjdk-devel",
            "jdk17-openjdk",
            "java-17-openjdk-devel",
            "openjdk17",
        ],
        "go" => ["golang-go", "golang", "go", "go", "go"],
        "apt-get" | "dnf" | "pacman" | "zypper" | "apk" => {
            return "this system is only described for other package managers; install it by hand, or see docs/add-a-broker.md".into();
        }
        other => [other; 5],
    };
    let is_here = |(program, _): &(&str, &str)| on_path(program).is_some();
    let at_hand = ADDING.iter().position(is_here).unwrap_or(0);
    format!(
        "install it with: {} {}",
        ADDING[at_hand].1, packages[at_hand]
    )
}
