//! Whom a client with TLS trusts, and what it says of the others: handshakes with a server of rustls,
//! in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubgauge_driver::Tls;
use pubgauge_net::tls::{configure, connect, failure};
use pubgauge_testing::certificates::{Authority, SelfSigned};
use rcgen::CertificateParams;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

/// A server that shows a certificate, whether or not it has its key.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A handshake: nothing, or what the client says.
fn handshake(
    tls: &Tls,
    name: &str,
    (pem, key): (&Path, &Path),
    version: &'static SupportedProtocolVersion,
) -> Result<(), String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_file_iter(pem).unwrap();
    let chain: Vec<_> = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Shows(Arc::new(CertifiedKey::new(chain, key)))));
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = connect(&configure(tls).unwrap(), name).unwrap();
    let told = |error| failure("mqtts://h:8883", &error).to_string();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            server.read_tls(&mut bytes).unwrap();
            server.process_new_packets().map_err(told)?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            client.read_tls(&mut bytes).unwrap();
            client.process_new_packets().map_err(told)?;
        }
    }
    Ok(())
}

fn named(file: &Path) -> Tls {
    Tls {
        ca_file: Some(file.to_owned()),
        ..Tls::default()
    }
}

fn says(result: Result<(), String>, words: &[&str]) {
    let why = result.expect_err("not trusted");
    assert!(why.contains("\n  hint: "), "{why}");
    for word in words {
        assert!(why.contains(word), "{word:?} is not in: {why}");
    }
}

/// A certificate for a server on this host, changed by `change`.
fn sign(authority: &Authority, change: impl FnOnce(&mut CertificateParams)) -> (PathBuf, PathBuf) {
    authority.sign("server", &["localhost", "127.0.0.1"], change)
}

#[test]
fn a_self_signed_certificate_that_is_named_itself_is_trusted_for_its_names() {
    for kind in SelfSigned::ALL {
        let dir = tempfile::tempdir().unwrap();
        let (pem, key) = kind.write(dir.path());
        let other = tempfile::tempdir().unwrap();
        let (other_pem, other_key) = kind.write(other.path());
        for version in [&TLS12, &TLS13] {
            let with = |tls: &Tls, name: &str| handshake(tls, name, (&pem, &key), version);
            let context = format!("{kind:?}, {version:?}");
            assert_eq!(with(&named(&pem), "localhost"), Ok(()), "{context}");
            assert_eq!(with(&named(&pem), "LOCALHOST"), Ok(()), "{context}");
            let by_address = with(&named(&pem), "127.0.0.1");
            match kind {
                SelfSigned::EndEntity => assert_eq!(by_address, Ok(()), "{context}"),
                _ => says(by_address, &["not for 127.0.0.1, but for localhost"]),
            }
            says(
                with(&named(&pem), "elsewhere.test"),
                &["not for elsewhere.test, but for localhost"],
            );
            // Somebody who shows it and has not its key.
            says(
                handshake(&named(&pem), "localhost", (&pem, &other_key), version),
                &["TLS failed"],
            );
            // Another of the same name.
            says(
                with(&named(&other_pem), "localhost"),
                &["self-signed and not in", "--ca FILE"],
            );
            let insecure = Tls {
                insecure: true,
                ..Tls::default()
            };
            assert_eq!(with(&insecure, "elsewhere.test"), Ok(()), "{context}");
        }
    }
}

#[test]
fn what_an_authority_has_signed_is_trusted_for_its_names() {
    let authority = Authority::new();
    let (pem, key) = sign(&authority, |_| {});
    let with = |tls: &Tls, name: &str| handshake(tls, name, (&pem, &key), &TLS13);
    assert_eq!(with(&named(&authority.file("ca.pem")), "localhost"), Ok(()));
    assert_eq!(with(&named(&authority.file("ca.pem")), "127.0.0.1"), Ok(()));
    // The server's own, named itself.
    assert_eq!(with(&named(&pem), "localhost"), Ok(()));
    says(
        with(&named(&authority.file("ca.pem")), "elsewhere.test"),
        &["not for elsewhere.test, but for localhost, 127.0.0.1"],
    );
    let stranger = Authority::new();
    says(
        with(&named(&stranger.file("ca.pem")), "localhost"),
        &["has issued the server's certificate", "--ca FILE"],
    );
    let (pem, key) = sign(&authority, |params| params.subject_alt_names.clear());
    says(
        handshake(
            &named(&authority.file("ca.pem")),
            "localhost",
            (&pem, &key),
            &TLS13,
        ),
        &["names no host", "subjectAltName=DNS:localhost"],
    );
}

#[test]
fn the_time_of_a_certificate_is_checked() {
    let authority = Authority::new();
    let past = sign(&authority, |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    // Signed by an authority, and named itself.
    for file in [authority.file("ca.pem"), past.0.clone()] {
        let result = handshake(&named(&file), "localhost", (&past.0, &past.1), &TLS13);
        says(result, &["expired at 2002-01-01T00:00:00Z", "renew"]);
    }
    let future = sign(&authority, |params| {
        params.not_before = rcgen::date_time_ymd(2999, 1, 1);
        params.not_after = rcgen::date_time_ymd(3000, 1, 1);
    });
    for file in [authority.file("ca.pem"), future.0.clone()] {
        let result = handshake(&named(&file), "localhost", (&future.0, &future.1), &TLS13);
        says(result, &["only from 2999-01-01T00:00:00Z on", "clocks"]);
    }
}

#[test]
fn a_client_certificate_of_version_1_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = SelfSigned::Version1.write(folder.path());
    let tls = Tls {
        cert_file: Some(cert.clone()),
        key_file: Some(key),
        insecure: true,
        ..Tls::default()
    };
    let error = pubgauge_net::tls::configure(&tls).unwrap_err();
    let expected = format!("{} is a certificate of X.509 version 1", cert.display());
    assert!(error.what.starts_with(&expected), "{}", error.what);
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("version 3"), "{hint}");
}
