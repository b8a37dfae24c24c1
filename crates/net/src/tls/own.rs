//! The certificates and the private key that a client proves itself with, in the forms in which they come. PEM and DER;
//! keys of PKCS#8, PKCS#1 and SEC1, encrypted or not; both together in PKCS#12.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use aes::{Aes128, Aes192, Aes256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use des::TdesEde3;
use md5::{Digest, Md5};
use p12_keystore::Pkcs12Archive;
use pkcs8::EncryptedPrivateKeyInfoRef;
use pubgauge_driver::{Attempt, DriverError, KEY_PASSPHRASE_VARIABLE, OwnCertificate, Secret, Tls};
use rustls::ClientConfig;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::ring;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

/// Largest file of a certificate or a key, in bytes.
const MOST: u64 = 1 << 20;

/// A client's certificate, those that lead from it to an authority, and its private key.
pub(super) type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads both, where there are any.
///
/// # Errors
/// Which file cannot be read or opened, and what was expected.
pub(super) fn read(tls: &Tls) -> Result<Option<Own>, DriverError> {
    let Some(cert_file) = &tls.cert_file else {
        return match &tls.key_file {
            None => Ok(None),
            Some(key_file) => Err(DriverError::with_hint(
                format!("the private key {} has no certificate", key_file.display()),
                "name the client's certificate too: --cert FILE",
            )),
        };
    };
    let passphrase = tls.passphrase.as_ref().map(Secret::reveal);
    let first = Contents::read(cert_file, passphrase)?;
    let key_file = tls.key_file.as_ref().filter(|file| *file != cert_file);
    let second = key_file.map(|file| Contents::read(file, passphrase));
    let second = second.transpose()?;
    if first.chain.is_empty() {
        return Err(DriverError::with_hint(
            format!("there is no certificate in {}", cert_file.display()),
            "expected PEM (-----BEGIN CERTIFICATE-----), DER or PKCS#12",
        ));
    }
    let key = match (second, key_file) {
        (Some(Contents { key: Some(key), .. }), _) => Some(key),
        (Some(_), Some(file)) => {
            return Err(DriverError::with_hint(
                format!("there is no private key in {}", file.display()),
                "expected PEM (-----BEGIN PRIVATE KEY-----), DER or PKCS#12",
            ));
        }
        _ => first.key,
    };
    let Some(key) = key else {
        return Err(DriverError::with_hint(
            format!("the private key of {} is missing", cert_file.display()),
            "name its file: --key FILE",
        ));
    };
    Ok(Some((first.chain, key)))
}

/// The certificate and the key of one client among several, ready for handshakes.
#[derive(Clone)]
pub struct OwnKey {
    resolver: Arc<dyn ResolvesClientCert>,
    /// Sessions of this client alone: one that another client began would be of the other's identity.
    sessions: Resumption,
}

impl OwnKey {
    /// Reads both.
    ///
    /// # Errors
    /// Why they cannot be used, and what was expected.
    pub fn read(
        certificate: &OwnCertificate,
        passphrase: Option<&Secret>,
    ) -> Result<OwnKey, DriverError> {
        let shown = certificate.file.display();
        let contents = Contents::of_pem(certificate.pem.reveal(), passphrase.map(Secret::reveal));
        let contents = contents.map_err(|fault| fault.describe(&shown))?;
        let Contents {
            chain,
            key: Some(key),
        } = contents
        else {
            return Err(DriverError::new(format!(
                "the private key of {shown} is missing"
            )));
        };
        let provider = ring::default_provider();
        let key = CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
            DriverError::with_hint(
                format!("the client's certificate {shown} cannot be used: {error}"),
                "the certificate and the private key beside it must belong together",
            )
        })?;
        Ok(OwnKey {
            resolver: Arc::new(SingleCertAndKey::from(key)),
            sessions: Resumption::in_memory_sessions(1),
        })
    }

    /// A configuration of all clients, as it is for this one.
    pub(super) fn configure(&self, config: &ClientConfig) -> Arc<ClientConfig> {
        let mut own = config.clone();
        own.client_auth_cert_resolver = Arc::clone(&self.resolver);
        own.resumption = self.sessions.clone();
        Arc::new(own)
    }
}

/// Certificates and a key of one file.
#[derive(Default)]
struct Contents {
    chain: Vec<CertificateDer<'static>>,
    key: Option<PrivateKeyDer<'static>>,
}

/// Why a file does not open.
enum Fault {
    /// It is encrypted, and there is no passphrase.
    Locked,
    /// The passphrase is another one, or the file is damaged.
    WrongPassphrase,
    /// It is none of the forms, or one that is not known here.
    Odd(String),
}

impl Fault {
    /// In words, of the file that is shown so.
    fn describe(self, shown: &dyn Display) -> DriverError {
        match self {
            Fault::Locked => DriverError::with_hint(
                format!(
                    "the private key in {shown} is encrypted, and there is no passphrase for it"
                ),
                format!(
                    "give it in the variable {KEY_PASSPHRASE_VARIABLE} or in a file: --key-passphrase-file FILE"
                ),
            ),
            Fault::WrongPassphrase => DriverError::with_hint(
                format!("the passphrase does not open the private key in {shown}"),
                "check the passphrase; if it is right, the file is damaged",
            ),
            Fault::Odd(what) => DriverError::with_hint(
                format!("{shown}: {what}"),
                "expected certificates and keys as PEM or DER (PKCS#8, PKCS#1, SEC1), or PKCS#12",
            ),
        }
    }
}

