//! Who single clients of a fleet are to the system, where that is not as it is for all.

use pubgauge_driver::{DriverError, Login, Secret};

use crate::tls::{OwnKey, TlsSetup};

/// The identity of one client.
pub(super) struct Identity {
    pub username: Option<Box<str>>,
    pub password: Option<Secret>,
    pub key: Option<OwnKey>,
}

/// Identities by the numbers of clients; empty where none has one of its own.
#[derive(Default)]
pub(super) struct Identities(Vec<Option<Box<Identity>>>);

impl Identities {
    /// Notes the login of a client, which may be empty.
    ///
    /// # Errors
    /// If its certificate or key cannot be used, or there is nothing to use it for.
    pub fn note(
        &mut self,
        client: usize,
        login: &Login,
        tls: Option<&TlsSetup>,
    ) -> Result<(), DriverError> {
        self.0.truncate(client);
        if login.is_empty() {
            return Ok(());
        }
        let key = match (&login.certificate, tls) {
            (None, _) => None,
            (Some(certificate), Some(tls)) => Some(tls.own_key(certificate)?),
            (Some(_), None) => {
                return Err(DriverError::with_hint(
                    "a client has a certificate of its own, but the endpoint has no TLS",
                    "give an address with TLS",
                ));
            }
        };
        self.0.resize_with(client, || None);
        self.0.push(Some(Box::new(Identity {
            username: login.username.as_deref().map(Box::from),
            password: login.password.clone(),
            key,
        })));
        Ok(())
    }

    /// The identity of a client that has one of its own.
    pub fn of_client(&self, client: usize) -> Option<&Identity> {
        self.0.get(client)?.as_deref()
    }
}
