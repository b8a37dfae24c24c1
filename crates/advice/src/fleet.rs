//! A fleet as its operator describes it: the file, checked.

use std::path::Path;

use pubgauge_quantities::{Size, Span};
use pubgauge_strict_toml::{InvalidInput, Noun, Problem, StrictFile, read_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FLEET: Noun = Noun {
    name: "fleet",
    article: "a",
    missing: "a fleet file of ten lines is in docs/advise.md",
    too_big: None,
    empty: "a fleet has [[devices]] and [[applications]]: docs/advise.md",
};

/// Most devices of one kind, and most applications.
const MOST: u32 = 1_000_000;
/// Bytes of a message, as studies have them.
const PAYLOADS: std::ops::RangeInclusive<u64> = 16..=268_435_455;
/// Headroom that is asked for where the fleet does not say.
const HEADROOM: f64 = 3.0;

/// A fleet of devices, the applications that hear them, and what must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FleetFile {
    /// Name of the fleet, and of the folder of what is measured; "fleet" if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Kinds of devices, at least one.
    pub devices: Vec<DevicesFile>,
    /// Kinds of applications; one that hears everything if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationsFile>,
    /// Demands besides.
    #[serde(default)]
    pub must: MustFile,
}

/// Devices of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DevicesFile {
    /// Name of the kind: small letters, digits and -; "devices" if absent.
    #[serde(default = "devices")]
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// Time from one message of a device to its next, such as "30s".
    pub every: Span,
    /// Size of a message, 16B and more.
    pub payload: Size,
    /// Whether messages may be lost; "at-least-once" if absent.
    #[serde(default)]
    pub delivery: Delivery,
    /// 99 of 100 messages are with the applications within this time; 100ms if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_within: Option<Span>,
    /// Whether an application that comes later gets the last message of each device; false if absent.
    #[serde(default)]
    pub keep_last: bool,
    /// All devices are away together, and come back; they stay if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline: Option<OfflineFile>,
    /// Commands to single devices; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<CommandsFile>,
}

/// An absence of all devices of a kind, or all applications of one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OfflineFile {
    /// How long they are away.
    #[serde(rename = "for")]
    pub away: Span,
    /// The time in which all are back, each at random; 5s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_within: Option<Span>,
}

/// Commands to single devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CommandsFile {
    /// Time from one command to the next, over all devices, such as "300ms".
    pub every: Span,
    /// Size of a command; 64B if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Size>,
    /// Whether each is answered by its device; true if absent.
    #[serde(default = "yes")]
    pub answered: bool,
}

/// Applications of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApplicationsFile {
    /// Name of the kind: small letters, digits and -; "applications" if absent.
    #[serde(default = "applications")]
    pub name: String,
    /// How many there are; 1 if absent.
    #[serde(default = "single")]
    pub count: u32,
    /// The messages that each hears; "below" if absent.
    #[serde(default)]
    pub hears: Hears,
    /// The kinds of devices that they hear, by name; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Whether they share the messages: each goes to one of them; false (each hears all) if absent.
    #[serde(default)]
    pub share: bool,
}

/// Demands besides what devices and applications do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MustFile {
    /// Ends of the server that acknowledged messages survive: "restart" in order, "kill" of it right after an acknowledgement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survive: Vec<Survives>,
    /// Whether connections are encrypted; false if absent.
    #[serde(default)]
    pub encryption: bool,
    /// Whether a message can be addressed to one receiver (a queue in place of a topic); false if absent.
    #[serde(default)]
    pub direct: bool,
    /// Whether applications choose messages by what is in them; false if absent.
    #[serde(default)]
    pub content_filter: bool,
    /// How many times the fleet must be carried, 1 to 100; 3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<f64>,
    /// The machine that the server will have; this one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFile>,
    /// Whether it is asked how many such machines are needed, each with a broker of its own; if absent, where one is not
    /// enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxes: Option<bool>,
}

/// Size of a machine: a share of this one is held for the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineFile {
    /// Processors, of the speed of those here; 0.1 and more.
    pub cores: f64,
    /// Memory in whole MiB; all there is if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
}

/// Whether messages may be lost.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// A message may be lost where a connection breaks.
    MayBeLost,
    /// Each message arrives, once or more often.
    #[default]
    AtLeastOnce,
    /// Each message arrives once.
    Once,
}

/// Which messages an application asks for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Hears {
    /// Single topics: the devices are dealt out over the applications of the kind.
    Exact,
    /// All below a level.
    #[default]
    Below,
    /// Any device at one level of the topic, one kind of message below it.
    ByLevel,
}

/// An end of the server that acknowledged messages survive.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Survives {
    /// A restart of the server in order.
    Restart,
    /// SIGKILL right after an acknowledgement.
    Kill,
}

