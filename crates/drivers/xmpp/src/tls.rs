//! TLS by rustls.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use pubgauge_driver::{DriverError, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::endpoint::{Endpoint, Security};
use crate::socket::{self, Io};

/// Where Linux distributions keep the authorities they trust.
const SYSTEM_AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// What connections with TLS need.
pub(crate) struct Setup {
    /// For each endpoint; none for those without TLS.
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
            let config = match endpoint.security {
                Security::None => return Ok(None),
                Security::StartTls => &config,
                Security::Direct => &direct,
            };
            Ok(Some((Arc::clone(config), server_name(endpoint, tls)?)))
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
        ClientConnection::new(Arc::clone(config), name.clone())
            .map(Box::new)
            .map_err(|error| format!("TLS cannot begin: {error}"))
    }
}

/// Reads the certificates and makes the configuration that all connections of a fleet share.
fn configure(tls: &Tls) -> Result<Arc<ClientConfig>, DriverError> {
    let system = || {
        SYSTEM_AUTHORITIES
            .iter()
            .map(Path::new)
            .find(|p| p.exists())
    };
    let Some(ca_file) = tls.ca_file.as_deref().or_else(system) else {
        return Err(DriverError::with_hint(
            "an encrypted endpoint, but no authorities to check its certificate against",
            "give the CA certificate as a PEM file, or install the system's (ca-certificates)",
        ));
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(ca_file, "CA certificates")?);
    if added == 0 {
        return Err(DriverError::with_hint(
            format!("{} has no usable CA certificate", ca_file.display()),
            "expected PEM: -----BEGIN CERTIFICATE-----",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| DriverError::new(format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots);
    let config = match (&tls.cert_file, &tls.key_file) {
        (None, None) => builder.with_no_client_auth(),
        (Some(cert_file), Some(key_file)) => {
            let chain = certificates(cert_file, "the client's certificate")?;
            let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| {
                unreadable(key_file, "the client's private key", &error.to_string())
            })?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                DriverError::with_hint(
                    format!("the client's certificate cannot be used: {error}"),
                    format!(
                        "{} and {} must belong together",
                        cert_file.display(),
                        key_file.display()
                    ),
                )
            })?
        }
        _ => {
            return Err(DriverError::with_hint(
                "a client certificate needs its private key, and the other way round",
                "give both files or neither",
            ));
        }
    };
    Ok(Arc::new(config))
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, DriverError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(path, what, &error.to_string()))
}

fn unreadable(path: &Path, what: &str, error: &str) -> DriverError {
    DriverError::with_hint(
        format!("cannot read {what} from {}: {error}", path.display()),
        "expected a PEM file that this user may read",
    )
}

/// The name that the server's certificate must be for: the XMPP domain (RFC 6120 §13.7.2.1),
/// unless the user says otherwise.
fn server_name(endpoint: &Endpoint, tls: &Tls) -> Result<ServerName<'static>, DriverError> {
    let name = tls.server_name.as_deref().unwrap_or(&endpoint.domain);
    ServerName::try_from(name.to_owned()).map_err(|_| {
        DriverError::with_hint(
            format!("{name:?} is not a name that a certificate can be checked against"),
            "give a host name or an IP address",
        )
    })
}

/// A socket as rustls wants to see it.
pub(crate) struct Wire<'a> {
    pub fd: BorrowedFd<'a>,
    /// Bytes that went through, added up.
    pub moved: u64,
}

impl Wire<'_> {
    fn result(&mut self, io: Io) -> io::Result<usize> {
        match io {
            Io::Done(n) => {
                self.moved += n as u64;
                Ok(n)
            }
            Io::WouldBlock => Err(io::ErrorKind::WouldBlock.into()),
            Io::Failed(errno) => Err(errno.into()),
        }
    }
}

impl io::Read for Wire<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let io = socket::read(self.fd, buf);
        self.result(io)
    }
}

impl io::Write for Wire<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let io = socket::write(self.fd, buf);
        self.result(io)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
