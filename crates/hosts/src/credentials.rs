//! What a worker needs to join: the certificate's fingerprint, and a token for its rank.
//!
//! They are handed over in a file that only its owner reads:
//!
//! ```text
//! pubgauge-join 1
//! certificate 64 hexadecimal digits
//! token RANK 64 hexadecimal digits
//! ```
//!
//! with a line for each rank, or for one alone. Fingerprint and token are never arguments, which all users of
//! a host see.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::OFlags;

use crate::hex::{hex, unhex};

/// The environment variable that names the file.
pub const FILE_VARIABLE: &str = "PUBGAUGE_JOIN_FILE";

pub(crate) const FIRST_LINE: &str = "pubgauge-join 1";
/// The longest file that is read: some 50,000 ranks.
const LONGEST: u64 = 4 << 20;
/// What a proof is made over, before what TLS exported and the rank.
const PROOF: &[u8] = b"pubgauge join 1\0";

/// SHA-256 of a certificate (DER).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// That of a certificate.
    pub fn of(der: &[u8]) -> Fingerprint {
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Fingerprint(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// The secret that belongs to a rank, 256 bits. A worker proves that it knows it, and never sends it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; 32];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| io::Error::other("the system has no random numbers (getrandom)"))?;
        Ok(Token(bytes))
    }

    /// The proof that it is known, for one connection (`exported` is what TLS exported of it) and rank.
    pub(crate) fn proof(&self, exported: &[u8; 32], rank: u32) -> String {
        hex(hmac::sign(&self.key(), &said(exported, rank)).as_ref())
    }

    /// Whether a proof is right; takes as long for every wrong one.
    pub(crate) fn proves(&self, proof: &str, exported: &[u8; 32], rank: u32) -> bool {
        let said = said(exported, rank);
        unhex(proof).is_some_and(|tag| hmac::verify(&self.key(), &said, &tag).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

fn said(exported: &[u8; 32], rank: u32) -> Vec<u8> {
    [PROOF, exported, &rank.to_be_bytes()].concat()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(token)")
    }
}

/// Fingerprint and tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Of the run's certificate.
    pub fingerprint: Fingerprint,
    /// By rank.
    pub tokens: BTreeMap<u32, Token>,
}

/// Why credentials cannot be had. No message contains any part of them.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// No file was named.
    #[error(
        "no file with credentials was named\n  hint: {}=FILE in the environment",
        FILE_VARIABLE
    )]
    NotNamed,
    /// It cannot be read or written.
    #[error("cannot {attempt} the credentials in {}: {error}", .file.display())]
    File {
        /// What was tried.
        attempt: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Other users may have read or written it.
    #[error("the credentials in {} may be known to others: {why}\n  hint: {hint}", .file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// How.
        why: String,
        /// What to do.
        hint: &'static str,
    },
    /// It is not a file of credentials.
    #[error("{}, line {line}: {expected} was expected", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// From 1.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// It has no token for a rank.
    #[error("there is no token for rank {0} among the credentials")]
    NoToken(u32),
}

