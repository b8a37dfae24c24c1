//! The certificate of a run, and TLS that trusts it alone.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
};

use crate::credentials::{Credentials, Fingerprint, Token};

/// The name in the certificate. It is not checked: the fingerprint is.
const NAME: &str = "pubgauge-conductor";
/// What both ends export of a connection, for the proof of a token.
const EXPORTED: &[u8] = b"EXPORTER-pubgauge-join";

/// A conductor's key and certificate, made for one run and never written anywhere.
#[derive(Debug)]
pub struct Identity {
    fingerprint: Fingerprint,
    pub(crate) config: Arc<ServerConfig>,
}

/// Why there is no identity, or no credentials.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificate.
    #[error("cannot make a certificate for the run: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS with it.
    #[error("cannot set TLS up: {0}")]
    Tls(#[from] Error),
    /// Random numbers.
    #[error("cannot make tokens for the run: {0}")]
    Random(#[from] io::Error),
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Identity, IdentityError> {
        let key = rcgen::KeyPair::generate()?;
        let certificate = rcgen::CertificateParams::new([NAME.to_owned()])?.self_signed(&key)?;
        let der = certificate.der().clone();
        let fingerprint = Fingerprint::of(&der);
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![der], key)?;
        // No session is resumed.
        config.send_tls13_tickets = 0;
        Ok(Identity {
            fingerprint,
            config: Arc::new(config),
        })
    }

    /// The fingerprint and a new token for each rank below `size`.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn credentials(&self, size: u32) -> Result<Credentials, IdentityError> {
        let tokens = (0..size).map(|rank| Ok((rank, Token::random()?)));
        Ok(Credentials {
            fingerprint: self.fingerprint,
            tokens: tokens.collect::<io::Result<BTreeMap<_, _>>>()?,
        })
    }
}

/// TLS for a worker that trusts one certificate.
pub(crate) fn trusting(fingerprint: Fingerprint) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(default_provider());
    let pinned = Pinned {
        fingerprint,
        algorithms: provider.signature_verification_algorithms,
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The name that a worker asks for.
pub(crate) fn name() -> ServerName<'static> {
    ServerName::try_from(NAME).expect("a host name")
}

/// A secret of one connection that both its ends know (RFC 8446 §7.5).
pub(crate) fn exported<Side>(tls: &rustls::ConnectionCommon<Side>) -> Result<[u8; 32], Error> {
    tls.export_keying_material([0; 32], EXPORTED, None)
}

/// Whether a handshake failed because the certificate is not the one that is trusted.
pub(crate) fn is_another(error: &Error) -> bool {
    let another = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
    *error == another
}

/// Trusts one certificate, by its fingerprint; the handshake shows that the server has its key.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match Fingerprint::of(certificate) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // TLS 1.2 is not offered.
        Err(CertificateError::BadSignature.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
