//! Certificates: those of a private authority, and self-signed ones, made by openssl.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pubgauge_driver::Tls;
use rcgen::{BasicConstraints, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
pub use rcgen::{CertificateParams, OtherNameValue, SanType, date_time_ymd};
use tempfile::TempDir;

/// A private authority. Its certificate `ca.pem`, and those that it signs, are in a folder of its own.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    #[allow(clippy::new_without_default)] // Writes files.
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // Of one name they would be one authority whose signatures are wrong, which is told otherwise.
        static AUTHORITIES: AtomicU32 = AtomicU32::new(1);
        let number = AUTHORITIES.fetch_add(1, Relaxed);
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, format!("test authority {number}"));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, folder }
    }

    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Signs a certificate for these names, changed by `change`: the files `WHO.pem` and `WHO.key`.
    pub fn sign(
        &self,
        who: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (PathBuf, PathBuf) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, who);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let (pem_file, key_file) = (
            self.file(&format!("{who}.pem")),
            self.file(&format!("{who}.key")),
        );
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        std::fs::write(&pem_file, pem).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        (pem_file, key_file)
    }

    /// Signs a certificate for a server on this host, `server.pem`, and one for a client: what the client is to use.
    pub fn both_sides(&self, client: &str) -> Tls {
        self.sign("server", &["127.0.0.1", "localhost"], |_| {});
        let (cert_file, key_file) = self.sign(client, &[], |_| {});
        Tls {
            ca_file: Some(self.file("ca.pem")),
            cert_file: Some(cert_file),
            key_file: Some(key_file),
            ..Tls::default()
        }
    }
}

/// Kinds of self-signed certificates, by how openssl makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfSigned {
    /// `openssl req -x509`: an authority's (CA:TRUE), with no name but the common name.
    Authority,
    /// `openssl req -x509` with extensions of its own: CA:FALSE, `DNS:localhost` and `IP:127.0.0.1`.
    EndEntity,
    /// `openssl x509 -req -signkey`: of version 1, without extensions.
    Version1,
}

impl SelfSigned {
    pub const ALL: [SelfSigned; 3] = [
        SelfSigned::Authority,
        SelfSigned::EndEntity,
        SelfSigned::Version1,
    ];

    /// Makes one for `localhost`, valid for 30 days: the certificate and its key, as PEM files
    /// `server.pem` and `server.key` of `dir`.
    pub fn write(self, dir: &Path) -> (PathBuf, PathBuf) {
        let file = |name: &str| dir.join(name).display().to_string();
        let (pem, key, request) = (file("server.pem"), file("server.key"), file("request"));
        let config = file("openssl.cnf");
        let text = "[req]\ndistinguished_name = dn\n[dn]\n[authority]\nbasicConstraints = critical,CA:TRUE\n\
                    subjectKeyIdentifier = hash\n[end]\nbasicConstraints = CA:FALSE\n\
                    subjectAltName = DNS:localhost,IP:127.0.0.1\n";
        std::fs::write(&config, text).unwrap();
        let common = ["-subj", "/CN=localhost", "-nodes", "-config", &config];
        let rsa = ["-newkey", "rsa:2048", "-keyout", &key];
        match self {
            SelfSigned::Authority => {
                let made = ["req", "-x509", "-days", "30", "-extensions", "authority"];
                openssl(&[&made[..], &common, &rsa, &["-out", &pem]].concat());
            }
            SelfSigned::EndEntity => {
                let made = ["req", "-x509", "-days", "30", "-extensions", "end"];
                let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
                let files = ["-keyout", &key, "-out", &pem];
                openssl(&[&made[..], &common, &curve, &files].concat());
            }
            SelfSigned::Version1 => {
                openssl(&[&["req", "-new"][..], &common, &rsa, &["-out", &request]].concat());
                let signed = ["x509", "-req", "-days", "30", "-in", &request];
                openssl(&[&signed[..], &["-signkey", &key, "-out", &pem]].concat());
            }
        }
        (pem.into(), key.into())
    }
}

fn openssl(args: &[&str]) {
    let done = Command::new("openssl")
        .args(args)
        .output()
        .expect("these tests need openssl (apt install openssl)");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "openssl {args:?}: {said}");
}
