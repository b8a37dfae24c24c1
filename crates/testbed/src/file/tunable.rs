//! Tunables: settings and options of the system's own, each with its range.

use std::collections::BTreeMap;

use pubgauge_driver::Settings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SystemFile;
use super::fault::{FileFault, refuse_if};
use crate::spelling::spelling_hint;
use crate::template;

/// Settings that are promises of the application's, or say what is measured: they are varied only if somebody gives them up.
const PROMISES: [&str; 12] = [
    "pattern",
    "reliability",
    "durability",
    "session",
    "session-expiry-s",
    "last-value",
    "lifespan-ms",
    "on-full",
    "priority",
    "conflate",
    "transport",
    "user-properties",
];

/// A setting, or an option of the system's own, that can be tuned, and within which range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tunable {
    /// A neutral setting, or `native.DRIVER.NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// An option of the system's own: its name is a placeholder of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// Its effect, in a few words.
    pub about: String,
    /// The values that are tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// The smallest value of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// The largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
    /// How a range is divided.
    pub scale: TunableScale,
    /// The value where nothing is said; needed for options and ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The promise of the system that is given up: such a one is varied only if somebody says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives_up: Option<String>,
    /// The price that a better figure may have, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<String>,
}

/// How a range is divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunableScale {
    /// By equal differences.
    #[default]
    Linear,
    /// By equal ratios.
    Log,
}

impl Tunable {
    /// Its name: that of the setting, or of the option.
    pub fn name(&self) -> &str {
        let name = self.setting.as_ref().or(self.option.as_ref());
        name.map_or("", String::as_str)
    }

    /// Its name among the settings of a trial on `system`: `in-flight`, `options.mosquitto.max-inflight`.
    pub fn path(&self, system: &str) -> String {
        match &self.option {
            Some(option) => format!("options.{system}.{option}"),
            None => self.name().to_owned(),
        }
    }

    /// The range in words: `20, 100, 0`, `1 to 1000`.
    pub fn range(&self) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => format!("{from} to {to}"),
            _ => self
                .values
                .iter()
                .map(text_of)
                .collect::<Vec<_>>()
                .join(", "),
        }
    }

    fn refuse<T>(&self, what: String, hint: &str) -> Result<T, FileFault> {
        let near = format!("\"{}\"", self.name());
        let near = if self.name().is_empty() {
            "[[tunable]]"
        } else {
            &near
        };
        Err(FileFault::new(what, hint, near))
    }

    /// Checks what must hold of it alone.
    pub(super) fn validate(&self) -> Result<(), FileFault> {
        let name = self.name();
        match (&self.setting, &self.option) {
            (Some(_), None) => self.validate_setting()?,
            (None, Some(_)) if self.default.is_none() => {
                let hint = "add default = ..., as the file has it without tuning";
                return self.refuse(format!("the option `{name}` has no default"), hint);
            }
            (None, Some(_)) => {}
            _ => {
                let what = "a [[tunable]] names either a setting or an option".to_owned();
                return self.refuse(
                    what,
                    "setting = \"in-flight\", or option = \"NAME\" for {NAME}",
                );
            }
        }
        if self.about.is_empty() {
            return self.refuse(
                format!("`{name}` says nothing about itself"),
                "add about = \"...\"",
            );
        }
        let Some((from, to)) = self.validate_kind()? else {
            return Ok(());
        };
        if !(from < to && from.is_finite() && to.is_finite()) {
            let what = format!("`{name}`: from = {from} is not below to = {to}");
            return self.refuse(what, "");
        }
        if self.scale == TunableScale::Log && from <= 0.0 {
            let what = format!("`{name}`: a logarithmic range begins above 0, not at {from}");
            return self.refuse(what, "scale = \"linear\", or a list of values");
        }
        let default = self.default.as_ref().and_then(Value::as_f64);
        if !default.is_some_and(|default| (from..=to).contains(&default)) {
            let what = format!("`{name}`: its default does not lie from {from} to {to}");
            let hint = "add default = NUMBER within the range; where nothing stands for a value outside, list values";
            return self.refuse(what, hint);
        }
        Ok(())
    }

    fn validate_setting(&self) -> Result<(), FileFault> {
        let name = self.name();
        let native = name
            .strip_prefix("native.")
            .and_then(|rest| rest.split_once('.'));
        if native.is_none() && !Settings::NAMES.contains(&name) {
            let what = format!("`{name}` is no setting");
            return self.refuse(what, &spelling_hint(name, Settings::NAMES));
        }
        if PROMISES.contains(&name) && self.gives_up.is_none() {
            let what =
                format!("`{name}` is a promise, and nothing says what another value gives up");
            return self.refuse(what, "add gives-up = \"...\"");
        }
        Ok(())
    }

    /// Its range, if it has one; checks its values, if it has those.
    fn validate_kind(&self) -> Result<Option<(f64, f64)>, FileFault> {
        let name = self.name();
        match (self.from, self.to, &self.values[..]) {
            (Some(from), Some(to), []) => return Ok(Some((from, to))),
            (None, None, [_, ..]) => {}
            _ => {
                let what = format!("`{name}` has neither a list of values nor a range");
                return self.refuse(what, "values = [...], or from and to");
            }
        }
        let texts: Vec<String> = self.values.iter().map(text_of).collect();
        if let Some(twice) = (1..texts.len()).find(|at| texts[..*at].contains(&texts[*at])) {
            return self.refuse(format!("`{name}` has the value {} twice", texts[twice]), "");
        }
        let is_plain = |value: &Value| !(value.is_object() || value.is_array());
        let option = self.option.is_some();
        match self.values.iter().find(|value| option && !is_plain(value)) {
            Some(value) => self.refuse(
                format!("`{name}`: {value} is no text, number or yes and no"),
                "",
            ),
            None => Ok(None),
        }
    }

    /// Why the option cannot have a value, in words.
    fn refusal(&self, value: &Value) -> Option<String> {
        let kind = |value: &Value| match value {
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            _ => "a value",
        };
        let mut known = self.values.iter().chain(&self.default);
        let fits = known.any(|one| kind(one) == kind(value));
        let is_plain = !text_of(value).contains(|c: char| c.is_control());
        let expected: Vec<&str> = self.values.iter().chain(&self.default).map(kind).collect();
        (!fits || !is_plain || kind(value) == "a value").then(|| {
            format!(
                "expected {}",
                expected.first().copied().unwrap_or("a value")
            )
        })
    }
}

