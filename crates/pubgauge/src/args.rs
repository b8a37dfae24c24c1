//! The command line, as the user types it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pubgauge_engine::assignment::Workers;

/// Runs the same IoT workload over real publish/subscribe middleware and says which carries it,
/// with which settings, and how far it will go.
#[derive(Debug, Parser)]
#[command(name = "pubgauge", version, max_term_width = 80, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  pubgauge run                           the first look, over all systems here
  pubgauge run --publishers 100 --rate 1/s-each --payload 64B --on mosquitto
  pubgauge run --rate max --qos 1 --mqtt 5 --on mosquitto,reference-broker
  pubgauge run --on mqtt://host:1883     a broker that is running already
  pubgauge plan studies/first-look.toml  what would be done, starting nothing
  pubgauge report results/first-look     table and page of an earlier run

Exit codes: 0 fine, 1 a criterion of the study not met, 2 the run is not valid,
3 bad input.";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a study: a file, the daily flags, or (with neither) the built-in first look.
    Run(Box<RunArgs>),
    /// Print every trial of a study, how long it takes, what each setting becomes on each
    /// system, and what cannot be had. Starts nothing.
    Plan(Box<PlanArgs>),
    /// List the known systems: found or not, version, and the command that installs each; or
    /// install them.
    Systems(SystemsArgs),
    /// Show on the running systems what their drivers and files claim: the conformance suite, and
    /// every cell of the matrix of capabilities.
    Check(CheckArgs),
    /// Rebuild the table and the page from the folder of a run.
    Report(ReportArgs),
    /// Measure this machine and this tool, and store the result for later runs.
    Calibrate(CalibrateArgs),
    /// Work with recorded traces.
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Print a JSON Schema.
    Schema {
        /// Of what.
        #[arg(value_enum)]
        of: SchemaOf,
    },
    /// Serve as a built-in system, in the foreground (used by `run` itself).
    #[command(subcommand, hide = true)]
    Serve(ServeVerb),
}

/// What has a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SchemaOf {
    /// Study files.
    Study,
    /// `results.json`.
    Results,
}

/// Which systems, which study, which changes to it.
#[derive(Clone, Debug, Args)]
pub struct Selection {
    /// Study file (TOML). Without one: the daily flags, or the first look.
    pub study: Option<PathBuf>,
    /// Systems to measure, by name (`pubgauge systems` lists them) or by address, for example
    /// mqtt://host:1883 or mqtts://user@host.
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Named settings, each run in turn: latency, throughput, durable, constrained,
    /// tuned, default (docs/profiles.md).
    #[arg(long, value_name = "PROFILE,...", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Change one value of the study, for example --set settings.in-flight=100.
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Run every cell so many times.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: Option<u32>,
    /// More folders with system files.
    #[arg(
        long,
        value_name = "DIR",
        env = "PUBGAUGE_SYSTEMS",
        value_delimiter = ':'
    )]
    pub systems: Vec<PathBuf>,
    /// A workload in a few flags instead of a file.
    #[command(flatten)]
    pub daily: Daily,
}

impl Selection {
    /// Whether the built-in first look is asked for, as it is.
    pub fn is_first_look(&self) -> bool {
        self.study.is_none()
            && self.on.is_empty()
            && self.profile.is_empty()
            && self.set.is_empty()
            && self.daily == Daily::default()
    }
}

/// The daily flags.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Workload, instead of a study file")]
pub struct Daily {
    /// Publishing devices; 0 is allowed.
    #[arg(long, value_name = "N")]
    pub publishers: Option<u32>,
    /// Subscribing devices; 0 is allowed.
    #[arg(long, value_name = "N")]
    pub subscribers: Option<u32>,
    /// Topics.
    #[arg(long, value_name = "N")]
    pub topics: Option<u32>,
    /// Payload size, header included, for example 64B, 1KiB, 2MB.
    #[arg(long, value_name = "SIZE")]
    pub payload: Option<String>,
    /// Message rate: 10k/s in all, 1/s-each for each publisher, or max (flat out).
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Length of the measurement, for example 10s.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Traffic before the measurement, for example 2s.
    #[arg(long, value_name = "TIME")]
    pub warm_up: Option<String>,
    /// MQTT quality of service: 0 at most once, 1 at least once, 2 exactly once.
    #[arg(long, value_name = "0|1|2")]
    pub qos: Option<u8>,
    /// MQTT version.
    #[arg(long, value_name = "3.1.1|5")]
    pub mqtt: Option<String>,
}

/// How external systems are logged in to.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Systems that run already")]
pub struct Login {
    /// File whose first line is the password (else the variable PUBGAUGE_PASSWORD). The password
    /// never reaches results or logs.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Authorities that may have signed the server's certificate (PEM).
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The client's certificate chain (PEM).
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The client's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// `pubgauge run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Study and systems.
    #[command(flatten)]
    pub selection: Selection,
    /// Folder for the results; default: results/STUDY-TIME.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a run that was cut off.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// How external systems are logged in to.
    #[command(flatten)]
    pub login: Login,
    /// How the client works.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Print the results as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(short, long)]
    pub quiet: bool,
}

/// How the client works.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Client")]
pub struct ClientArgs {
    /// Worker threads for publishing devices.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub publisher_workers: u32,
    /// Worker threads for subscribing devices.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub subscriber_workers: u32,
    /// Real-time priority (SCHED_FIFO) for the workers, 1 to 99; needs root or CAP_SYS_NICE.
    #[arg(long, value_name = "PRIORITY", num_args = 0..=1, default_missing_value = "10",
          value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,
    /// Processors for the workers, in turn.
    #[arg(long, value_name = "CPU,...", value_delimiter = ',')]
    pub pin: Vec<usize>,
}

