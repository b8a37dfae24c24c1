//! Who devices are to the system, where a study says so: client identifiers, users, passwords and certificates.

mod list;

use std::sync::Arc;

use pubgauge_driver::{Login, OwnCertificate, Secret};
use serde::{Deserialize, Serialize};

pub use list::{IdentityRow, ListError, PasswordSource, read_list};

/// The identity of one device. The parts that are absent are those of all: its name is made up, and it logs in as the
/// address and the command line say. As data it has no secrets; they travel apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Client identifier, as it goes to the system.
    pub id: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// Password.
    #[serde(skip)]
    pub password: Option<Secret>,
    /// Certificate and private key.
    #[serde(skip)]
    pub certificate: Option<Arc<OwnCertificate>>,
}

impl Identity {
    /// How the device logs in.
    pub fn login(&self) -> Login {
        Login {
            username: self.user.clone(),
            password: self.password.clone(),
            certificate: self.certificate.clone(),
        }
    }

    /// Whether it holds a secret.
    pub fn has_secret(&self) -> bool {
        self.password.is_some() || self.certificate.is_some()
    }

    /// In words, for messages; without secrets.
    pub fn describe(&self) -> String {
        let certificate = self.certificate.as_deref();
        let certificate = certificate.map(|own| own.file.display().to_string());
        let parts = [
            ("id", &self.id),
            ("user", &self.user),
            ("certificate", &certificate),
        ];
        let told = parts.iter().filter_map(|(what, value)| {
            let value = value.as_deref()?;
            Some(format!("{what} {value}"))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}
