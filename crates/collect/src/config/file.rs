//! The collect file as it is written: every key, with its meaning. The JSON Schema is made from these types.

use std::path::PathBuf;

use pubgauge_mqtt_codec::Version;
use pubgauge_quantities::{Rate, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod broker;
mod files;
mod kafka;

pub use broker::{BrokerFile, TlsFile};
pub use files::FilesFile;
pub use kafka::{KafkaFile, KafkaTlsFile, Mechanism, SaslFile};

/// A collect file: the messages to collect, from where, to where.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(extend("anyOf" = [{"required": ["brokers"]}, {"required": ["broker"]}]))]
pub struct CollectFile {
    /// Brokers, by address: mqtt://HOST, mqtt://USER@HOST:PORT, mqtts://HOST; ws://HOST/PATH and wss://HOST/PATH over
    /// WebSocket. A name stands for all of its addresses, each of which is a broker of its own.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub brokers: Vec<String>,
    /// Brokers with a password or certificates of their own.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub broker: Vec<BrokerFile>,
    /// Topic filters.
    #[schemars(length(min = 1))]
    pub topics: Vec<String>,
    /// The data folder; from the folder of this file, if the path is relative. Only with `upload.acknowledge =
    /// "uploaded"` there is none.
    pub to: Option<PathBuf>,
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
    /// Form of finished files; "parquet" if absent.
    pub form: Option<Form>,
    /// How Parquet is compressed; "snappy" if absent, which all its readers know.
    pub compression: Option<Compression>,
    /// Who may read the data folder, on top of the umask: "owner" if absent.
    pub access: Option<AccessFile>,
    /// File with the password for `brokers`, in one line. Without it, the variable PUBGAUGE_PASSWORD has it.
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
    /// A numbered message of the collector's own through each broker, by which losses of the broker are told; none if
    /// absent. The collector publishes then.
    pub canary: Option<CanaryFile>,
    /// Certificates for `brokers` with mqtts or wss.
    #[serde(default)]
    pub tls: TlsFile,
    /// Columns for what payloads say; they are stored as bytes alone if absent.
    pub payload: Option<PayloadFile>,
    /// Which folders finished files lie in; by date and hour if absent.
    pub files: Option<FilesFile>,
    /// Object storage that finished files are moved to; they stay in the data folder if absent.
    pub upload: Option<UploadFile>,
    /// Kafka, in place of a data folder.
    pub kafka: Option<KafkaFile>,
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
    /// Largest message that is taken, with its topic and its properties; 1MiB if absent. A larger one passes by without
    /// being kept: it is told, counted and acknowledged.
    pub largest_message: Option<Size>,
    /// Whether brokers are told the largest message (MQTT 5 alone); false if absent. A broker that knows it discards what
    /// is larger, and nobody is told: spare the network so where that does not matter.
    pub announce_largest: Option<bool>,
    /// How often the names of brokers are looked up again; 30s if absent.
    pub resolve_every: Option<Span>,
}

/// The log in which messages are until they are in finished files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LogFile {
    /// Longest time that messages are gathered before they are put on disk together and acknowledged; 5ms if absent.
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

/// A numbered message of the collector's own through each broker.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CanaryFile {
    /// How often one is published; 10s if absent.
    pub every: Option<Span>,
    /// Beginning of its topic, which the collector's name follows; "collect-canary" if absent. The collector must be allowed
    /// to publish and to subscribe there.
    pub topic: Option<String>,
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

impl Mqtt {
    pub(crate) fn version(self) -> Version {
        match self {
            Mqtt::V5 => Version::V5,
            Mqtt::V311 => Version::V311,
        }
    }
}

/// Forms of finished files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Form {
    /// Apache Parquet.
    #[default]
    Parquet = 0,
    /// One JSON object in a line.
    Ndjson = 1,
}

/// Who may read the data folder. What a folder had before stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessFile {
    /// The collector's user alone: files 0600, folders 0700.
    #[default]
    Owner,
    /// Its group, too: files 0640, folders 0750.
    Group,
    /// Whoever the umask leaves it to.
    Umask,
}

/// How Parquet is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Snappy, which all readers know.
    #[default]
    Snappy,
    /// Zstandard at level 3: the smallest files.
    Zstd,
    /// LZ4 (`LZ4_RAW`), which takes the least time; Spark before 3.5 does not read it.
    Lz4,
    /// Not at all.
    None,
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

/// Object storage that finished files are moved to.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UploadFile {
    /// Bucket, and a prefix in it: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX.
    pub to: String,
    /// Address of the store, where it is not the cloud's own: http://HOST:PORT.
    pub endpoint: Option<String>,
    /// Region of the bucket; as the environment says if absent.
    pub region: Option<String>,
    /// File with credentials, one NAME=VALUE in a line. The names are those of the variables of the environment, which
    /// it comes before: AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY and the like. It is
    /// read again before each object.
    pub credentials_file: Option<PathBuf>,
    /// When a message is acknowledged; "on-disk" if absent.
    pub acknowledge: Option<Acknowledge>,
    /// With "uploaded": how long messages are gathered for one object; 1s if absent.
    pub every: Option<Span>,
    /// With "uploaded": bytes of messages that are gathered for one object at the most; 16MiB if absent.
    pub bytes: Option<Size>,
    /// With "uploaded": messages a second that each broker has to deliver to this collector. A broker whose limit of
    /// unacknowledged messages is too small for it is refused.
    pub rate: Option<Rate>,
}

/// When a message is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// Once it is on the disk of the data folder; its file is put to the store later.
    #[default]
    OnDisk,
    /// Once the store has confirmed the object that it is in. Nothing is on a disk here.
    Uploaded,
}

/// Columns for what payloads say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PayloadFile {
    /// Form of payloads; "raw" if absent.
    pub form: Option<PayloadForm>,
    /// Whether a payload that was decoded is stored as it came, too; true if absent. One that cannot be decoded is
    /// always stored.
    pub keep: Option<bool>,
    /// The columns.
    #[serde(default)]
    pub columns: Vec<ColumnFile>,
}

/// Forms of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadForm {
    /// Bytes that nobody looks into.
    #[default]
    Raw,
    /// JSON (RFC 8259).
    Json,
    /// CBOR (RFC 8949).
    Cbor,
    /// SenML as JSON (RFC 8428).
    SenmlJson,
    /// SenML as CBOR (RFC 8428).
    SenmlCbor,
}

/// A column for a value of payloads.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ColumnFile {
    /// Name of the column: letters, digits and `_`.
    pub name: String,
    /// Where the value is: a JSON Pointer (RFC 6901) such as /meter/watts, or the name of a SenML record, with its base
    /// name or without. /NAME, or NAME for SenML, if absent.
    pub path: Option<String>,
    /// In place of `path`: the level of the topic that is the value, from 1. Raw payloads may have such columns, too.
    #[schemars(range(min = 1))]
    pub topic_level: Option<u16>,
    /// Topic filter: the messages that have the column; all if absent.
    pub topics: Option<String>,
    /// Type of the column.
    #[serde(rename = "type")]
    pub of: ColumnType,
    /// Unit of numbers in a column of timestamps, counted since 1970; "s" if absent.
    pub unit: Option<TimeUnit>,
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnType {
    /// A whole number of 64 bits.
    Int64,
    /// A floating-point number of 64 bits.
    Double,
    /// A text.
    String,
    /// True or false.
    Boolean,
    /// A time: RFC 3339 text, or a number. Of a SenML record, its time.
    Timestamp,
}

/// Unit of numbers that are times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeUnit {
    #[default]
    S,
    Ms,
    Us,
    Ns,
}
