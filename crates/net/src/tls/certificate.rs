//! Fields of a certificate that rustls does not expose (RFC 5280 §4.1): its version, for how long it is
//! valid, its common name, and the key of one of version 1, which rustls does not read.

use std::ops::RangeInclusive;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// `[0]`, the version of a certificate that is not of version 1.
const VERSION: u8 = 0xa0;
/// `[3]`, the extensions.
const EXTENSIONS: u8 = 0xa3;

/// 2.5.29.17 (§4.2.1.6).
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];
/// 2.5.4.3 (RFC 4519 §2.3).
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// Claims of a certificate. None of it is trusted before a signature or a comparison confirms it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate<'a> {
    /// Version 1 has no extensions, and rustls takes none of that version from a server.
    pub version_1: bool,
    /// Issuer and subject are the same.
    pub self_issued: bool,
    /// It names hosts or addresses (subjectAltName).
    pub names_hosts: bool,
    /// The last common name of its subject.
    pub common_name: Option<&'a str>,
    /// When it is valid, in seconds since 1970.
    pub validity: RangeInclusive<u64>,
    /// Its public key.
    pub key: Key<'a>,
}

/// A public key (§4.1.2.7).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key<'a> {
    /// The whole SubjectPublicKeyInfo, with its header.
    pub info: &'a [u8],
    /// The content of its AlgorithmIdentifier.
    pub algorithm: &'a [u8],
    /// The key itself.
    pub bits: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate in DER; `None` if it is not one.
    pub fn read(der: &'a [u8]) -> Option<Certificate<'a>> {
        let mut certificate = content(&mut &*der, SEQUENCE)?;
        let mut body = content(&mut certificate, SEQUENCE)?;
        let version_1 = body.first() != Some(&VERSION);
        if !version_1 {
            element(&mut body)?;
        }
        element(&mut body)?; // Serial number.
        element(&mut body)?; // Signature algorithm.
        let issuer = content(&mut body, SEQUENCE)?;
        let mut validity = content(&mut body, SEQUENCE)?;
        let subject = content(&mut body, SEQUENCE)?;
        let mut found = Certificate {
            version_1,
            self_issued: issuer == subject,
            names_hosts: false,
            common_name: common_name(subject)?,
            validity: time(&mut validity)?..=time(&mut validity)?,
            key: key(&mut body)?,
        };
        while !body.is_empty() {
            let (tag, mut outer) = element(&mut body)?;
            if tag == EXTENSIONS {
                let mut extensions = content(&mut outer, SEQUENCE)?;
                while !extensions.is_empty() {
                    let name =
                        content(&mut content(&mut extensions, SEQUENCE)?, OBJECT_IDENTIFIER)?;
                    found.names_hosts |= name == SUBJECT_ALT_NAME;
                }
            }
        }
        Some(found)
    }
}

/// The last common name in a name (§4.1.2.4): a sequence of sets of pairs. The outer option is `None`
/// if the bytes are not a name.
fn common_name(mut name: &[u8]) -> Option<Option<&str>> {
    let mut found = None;
    while !name.is_empty() {
        let mut set = content(&mut name, SET)?;
        while !set.is_empty() {
            let mut pair = content(&mut set, SEQUENCE)?;
            let kind = content(&mut pair, OBJECT_IDENTIFIER)?;
            let (tag, value) = element(&mut pair)?;
            if kind == COMMON_NAME && [UTF8_STRING, PRINTABLE_STRING, IA5_STRING].contains(&tag) {
                found = std::str::from_utf8(value).ok();
            }
        }
    }
    Some(found)
}

fn key<'a>(input: &mut &'a [u8]) -> Option<Key<'a>> {
    let before = *input;
    let mut parts = content(input, SEQUENCE)?;
    let algorithm = content(&mut parts, SEQUENCE)?;
    // The first byte says how many bits of the last one are unused: none.
    let (0, bits) = content(&mut parts, BIT_STRING)?
        .split_first()
        .map(|(n, b)| (*n, b))?
    else {
        return None;
    };
    Some(Key {
        info: &before[..before.len() - input.len()],
        algorithm,
        bits,
    })
}

/// The next element's tag and content.
fn element<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let len = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            digits.iter().fold(0, |len, b| len << 8 | usize::from(*b))
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(len)?;
    *input = rest;
    Some((tag, content))
}

/// The content of the next element, which must have this tag.
fn content<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, content) = element(input)?;
    (found == tag).then_some(content)
}

/// A time (§4.1.2.5), in seconds since 1970.
fn time(input: &mut &[u8]) -> Option<u64> {
    let (tag, text) = element(input)?;
    let text = std::str::from_utf8(text).ok()?;
    let text = match tag {
        UTC_TIME => match text.get(..2)?.parse::<u8>().ok()? {
            0..=49 => format!("20{text}"),
            _ => format!("19{text}"),
        },
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    let zoned = time.to_zoned(TimeZone::UTC).ok()?;
    Some(u64::try_from(zoned.timestamp().as_second()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    fn der(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["h.test".into()]).unwrap();
        params.not_before = rcgen::date_time_ymd(1999, 12, 31);
        params.not_after = rcgen::date_time_ymd(2051, 2, 3);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn what_a_certificate_says_is_read() {
        let plain = der(|params| {
            params.distinguished_name = DistinguishedName::new();
            params
                .distinguished_name
                .push(DnType::OrganizationName, "o");
            params.distinguished_name.push(DnType::CommonName, "broker");
        });
        let read = Certificate::read(&plain).unwrap();
        assert!(!read.version_1 && read.self_issued && read.names_hosts);
        assert_eq!(read.common_name, Some("broker"));
        // `date -ud 1999-12-31 +%s`, and 2051-02-03: one of either form of time.
        assert_eq!(read.validity, 946_598_400..=2_558_995_200);
        let parsed = CertificateDer::from(plain.clone());
        let parsed = rustls::server::ParsedCertificate::try_from(&parsed).unwrap();
        assert_eq!(read.key.info, &*parsed.subject_public_key_info());
        assert!(read.key.info.ends_with(read.key.bits));
        let authority = der(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
            params.subject_alt_names.clear();
        });
        assert!(!Certificate::read(&authority).unwrap().names_hosts);
    }

    /// `openssl req -new -newkey ec ... | openssl x509 -req -days 30 -signkey ...` of OpenSSL 3.0.
    #[test]
    fn version_1_is_told() {
        let der = CertificateDer::from_pem_slice(include_bytes!("version-1.pem")).unwrap();
        let read = Certificate::read(&der).unwrap();
        assert!(read.version_1 && read.self_issued && !read.names_hosts);
        assert_eq!(read.common_name, Some("old.test"));
    }

    proptest! {
        #[test]
        fn what_is_damaged_is_no_panic(
            at in any::<prop::sample::Index>(),
            with in prop::collection::vec(any::<u8>(), 0..6),
            gone in 0usize..6,
        ) {
            let mut bytes = der(|_| {});
            let at = at.index(bytes.len());
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, with);
            Certificate::read(&bytes);
        }
    }
}
