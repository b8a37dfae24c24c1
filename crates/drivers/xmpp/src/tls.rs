//! TLS: which connections have it, and what their certificates are for.

use std::sync::Arc;

use pubgauge_driver::{DriverError, Encryption, Tls};
use pubgauge_net::tls::{configure, connect, server_name};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use crate::endpoint::Endpoint;

/// What connections with TLS need.
pub(crate) struct Setup {
    /// For each of the shared endpoints; none for those without TLS.
    endpoints: Vec<Option<(Arc<ClientConfig>, ServerName<'static>)>>,
}

impl Setup {
    pub fn new(tls: &Tls, endpoints: &[Endpoint]) -> Result<Setup, DriverError> {
        let config = configure(tls)?;
        // XEP-0368 §2.
        let mut direct = (*config).clone();
        direct.alpn_protocols = vec![b"xmpp-client".to_vec()];
        let direct = Arc::new(direct);
        let endpoints = endpoints.iter().map(|endpoint| {
            let config = match endpoint.net.encryption {
                Encryption::None => return Ok(None),
                Encryption::StartTls => &config,
                Encryption::Tls => &direct,
            };
            // A certificate is for the XMPP domain, wherever its server is (RFC 6120 §13.7.2.1).
            let named = pubgauge_net::endpoint::Endpoint {
                host: endpoint.domain.clone(),
                ..endpoint.net.clone()
            };
            Ok(Some((Arc::clone(config), server_name(&named, Some(tls))?)))
        });
        Ok(Setup {
            endpoints: endpoints.collect::<Result<_, DriverError>>()?,
        })
    }

    /// A connection's TLS state.
    pub fn connection(&self, endpoint: usize) -> Result<Box<ClientConnection>, String> {
        let Some(Some((config, name))) = self.endpoints.get(endpoint) else {
            return Err("TLS is not set up".into());
        };
        connect(config, name.clone()).map_err(|error| format!("TLS cannot begin: {error}"))
    }
}
