//! Object storage: S3, Google Cloud Storage, Azure Blob Storage, and whatever speaks like them.

#[cfg(not(feature = "upload"))]
mod absent;
#[cfg(feature = "upload")]
mod remote;

mod client;
mod credentials;

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(not(feature = "upload"))]
pub use absent::{Store, check};
pub(crate) use client::StoreClient;
pub use credentials::Credentials;
#[cfg(feature = "upload")]
pub use remote::{Store, check};

/// Where objects are, without what opens it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreAddress {
    /// Bucket, and a prefix in it: s3://BUCKET/PREFIX.
    pub url: String,
    /// Address of the store, where it is not the cloud's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

impl StoreAddress {
    /// Whether what is said of this place, which the user names, holds for another, which a file names: bucket, prefix
    /// and endpoint are the same. The region stands in the host's name of a cloud, so that it is the same, too, or no
    /// more than a name.
    pub fn covers(&self, other: &StoreAddress) -> bool {
        let bucket = |place: &StoreAddress| place.url.trim_end_matches('/').to_owned();
        let endpoint = |place: &StoreAddress| {
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

impl fmt::Display for StoreAddress {
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
    /// The store's name for this content; another content has another one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_bucket_prefix_and_endpoint() {
        let place = |url: &str, endpoint: Option<&str>, region: Option<&str>| StoreAddress {
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
}
