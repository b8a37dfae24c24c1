//! The command line, as the user types it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use pubgauge_command::options::{Login, Output};

/// Collects what MQTT brokers deliver into files: Parquet or NDJSON. A message is acknowledged once it is on
/// disk.
#[derive(Debug, Parser)]
#[command(
    name = "pubgauge-collect",
    version,
    max_term_width = 80,
    after_help = EXIT_CODES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct CollectArgs {
    /// An action in place of collecting.
    #[command(subcommand)]
    pub verb: Option<CollectVerb>,
    /// Collect file (TOML, docs/collect.md). Without one, the flags below say what to collect. SIGHUP has it read again.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "on",
        conflicts_with_all = ["password_file", "ca", "insecure", "cert", "key"]
    )]
    pub config: Option<PathBuf>,
    /// Brokers, by address: mqtt://host, mqtts://user@host:port, wss://host/path. A name stands for all of its addresses, each
    /// of which is a broker of its own.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', conflicts_with = "config", requires_all = ["topic", "to"])]
    pub on: Vec<String>,
    /// Topic filter; may be given several times.
    #[arg(long, value_name = "FILTER", conflicts_with = "config")]
    pub topic: Vec<String>,
    /// The data folder.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub to: Option<PathBuf>,
    /// Share the messages with the other collectors of this group.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    pub group: Option<String>,
    /// Quality of service to subscribe with; 1 if absent.
    #[arg(long, value_name = "0|1|2", conflicts_with = "config")]
    pub qos: Option<u8>,
    /// Version of MQTT; 5 if absent.
    #[arg(long, value_enum, value_name = "5|3.1.1", conflicts_with = "config")]
    pub mqtt: Option<MqttVersion>,
    /// Form of finished files; Parquet if absent.
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "config")]
    pub form: Option<FileForm>,
    /// Name of this collector, which its files and its sessions carry; in place of the collect file's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Serve metrics and health over HTTP: a port of the loopback address, or HOST:PORT; in place of the collect file's.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// End once nothing has come for two seconds; a broker that cannot be reached is tried for ten.
    #[arg(long)]
    pub once: bool,
    /// End once at least so many messages are stored.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: Option<u64>,
    /// End after this time, for example 10min.
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<String>,
    /// At the end, give up the sessions: unsubscribe, collect what they hold, and have the brokers drop them, within
    /// `stop-within`. For a member of a group that does not come back.
    #[arg(long)]
    pub leave: bool,
    /// Form of standard error: words, or a JSON object in each line.
    #[arg(long, value_enum, value_name = "FORM", default_value = "plain")]
    pub log: LogForm,
    /// How results are printed.
    #[command(flatten)]
    pub output: Output,
    /// How brokers are logged in to.
    #[command(flatten)]
    pub login: Login,
}

const EXIT_CODES: &str = "\
Exit codes: 0 fine, 1 verify and compact: a fault was found, 2 something is
missing that was to be done, 3 bad input.";

/// Verbs, in place of collecting.
#[derive(Debug, Subcommand)]
pub enum CollectVerb {
    /// Merge the small finished files of each folder into larger ones. Collectors may work in the folder meanwhile, and
    /// whoever lists a partition finds each message once.
    Compact {
        /// The data folder.
        dir: PathBuf,
        /// Only files of hours and days that have ended so long ago; where no folder tells a date, files that were finished so long ago.
        #[arg(long, value_name = "TIME", default_value = "1h")]
        older_than: String,
        /// How large merged files become at the most.
        #[arg(long, value_name = "SIZE", default_value = "256MiB")]
        target: String,
        /// How results are printed.
        #[command(flatten)]
        output: Output,
    },
    /// Give up the sessions of a collector that has ended and does not come back: collect what they hold, and have the
    /// brokers drop them. A group can shrink so without a loss.
    Leave(LeaveArgs),
    /// Publish the messages of a data folder's finished files to a broker again, at QoS 1, in their order and with the time
    /// between them that was between them.
    Replay(ReplayArgs),
    /// Read everything in a data folder again: checksums, footers, numbers without gaps; count what
    /// messages of pubgauge lack.
    Verify(VerifyArgs),
    /// Print the JSON Schema of collect files.
    Schema,
    /// Print a script that completes this command line in a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write those of all verbs into a folder.
    Man {
        /// The verb; the page of pubgauge-collect itself if absent.
        verb: Vec<String>,
        /// Write all pages into this folder.
        #[arg(long, value_name = "DIR", conflicts_with = "verb")]
        out: Option<PathBuf>,
    },
}

