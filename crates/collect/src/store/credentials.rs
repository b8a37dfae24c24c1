//! Credentials of a store: from the environment, and from files that may change.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Credentials of a store, by the names of the variables of the environment, in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    environment: Vec<(String, String)>,
    files: Vec<(PathBuf, Vec<(String, String)>)>,
}

/// Beginnings of the names of such variables.
const OURS: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Words in the names of those that nobody may see.
#[cfg(feature = "upload")]
const SECRET: [&str; 4] = ["key", "secret", "token", "password"];

/// Most bytes of a file with credentials.
const MOST: u64 = 64 << 10;

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.all().map(|(name, _)| name).collect();
        write!(f, "Credentials({names:?})")
    }
}

impl Credentials {
    /// Credentials in the environment.
    pub fn of_environment() -> Credentials {
        let all = std::env::vars_os();
        let texts = all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Credentials {
            environment: texts
                .filter(|(name, _)| OURS.iter().any(|start| name.starts_with(start)))
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
            files: Vec::new(),
        }
    }

    /// Adds what a file has, one `NAME=VALUE` in a line, which comes before what was there.
    ///
    /// # Errors
    /// Why it cannot be read, or which line is wrong.
    pub fn add_file(&mut self, path: &Path) -> Result<(), String> {
        self.files.push((path.to_owned(), read(path)?));
        Ok(())
    }

    /// These credentials, with what the files have now.
    ///
    /// # Errors
    /// Why one of them cannot be read, or which line is wrong. A file that had something and has nothing now is being
    /// written.
    pub fn read_again(&self) -> Result<Credentials, String> {
        let mut again = self.clone();
        for (path, values) in &mut again.files {
            let had_some = !values.is_empty();
            *values = read(path)?;
            if had_some && values.is_empty() {
                return Err(format!("{} has nothing in it now", path.display()));
            }
        }
        Ok(again)
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Names and values; the last of a name counts.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_files = self.files.iter().flat_map(|(_, values)| values);
        let all = self.environment.iter().chain(of_files);
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Takes what was given out of a text.
    #[cfg(feature = "upload")]
    pub(super) fn hide(&self, text: &str) -> String {
        let is_secret = |name: &str| SECRET.iter().any(|word| name.contains(word));
        let mut hidden = text.to_owned();
        for (_, value) in self.all().filter(|(name, _)| is_secret(name)) {
            // A shorter one is none, and would hide words.
            if value.len() >= 6 {
                hidden = hidden.replace(value, "***");
            }
        }
        hidden
    }
}

fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let shown = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
    let bytes = read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if bytes as u64 > MOST {
        return Err(format!("{shown} is longer than {} KiB", MOST >> 10));
    }
    let mut values = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line
            .split_once('=')
            .filter(|(name, _)| OURS.iter().any(|start| name.starts_with(start)));
        let Some((name, value)) = pair else {
            return Err(format!(
                "line {} of {shown} is no NAME=VALUE with a name that begins with {}",
                nth + 1,
                OURS.join(", ")
            ));
        };
        values.push((
            name.to_ascii_lowercase(),
            value.trim_matches('"').to_owned(),
        ));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_credentials_is_read_and_a_wrong_line_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s3.env");
        std::fs::write(
            &path,
            "# of the fleet\n\nAWS_ACCESS_KEY_ID=abc\nAWS_SECRET_ACCESS_KEY=\"x=y\"\n",
        )
        .unwrap();
        let mut credentials = Credentials::default();
        credentials.add_file(&path).unwrap();
        assert_eq!(
            credentials.all().collect::<Vec<_>>(),
            [
                ("aws_access_key_id", "abc"),
                ("aws_secret_access_key", "x=y")
            ]
        );
        assert!(!format!("{credentials:?}").contains("x=y"));
        for wrong in [
            "AWS_ACCESS_KEY_ID=a\nhunter2=x\n",
            "AWS_ACCESS_KEY_ID=a\nAWS_hunter2\n",
        ] {
            std::fs::write(&path, wrong).unwrap();
            let error = Credentials::default().add_file(&path).unwrap_err();
            assert!(
                error.starts_with("line 2 of ") && !error.contains("hunter2"),
                "{error}"
            );
        }
        let error = credentials.add_file(Path::new("/nonexistent")).unwrap_err();
        assert!(error.contains("cannot be read"), "{error}");
        let error = credentials.add_file(Path::new("/dev/zero")).unwrap_err();
        assert!(error.contains("is longer than 64 KiB"), "{error}");
    }

    #[test]
    fn files_are_read_again_and_what_is_being_written_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s3.env");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("AWS_SESSION_TOKEN=one\n");
        let mut credentials = Credentials::default();
        credentials.add_file(&path).unwrap();
        assert!(credentials.read_again().unwrap() == credentials);
        write("AWS_SESSION_TOKEN=two\n");
        let again = credentials.read_again().unwrap();
        assert_eq!(
            again.all().collect::<Vec<_>>(),
            [("aws_session_token", "two")]
        );
        write("");
        let told = credentials.read_again().unwrap_err();
        assert!(told.ends_with("has nothing in it now"), "{told}");
        std::fs::remove_file(&path).unwrap();
        assert!(credentials.read_again().is_err());
    }
}
