//! Whether a server's certificate is trusted, and in words why not and what to do.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use pubgauge_driver::DriverError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};

use super::certificate::Certificate;

/// Verifies certificates as web browsers do, and trusts one that the user named itself.
///
/// rustls takes no certificate of an authority and none of version 1 from a server; both are what
/// `openssl req -x509` and `openssl x509 -signkey` make for a broker. Where the very certificate that
/// the server shows is among those that the user named, its issuer does not matter: the server
/// proves by the handshake's signature that it has the key. Its names and its validity are checked.
#[derive(Debug)]
pub(super) struct Trust {
    web: Arc<WebPkiServerVerifier>,
    /// Certificates in the file that the user named; none where it is the system's.
    named: Vec<CertificateDer<'static>>,
    /// Where the authorities come from.
    from: String,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    pub fn new(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        from: String,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Trust, DriverError> {
        let web = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| DriverError::new(format!("TLS cannot be set up: {error}")))?;
        Ok(Trust {
            web,
            named,
            from,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    /// Checks a certificate that the user named itself: validity and names.
    fn as_named(
        &self,
        der: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let certificate = Certificate::read(der).ok_or(CertificateError::BadEncoding)?;
        in_time(&certificate, now)?;
        if certificate.names_hosts {
            return match verify_server_name(
                &ParsedCertificate::try_from(der).map_err(certificate_error)?,
                name,
            ) {
                Ok(()) => Ok(()),
                Err(error) => Err(certificate_error(error)),
            };
        }
        // Without subjectAltName only the common name is left (RFC 6125 §6.4.4).
        let common_name = certificate.common_name;
        if common_name.is_some_and(|cn| cn.eq_ignore_ascii_case(&name.to_str())) {
            return Ok(());
        }
        Err(CertificateError::NotValidForNameContext {
            expected: name.to_owned(),
            presented: common_name.map(str::to_owned).into_iter().collect(),
        })
    }

    /// Why a certificate is not taken, and what to do.
    fn explain(
        &self,
        der: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
        error: &CertificateError,
    ) -> Distrust {
        let certificate = Certificate::read(der);
        let version_1 = certificate.as_ref().is_some_and(|c| c.version_1);
        let self_issued = certificate.as_ref().is_some_and(|c| c.self_issued);
        // One of version 1 is refused before anything else of it is looked at.
        let late = certificate.as_ref().and_then(|c| in_time(c, now).err());
        let name = name.to_str();
        let from = &self.from;
        match late.as_ref().unwrap_or(error) {
            CertificateError::ExpiredContext { not_after, .. } => Distrust {
                what: format!("the server's certificate expired at {}", date(*not_after)),
                hint: "renew it on the server; or --insecure, if it does not matter who answers"
                    .into(),
            },
            CertificateError::NotValidYetContext { not_before, .. } => Distrust {
                what: format!(
                    "the server's certificate is valid only from {} on",
                    date(*not_before)
                ),
                hint: "compare the clocks of this machine and of the one that made it".into(),
            },
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names = |c: &Certificate<'_>| !c.names_hosts && c.common_name.is_some();
                let by_common_name = certificate.as_ref().is_some_and(names);
                Distrust {
                    what: if presented.is_empty() { format!(
                        "the server's certificate is not for {name}: it names no host (no subjectAltName)"
                    ) } else { format!(
                        "the server's certificate is not for {name}, but for {}",
                        presented.iter().map(|n| plain(n)).collect::<Vec<_>>().join(", ")
                    ) },
                    hint: match (presented.is_empty(), by_common_name) {
                        (true, true) => format!(
                            "its common name does for a certificate that --ca names itself: openssl s_client -showcerts shows it; or make one with -addext subjectAltName=DNS:{name}"
                        ),
                        (true, false) => {
                            format!("make one with -addext subjectAltName=DNS:{name} (IP:... for an address)")
                        }
                        (false, _) => "write one of these names into the address, or make a certificate for the name that is there; or --insecure, if it does not matter who answers".into(),
                    },
                }
            }
            _ if self_issued => Distrust {
                what: format!("the server's certificate is self-signed and not in {from}"),
                hint: "name the certificate itself: --ca FILE (PEM, the same file that the server has)"
                    .into(),
            },
            _ if version_1 => Distrust {
                what: "the server's certificate is of X.509 version 1, which is trusted only where it is named itself".into(),
                hint: "--ca FILE with the server's own certificate (PEM); or make one of version 3".into(),
            },
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Distrust {
                what: format!("nobody in {from} has issued the server's certificate"),
                hint: "--ca FILE with the certificate (PEM) of the authority that signed it, or with the server's own".into(),
            },
            error => Distrust {
                what: format!(
                    "the server's certificate cannot be used: {}",
                    Error::from(error.clone())
                ),
                hint: "--ca FILE with the server's own certificate (PEM) trusts it as it is".into(),
            },
        }
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = if self.named.contains(end_entity) {
            self.as_named(end_entity, name, now)
        } else {
            self.web
                .verify_server_cert(end_entity, intermediates, name, ocsp, now)
                .map(|_| ())
                .map_err(certificate_error)
        };
        match verified {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(error) => {
                let words = self.explain(end_entity, name, now, &error);
                Err(CertificateError::Other(OtherError(Arc::new(words))).into())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Some(Certificate {
            version_1: true,
            key,
            ..
        }) = Certificate::read(certificate)
        else {
            return verify_tls12_signature(message, certificate, signed, &self.algorithms);
        };
        // TLS 1.2 does not say which curve belongs to a scheme: any that fits the key.
        let mapping = self.algorithms.mapping.iter();
        let of_scheme = mapping.filter(|(scheme, _)| *scheme == signed.scheme);
        let verified = of_scheme.flat_map(|(_, algorithms)| *algorithms).any(|a| {
            a.public_key_alg_id().as_ref() == key.algorithm
                && a.verify_signature(key.bits, message, signed.signature())
                    .is_ok()
        });
        if verified {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match Certificate::read(certificate) {
            Some(Certificate {
                version_1: true,
                key,
                ..
            }) => {
                let key = SubjectPublicKeyInfoDer::from(key.info);
                verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
            }
            _ => verify_tls13_signature(message, certificate, signed, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Takes any certificate, unchecked.
#[derive(Debug)]
pub(super) struct Anybody {
    pub schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Why a server is not trusted, and what to do.
#[derive(Debug)]
struct Distrust {
    what: String,
    hint: String,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Distrust {}

/// Why TLS failed at `endpoint` (`SCHEME://HOST:PORT`), and what to do.
pub fn failure(endpoint: &str, error: &Error) -> DriverError {
    let distrust = match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(other))) => {
            other.downcast_ref::<Distrust>()
        }
        _ => None,
    };
    let (what, hint) = match error {
        Error::InvalidMessage(_) => (
            "the server's answer is not TLS".to_owned(),
            wrong_port(endpoint),
        ),
        Error::AlertReceived(alert) => (
            format!("the server refused: {alert:?}"),
            match alert {
                AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure => {
                    "the server may want a client certificate: --cert FILE --key FILE"
                }
                AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied => {
                    "the server does not take this client's certificate: is it signed by the authority that the server trusts, and valid (--cert, --key)?"
                }
                AlertDescription::ProtocolVersion => {
                    "the client speaks TLS 1.2 and 1.3: allow one of them on the server"
                }
                _ => "the server's log may say why",
            }
            .to_owned(),
        ),
        other => match distrust {
            Some(distrust) => (distrust.what.clone(), distrust.hint.clone()),
            None => (
                other.to_string(),
                "check the server's TLS settings; its log may say more".to_owned(),
            ),
        },
    };
    DriverError::with_hint(format!("{endpoint}: TLS failed: {what}"), hint)
}

/// The server ended the connection at `endpoint` in the middle of the handshake.
pub fn ended_early(endpoint: &str) -> DriverError {
    DriverError::with_hint(
        format!("{endpoint}: the server closed the connection during the TLS handshake"),
        wrong_port(endpoint),
    )
}

/// The server at `endpoint`, which was spoken to in plain text, speaks TLS.
pub fn unexpected(endpoint: &str) -> DriverError {
    DriverError::with_hint(
        format!("{endpoint}: the server speaks TLS at this port"),
        wrong_port(endpoint),
    )
}

/// Hint where one side speaks TLS and the other does not.
pub fn wrong_port(endpoint: &str) -> String {
    let scheme = endpoint.split("://").next().unwrap_or_default();
    let asked =
        "does this port speak TLS (usual ones are 8883 for MQTT, 5671 for AMQP, 5223 for XMPP)?";
    match scheme {
        "mqtts" | "amqps" | "xmpps" | "wss" => format!(
            "{asked} Without TLS the address begins with {}://",
            scheme.trim_end_matches('s')
        ),
        "mqtt" | "amqp" | "xmpp" | "ws" => format!("{asked} With TLS the address begins with {scheme}s://"),
        // Here the port speaks plain text at first.
        "nats+tls" => "does it offer TLS? Without TLS the address begins with nats://. TLS from the first byte (handshake_first) is not spoken here.".into(),
        "nats" => "does it do without TLS? With TLS the address begins with nats+tls://.".into(),
        "xmpp+starttls" => "with TLS from the first byte the address begins with xmpps://, without any TLS with xmpp://".into(),
        _ => asked.into(),
    }
}

/// Whether the server speaks TLS where plain text was expected: its first bytes are a record with an
/// alert or a handshake (RFC 8446 §5.1).
pub fn looks_like_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, 0..=4, ..])
}

fn in_time(certificate: &Certificate<'_>, time: UnixTime) -> Result<(), CertificateError> {
    let (first, last) = (*certificate.validity.start(), *certificate.validity.end());
    let at = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    if time.as_secs() > last {
        return Err(CertificateError::ExpiredContext {
            time,
            not_after: at(last),
        });
    }
    if time.as_secs() < first {
        return Err(CertificateError::NotValidYetContext {
            time,
            not_before: at(first),
        });
    }
    Ok(())
}

/// The error of a certificate in an error of rustls.
fn certificate_error(error: Error) -> CertificateError {
    match error {
        Error::InvalidCertificate(error) => error,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    }
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| "an impossible time".into(), |t| t.to_string())
}

/// A name as rustls presents it (`DnsName("broker")`, `IpAddress(127.0.0.1)`), without the wrapping.
fn plain(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}
