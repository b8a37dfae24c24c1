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

impl Place {
    /// Whether what is said of this place, which the user names, holds for another, which a file names: bucket, prefix
    /// and endpoint are the same. The region stands in the host's name of a cloud, so that it is the same, too, or no
    /// more than a name.
    pub fn covers(&self, other: &Place) -> bool {
        let bucket = |place: &Place| place.url.trim_end_matches('/').to_owned();
        let endpoint = |place: &Place| {
            let endpoint = place.endpoint.as_deref();
            endpoint.map(|one| one.trim_end_matches('/').to_owned())
        };
        let is_name = |region: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
            region.len() <= 40 && region.chars().all(fits)
        };
        let is_region = match (&self.region, &other.region) {
            (Some(named), Some(region)) => named == region,
            (None, Some(region)) => is_name(region),
            (_, None) => true,
        };
        bucket(self) == bucket(other) && endpoint(self) == endpoint(other) && is_region
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.trim_end_matches('/'))
    }
}

/// Why a file is not put to a store that has another one of its name.
pub(crate) const OTHER: &str = "the store has another object of this name, which is not replaced";

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
    fn a_place_is_named_by_bucket_prefix_and_endpoint() {
        let place = |url: &str, endpoint: Option<&str>, region: Option<&str>| Place {
            url: url.into(),
            endpoint: endpoint.map(Into::into),
            region: region.map(Into::into),
        };
        let mine = place("s3://fleet/raw", Some("https://store.mine"), None);
        for same in [
            mine.clone(),
            place("s3://fleet/raw/", Some("https://store.mine/"), None),
            place(
                "s3://fleet/raw",
                Some("https://store.mine"),
                Some("eu-central-1"),
            ),
        ] {
            assert!(mine.covers(&same), "{same:?}");
        }
        for other in [
            place("s3://fleet/raw", None, None),
            place("s3://fleet/raw", Some("https://store.theirs"), None),
            place("s3://fleet/raw", Some("http://store.mine"), None),
            place("s3://fleet/raw/more", Some("https://store.mine"), None),
            place("s3://theirs/raw", Some("https://store.mine"), None),
            // It would become a host's name.
            place(
                "s3://fleet/raw",
                Some("https://store.mine"),
                Some("x.theirs/?"),
            ),
        ] {
            assert!(!mine.covers(&other), "{other:?}");
        }
        let there = place("s3://fleet/raw", None, Some("eu-west-1"));
        assert!(!there.covers(&place("s3://fleet/raw", None, Some("us-east-1"))));
    }

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