impl Credentials {
    /// Those in the file that the environment names.
    ///
    /// # Errors
    /// As [`read`](Self::read); no file named.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Credentials, CredentialsError> {
        let file = variable(FILE_VARIABLE).filter(|file| !file.is_empty());
        Credentials::read(Path::new(&file.ok_or(CredentialsError::NotNamed)?))
    }

    /// Reads a file that belongs to this user or to root. Its owner alone may read it, and where that is root,
    /// its group too: that is how Kubernetes mounts secrets for users other than root.
    ///
    /// # Errors
    /// A file that is missing, open to others, longer than 4 MiB, or not a file of credentials.
    pub fn read(path: &Path) -> Result<Credentials, CredentialsError> {
        let wrong = |error| CredentialsError::File {
            attempt: "read",
            file: path.into(),
            error,
        };
        // Owner and mode are those of the file that was opened.
        let file = open(path).map_err(wrong)?;
        let found = file.metadata().map_err(wrong)?;
        if !found.is_file() {
            return Err(wrong(io::Error::other("it is no regular file")));
        }
        let own = rustix::process::geteuid().as_raw();
        exposed(found.uid(), found.mode(), own).map_err(|(why, hint)| {
            CredentialsError::Exposed {
                file: path.into(),
                why,
                hint,
            }
        })?;
        let mut text = String::new();
        let read = file.take(LONGEST + 1).read_to_string(&mut text);
        if read.map_err(wrong)? as u64 > LONGEST {
            return Err(wrong(io::Error::other(format!(
                "it is longer than {LONGEST} bytes"
            ))));
        }
        Credentials::parse(&text).map_err(|(line, expected)| CredentialsError::Malformed {
            file: path.into(),
            line,
            expected,
        })
    }

    /// Writes a new file that its owner alone may read.
    ///
    /// # Errors
    /// If there is one, or it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), CredentialsError> {
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            file.write_all(self.text().as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error| CredentialsError::File {
            attempt: "write",
            file: path.into(),
            error,
        })
    }

    /// What a worker of this rank needs, and nothing of the others.
    ///
    /// # Errors
    /// If there is no token for it.
    pub fn for_rank(&self, rank: u32) -> Result<Credentials, CredentialsError> {
        let token = self.token(rank)?.clone();
        Ok(Credentials {
            fingerprint: self.fingerprint,
            tokens: BTreeMap::from([(rank, token)]),
        })
    }

    /// The token of a rank.
    ///
    /// # Errors
    /// If there is none.
    pub fn token(&self, rank: u32) -> Result<&Token, CredentialsError> {
        self.tokens
            .get(&rank)
            .ok_or(CredentialsError::NoToken(rank))
    }

    /// The text of the file; secret.
    pub fn text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\ncertificate {}\n", self.fingerprint);
        for (rank, token) in &self.tokens {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "token {rank} {}", hex(&token.0));
        }
        text
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The line, from 1, and what was expected there.
    pub fn parse(text: &str) -> Result<Credentials, (usize, &'static str)> {
        let mut lines = text.lines().enumerate();
        let expected = "`pubgauge-join 1`";
        let first = lines.next().map(|(_, line)| line);
        first
            .filter(|line| *line == FIRST_LINE)
            .ok_or((1, expected))?;
        let expected = "`certificate` and 64 hexadecimal digits";
        let second = lines
            .next()
            .and_then(|(_, line)| line.strip_prefix("certificate "));
        let fingerprint = second.and_then(unhex).ok_or((2, expected))?;
        let mut tokens = BTreeMap::new();
        for (n, line) in lines {
            let expected = "`token`, a rank that has none yet and 64 hexadecimal digits";
            let wrong = (n + 1, expected);
            let token = line
                .strip_prefix("token ")
                .and_then(|rest| rest.split_once(' '));
            let (rank, token) = token.ok_or(wrong)?;
            let rank: u32 = rank.parse().map_err(|_| wrong)?;
            let token = Token(unhex(token).ok_or(wrong)?);
            if tokens.insert(rank, token).is_some() {
                return Err(wrong);
            }
        }
        if tokens.is_empty() {
            return Err((3, "`token`, a rank and 64 hexadecimal digits"));
        }
        Ok(Credentials {
            fingerprint: Fingerprint(fingerprint),
            tokens,
        })
    }
}

/// Opens a file to read it. A pipe without a writer is not waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
}

