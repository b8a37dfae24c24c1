//! Flags that every verb has, or every verb that reaches a server.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use pubgauge_driver::{KEY_PASSPHRASE_VARIABLE, PASSWORD_VARIABLE, Secret};
use serde::{Deserialize, Serialize};

use crate::exit::{Ending, print, print_json, tell};

/// Largest file with a password, bytes.
const MAX_PASSWORD_FILE: u64 = 64 << 10;

/// Heading of the options of output.
pub const OUTPUT: &str = "Output";
/// Heading of the options for systems at addresses.
pub const LOGIN: &str = "Systems that run already";

/// Options of output, for every verb.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = OUTPUT)]
pub struct Output {
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
    /// No progress and no remarks: standard error has nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Output {
    /// Says something about what is being done, on standard error.
    pub fn remark(&self, words: &str) {
        if !self.quiet {
            tell!("{words}");
        }
    }

    /// Prints a result, as JSON or in words.
    pub fn print_result(&self, result: &impl Serialize, words: impl FnOnce() -> String) {
        if self.json {
            print_json(result)
        } else {
            print(&words())
        }
    }
}

/// How external systems are logged in to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Args)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = LOGIN)]
pub struct Login {
    /// File whose first line is the password (else the variable PUBGAUGE_PASSWORD). The password
    /// never reaches results or logs.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Authorities that may have signed the server's certificate, or that certificate itself
    /// (PEM); default: the authorities that this machine trusts.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Take whatever certificate the server shows: anybody between can read and change what is
    /// sent, the password included. The results of a run say so.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// The client's certificate chain: PEM or DER, or PKCS#12 with its private key.
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// The client's private key, where that file has none: PEM or DER, encrypted or not.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// File whose first line is the passphrase of the private keys (else the variable PUBGAUGE_KEY_PASSPHRASE). It never
    /// reaches results or logs.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub key_passphrase_file: Option<PathBuf>,
    /// Protocols that the handshake of TLS names (ALPN) in place of the driver's own, for example x-amzn-mqtt-ca; not for
    /// wss://, nor where TLS begins later.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub alpn: Vec<String>,
}

impl Login {
    /// The password: the content of the file without its line end if one is named, else of [`PASSWORD_VARIABLE`], else
    /// none. The file may be a pipe, which is waited for.
    ///
    /// # Errors
    /// If the file cannot be read, or is longer than 64 KiB.
    pub fn password(&self) -> Result<Option<Secret>, Ending> {
        secret("--password-file", &self.password_file, PASSWORD_VARIABLE)
    }

    /// The passphrase of the private key, as [`Login::password`]: of its file, else of [`KEY_PASSPHRASE_VARIABLE`].
    ///
    /// # Errors
    /// The same.
    pub fn key_passphrase(&self) -> Result<Option<Secret>, Ending> {
        let file = &self.key_passphrase_file;
        secret("--key-passphrase-file", file, KEY_PASSPHRASE_VARIABLE)
    }
}

/// The content of a file that `flag` names, else that of a variable, without its line end.
fn secret(flag: &str, file: &Option<PathBuf>, variable: &str) -> Result<Option<Secret>, Ending> {
    let text =
        match file {
            Some(file) => Some(password_in(file).map_err(|error| {
                Ending::bad_input(format!("{flag} {}: {error}", file.display()))
            })?),
            None => std::env::var(variable).ok(),
        };
    Ok(text
        .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
        .filter(|text| !text.is_empty())
        .map(Secret::new))
}

fn password_in(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(file)?.take(MAX_PASSWORD_FILE + 1);
    if BufReader::new(file).read_to_string(&mut text)? as u64 > MAX_PASSWORD_FILE {
        let why = "longer than 64 KiB, which is the limit of a file with a password";
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_content_of_its_file_without_the_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let login = Login {
            password_file: Some(file.clone()),
            ..Login::default()
        };
        for (content, password) in [
            ("s3cret", Some("s3cret")),
            ("s3cret\r\n", Some("s3cret")),
            (" s3 cret \n\n", Some(" s3 cret ")),
            ("\n", None),
            ("", None),
        ] {
            std::fs::write(&file, content).unwrap();
            let read = login.password().unwrap();
            assert_eq!(read.as_ref().map(Secret::reveal), password, "{content:?}");
        }
        let limit = MAX_PASSWORD_FILE as usize;
        std::fs::write(&file, "x".repeat(limit)).unwrap();
        assert!(login.password().is_ok());
        std::fs::write(&file, "x".repeat(limit + 1)).unwrap();
        let refused = login.password().unwrap_err();
        let place = format!("--password-file {}: longer than 64 KiB", file.display());
        assert!(refused.message.starts_with(&place), "{}", refused.message);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(login.password().unwrap_err().code, crate::exit::BAD_INPUT);
    }
}
