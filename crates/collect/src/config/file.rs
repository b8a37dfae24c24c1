//! The collect file as it is written: every key, with its meaning. The JSON Schema is made from these types.

use std::path::PathBuf;

use pubgauge_quantities::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to be collected, from where, to where.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CollectFile {
    /// Brokers, by address: mqtt://HOST, mqtt://USER@HOST:PORT, mqtts://HOST. A name stands for all of its
    /// addresses, each of which is a broker of its own.
    #[schemars(length(min = 1))]
    pub brokers: Vec<String>,
    /// Topic filters.
    #[schemars(length(min = 1))]
    pub topics: Vec<String>,
    /// The data folder; from the folder of this file, if the path is relative.
    pub to: PathBuf,
    /// Name of this collector, which its files and its sessions carry. If absent: that of the only collector of the
    /// data folder, or the host's name and six digits.
    pub name: Option<String>,
    /// Group that shares the messages: each goes to one of the collectors in it.
    pub group: Option<String>,
    /// Quality of service to subscribe with; 1 if absent.
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// Version of MQTT; "5" if absent.
    pub mqtt: Option<Mqtt>,
    /// What finished files are; "parquet" if absent.
    pub form: Option<Form>,
    /// File with the password, in one line. Without it, the variable PUBGAUGE_PASSWORD has it.
    pub password_file: Option<PathBuf>,
    /// Where metrics and health are served over HTTP: a port of the loopback address, or HOST:PORT. Nowhere if absent.
    pub listen: Option<String>,
    /// How long an orderly end may take; 10s if absent.
    pub stop_within: Option<Span>,
    /// The sessions at the brokers.
    #[serde(default)]
    pub session: SessionFile,
    /// The log in which messages are until they are in finished files.
    #[serde(default)]
    pub log: LogFile,
    /// Certificates, for mqtts.
    #[serde(default)]
    pub tls: TlsFile,
}

/// The sessions at the brokers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SessionFile {
    /// How long a broker keeps the session, and the messages in it, while the collector is away; 24h if absent. MQTT
    /// 3.1.1 cannot say it.
    pub expiry: Option<Span>,
    /// Most time between two packets to the broker; 30s if absent.
    pub keep_alive: Option<Span>,
    /// How often the names of brokers are looked up again; 30s if absent.
    pub resolve_every: Option<Span>,
}

/// The log in which messages are until they are in finished files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LogFile {
    /// How long messages are gathered before they are put on disk together and acknowledged; 5ms if absent.
    pub commit_every: Option<Span>,
    /// How many bytes are gathered at the most; 4MiB if absent.
    pub commit_bytes: Option<Size>,
    /// Bytes of log that become one finished file; 128MiB if absent.
    pub segment: Option<Size>,
    /// How long a segment gathers messages at the most; 5min if absent.
    pub segment_age: Option<Span>,
    /// Room on the disk that the log leaves for making finished files; twice the segment if absent.
    pub reserve: Option<Size>,
}

/// Certificates, as PEM files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsFile {
    /// Authorities that may have signed the broker's certificate; the system's own if absent.
    pub ca: Option<PathBuf>,
    /// The collector's certificate chain.
    pub cert: Option<PathBuf>,
    /// The collector's private key.
    pub key: Option<PathBuf>,
    /// Name that the broker's certificate is for, if it is not the one in the address.
    pub server_name: Option<String>,
    /// Take whatever certificate the broker shows: anybody between can read and change what is sent, the password
    /// included.
    #[serde(default)]
    pub insecure: bool,
}

/// A version of MQTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Mqtt {
    /// MQTT 5.
    #[default]
    #[serde(rename = "5")]
    V5,
    /// MQTT 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
}

/// What finished files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Form {
    /// Apache Parquet, compressed with LZ4.
    #[default]
    Parquet = 0,
    /// One JSON object in a line.
    Ndjson = 1,
}

impl Form {
    /// The extension of such files.
    pub fn extension(self) -> &'static str {
        match self {
            Form::Parquet => "parquet",
            Form::Ndjson => "ndjson",
        }
    }
}