/// # Errors
/// How others may know what is in a file, and what to do.
fn exposed(owner: u32, mode: u32, own: u32) -> Result<(), (String, &'static str)> {
    if owner != own && owner != 0 {
        let why = format!("it belongs to user {owner}");
        return Err((
            why,
            "it must belong to the user that runs the worker, or to root",
        ));
    }
    let allowed = match owner == own {
        true => 0o700,
        false => 0o740,
    };
    if mode & 0o777 & !allowed != 0 {
        let why = format!("its mode is {:03o}", mode & 0o777);
        return Err((
            why,
            "chmod 600; for a secret of Kubernetes, defaultMode: 0400",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    fn some() -> Credentials {
        let token = |n| (n, Token([n as u8 + 1; 32]));
        Credentials {
            fingerprint: Fingerprint([0xfe; 32]),
            tokens: BTreeMap::from([token(0), token(1), token(7)]),
        }
    }

    #[test]
    fn files_come_back_and_are_their_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("join");
        some().write(&path).unwrap();
        assert_eq!(Credentials::read(&path).unwrap(), some());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(
            matches!(some().write(&path), Err(CredentialsError::File { .. })),
            "not over another"
        );
        for mode in [0o640, 0o604, 0o622, 0o660, 0o644] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let error = Credentials::read(&path).unwrap_err();
            assert!(
                matches!(error, CredentialsError::Exposed { .. }),
                "{mode:o}: {error}"
            );
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        let named = |name: &str| (name == FILE_VARIABLE).then(|| path.display().to_string());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
        assert_eq!(Credentials::from_environment(named).unwrap(), some());
        let none = Credentials::from_environment(|_| None);
        assert!(matches!(none, Err(CredentialsError::NotNamed)));
        assert!(
            Credentials::read(folder.path()).is_err(),
            "a folder is no file"
        );
    }

    #[test]
    fn owner_and_mode_decide() {
        let own = 1_000;
        assert!(exposed(own, 0o100_600, own).is_ok() && exposed(own, 0o400, own).is_ok());
        assert!(exposed(own, 0o640, own).is_err() && exposed(own, 0o601, own).is_err());
        // Root's, given to the group: as Kubernetes mounts a secret.
        assert!(exposed(0, 0o440, own).is_ok() && exposed(0, 0o400, own).is_ok());
        assert!(exposed(0, 0o460, own).is_err() && exposed(0, 0o444, own).is_err());
        assert!(exposed(1_001, 0o400, own).is_err());
        assert!(exposed(0, 0o440, 0).is_err());
    }

    #[test]
    fn one_rank_has_its_own_alone() {
        let one = some().for_rank(7).unwrap();
        assert_eq!(one.tokens.keys().collect::<Vec<_>>(), [&7]);
        assert_eq!(one.token(7).unwrap(), some().token(7).unwrap());
        let error = some().for_rank(2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no token for rank 2 among the credentials"
        );
    }

    #[test]
    fn what_is_wrong_is_told_by_line_and_without_the_secret() {
        let text = some().text();
        let secret = "02".repeat(32);
        for (line, changed) in [
            (1, text.replace("join 1", "join 2")),
            (2, text.replace("certificate", "certificat")),
            (2, text.replace("fefe", "fef")),
            (3, text.replace("token 0", "token x")),
            (4, text.replace(&secret, "0202")),
            (4, text.replace("token 1", "token 0")),
            (6, format!("{text}\n")),
            (1, String::new()),
            (3, text.lines().take(2).collect::<Vec<_>>().join("\n")),
        ] {
            let (wrong, expected) = Credentials::parse(&changed).unwrap_err();
            assert_eq!(wrong, line, "{expected}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("join");
        std::fs::write(&path, text.replace("token 1", "tocen 1")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let error = Credentials::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("line 4") && !error.contains(&secret[..8]),
            "{error}"
        );
        let debug = format!("{:?}", some());
        assert!(
            debug.contains("(token)") && !debug.contains("2, 2, 2"),
            "{debug}"
        );
    }

    #[test]
    fn a_proof_is_for_one_token_connection_and_rank() {
        let (token, other) = (Token([1; 32]), Token([2; 32]));
        let proof = token.proof(&[5; 32], 3);
        assert!(token.proves(&proof, &[5; 32], 3));
        assert!(!token.proves(&proof, &[6; 32], 3));
        assert!(!token.proves(&proof, &[5; 32], 4));
        assert!(!other.proves(&proof, &[5; 32], 3));
        assert!(!token.proves("", &[5; 32], 3) && !token.proves(&"0".repeat(64), &[5; 32], 3));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(pubgauge-join 1\n)?(certificate [0-9a-f]{64}\n)?(token [0-9]{1,3} [0-9a-f]{64}\n|.{0,20}\n){0,5}") {
            if let Ok(credentials) = Credentials::parse(&text) {
                prop_assert_eq!(Credentials::parse(&credentials.text()), Ok(credentials));
            }
        }
    }
}
