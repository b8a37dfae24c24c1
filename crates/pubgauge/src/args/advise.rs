//! `pubgauge advise`, as the user types it.

use std::path::PathBuf;

use clap::Args;

use super::{MEASUREMENT, Output, SYSTEMS};

const ADVISE_DEFAULTS: &str = "\
What systems promise is shown on the running system first; then the fleet is
measured on those that keep it, then 3 times the fleet, then repeats, how far
each goes, other fleets, and several brokers, as far as the budget reaches.
Nothing is named that was not measured. Exit code 0: some system is named, or a
number of machines that carries it; 1: none carries it; 2: that cannot be told.

Examples:
  pubgauge advise meters.toml                   the fleet from a file
  pubgauge advise --devices 5000 --every 30s --payload 120B
  pubgauge advise meters.toml --boxes           and how many machines it takes
  pubgauge advise meters.toml --explain         what would be measured
  pubgauge advise meters.toml --stored results  with what is known already

The file: docs/advise.md.";

const FLEET: &str = "Fleet, instead of a file";

/// `pubgauge advise`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = ADVISE_DEFAULTS)]
pub struct AdviseArgs {
    /// Fleet file (TOML): devices, applications, and what must hold.
    pub fleet: Option<PathBuf>,
    /// The fleet in a few flags.
    #[command(flatten)]
    pub small: SmallFleet,
    /// Systems to choose from, by name or NAME:VARIANT [default: all that are found, in the first variant that fits].
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',', help_heading = SYSTEMS)]
    pub on: Vec<String>,
    /// More folders with system files.
    #[arg(long, value_name = "DIR", env = "PUBGAUGE_SYSTEMS", value_delimiter = ':', help_heading = SYSTEMS)]
    pub systems: Vec<PathBuf>,
    /// Tell how many machines of the fleet's size are needed, each with a broker of its own: 1, 2 and 4 are measured side by side
    /// [default: where one is not enough].
    #[arg(long, help_heading = MEASUREMENT)]
    pub boxes: bool,
    /// How long it may take. A step that would take longer is left out, and the answer says so.
    #[arg(long, value_name = "TIME", default_value = "20min", help_heading = MEASUREMENT)]
    pub budget: String,
    /// Folder for studies and results [default: results/FLEET-TIME].
    #[arg(long, value_name = "DIR", help_heading = MEASUREMENT)]
    pub out: Option<PathBuf>,
    /// Folders with stored runs, or with folders of such, for example that of an earlier advice: their trials count where
    /// system, version, settings and machine are the same and they carried as much, at most twice as much. What counts is
    /// not measured again; -v says why the rest does not.
    #[arg(long, value_name = "DIR", num_args = 1.., help_heading = MEASUREMENT)]
    pub stored: Vec<PathBuf>,
    /// Print what is asked of systems, which of them promise it, and the study that would be measured; start nothing.
    #[arg(long, help_heading = MEASUREMENT)]
    pub explain: bool,
    /// Show every system that was left out with its reason, and the settings of all choices.
    #[arg(short, long)]
    pub verbose: bool,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

/// A fleet of one kind of devices, in flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = FLEET)]
pub struct SmallFleet {
    /// How many devices there are.
    #[arg(long, value_name = "N", conflicts_with = "fleet", requires_all = ["every", "payload"])]
    pub devices: Option<u32>,
    /// Time from one message of a device to its next, for example 30s.
    #[arg(long, value_name = "TIME", requires = "devices")]
    pub every: Option<String>,
    /// Size of a message, for example 120B.
    #[arg(long, value_name = "SIZE", requires = "devices")]
    pub payload: Option<String>,
    /// may-be-lost, at-least-once or once [default: at-least-once].
    #[arg(long, value_name = "DELIVERY", requires = "devices")]
    pub delivery: Option<String>,
    /// 99 of 100 messages are there within this time [default: 100ms].
    #[arg(long, value_name = "TIME", requires = "devices")]
    pub fresh_within: Option<String>,
    /// Applications, each of which hears all devices [default: 1].
    #[arg(long, value_name = "N", requires = "devices")]
    pub applications: Option<u32>,
    /// Ends of the server that acknowledged messages survive: restart, kill.
    #[arg(
        long,
        value_name = "END,...",
        value_delimiter = ',',
        requires = "devices"
    )]
    pub survive: Vec<String>,
    /// How many times the fleet must be carried [default: 3].
    #[arg(long, value_name = "TIMES", requires = "devices")]
    pub headroom: Option<f64>,
    /// Processors of this machine that the server gets [default: all].
    #[arg(long, value_name = "N", requires = "devices")]
    pub cores: Option<f64>,
    /// Memory of this machine that the server gets, for example 512MiB [default: all].
    #[arg(long, value_name = "SIZE", requires = "cores")]
    pub memory: Option<String>,
}

impl SmallFleet {
    /// The file that the flags stand for; `None` without flags.
    pub fn file(&self) -> Option<String> {
        let mut text = String::from("[[devices]]\n");
        let mut key = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!("{name} = {value}\n"));
            }
        };
        let quoted = |value: &Option<String>| value.as_ref().map(|value| format!("{value:?}"));
        key("count", Some(self.devices?.to_string()));
        key("every", quoted(&self.every));
        key("payload", quoted(&self.payload));
        key("delivery", quoted(&self.delivery));
        key("fresh-within", quoted(&self.fresh_within));
        if let Some(applications) = self.applications {
            text.push_str(&format!("[[applications]]\ncount = {applications}\n"));
        }
        text.push_str("[must]\n");
        if !self.survive.is_empty() {
            text.push_str(&format!("survive = {:?}\n", self.survive));
        }
        if let Some(headroom) = self.headroom {
            text.push_str(&format!("headroom = {headroom:?}\n"));
        }
        if let Some(cores) = self.cores {
            let memory = quoted(&self.memory);
            let memory = memory.map_or(String::new(), |memory| format!(", memory = {memory}"));
            text.push_str(&format!("machine = {{ cores = {cores:?}{memory} }}\n"));
        }
        Some(text)
    }
}
