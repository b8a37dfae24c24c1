//! Who one client is to a system, where that is not as it is for all: user name, password, certificate.

use std::path::PathBuf;
use std::sync::Arc;

use crate::secret::Secret;

/// The login of one client. The parts that are absent are those of the [`crate::Target`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// User name.
    pub username: Option<String>,
    /// Password.
    pub password: Option<Secret>,
    /// Certificate and private key, for endpoints with TLS.
    pub certificate: Option<Arc<OwnCertificate>>,
}

impl Login {
    /// Whether it says nothing: the client logs in as the target says.
    pub fn is_empty(&self) -> bool {
        *self == Login::default()
    }
}

/// A client's certificate and its private key, read from files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCertificate {
    /// The certificate's file, for messages.
    pub file: PathBuf,
    /// Both as PEM: the certificate first, then those that lead from it to an authority; the key anywhere.
    pub pem: Secret,
}

/// The parts of a client's identity that a system has: what each becomes, in the protocol's words, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identification {
    /// Identifier of the client ([`crate::ClientSpec::name`]).
    pub id: Result<&'static str, &'static str>,
    /// User name and password.
    pub user: Result<&'static str, &'static str>,
    /// A certificate of its own.
    pub certificate: Result<&'static str, &'static str>,
}

impl Identification {
    /// Nothing, for this reason.
    pub const fn none(reason: &'static str) -> Identification {
        Identification {
            id: Err(reason),
            user: Err(reason),
            certificate: Err(reason),
        }
    }
}
