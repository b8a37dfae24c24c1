//! The verbs beside runs: traces, and the built-in systems.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use pubgauge_quantities::Span;

use super::Output;

/// `pubgauge trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Check a recorded trace and say what is in it.
    Show {
        /// Trace file: CSV, NDJSON or a list of JSON objects, also as mosquitto_sub writes them (-F %j); gzip accepted.
        file: PathBuf,
        /// Options of output.
        #[command(flatten)]
        output: Output,
    },
    /// Convert ordinary files of CSV or JSON to a recorded trace.
    Convert(Box<ConvertArgs>),
}

/// `pubgauge trace convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Files of CSV, NDJSON or a list of JSON objects; gzip accepted; merged in order of time.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Where to write the trace (CSV; compressed if the name ends in .gz).
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// Column with the time: its name, or its number from 1; of JSON the name of a field, or a JSON Pointer.
    #[arg(long, value_name = "COLUMN")]
    pub time: String,
    /// Column with the date, where the time of day stands in one of its own.
    #[arg(long, value_name = "COLUMN")]
    pub date: Option<String>,
    /// How the time is written: epoch-s, epoch-ms, epoch-us, epoch-ns, serial-date, rfc3339, ymd-hms, dmy-hms, or a
    /// strptime pattern such as "%d.%m.%Y %H:%M".
    #[arg(long, value_name = "FORMAT")]
    pub time_format: Option<String>,
    /// Zone of times that name none: Europe/Berlin, or +02:00; UTC if absent.
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub time_zone: Option<String>,
    /// The mark of decimals in times and numbers, such as a comma.
    #[arg(long, value_name = "CHARACTER")]
    pub decimal: Option<char>,
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
    /// One size for every message, in bytes.
    #[arg(long, value_name = "BYTES", conflicts_with = "size")]
    pub size_bytes: Option<u32>,
    /// The size of a compact JSON object with these members; $time and $device are known.
    #[arg(long, value_name = "KEY=COLUMN,...", value_delimiter = ',', conflicts_with_all = ["size", "size_bytes"])]
    pub size_of_json: Vec<String>,
    /// Column with the payload itself.
    #[arg(long, value_name = "COLUMN")]
    pub payload: Option<String>,
    /// How the payload is written: text, hex or base64; text if absent.
    #[arg(long, value_name = "FORM")]
    pub payload_as: Option<String>,
    /// Column with the quality of service: 0, 1 or 2.
    #[arg(long, value_name = "COLUMN")]
    pub qos: Option<String>,
    /// Column that says whether the message was retained: 0 or 1, false or true.
    #[arg(long, value_name = "COLUMN")]
    pub retain: Option<String>,
    /// Character between columns; `tab` for a tabulator.
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    pub delimiter: Option<char>,
    /// The files have no header line.
    #[arg(long)]
    pub no_header: bool,
    /// How many columns files without a header have, where nothing is to be taken from those behind the payload.
    #[arg(long, value_name = "NUMBER", requires = "no_header")]
    pub columns: Option<u32>,
    /// Pass over lines that begin with this character.
    #[arg(long, value_name = "CHARACTER")]
    pub comment: Option<char>,
    /// Pass over so many lines at the top of each file.
    #[arg(long, value_name = "NUMBER")]
    pub skip_lines: Option<u32>,
    /// Of NDJSON: leave out objects that lack a field which is named.
    #[arg(long)]
    pub skip_incomplete: bool,
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
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

/// The character between columns.
fn delimiter(text: &str) -> Result<char, String> {
    match text {
        "tab" | "\\t" => Ok('\t'),
        _ => text
            .parse()
            .map_err(|_| "one character is expected, or `tab`".into()),
    }
}

/// Processor time that a message may be made to cost the reference broker.
fn message_cost(text: &str) -> Result<Duration, String> {
    let Span(ns) = text.parse::<Span>().map_err(|e| e.to_string())?;
    let cost = Some(Duration::from_nanos(ns)).filter(|cost| *cost <= Duration::from_secs(1));
    cost.ok_or_else(|| "a time from 0s to 1s is expected, such as 50us".into())
}

/// `pubgauge serve`.
#[derive(Debug, Subcommand)]
pub enum ServeVerb {
    /// The reference broker: MQTT 3.1.1 and 5 in memory, no broker for production.
    ReferenceBroker {
        /// Address to listen on; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:1883")]
        listen: SocketAddr,
        /// Least processor time for each message received, at most 1s: the broker spins for what
        /// it took less. Held to a share of a processor it then carries that share over this time,
        /// in messages a second: a known limit, to try searches and verdicts on.
        #[arg(long, value_name = "TIME", value_parser = message_cost, default_value = "0s")]
        cpu_per_message: Duration,
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
