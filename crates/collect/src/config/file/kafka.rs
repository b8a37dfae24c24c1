//! Kafka in place of a data folder, as it is written.

use std::path::PathBuf;

use pubgauge_quantities::{Size, Span};
use schemars::JsonSchema;
use serde::Deserialize;

/// Kafka, in place of a data folder: a message is acknowledged once all in-sync replicas have it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KafkaFile {
    /// Some of the cluster's brokers: HOST:PORT.
    #[schemars(length(min = 1))]
    pub brokers: Vec<String>,
    /// The topic, which must be there. Messages of one MQTT topic go to one partition of it.
    pub topic: String,
    /// How long messages are gathered that are sent together; 10ms if absent.
    pub every: Option<Span>,
    /// Bytes of messages that are gathered at the most; 4MiB if absent.
    pub bytes: Option<Size>,
    /// Encryption of all connections to the cluster; none if absent.
    pub tls: Option<KafkaTlsFile>,
    /// How the collector logs in at the cluster (SASL); it does not if absent.
    pub sasl: Option<SaslFile>,
}

/// Certificates for Kafka, as PEM files. Each broker must prove the name, or the IPv4 address, that it is reached by.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KafkaTlsFile {
    /// Authorities that may have signed the brokers' certificates; the system's own if absent.
    pub ca: Option<PathBuf>,
    /// The collector's certificate chain.
    pub cert: Option<PathBuf>,
    /// The collector's private key.
    pub key: Option<PathBuf>,
}

/// How the collector logs in at Kafka.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SaslFile {
    /// The mechanism, as Kafka names it; "SCRAM-SHA-512" if absent.
    pub mechanism: Option<Mechanism>,
    /// The user.
    pub user: String,
    /// File with the user's password, in one line.
    pub password_file: PathBuf,
}

/// A mechanism of SASL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Mechanism {
    /// The password itself is sent: only with TLS.
    #[serde(rename = "PLAIN")]
    Plain,
    /// The password is proved, not sent (RFC 7677).
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// SCRAM with SHA-512.
    #[default]
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}