fn devices() -> String {
    "devices".into()
}

fn applications() -> String {
    "applications".into()
}

fn single() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// A fleet that was checked: names are names of topics and differ, and numbers are in their ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// As it was written, with at least one kind of applications.
    pub file: FleetFile,
}

impl Fleet {
    /// Reads a fleet file; with its text.
    ///
    /// # Errors
    /// When it cannot be read, is no fleet, or is one that cannot be: all faults, with their places.
    pub fn open(path: &Path) -> Result<(Fleet, String), InvalidInput> {
        let text = read_text(path, &FLEET)?;
        let fleet = Fleet::parse(&path.display().to_string(), &text)?;
        Ok((fleet, text))
    }

    /// Reads a fleet from a text; `name` is for messages.
    ///
    /// # Errors
    /// As [`Fleet::open`].
    pub fn parse(name: &str, text: &str) -> Result<Fleet, InvalidInput> {
        Fleet::from_file(&StrictFile::parse(name, text, &FLEET)?)
    }

    fn from_file(written: &StrictFile) -> Result<Fleet, InvalidInput> {
        let mut file: FleetFile = written.decode()?;
        let problems = check(written, &file);
        if !problems.is_empty() {
            return Err(InvalidInput { problems });
        }
        if file.applications.is_empty() {
            file.applications.push(ApplicationsFile {
                name: applications(),
                count: 1,
                hears: Hears::Below,
                devices: Vec::new(),
                share: false,
            });
        }
        Ok(Fleet { file })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.file.name.as_deref().unwrap_or("fleet")
    }

    /// How many times the fleet must be carried.
    pub fn headroom(&self) -> f64 {
        self.file.must.headroom.unwrap_or(HEADROOM)
    }

    /// The strongest delivery that any kind of device asks for.
    pub fn delivery(&self) -> Delivery {
        let each = self.file.devices.iter().map(|kind| kind.delivery);
        each.max().unwrap_or_default()
    }

    /// Messages a second of all devices of a kind.
    pub fn rate(kind: &DevicesFile) -> f64 {
        f64::from(kind.count) / (kind.every.0 as f64 / 1e9)
    }

    /// The kind of devices that sends the most messages.
    pub fn busiest(&self) -> &DevicesFile {
        let kinds = self.file.devices.iter();
        let busiest = kinds.max_by(|a, b| Fleet::rate(a).total_cmp(&Fleet::rate(b)));
        busiest.expect("a fleet has devices")
    }

    /// Whether a kind of application hears a kind of device.
    pub fn hears(application: &ApplicationsFile, devices: &DevicesFile) -> bool {
        application.devices.is_empty() || application.devices.contains(&devices.name)
    }
}

/// All that is wrong with a fleet whose keys and values are of the right types.
fn check(written: &StrictFile, file: &FleetFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut wrong = |steps: &[&str], message: String, hint: &str| {
        problems.push(written.problem(steps, message, Some(hint.to_owned())));
    };
    if let Some(name) = file.name.as_deref().filter(|name| !is_name(name)) {
        wrong(&["name"], not_a_name(name), NAMES);
    }
    if file.devices.is_empty() {
        wrong(
            &["devices"],
            "a fleet has at least one kind of devices".into(),
            "for example [[devices]] with count = 100, every = \"10s\", payload = \"64B\"",
        );
    }
    for (n, kind) in file.devices.iter().enumerate() {
        let nth = n.to_string();
        let at = |key| ["devices", &nth, key];
        if !is_name(&kind.name) {
            wrong(&at("name"), not_a_name(&kind.name), NAMES);
        }
        if file.devices[..n]
            .iter()
            .any(|other| other.name == kind.name)
        {
            let message = format!("two kinds of devices are called `{}`", kind.name);
            wrong(&at("name"), message, "give each a name of its own");
        }
        if !(1..=MOST).contains(&kind.count) {
            wrong(&at("count"), format!("{} devices", kind.count), COUNTS);
        }
        if kind.every.0 == 0 {
            let message = "there is time between two messages".to_owned();
            wrong(&at("every"), message, "for example \"1s\"");
        }
        if !PAYLOADS.contains(&kind.payload.0) {
            let message = format!("no message has {} bytes", kind.payload.0);
            wrong(&at("payload"), message, SIZES);
        }
        if kind.fresh_within.is_some_and(|span| span.0 == 0) {
            let message = "no message takes no time".to_owned();
            wrong(&at("fresh-within"), message, "for example \"100ms\"");
        }
        if kind.offline.is_some_and(|offline| offline.away.0 == 0) {
            let message = "an absence takes time".to_owned();
            wrong(
                &["devices", &nth, "offline", "for"],
                message,
                "for example \"8h\"",
            );
        }
        if let Some(commands) = kind.commands {
            let at = |key| ["devices", &nth, "commands", key];
            if commands.every.0 == 0 {
                let message = "there is time between two commands".to_owned();
                wrong(&at("every"), message, "200 a minute are every = \"300ms\"");
            }
            let size = commands.payload.filter(|size| !PAYLOADS.contains(&size.0));
            if let Some(size) = size {
                let message = format!("no command has {} bytes", size.0);
                wrong(&at("payload"), message, SIZES);
            }
        }
    }
    check_applications(written, file, &mut problems);
    check_must(written, &file.must, &mut problems);
    problems
}