impl Contents {
    fn read(path: &Path, passphrase: Option<&str>) -> Result<Contents, DriverError> {
        let shown = path.display();
        let unreadable = |error: std::io::Error| {
            DriverError::of_io(format!("cannot read {shown}"), Attempt::Open, &error)
                .or_hint("expected a file that this user may read")
        };
        let length = path.metadata().map_err(unreadable)?.len();
        if length > MOST {
            return Err(DriverError::new(format!(
                "{shown} has {length} bytes: no certificate or key is that long"
            )));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let contents = match std::str::from_utf8(&bytes) {
            Ok(text) if text.contains("-----BEGIN ") => Contents::of_pem(text, passphrase),
            _ => Contents::of_der(bytes, passphrase),
        };
        contents.map_err(|fault| fault.describe(&shown))
    }

    fn of_pem(text: &str, passphrase: Option<&str>) -> Result<Contents, Fault> {
        let mut contents = Contents::default();
        for section in sections(text) {
            let Section {
                label,
                headers,
                der,
            } = section?;
            let der = match headers
                .iter()
                .find_map(|line| line.strip_prefix("DEK-Info:"))
            {
                Some(how) => open_traditional(how.trim(), &der, passphrase.ok_or(Fault::Locked)?)?,
                None => der,
            };
            match label {
                "CERTIFICATE" | "X509 CERTIFICATE" => contents.chain.push(der.into()),
                "ENCRYPTED PRIVATE KEY" => contents.key = Some(of_pkcs8(&der, passphrase)?),
                "PRIVATE KEY" => contents.key = Some(PrivatePkcs8KeyDer::from(der).into()),
                "RSA PRIVATE KEY" => contents.key = Some(PrivatePkcs1KeyDer::from(der).into()),
                "EC PRIVATE KEY" => contents.key = Some(PrivateSec1KeyDer::from(der).into()),
                // Parameters of a curve and the like.
                _ => {}
            }
        }
        Ok(contents)
    }

    fn of_der(der: Vec<u8>, passphrase: Option<&str>) -> Result<Contents, Fault> {
        let key = |key: PrivateKeyDer<'static>| Contents {
            key: Some(key),
            ..Contents::default()
        };
        match Form::recognize(&der) {
            Some(Form::Certificate) => Ok(Contents {
                chain: vec![der.into()],
                key: None,
            }),
            Some(Form::Pkcs12) => of_pkcs12(&der, passphrase),
            Some(Form::Encrypted) => of_pkcs8(&der, passphrase).map(key),
            Some(Form::Pkcs8) => Ok(key(PrivatePkcs8KeyDer::from(der).into())),
            Some(Form::Pkcs1) => Ok(key(PrivatePkcs1KeyDer::from(der).into())),
            Some(Form::Sec1) => Ok(key(PrivateSec1KeyDer::from(der).into())),
            None => Err(Fault::Odd("neither a certificate nor a key".into())),
        }
    }
}

/// Kinds of DER, by the first elements of its sequence.
enum Form {
    Certificate,
    /// RFC 7292.
    Pkcs12,
    /// RFC 5958 §3.
    Encrypted,
    /// RFC 5958 §2.
    Pkcs8,
    /// RFC 8017 §A.1.2.
    Pkcs1,
    /// RFC 5915.
    Sec1,
}

impl Form {
    fn recognize(der: &[u8]) -> Option<Form> {
        const SEQUENCE: u8 = 0x30;
        const INTEGER: u8 = 0x02;
        const OCTETS: u8 = 0x04;
        let (tag, inner, _) = element(der)?;
        let (first, version, rest) = element(inner)?;
        let (second, _, _) = element(rest)?;
        match (tag, first, second) {
            (SEQUENCE, SEQUENCE, OCTETS) => Some(Form::Encrypted),
            (SEQUENCE, SEQUENCE, SEQUENCE) => Some(Form::Certificate),
            (SEQUENCE, INTEGER, SEQUENCE) if version == [3] => Some(Form::Pkcs12),
            (SEQUENCE, INTEGER, SEQUENCE) => Some(Form::Pkcs8),
            (SEQUENCE, INTEGER, INTEGER) => Some(Form::Pkcs1),
            (SEQUENCE, INTEGER, OCTETS) => Some(Form::Sec1),
            _ => None,
        }
    }
}

/// The tag and the content of the first element, and what follows it (X.690 §8.1). An end that is cut off is left out.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = der.split_first_chunk()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        rest = after;
        // An indefinite length of BER ends where the file ends.
        length = match bytes {
            [] => rest.len(),
            [_, _, _, _, _, ..] => return None,
            _ => bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
        };
    }
    let (content, after) = rest.split_at(length.min(rest.len()));
    Some((tag, content, after))
}

