//! Certificates of a run: for systems that pubgauge starts with TLS.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use pubgauge_driver::Tls;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::template::{CA_FILE, CERT_FILE, KEY_FILE};

/// Placeholders of the files, and their names in the system's private folder.
const FILES: [(&str, &str); 3] = [
    (CA_FILE, "ca.pem"),
    (CERT_FILE, "server.pem"),
    (KEY_FILE, "server.key"),
];

/// Makes an authority that signs nothing else and a certificate of a server at `host`, both with keys on the curve P-256,
/// and writes them into `folder`: ca.pem, server.pem, and server.key, which the user alone can read. The authority's own
/// key is forgotten. Returns the values of the placeholders, and what clients check the server by.
///
/// # Errors
/// If a file cannot be written; if no key can be made.
pub fn write(host: &str, folder: &Path) -> io::Result<([(String, String); 3], Tls)> {
    let (ca, cert, key) = make_certificates(host).map_err(io::Error::other)?;
    let shown = |name| folder.join(name).display().to_string();
    for ((_, name), text) in FILES.iter().zip([&ca, &cert, &key]) {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(folder.join(name))?;
        file.write_all(text.as_bytes())?;
    }
    let values = FILES.map(|(placeholder, name)| (placeholder.to_owned(), shown(name)));
    let tls = Tls {
        ca_pem: Some(ca),
        ..Tls::default()
    };
    Ok((values, tls))
}

/// The authority's certificate, the server's and its key, as PEM.
fn make_certificates(host: &str) -> Result<(String, String, String), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let name = &mut params.distinguished_name;
    name.push(DnType::CommonName, "pubgauge, authority of one run");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    if !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, host);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let cert = params.signed_by(&key, &issuer)?;
    Ok((issuer.pem(), cert.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_certificate_is_of_its_own_run_and_the_key_is_the_users_alone() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let made = folders
            .each_ref()
            .map(|folder| write("10.1.2.3", folder.path()).unwrap());
        let [one, other] = made.map(|(_, tls)| tls.ca_pem.unwrap());
        assert!(one.starts_with("-----BEGIN CERTIFICATE-----") && one != other);
        let key = folders[0].path().join("server.key");
        let mode = key.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(
            write("h", folders[0].path()).is_err(),
            "nothing is overwritten"
        );
    }
}
