//! Object storage: S3, Google Cloud Storage, Azure Blob Storage, and whatever speaks like them.

#[cfg(not(feature = "upload"))]
mod absent;
#[cfg(feature = "upload")]
mod remote;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

#[cfg(not(feature = "upload"))]
pub use absent::{Store, check};
#[cfg(feature = "upload")]
pub use remote::{Store, check};

/// Where objects are, without what opens it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Bucket, and a prefix in it: s3://BUCKET/PREFIX.
    pub url: String,
    /// Address of the store, where it is not the cloud's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.trim_end_matches('/'))
    }
}

/// An object, as the store tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub bytes: u64,
    /// What the store calls this content; another content has another one.
    pub e_tag: Option<String>,
}

/// Why a request to a store failed. No credential stands in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub what: String,
    /// The store was reached, and has no such object.
    pub is_missing: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// What opens a store, by the names of the variables of the environment, in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials(Vec<(String, String)>);

/// What the names of such variables begin with.
const OURS: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Words in the names of those that nobody may see.
#[cfg(feature = "upload")]
const SECRET: [&str; 4] = ["key", "secret", "token", "password"];

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "Credentials({names:?})")
    }
}

impl Credentials {
    /// What the environment has.
    pub fn of_environment() -> Credentials {
        let all = std::env::vars_os();
        let texts = all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Credentials(
            texts
                .filter(|(name, _)| OURS.iter().any(|start| name.starts_with(start)))
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
        )
    }

    /// Adds what a file has, one `NAME=VALUE` in a line, which comes before what was there.
    ///
    /// # Errors
    /// Why it cannot be read, or which line is wrong.
    pub fn add_file(&mut self, path: &Path) -> Result<(), String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{shown} cannot be read: {error}"))?;
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
            // The last of a name counts.
            self.0.push((
                name.to_ascii_lowercase(),
                value.trim_matches('"').to_owned(),
            ));
        }
        Ok(())
    }

    /// Takes what was given out of a text.
    #[cfg(feature = "upload")]
    fn hide(&self, text: &str) -> String {
        let is_secret = |name: &str| SECRET.iter().any(|word| name.contains(word));
        let mut hidden = text.to_owned();
        for (_, value) in self.0.iter().filter(|(name, _)| is_secret(name)) {
            // A shorter one is none, and would hide words.
            if value.len() >= 6 {
                hidden = hidden.replace(value.as_str(), "***");
            }
        }
        hidden
    }
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
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            credentials.0,
            [
                of("aws_access_key_id", "abc"),
                of("aws_secret_access_key", "x=y")
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
    }
}
