//! Rules for a system file beyond its types.

use std::path::{Component, Path};

use pubgauge_conformance::check_names;
use pubgauge_driver::Capability;
use pubgauge_driver::share::{MAX_CORES, MIN_CORES, MIN_MEMORY_MIB};

use super::SystemFile;
use super::fault::Fault;
use super::parts::Kind;
use crate::spelling::spelling_hint;
use crate::template;

/// Whether this is `CHECK` or `CHECK:SETTINGS` of the conformance suite.
fn is_check(name: &str) -> bool {
    let plain = name.split_once(':').map_or(name, |(plain, _)| plain);
    check_names().any(|check| check == plain)
}

impl SystemFile {
    pub(super) fn validate(&self) -> Result<(), Fault> {
        let name_ok = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b))
        };
        if !name_ok(&self.name) {
            return Err(Fault::new(
                format!("`{}` cannot be the name of a system", self.name),
                Some("small letters, digits, `-`, `.` and `_`".into()),
                Some(self.name.clone()),
            ));
        }
        if let Some(default) = &self.default_variant
            && !self.variants.contains_key(default)
        {
            let known: Vec<&str> = self.variants.keys().map(String::as_str).collect();
            return Err(Fault::new(
                format!("the default variant `{default}` is not described"),
                Some(spelling_hint(default, &known)),
                Some("default-variant".into()),
            ));
        }
        if self.default_variant.is_none() && !self.variants.is_empty() {
            return Err(Fault::new(
                "there are variants, but none is the default".into(),
                Some("add default-variant = \"...\" at the top".into()),
                Some("[variants".into()),
            ));
        }
        self.validate_one()?;
        for name in self.variants.keys() {
            let variant = self.variant(Some(name)).expect("a variant of its own");
            variant.validate_one()?;
        }
        Ok(())
    }

    /// Checks what must hold in each variant.
    fn validate_one(&self) -> Result<(), Fault> {
        let starts = matches!(self.kind, Kind::Process | Kind::Builtin);
        // Without its variants a description may lack the command or values, which they give.
        let complete = self.variants.is_empty() || self.default_variant.is_none();
        if starts && self.run.command.is_empty() && complete {
            return Err(Fault::new(
                "there is no command to start the system with".into(),
                Some("add [run] with command = [\"{exe}\", ...]".into()),
                Some("[run]".into()),
            ));
        }
        if self.kind == Kind::Process && self.find.executables.is_empty() {
            return Err(Fault::new(
                "nothing says where the executable is".into(),
                Some("add [find] with executables = [\"NAME\", ...]".into()),
                Some("[find]".into()),
            ));
        }
        if self.kind == Kind::Unavailable && self.install.note.is_none() {
            return Err(Fault::new(
                "nothing says why the system is unavailable".into(),
                Some("add [install] with note = \"...\"".into()),
                Some("unavailable".into()),
            ));
        }
        if let Some(maven) = &self.install.maven {
            maven.validate()?;
        }
        for name in self.deviations.keys().chain(self.remarks.keys()) {
            if name.parse::<Capability>().is_err() && !is_check(name) {
                let mut known: Vec<String> =
                    Capability::ALL.iter().map(ToString::to_string).collect();
                known.extend(check_names().map(str::to_owned));
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(Fault::new(
                    format!("`{name}` is the name of no capability, and of no check"),
                    Some(spelling_hint(name, &known)),
                    Some(name.clone()),
                ));
            }
        }
        if self.kind == Kind::External && self.endpoints.is_empty() {
            return Err(Fault::new(
                "an external system needs its address".into(),
                Some("add endpoints = [\"mqtt://HOST:PORT\"]".into()),
                Some("external".into()),
            ));
        }
        if let Some(counters) = &self.counters {
            counters.validate(self)?;
        }
        for (what, seconds) in [
            ("time-out-s", self.ready.time_out_s),
            ("grace-s", self.stop.grace_s),
        ]
        .into_iter()
        .chain((self.counters.iter()).map(|counters| ("time-out-s", counters.time_out_s)))
        .chain(
            self.hooks
                .iter()
                .map(|hook| ("time-out-s", hook.time_out_s)),
        ) {
            if !(0.0..=3600.0).contains(&seconds) {
                return Err(Fault::new(
                    format!("{what} = {seconds} is not a number of seconds from 0 to 3600"),
                    None,
                    Some(what.into()),
                ));
            }
        }
        let each = self.limits.files_per_client;
        if !(1.0..=100.0).contains(&each) {
            return Err(Fault::new(
                format!("files-per-client = {each} is not a number from 1 to 100"),
                None,
                Some("files-per-client".into()),
            ));
        }
        let cores = self.limits.cores.unwrap_or(1.0);
        if !(MIN_CORES..=MAX_CORES).contains(&cores) {
            return Err(Fault::new(
                format!("cores = {cores} is not a number from {MIN_CORES} to {MAX_CORES}"),
                None,
                Some("cores".into()),
            ));
        }
        for (name, text) in &self.limits.env {
            let markers = ["{cores}", "{memory-mib}"];
            if markers.iter().filter(|m| text.contains(**m)).count() != 1 {
                return Err(Fault::new(
                    format!(
                        "limits.env.{name} = {text:?} must hold one of {{cores}} and {{memory-mib}}"
                    ),
                    None,
                    Some(name.clone()),
                ));
            }
        }
        let mib = self.limits.memory_mib.unwrap_or(MIN_MEMORY_MIB);
        if !(MIN_MEMORY_MIB..=1 << 30).contains(&mib) {
            return Err(Fault::new(
                format!("memory-mib = {mib} is not a number from {MIN_MEMORY_MIB} on"),
                None,
                Some("memory-mib".into()),
            ));
        }
        for port in &self.ready.tcp {
            if !self.run.ports.contains(port) {
                let known: Vec<&str> = self.run.ports.iter().map(String::as_str).collect();
                return Err(Fault::new(
                    format!("ready.tcp names the port `{port}`, which run.ports does not"),
                    Some(spelling_hint(port, &known)),
                    Some("tcp".into()),
                ));
            }
        }
        if starts
            && self.ready.tcp.is_empty()
            && self.ready.stdout_line.is_none()
            && self.ready.log_line.is_none()
            && self.ready.probe.is_none()
        {
            return Err(Fault::new(
                "nothing says how to know that the system is ready".into(),
                Some("add [ready] with tcp = [\"port\"], stdout-line, log-line or probe".into()),
                Some("[ready]".into()),
            ));
        }
        for file in &self.files {
            let path = Path::new(&file.path);
            let inside = path
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            if file.path.is_empty() || !inside {
                return Err(Fault::new(
                    format!("`{}` would not lie in the private folder", file.path),
                    Some("a relative path without `..`".into()),
                    Some(file.path.clone()),
                ));
            }
        }
        self.validate_placeholders()
    }

    fn validate_placeholders(&self) -> Result<(), Fault> {
        let mut known: Vec<&str> = template::ALWAYS.to_vec();
        if self.kind == Kind::External && self.find.variable.is_some() {
            known.push("address");
        }
        if self.kind == Kind::Library {
            known.push(template::DOMAIN);
        }
        let named = (self.run.ports.iter())
            .chain(&self.run.folders)
            .chain(self.find.paths.keys())
            .chain(self.values.keys());
        for name in named {
            if !template::is_name(name) {
                return Err(Fault::new(
                    format!("`{name}` cannot be the name of a placeholder"),
                    Some("small letters, digits, `-` and `_`, a letter first".into()),
                    Some(name.clone()),
                ));
            }
            if known.contains(&name.as_str()) {
                return Err(Fault::new(
                    format!("the placeholder {{{name}}} would stand for two things"),
                    Some("ports, folders, paths and values need names of their own".into()),
                    Some(name.clone()),
                ));
            }
            known.push(name);
        }
        // A value that only some variants give is unknown to the description without variants.
        let from_variants = self.variants.values().flat_map(|v| v.values.keys());
        known.extend(from_variants.map(String::as_str));

        let files = self.files.iter().map(|file| &file.content);
        let templates = (self.endpoints.iter())
            .chain(&self.run.command)
            .chain(self.run.env.values())
            .chain(self.values.values())
            .chain(&self.run.directory)
            .chain(&self.version.command)
            .chain(&self.version.path)
            .chain(&self.ready.stdout_line)
            .chain(&self.ready.log_line)
            .chain(&self.ready.log_file)
            .chain(self.hooks.iter().flat_map(|hook| &hook.command))
            .chain(self.find.paths.values().flatten())
            .chain(self.find.executables.iter())
            .chain(self.login.iter().map(|login| &login.username))
            .chain(self.login.iter().flat_map(|login| &login.password))
            .chain(self.counters.iter().flat_map(|c| c.templates()))
            .chain(
                self.install
                    .by_manager()
                    .into_iter()
                    .flat_map(|(_, all)| all),
            )
            .chain(files);
        for text in templates {
            for name in template::names(text) {
                if !known.contains(&name) {
                    return Err(Fault::new(
                        format!("the placeholder {{{name}}} stands for nothing"),
                        Some(format!(
                            "{}; write {{{{{name}}}}} for the text itself",
                            spelling_hint(name, &known)
                        )),
                        Some(format!("{{{name}}}")),
                    ));
                }
            }
        }
        Ok(())
    }
}
