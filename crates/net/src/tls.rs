//! TLS by rustls.

mod certificate;
mod own;
mod trust;

pub use own::OwnKey;
pub use trust::{ended_early, failure, looks_like_tls, unexpected, wrong_port};

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubgauge_driver::{Attempt, DriverError, Encryption, OwnCertificate, Secret, Tls};
use rustix::io::Errno;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::endpoint::Endpoint;
use crate::socket::{self, Arrived, Io};
use crate::websocket;
use certificate::Certificate;
use trust::Trust;

/// Where Linux distributions keep the authorities they trust.
const SYSTEM_AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Reads the certificates and makes the configuration that all connections of a fleet share.
///
/// # Errors
/// Files that are missing, unreadable or do not belong together.
pub fn configure(tls: &Tls) -> Result<Arc<ClientConfig>, DriverError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if tls.insecure {
        Arc::new(trust::Anybody {
            schemes: provider
                .signature_verification_algorithms
                .supported_schemes(),
        })
    } else {
        Arc::new(trust(tls, &provider)?)
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| DriverError::new(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match own::read(tls)? {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let certificate = chain.first().and_then(|first| Certificate::read(first));
            let is_version_1 = certificate.is_some_and(|one| one.version_1);
            let shown = |file: &Option<PathBuf>| {
                let file = file.as_ref().or(tls.cert_file.as_ref());
                file.map_or(String::new(), |file| file.display().to_string())
            };
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                if is_version_1 {
                    return DriverError::with_hint(
                        format!(
                            "{} is a certificate of X.509 version 1, which rustls does not take",
                            shown(&tls.cert_file)
                        ),
                        "issue it as version 3: `openssl x509 -req` does with an -extfile that has any extension",
                    );
                }
                DriverError::with_hint(
                    format!("the client's certificate cannot be used: {error}"),
                    format!(
                        "{} and {} must belong together",
                        shown(&tls.cert_file),
                        shown(&tls.key_file)
                    ),
                )
            })?
        }
    };
    Ok(Arc::new(config))
}

/// The authorities that are trusted: those in the file that was named, else the system's.
fn trust(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Trust, DriverError> {
    if let Some(pem) = &tls.ca_pem {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let found = found.map_err(|error| {
            DriverError::new(format!("the authority of the run cannot be read: {error}"))
        })?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.clone());
        return Trust::new(roots, found, "the run".to_owned(), provider);
    }
    let system = || {
        SYSTEM_AUTHORITIES
            .iter()
            .map(Path::new)
            .find(|p| p.exists())
    };
    let Some(file) = tls.ca_file.as_deref().or_else(system) else {
        return Err(DriverError::with_hint(
            "an endpoint with TLS, but no authorities to check its certificate against",
            "--ca FILE with the authority's or the server's own certificate (PEM), or install the system's authorities (ca-certificates)",
        ));
    };
    let found = certificates(file, "CA certificates")?;
    let (named, from) = if tls.ca_file.is_some() {
        (found.clone(), file.display().to_string())
    } else {
        (Vec::new(), format!("{} (the system's)", file.display()))
    };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        return Err(DriverError::with_hint(
            format!("{} has no usable CA certificate", file.display()),
            "expected PEM: -----BEGIN CERTIFICATE-----",
        ));
    }
    Trust::new(roots, named, from, provider)
}

fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, DriverError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(path, what, error))
}

fn unreadable(path: &Path, what: &str, error: pem::Error) -> DriverError {
    let what = format!("cannot read {what} from {}", path.display());
    match error {
        pem::Error::Io(error) => DriverError::of_io(what, Attempt::Open, &error),
        other => DriverError::new(format!("{what}: {other}")),
    }
    .or_hint("expected a PEM file that this user may read")
}

