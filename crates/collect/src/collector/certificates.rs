//! TLS of connections.

use std::sync::Arc;

use pubgauge_driver::Tls;
use pubgauge_net::endpoint::Endpoint;
use pubgauge_net::tls::TlsSetup;
use rustls::ClientConnection;

use crate::Error;
use crate::config::Broker;

/// TLS of the connection to each broker, by the broker's number.
#[derive(Default)]
pub struct Certificates(Vec<Option<(Arc<TlsSetup>, usize)>>);

impl Certificates {
    /// Reads the certificates for all brokers with TLS, those that several share once.
    ///
    /// # Errors
    /// Files that are missing, unreadable or do not belong together, with the first broker that they are for.
    pub fn read(brokers: &[Broker]) -> Result<Certificates, Error> {
        let mut shared: Vec<(&Tls, Vec<usize>)> = Vec::new();
        for (at, broker) in brokers.iter().enumerate() {
            if !broker.endpoint.encryption.is_on() {
                continue;
            }
            let files = &broker.tls;
            match shared.iter_mut().find(|(other, _)| *other == files) {
                Some((_, members)) => members.push(at),
                None => shared.push((files, vec![at])),
            }
        }
        let mut places = vec![None; brokers.len()];
        for (files, members) in shared {
            let endpoint = |at: &usize| brokers[*at].endpoint.clone();
            let endpoints: Vec<Endpoint> = members.iter().map(endpoint).collect();
            let host = |nth: usize| endpoints[nth].host.as_str();
            let setup =
                TlsSetup::new(files, &endpoints, host, &[b"mqtt"]).map_err(|error| Error {
                    is_input: true,
                    what: format!("{}: {}", endpoints[0].shown, error.what),
                    hint: error.hint,
                })?;
            let setup = Arc::new(setup);
            for (nth, at) in members.into_iter().enumerate() {
                places[at] = Some((setup.clone(), nth));
            }
        }
        Ok(Certificates(places))
    }

    /// The TLS state of a new connection to a broker; none for one without TLS.
    ///
    /// # Errors
    /// If rustls refuses.
    pub fn begin(&self, broker: usize) -> Result<Option<Box<ClientConnection>>, String> {
        let Some(Some((setup, nth))) = self.0.get(broker) else {
            return Ok(None);
        };
        let begun = setup.begin(*nth, None).map_err(|error| error.to_string())?;
        Ok(Some(begun))
    }
}
