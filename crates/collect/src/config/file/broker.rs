//! A broker with a login of its own, and certificates, as they are written.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// A broker with a password or certificates of its own. It has none of those that `brokers` have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BrokerFile {
    /// Its address, as in `brokers`.
    pub address: String,
    /// File with its password, in one line; no password if absent.
    pub password_file: Option<PathBuf>,
    /// In place of the file: variable of the environment that has its password.
    pub password_variable: Option<String>,
    /// Certificates, for mqtts or wss.
    pub tls: Option<TlsFile>,
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