fn of_pkcs8(der: &[u8], passphrase: Option<&str>) -> Result<PrivateKeyDer<'static>, Fault> {
    let passphrase = passphrase.ok_or(Fault::Locked)?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(der)
        .map_err(|error| Fault::Odd(format!("an encrypted key that cannot be read: {error}")))?;
    let key = encrypted.decrypt(passphrase).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::UnsupportedAlgorithm { .. }) => {
            Fault::Odd(format!(
                "a key that is encrypted in a way that is not known here: {error}"
            ))
        }
        _ => Fault::WrongPassphrase,
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

fn of_pkcs12(der: &[u8], passphrase: Option<&str>) -> Result<Contents, Fault> {
    let archive = Pkcs12Archive::from_pkcs12(der, passphrase.unwrap_or_default());
    let archive = archive.map_err(|error| match (error, passphrase) {
        (p12_keystore::error::Error::UnsupportedEncryptionScheme, _) => {
            Fault::Odd("PKCS#12 that is encrypted in a way that is not known here".into())
        }
        (_, None) => Fault::Locked,
        (_, Some(_)) => Fault::WrongPassphrase,
    })?;
    let key = archive.keys.first();
    let id = key.and_then(|key| key.local_key_id.as_ref());
    let is_of_key = |cert: &&p12_keystore::CertificateBag| {
        id.is_some_and(|id| cert.local_key_id.as_deref() == Some(id.as_ref()))
    };
    let (own, others): (Vec<_>, Vec<_>) = archive.certs.iter().partition(is_of_key);
    let chain = own.into_iter().chain(others);
    Ok(Contents {
        chain: chain.map(|bag| bag.cert.as_der().to_vec().into()).collect(),
        key: key.map(|bag| PrivatePkcs8KeyDer::from(bag.key.as_der().to_vec()).into()),
    })
}

/// A part of PEM (RFC 1421 §4.4, RFC 7468).
struct Section<'a> {
    label: &'a str,
    headers: Vec<&'a str>,
    der: Vec<u8>,
}

fn sections(text: &str) -> impl Iterator<Item = Result<Section<'_>, Fault>> {
    let mut lines = text.lines().map(str::trim);
    std::iter::from_fn(move || {
        let begin = |line: &str| line.starts_with("-----BEGIN ") && line.ends_with("-----");
        let label = lines.find(|line| begin(line))?;
        let label = &label["-----BEGIN ".len()..label.len() - "-----".len()];
        let (mut headers, mut body) = (Vec::new(), String::new());
        loop {
            match lines.next() {
                None => return Some(Err(Fault::Odd(format!("the end of `{label}` is missing")))),
                Some(line) if line.starts_with("-----END ") => break,
                Some(line) if line.contains(':') => headers.push(line),
                Some(line) => body.push_str(line),
            }
        }
        let der = STANDARD
            .decode(body)
            .map_err(|error| Fault::Odd(format!("`{label}` is not Base64: {error}")));
        Some(der.map(|der| Section {
            label,
            headers,
            der,
        }))
    })
}

/// The content of a key that is encrypted as OpenSSL did before PKCS#8: `how` is the cipher and its initialisation vector,
/// the key of the cipher comes from MD5 (`EVP_BytesToKey`).
fn open_traditional(how: &str, encrypted: &[u8], passphrase: &str) -> Result<Vec<u8>, Fault> {
    let odd = || {
        Fault::Odd(format!(
            "a key that is encrypted in a way that is not known here: {how}"
        ))
    };
    let (cipher, vector) = how.split_once(',').ok_or_else(odd)?;
    let pairs = vector.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let vector: Vec<u8> = pairs.map(byte).collect::<Option<_>>().ok_or_else(odd)?;
    let salt = vector.get(..8).ok_or_else(odd)?;
    let (mut key, mut last) = (Vec::new(), Vec::new());
    while key.len() < 32 {
        let digest = Md5::new().chain_update(&last);
        let digest = digest
            .chain_update(passphrase.as_bytes())
            .chain_update(salt);
        last = digest.finalize().to_vec();
        key.extend_from_slice(&last);
    }
    let opened = match cipher {
        "AES-128-CBC" => open::<Decryptor<Aes128>>(&key[..16], &vector, encrypted),
        "AES-192-CBC" => open::<Decryptor<Aes192>>(&key[..24], &vector, encrypted),
        "AES-256-CBC" => open::<Decryptor<Aes256>>(&key[..32], &vector, encrypted),
        "DES-EDE3-CBC" => open::<Decryptor<TdesEde3>>(&key[..24], &vector, encrypted),
        _ => return Err(odd()),
    };
    // A wrong passphrase may leave a sound end, and then no sequence of that length.
    let is_sound =
        |der: &Vec<u8>| matches!(element(der), Some((0x30, content, [])) if content.len() > 16);
    opened.filter(is_sound).ok_or(Fault::WrongPassphrase)
}

fn open<D: KeyIvInit + BlockModeDecrypt>(
    key: &[u8],
    vector: &[u8],
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let decryptor = D::new_from_slices(key, vector).ok()?;
    decryptor.decrypt_padded_vec::<Pkcs7>(bytes).ok()
}