/// `pubgauge-collect leave`.
#[derive(Debug, Args)]
pub struct LeaveArgs {
    /// The collect file.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Name of the collector, in place of the collect file's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long it may take.
    #[arg(long = "for", value_name = "TIME", default_value = "10min")]
    pub time: String,
    /// Form of standard error: words, or a JSON object in each line.
    #[arg(long, value_enum, value_name = "FORM", default_value = "plain")]
    pub log: LogForm,
    /// How results are printed.
    #[command(flatten)]
    pub output: Output,
}

/// `pubgauge-collect verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The data folder; of a group, those of all its members. Collectors may work in them meanwhile.
    #[arg(required = true)]
    pub dir: Vec<PathBuf>,
    /// Where each payload (JSON or CBOR) has a number, as a JSON Pointer: /seq. Numbers that are missing between others
    /// are told: the broker has lost these messages, or their publisher. Files that were moved are fetched.
    #[arg(long, value_name = "POINTER")]
    pub sequence: Option<String>,
    /// Scope of those numbers: `topic`, or a JSON Pointer to what tells one publisher, or one start of it, from
    /// another. May be given several times.
    #[arg(
        long,
        value_name = "topic|POINTER",
        default_value = "topic",
        requires = "sequence"
    )]
    pub by: Vec<String>,
    /// Fetch and read files that were moved to object storage, instead of asking for their length and their tag
    /// alone.
    #[arg(long)]
    pub fetch: bool,
    /// The collect file, whose `[upload]` names the store that files were moved to, and what opens it. Credentials
    /// go to no store that is named neither there nor by --upload-to.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A store that files were moved to, s3://BUCKET/PREFIX and the like, as `upload.to` of a collect file.
    #[arg(long, value_name = "ADDRESS")]
    pub upload_to: Vec<String>,
    /// Address of that store, where it is not the cloud's own, as `upload.endpoint` of a collect file.
    #[arg(long, value_name = "URL", requires = "upload_to")]
    pub upload_endpoint: Option<String>,
    /// Region of the bucket, as `upload.region` of a collect file; the one that the list of files tells if absent.
    #[arg(long, value_name = "REGION", requires = "upload_to")]
    pub upload_region: Option<String>,
    /// File with the credentials of object storage, one NAME=VALUE in a line (else the environment).
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,
    /// How results are printed.
    #[command(flatten)]
    pub output: Output,
}

/// `pubgauge-collect replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The data folder.
    pub dir: PathBuf,
    /// The broker: mqtt://host, mqtts://user@host:port, wss://host/path. Password and key go there, and nowhere else.
    #[arg(long, value_name = "ADDRESS")]
    pub to_broker: String,
    /// Only messages that were received from then on: 2026-11-26T07:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only messages that were received before then.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only messages whose topic a filter matches; may be given several times.
    #[arg(long, value_name = "FILTER")]
    pub topic: Vec<String>,
    /// So many times as fast as they were received, or as fast as the broker takes them.
    #[arg(long, value_name = "FACTOR|max", default_value = "1")]
    pub speed: String,
    /// Put this in front of each topic.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub topic_prefix: String,
    /// Version of MQTT; 5 if absent. Properties of messages go with 5 alone.
    #[arg(long, value_enum, value_name = "5|3.1.1")]
    pub mqtt: Option<MqttVersion>,
    /// How results are printed.
    #[command(flatten)]
    pub output: Output,
    /// How the broker is logged in to.
    #[command(flatten)]
    pub login: Login,
}

/// A version of MQTT.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum MqttVersion {
    /// MQTT 5.
    #[value(name = "5")]
    V5,
    /// MQTT 3.1.1.
    #[value(name = "3.1.1")]
    V311,
}

/// Forms of finished files.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FileForm {
    /// Apache Parquet.
    Parquet,
    /// One JSON object in a line.
    Ndjson,
}

/// Forms of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// In words.
    Plain,
    /// A JSON object in each line.
    Json,
}
