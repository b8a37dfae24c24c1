//! Certificates and keys of clients in the forms in which they come, made by openssl.

use std::path::{Path, PathBuf};
use std::process::Command;

use pubgauge_driver::{DriverError, Secret, Tls};

/// Runs openssl in a folder.
fn openssl(folder: &Path, line: &str) {
    let done = Command::new("openssl")
        .current_dir(folder)
        .args(line.split(' '))
        .output()
        .expect("these tests need openssl (apt install openssl)");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "openssl {line}: {said}");
}

/// A folder with a certificate and its key in all forms, whose passphrase is `hush`.
fn made() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "req -x509 -newkey rsa:2048 -nodes -keyout plain.key -out client.pem -subj /CN=dev0 -days 30",
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ec8.key -out ec.pem -subj /CN=dev1 -days 30",
        "x509 -in client.pem -outform DER -out client.der",
        "pkcs8 -topk8 -in plain.key -passout pass:hush -out enc8.key",
        "pkcs8 -topk8 -v2 des3 -in plain.key -passout pass:hush -out enc8-des3.key",
        "pkcs8 -topk8 -scrypt -in plain.key -passout pass:hush -out enc8-scrypt.key",
        "pkcs8 -topk8 -in plain.key -passout pass:hush -outform DER -out enc8.der",
        "pkcs8 -topk8 -nocrypt -in plain.key -outform DER -out plain8.der",
        "rsa -in plain.key -traditional -out plain1.key",
        "rsa -in plain.key -traditional -outform DER -out plain1.der",
        "rsa -in plain.key -traditional -aes128 -passout pass:hush -out enc1.key",
        "rsa -in plain.key -traditional -aes256 -passout pass:hush -out enc1-aes256.key",
        "rsa -in plain.key -traditional -des3 -passout pass:hush -out enc1-des3.key",
        "pkcs12 -export -inkey plain.key -in client.pem -passout pass:hush -out client.p12",
        "pkcs12 -export -certpbe PBE-SHA1-3DES -keypbe PBE-SHA1-3DES -macalg sha1 -inkey plain.key -in client.pem -passout pass:hush -out old.p12",
        "pkcs12 -export -inkey plain.key -in client.pem -passout pass: -out open.p12",
        "ec -in ec8.key -out ec1.key",
        "ec -in ec8.key -outform DER -out ec1.der",
        "ec -in ec8.key -aes192 -passout pass:hush -out ec1-enc.key",
    ] {
        openssl(folder.path(), line);
    }
    let both = ["client.pem", "enc8.key"]
        .map(|name| std::fs::read_to_string(folder.path().join(name)).unwrap());
    std::fs::write(folder.path().join("both.pem"), both.concat()).unwrap();
    folder
}

fn configured(folder: &Path, cert: &str, key: &str, passphrase: &str) -> Result<(), DriverError> {
    let file = |name: &str| (!name.is_empty()).then(|| -> PathBuf { folder.join(name) });
    let tls = Tls {
        cert_file: file(cert),
        key_file: file(key),
        passphrase: (!passphrase.is_empty()).then(|| Secret::new(passphrase)),
        insecure: true,
        ..Tls::default()
    };
    pubgauge_net::tls::configure(&tls).map(drop)
}

#[test]
fn certificates_and_keys_are_read_in_all_their_forms() {
    let folder = made();
    for (cert, key, is_encrypted) in [
        ("client.pem", "plain.key", false),
        ("client.der", "plain8.der", false),
        ("client.pem", "plain1.key", false),
        ("client.pem", "plain1.der", false),
        ("client.pem", "enc8.key", true),
        ("client.pem", "enc8-des3.key", true),
        ("client.pem", "enc8-scrypt.key", true),
        ("client.der", "enc8.der", true),
        ("client.pem", "enc1.key", true),
        ("client.pem", "enc1-aes256.key", true),
        ("client.pem", "enc1-des3.key", true),
        ("client.p12", "", true),
        ("client.p12", "client.p12", true),
        ("client.pem", "client.p12", true),
        ("old.p12", "", true),
        ("open.p12", "", false),
        ("both.pem", "", true),
        ("ec.pem", "ec8.key", false),
        ("ec.pem", "ec1.key", false),
        ("ec.pem", "ec1.der", false),
        ("ec.pem", "ec1-enc.key", true),
    ] {
        let with = |passphrase| configured(folder.path(), cert, key, passphrase);
        let right = with("hush");
        if is_encrypted {
            right.unwrap_or_else(|error| panic!("{cert} {key}: {error}"));
            let locked = with("").unwrap_err().to_string();
            let advice = "PUBGAUGE_KEY_PASSPHRASE or in a file: --key-passphrase-file FILE";
            assert!(
                locked.contains("is encrypted") && locked.contains(advice),
                "{locked}"
            );
            let wrong = with("loud").unwrap_err().to_string();
            assert!(
                wrong.contains("the passphrase does not open"),
                "{key}: {wrong}"
            );
            assert!(!wrong.contains("loud"), "{wrong}");
        } else {
            with("").unwrap_or_else(|error| panic!("{cert} {key}: {error}"));
        }
    }
}

#[test]
fn what_is_neither_is_told_with_its_file() {
    let folder = made();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("noise", &[7; 100]);
    write("empty", b"");
    write("cut.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n");
    write(
        "odd.pem",
        b"-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n",
    );
    for (cert, key, words) in [
        (
            "noise",
            "plain.key",
            "noise: neither a certificate nor a key",
        ),
        ("empty", "plain.key", "neither a certificate nor a key"),
        (
            "cut.pem",
            "plain.key",
            "the end of `CERTIFICATE` is missing",
        ),
        ("odd.pem", "plain.key", "is not Base64"),
        ("nowhere", "plain.key", "cannot read"),
        ("plain.key", "plain.key", "there is no certificate in"),
        ("client.pem", "client.pem", "the private key of"),
        ("client.pem", "client.der", "there is no private key in"),
        ("client.pem", "", "is missing"),
        ("", "plain.key", "has no certificate"),
        ("client.pem", "ec8.key", "must belong together"),
    ] {
        let told = configured(folder.path(), cert, key, "").unwrap_err();
        let text = told.to_string();
        assert!(
            text.contains(words) && told.hint.is_some(),
            "{cert} {key}: {text}"
        );
    }
    // No bytes of a file panic.
    for name in [
        "client.p12",
        "enc8.der",
        "plain1.der",
        "client.der",
        "enc1.key",
    ] {
        let whole = std::fs::read(folder.path().join(name)).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 60) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            write("damaged", &damaged);
            let _ = configured(folder.path(), "client.pem", "damaged", "hush");
            write("damaged", &whole[..at]);
            let _ = configured(folder.path(), "client.pem", "damaged", "hush");
        }
    }
}
