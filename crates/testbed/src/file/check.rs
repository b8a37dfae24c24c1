//! Rules for a system file beyond its types.

use pubgauge_driver::share::{MAX_CORES, MIN_CORES, MIN_MEMORY_MIB};
use pubgauge_driver::{Capability, Check};

use super::SystemFile;
use super::fault::{FileFault, check_number, refuse_if};
use super::parts::SystemKind;
use crate::spelling::spelling_hint;
use crate::template;

/// Whether this is `CHECK` or `CHECK:SETTINGS` of the conformance suite.
fn is_check(name: &str) -> bool {
    let plain = name.split_once(':').map_or(name, |(plain, _)| plain);
    Check::ALL.iter().any(|check| check.name() == plain)
}

impl SystemFile {
    pub(super) fn validate(&self) -> Result<(), FileFault> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b);
        refuse_if(
            self.name.is_empty() || !self.name.bytes().all(plain),
            format!("`{}` cannot be the name of a system", self.name),
            "small letters, digits, `-`, `.` and `_`",
            &self.name,
        )?;
        if let Some(default) = &self.default_variant
            && !self.variants.contains_key(default)
        {
            return Err(FileFault::new(
                format!("the default variant `{default}` is not described"),
                spelling_hint(default, self.variants.keys()),
                "default-variant",
            ));
        }
        refuse_if(
            self.default_variant.is_none() && !self.variants.is_empty(),
            "there are variants, but none is the default",
            "add default-variant = \"...\" at the top",
            "[variants",
        )?;
        self.validate_tunables()?;
        self.validate_one()?;
        for name in self.variants.keys() {
            let variant = self.variant(Some(name)).expect("a variant of its own");
            variant.validate_one()?;
        }
        Ok(())
    }

    /// Checks what must hold in each variant.
    fn validate_one(&self) -> Result<(), FileFault> {
        let starts = matches!(self.kind, SystemKind::Process | SystemKind::Builtin);
        // Without its variants a description may lack the command or values, which they give.
        let complete = self.variants.is_empty() || self.default_variant.is_none();
        refuse_if(
            starts && self.run.command.is_empty() && complete,
            "there is no command to start the system with",
            "add [run] with command = [\"{exe}\", ...]",
            "[run]",
        )?;
        refuse_if(
            self.kind == SystemKind::Process && self.find.executables.is_empty(),
            "nothing says where the executable is",
            "add [find] with executables = [\"NAME\", ...]",
            "[find]",
        )?;
        refuse_if(
            self.kind == SystemKind::Unavailable && self.install.note.is_none(),
            "nothing says why the system is unavailable",
            "add [install] with note = \"...\"",
            "unavailable",
        )?;
        if let Some(maven) = &self.install.maven {
            maven.validate()?;
        }
        for name in self.deviations.keys().chain(self.remarks.keys()) {
            if name.parse::<Capability>().is_err() && !is_check(name) {
                let capabilities = Capability::ALL.into_iter().map(|c| c.to_string());
                let checks = Check::ALL.iter().map(|check| check.name().to_owned());
                let known = capabilities.chain(checks);
                return Err(FileFault::new(
                    format!("`{name}` is the name of no capability, and of no check"),
                    spelling_hint(name, known),
                    name,
                ));
            }
        }
        refuse_if(
            self.kind == SystemKind::External && self.endpoints.is_empty(),
            "an external system needs its address",
            "add endpoints = [\"mqtt://HOST:PORT\"]",
            "external",
        )?;
        if let Some(counters) = &self.counters {
            counters.validate(self)?;
        }
        self.validate_numbers()?;
        for port in &self.ready.tcp {
            if !self.run.ports.contains(port) {
                return Err(FileFault::new(
                    format!("ready.tcp names the port `{port}`, which run.ports does not"),
                    spelling_hint(port, &self.run.ports),
                    "tcp",
                ));
            }
        }
        refuse_if(
            starts
                && self.ready.tcp.is_empty()
                && self.ready.stdout_line.is_none()
                && self.ready.log_line.is_none()
                && self.ready.probe.is_none(),
            "nothing says how to know that the system is ready",
            "add [ready] with tcp = [\"port\"], stdout-line, log-line or probe",
            "[ready]",
        )?;
        for file in &self.files {
            refuse_if(
                !file.is_inside(),
                format!("`{}` would not lie in the private folder", file.path),
                "a relative path without `..`",
                &file.path,
            )?;
        }
        self.validate_placeholders()
    }

    fn validate_numbers(&self) -> Result<(), FileFault> {
        let of_counters = self.counters.iter().map(|counters| counters.time_out_s);
        let of_hooks = self.hooks.iter().map(|hook| hook.time_out_s);
        let time_outs = [self.ready.time_out_s].into_iter();
        let time_outs = time_outs.chain(of_counters).chain(of_hooks);
        let seconds = time_outs.map(|time_out| ("time-out-s", time_out));
        for (key, seconds) in seconds.chain([("grace-s", self.stop.grace_s)]) {
            check_number(key, seconds, 0.0..=3600.0, "of seconds from 0 to 3600")?;
        }
        let limits = &self.limits;
        let each = limits.files_per_client;
        check_number("files-per-client", each, 1.0..=100.0, "from 1 to 100")?;
        let cores = limits.cores.unwrap_or(1.0);
        let bounds = format!("from {MIN_CORES} to {MAX_CORES}");
        check_number("cores", cores, MIN_CORES..=MAX_CORES, &bounds)?;
        let mib = limits.memory_mib.unwrap_or(MIN_MEMORY_MIB);
        let bounds = format!("from {MIN_MEMORY_MIB} on");
        check_number("memory-mib", mib, MIN_MEMORY_MIB..=1 << 30, &bounds)?;
        for (name, text) in &limits.env {
            let markers = ["{cores}", "{memory-mib}"];
            refuse_if(
                markers.iter().filter(|m| text.contains(**m)).count() != 1,
                format!(
                    "limits.env.{name} = {text:?} must hold one of {{cores}} and {{memory-mib}}"
                ),
                "",
                name,
            )?;
        }
        Ok(())
    }

    fn validate_placeholders(&self) -> Result<(), FileFault> {
        let mut known: Vec<&str> = template::ALWAYS.to_vec();
        if self.kind == SystemKind::External && self.find.variable.is_some() {
            known.push("address");
        }
        if self.kind == SystemKind::Library {
            known.push(template::DOMAIN);
        }
        let named = (self.run.ports.iter())
            .chain(&self.run.folders)
            .chain(self.find.paths.keys())
            .chain(self.values.keys())
            .map(String::as_str)
            .chain(self.option_names());
        for name in named {
            refuse_if(
                !template::is_name(name),
                format!("`{name}` cannot be the name of a placeholder"),
                "small letters, digits, `-` and `_`, a letter first",
                name,
            )?;
            refuse_if(
                known.contains(&name),
                format!("the placeholder {{{name}}} would stand for two things"),
                "ports, folders, paths and values need names of their own",
                name,
            )?;
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
                    let nearest = spelling_hint(name, &known);
                    return Err(FileFault::new(
                        format!("the placeholder {{{name}}} stands for nothing"),
                        format!("{nearest}; write {{{{{name}}}}} for the text itself"),
                        &format!("{{{name}}}"),
                    ));
                }
            }
        }
        Ok(())
    }
}