/// TLS of the connections of a fleet.
pub struct TlsSetup {
    /// For each of the fleet's endpoints; none for those without TLS.
    places: Vec<Option<(Arc<ClientConfig>, ServerName<'static>)>>,
    /// The passphrase of clients' private keys.
    passphrase: Option<Secret>,
}

impl TlsSetup {
    /// Reads the certificates. `name` gives the host name that the certificate at each place must be
    /// for, unless `tls` names one; `alpn` is named where TLS begins with the connection, unless `tls` names other
    /// protocols. Over WebSocket it is always that of HTTP.
    ///
    /// # Errors
    /// As [`configure`]; names that are neither a host's nor an IP address.
    pub fn new<'a>(
        tls: &Tls,
        endpoints: &[Endpoint],
        name: impl Fn(usize) -> &'a str,
        alpn: &[&[u8]],
    ) -> Result<TlsSetup, DriverError> {
        let config = configure(tls)?;
        let mut direct = (*config).clone();
        let asked_for: Vec<&[u8]> = tls.alpn.iter().map(String::as_bytes).collect();
        let alpn = if asked_for.is_empty() {
            alpn
        } else {
            &asked_for
        };
        direct.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let direct = Arc::new(direct);
        let mut browser = (*config).clone();
        browser.alpn_protocols = vec![websocket::ALPN.to_vec()];
        let browser = Arc::new(browser);
        let places = endpoints.iter().enumerate().map(|(place, endpoint)| {
            let config = match endpoint.encryption {
                Encryption::None => return Ok(None),
                Encryption::StartTls => &config,
                Encryption::Tls if endpoint.websocket.is_some() => &browser,
                Encryption::Tls => &direct,
            };
            let name = tls.server_name.as_deref().unwrap_or_else(|| name(place));
            Ok(Some((Arc::clone(config), checked_name(name)?)))
        });
        Ok(TlsSetup {
            places: places.collect::<Result<_, DriverError>>()?,
            passphrase: tls.passphrase.clone(),
        })
    }

    /// The key of one client.
    ///
    /// # Errors
    /// As [`OwnKey::read`].
    pub fn own_key(&self, certificate: &OwnCertificate) -> Result<OwnKey, DriverError> {
        OwnKey::read(certificate, self.passphrase.as_ref())
    }

    /// A connection's TLS state, for a client that proves itself with a key of its `own` if it has one.
    ///
    /// # Errors
    /// If TLS is not set up for that endpoint, or rustls refuses.
    pub fn begin(
        &self,
        place: usize,
        own: Option<&OwnKey>,
    ) -> Result<Box<ClientConnection>, DriverError> {
        let Some(Some((config, name))) = self.places.get(place) else {
            return Err(DriverError::new("TLS is not set up"));
        };
        let config = match own {
            None => config,
            Some(own) => &own.configure(config),
        };
        connect(config, name.clone())
            .map_err(|error| DriverError::new(format!("TLS cannot begin: {error}")))
    }
}

/// A name that a certificate can be checked against.
fn checked_name(name: &str) -> Result<ServerName<'static>, DriverError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        DriverError::with_hint(
            format!("{name:?} is not a name that a certificate can be checked against"),
            "give a host name or an IP address",
        )
    })
}

/// A socket with the reading and writing that rustls calls.
pub struct Wire<'a> {
    /// The socket.
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

/// Why a connection with TLS cannot be read from.
#[derive(Debug)]
pub enum TlsFailure {
    /// The socket failed.
    Socket(Errno),
    /// The answer is not TLS, or the server's certificate is not trusted. An alert was sent.
    Protocol(rustls::Error),
}

/// Reads once from the socket and lets TLS take it in, unless there was nothing ([`Arrived::Drained`]);
/// plaintext may be there then, at the end of the stream too. The encrypted bytes are added to `received`.
///
/// # Errors
/// If the connection cannot go on.
pub fn read(
    fd: BorrowedFd<'_>,
    tls: &mut ClientConnection,
    received: &mut u64,
) -> Result<Arrived, TlsFailure> {
    let mut wire = Wire { fd, moved: 0 };
    let read = tls.read_tls(&mut wire);
    *received += wire.moved;
    let read = match read {
        Ok(0) => Arrived::Ended,
        Ok(_) => Arrived::More,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Arrived::Drained),
        Err(error) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            return Err(TlsFailure::Socket(errno));
        }
    };
    tls.process_new_packets().map_err(|error| {
        // rustls has an alert ready that tells the server.
        let _ = tls.write_tls(&mut wire);
        TlsFailure::Protocol(error)
    })?;
    Ok(read)
}

/// A connection's TLS state.
///
/// # Errors
/// If rustls refuses.
pub fn connect(
    config: &Arc<ClientConfig>,
    name: ServerName<'static>,
) -> Result<Box<ClientConnection>, rustls::Error> {
    ClientConnection::new(Arc::clone(config), name).map(Box::new)
}
