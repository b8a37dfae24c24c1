//! Self-signed server certificates, made by openssl.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Kinds of self-signed certificates, by how openssl makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfSigned {
    /// `openssl req -x509`: an authority's (CA:TRUE), with no name but the common name.
    Authority,
    /// The same with extensions of its own: CA:FALSE, `DNS:localhost` and `IP:127.0.0.1`.
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
    pub fn make(self, dir: &Path) -> (PathBuf, PathBuf) {
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