impl ClientArgs {
    /// As a trial takes them.
    pub fn client(&self) -> pubgauge_runner::Client {
        pubgauge_runner::Client {
            workers: Workers {
                publishers: self.publisher_workers,
                subscribers: self.subscriber_workers,
            },
            realtime: self.realtime,
            pin: self.pin.clone(),
        }
    }
}

/// `pubgauge plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Study and systems.
    #[command(flatten)]
    pub selection: Selection,
    /// Print the plan as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `pubgauge systems`.
#[derive(Debug, Args)]
pub struct SystemsArgs {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// Show what each system can do: a row for each capability, a column for each system in each
    /// variant. With one or two systems, what each cell is in the system's own terms.
    #[arg(long, conflicts_with = "install")]
    pub matrix: bool,
    /// Only these systems, by name or NAME:VARIANT.
    #[arg(
        long,
        value_name = "SYSTEM,...",
        value_delimiter = ',',
        requires = "matrix"
    )]
    pub on: Vec<String>,
    /// Install these systems, or `all` that can be installed: shows what will be done, and asks
    /// first. Java servers are fetched with Maven into the cache (PUBGAUGE_CACHE, else
    /// ~/.cache/pubgauge).
    #[arg(
        long,
        value_name = "SYSTEM,...",
        value_delimiter = ',',
        conflicts_with = "json"
    )]
    pub install: Vec<String>,
    /// Do not ask before installing.
    #[arg(short, long, requires = "install")]
    pub yes: bool,
    /// More folders with system files.
    #[arg(
        long,
        value_name = "DIR",
        env = "PUBGAUGE_SYSTEMS",
        value_delimiter = ':'
    )]
    pub systems: Vec<PathBuf>,
}

/// `pubgauge check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Systems, by name, or NAME:VARIANT; all that are found, in every variant, if absent.
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Leave the conformance suite out.
    #[arg(long)]
    pub capabilities_only: bool,
    /// Show what was found of every claim, not only what is broken.
    #[arg(short, long)]
    pub verbose: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(short, long)]
    pub quiet: bool,
    /// More folders with system files.
    #[arg(
        long,
        value_name = "DIR",
        env = "PUBGAUGE_SYSTEMS",
        value_delimiter = ':'
    )]
    pub systems: Vec<PathBuf>,
}

/// `pubgauge report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder of a run.
    pub dir: PathBuf,
    /// Print the results as JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// `pubgauge calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// Only measure; do not store the result for later runs.
    #[arg(long)]
    pub no_store: bool,
}

/// `pubgauge trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Check a recorded trace and say what is in it.
    Show {
        /// Trace file: CSV or NDJSON, gzip accepted.
        file: PathBuf,
    },
    /// Convert ordinary CSV files to a recorded trace.
    Convert(Box<ConvertArgs>),
}

/// `pubgauge trace convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// CSV files; gzip accepted; merged in order of time.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Where to write the trace (CSV; compressed if the name ends in .gz).
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Column with the time: its name, or its number from 1.
    #[arg(long, value_name = "COLUMN")]
    pub time: String,
    /// How the time is written: epoch-s, epoch-ms, rfc3339, ymd-hms, dmy-hms, or a strptime
    /// pattern such as "%d.%m.%Y %H:%M".
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// Column with the device.
    #[arg(long, value_name = "COLUMN")]
    pub device: Option<String>,
    /// The device from the file's name, for example "meter-{device}_*.csv".
    #[arg(long, value_name = "PATTERN", conflicts_with = "device")]
    pub device_from_file: Option<String>,
    /// Column with the topic.
    #[arg(long, value_name = "COLUMN")]
    pub topic: Option<String>,
    /// Column with the size in bytes.
    #[arg(long, value_name = "COLUMN")]
    pub size: Option<String>,
    /// The same size for every message, in bytes.
    #[arg(long, value_name = "BYTES", conflicts_with = "size")]
    pub size_bytes: Option<u32>,
    /// The size of a compact JSON object with these members; $time and $device are known.
    #[arg(long, value_name = "KEY=COLUMN,...", value_delimiter = ',', conflicts_with_all = ["size", "size_bytes"])]
    pub size_of_json: Vec<String>,
    /// Column with the payload itself.
    #[arg(long, value_name = "COLUMN")]
    pub payload: Option<String>,
    /// Character between columns.
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<char>,
    /// The files have no header line.
    #[arg(long)]
    pub no_header: bool,
    /// Leave out messages whose value in this column equals the device's last one.
    #[arg(long, value_name = "COLUMN")]
    pub drop_repeats: Option<String>,
    /// Send on change: keep a message only if this column moved by so much, in its own unit or
    /// in percent of the last value kept (the larger of both), for example 2:2:5%.
    #[arg(long, value_name = "COLUMN:CHANGE[:PERCENT%]")]
    pub on_change: Vec<String>,
    /// Sort messages that are out of order, instead of refusing them.
    #[arg(long)]
    pub sort: bool,
}

/// `pubgauge serve`.
#[derive(Debug, Subcommand)]
pub enum ServeVerb {
    /// The reference broker: MQTT 3.1.1 and 5 in memory, no broker for production.
    ReferenceBroker {
        /// Address to listen on; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:1883")]
        listen: SocketAddr,
    },
    /// An XSUB/XPUB forwarder for ZeroMQ.
    ZeromqForwarder {
        /// Where publishers connect, for example tcp://127.0.0.1:5555.
        #[arg(long)]
        publishers: String,
        /// Where subscribers connect.
        #[arg(long)]
        subscribers: String,
        /// File with the settings of its queues, as JSON.
        #[arg(long)]
        settings: Option<PathBuf>,
    },
}