fn check_applications(written: &StrictFile, file: &FleetFile, problems: &mut Vec<Problem>) {
    let mut wrong = |steps: &[&str], message: String, hint: &str| {
        problems.push(written.problem(steps, message, Some(hint.to_owned())));
    };
    for (n, kind) in file.applications.iter().enumerate() {
        let nth = n.to_string();
        let at = |key| ["applications", &nth, key];
        if !is_name(&kind.name) {
            wrong(&at("name"), not_a_name(&kind.name), NAMES);
        }
        let others = file.applications[..n].iter().map(|other| &other.name);
        let mut named = others.chain(file.devices.iter().map(|kind| &kind.name));
        if named.any(|other| *other == kind.name) {
            let message = format!("something else is called `{}`", kind.name);
            wrong(&at("name"), message, "give each kind a name of its own");
        }
        if !(1..=MOST).contains(&kind.count) {
            wrong(&at("count"), format!("{} applications", kind.count), COUNTS);
        }
        let known: Vec<&str> = file.devices.iter().map(|kind| kind.name.as_str()).collect();
        for name in kind
            .devices
            .iter()
            .filter(|name| !known.contains(&name.as_str()))
        {
            let hint = format!("the fleet has {}", known.join(", "));
            wrong(
                &at("devices"),
                format!("there are no devices `{name}`"),
                &hint,
            );
        }
        if kind.share && kind.hears == Hears::Exact {
            let message = "applications that share hear the same topics".to_owned();
            wrong(&at("hears"), message, "write \"below\" or \"by-level\"");
        }
    }
    for (n, kind) in file.devices.iter().enumerate() {
        let mut hearing = file
            .applications
            .iter()
            .filter(|app| Fleet::hears(app, kind));
        if !file.applications.is_empty() && hearing.next().is_none() {
            let message = format!("no application hears `{}`", kind.name);
            let hint = "leave `devices` of an application out, and it hears all";
            wrong(&["devices", &n.to_string(), "name"], message, hint);
        }
    }
}

fn check_must(written: &StrictFile, must: &MustFile, problems: &mut Vec<Problem>) {
    let mut wrong = |key: &str, message: String, hint: &str| {
        problems.push(written.problem(&["must", key], message, Some(hint.to_owned())));
    };
    if let Some(headroom) = must.headroom.filter(|times| !(1.0..=100.0).contains(times)) {
        let message = format!("{headroom} times the fleet");
        wrong("headroom", message, "a number from 1 to 100; 3 if absent");
    }
    if must.boxes == Some(true) && must.machine.is_none() {
        wrong("boxes", BOX_WITHOUT_SIZE.to_owned(), BOX_SIZE);
    }
    if let Some(machine) = must.machine {
        if !(machine.cores >= 0.1 && machine.cores <= 1024.0) {
            let message = format!("{} processors", machine.cores);
            wrong(
                "machine",
                message,
                "for example { cores = 2, memory = \"4096MiB\" }",
            );
        }
        if machine
            .memory
            .is_some_and(|memory| memory.0 < 4 << 20 || memory.0 % (1 << 20) != 0)
        {
            let message = "memory is in whole MiB, 4 and more".to_owned();
            wrong(
                "machine",
                message,
                "for example { cores = 2, memory = \"4096MiB\" }",
            );
        }
    }
}

/// Why boxes without a size are refused.
pub const BOX_WITHOUT_SIZE: &str = "a box has a size, of which this machine holds several";
/// How a box gets a size.
pub const BOX_SIZE: &str = "for example machine = { cores = 0.4 } beside it";
const NAMES: &str = "small letters, digits and -, beginning with a letter, 40 at most";
const SIZES: &str = "16B, which are pubgauge's header, to 268435455B";
const COUNTS: &str = "a number from 1 to 1000000";

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 40 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits)
}

fn not_a_name(name: &str) -> String {
    format!("`{}` is no name", pubgauge_driver::shortened(name))
}

/// The JSON Schema of fleet files.
pub fn fleet_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(FleetFile);
    schema.insert("title".into(), "pubgauge fleet file".into());
    pubgauge_quantities::schema::published(schema, "pubgauge-fleet").to_value()
}