/// A value as configuration files have it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => {
            let text = toml::to_string(value).unwrap_or_default();
            format!("{{ {} }}", text.trim().replace('\n', ", "))
        }
        other => other.to_string(),
    }
}

impl SystemFile {
    /// Checks what can be tuned, over all variants.
    pub(super) fn validate_tunables(&self) -> Result<(), FileFault> {
        let mut names: Vec<&str> = Vec::new();
        for tunable in &self.tunable {
            tunable.validate()?;
            let name = tunable.name();
            if names.contains(&name) {
                return tunable.refuse(format!("`{name}` is there twice"), "");
            }
            names.push(name);
            let variants = self.variants.keys().map(|name| self.variant(Some(name)));
            let mut variants = variants.chain([Ok(self.clone())]).flatten();
            let Some(option) = &tunable.option else {
                continue;
            };
            refuse_if(
                !variants.any(|system| system.has_option(option)),
                format!("the option `{option}` changes nothing: {{{option}}} stands nowhere"),
                "write it into a file, a value, the environment or the command",
                &format!("\"{option}\""),
            )?;
        }
        Ok(())
    }

    /// The names of its options.
    pub(super) fn option_names(&self) -> impl Iterator<Item = &str> {
        self.tunable
            .iter()
            .filter_map(|tunable| tunable.option.as_deref())
    }

    /// The templates that options stand in, with what a line of each begins with.
    fn templates_of_options(&self) -> impl Iterator<Item = (String, &String)> {
        let files = self.files.iter().map(|file| &file.content);
        let plain = files.chain(self.values.values()).chain(&self.run.command);
        let env = self.run.env.iter();
        let env = env.map(|(name, value)| (format!("{name}="), value));
        plain.map(|text| (String::new(), text)).chain(env)
    }

    /// Whether an option has an effect: its placeholder stands somewhere.
    fn has_option(&self, option: &str) -> bool {
        let mut templates = self.templates_of_options();
        templates.any(|(_, text)| template::names(text).any(|name| name == option))
    }

    /// The tunables of this variant: options that have an effect, and settings.
    pub fn tunables(&self) -> impl Iterator<Item = &Tunable> {
        let has = |tunable: &&Tunable| match &tunable.option {
            Some(option) => self.has_option(option),
            None => true,
        };
        self.tunable.iter().filter(has)
    }

    /// The lines of its own configuration in which an option stands, at a value: `max_inflight_messages 20`.
    ///
    /// # Errors
    /// Why the option cannot have this value, or there is no such option.
    pub fn option_lines(&self, option: &str, value: &Value) -> Result<Vec<String>, String> {
        let mut tunables = self.tunables();
        let Some(tunable) = tunables.find(|t| t.option.as_deref() == Some(option)) else {
            let known = self.tunables().filter_map(|t| t.option.as_deref());
            return Err(format!(
                "it has no such option; {}",
                spelling_hint(option, known)
            ));
        };
        if let Some(why) = tunable.refusal(value) {
            return Err(why);
        }
        let values = BTreeMap::from([(option.to_owned(), text_of(value))]);
        let lines = self.templates_of_options().flat_map(|(before, text)| {
            let own = text
                .lines()
                .filter(|line| template::names(line).any(|name| name == option));
            let own =
                own.map(|line| format!("{before}{}", template::fill_known(line, &values).trim()));
            own.collect::<Vec<_>>()
        });
        Ok(lines.collect())
    }

    /// The description with its options in place: those of [`SystemFile::options`], else their defaults.
    pub(crate) fn with_options(&self) -> SystemFile {
        let options = self.tunable.iter().filter_map(|tunable| {
            let name = tunable.option.as_ref()?;
            let value = self.options.get(name).or(tunable.default.as_ref())?;
            Some((name.clone(), text_of(value)))
        });
        let options: BTreeMap<String, String> = options.collect();
        let mut system = self.clone();
        let files = system.files.iter_mut().map(|file| &mut file.content);
        let templates = files
            .chain(system.values.values_mut())
            .chain(&mut system.run.command)
            .chain(system.run.env.values_mut());
        for text in templates {
            *text = template::fill_known(text, &options);
        }
        system
    }
}
