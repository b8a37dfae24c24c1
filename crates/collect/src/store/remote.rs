//! A store over HTTP, with the crate `object_store`.

use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, GetOptions, ObjectStore, ObjectStoreScheme, PutMode, PutOptions, RetryConfig,
};
use tokio::runtime::Runtime;
use url::Url;

use super::{Credentials, Failure, Object, StoreAddress};

const EXPECTED: &str = "expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX";

/// The bucket or container of one place. Its calls wait.
#[derive(Debug)]
pub struct Store {
    runtime: Runtime,
    inner: Box<dyn ObjectStore>,
    prefix: Path,
    place: StoreAddress,
    credentials: Credentials,
}

/// The kind of store, and the prefix within the bucket.
fn kind(place: &StoreAddress) -> Result<(ObjectStoreScheme, Path), (String, &'static str)> {
    let url = Url::parse(&place.url);
    let url = url.map_err(|error| (format!("it is no address: {error}"), EXPECTED))?;
    // In an address of Azure, the container may stand in front of the account.
    let is_key = matches!(url.scheme(), "s3" | "s3a" | "gs") && !url.username().is_empty();
    if is_key || url.password().is_some() {
        let hint = "they come from the environment, or from `credentials-file`";
        return Err(("credentials have no place in an address".into(), hint));
    }
    match ObjectStoreScheme::parse(&url) {
        Ok((
            kind @ (ObjectStoreScheme::AmazonS3
            | ObjectStoreScheme::GoogleCloudStorage
            | ObjectStoreScheme::MicrosoftAzure),
            prefix,
        )) => Ok((kind, prefix)),
        _ => Err(("it is no address of object storage".into(), EXPECTED)),
    }
}

/// Whether a place is one that objects can be put to, and what opens it is complete. Asks nobody.
///
/// # Errors
/// Says what is wrong with it, and what was expected.
pub fn check(
    place: &StoreAddress,
    credentials: &Credentials,
) -> Result<(), (String, &'static str)> {
    let (kind, _) = kind(place)?;
    let opened_by = match kind {
        ObjectStoreScheme::GoogleCloudStorage => {
            "GOOGLE_SERVICE_ACCOUNT names the file that opens it: in the environment, or in `credentials-file`"
        }
        ObjectStoreScheme::MicrosoftAzure => {
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY open it: from the environment, or from `credentials-file`"
        }
        _ => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY open it: from the environment, or from `credentials-file`"
        }
    };
    let opened = Store::open(place, credentials, Duration::from_secs(1));
    opened
        .map(drop)
        .map_err(|failure| (failure.what, opened_by))
}

/// Makes the client of one kind of store; the kinds have the same calls and no trait in common.
macro_rules! client {
    ($builder:ty, $place:expr, $options:expr) => {{
        let builder = <$builder>::new()
            .with_url(&$place.url)
            .with_retry(no_retry());
        let builder = $options
            .iter()
            .fold(builder, |builder, (name, value)| match name.parse() {
                Ok(key) => builder.with_config(key, value),
                // Of another kind of store, or for another program.
                Err(_) => builder,
            });
        builder
            .build()
            .map(|store| Box::new(store) as Box<dyn ObjectStore>)
    }};
}

/// Whoever calls tries again, and says so.
fn no_retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 0,
        retry_timeout: Duration::ZERO,
    }
}

/// Whether a store says that it takes no conditions.
fn lacks_conditions(error: &object_store::Error) -> bool {
    let mut inner: Option<&dyn std::error::Error> = Some(error);
    let mut says = false;
    while let Some(error) = inner {
        says |= error.to_string().contains("501 Not Implemented");
        inner = error.source();
    }
    says || matches!(error, object_store::Error::NotImplemented { .. })
}

/// Of an answer in XML no more than its code and its message: the rest repeats what was sent, tokens among that.
fn in_short(text: &str) -> String {
    let Some(begin) = ["<?xml", "<Error"]
        .iter()
        .filter_map(|tag| text.find(tag))
        .min()
    else {
        return text.to_owned();
    };
    let (before, body) = text.split_at(begin);
    let content = |tag: &str| {
        let (_, rest) = body.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(text, _)| text)
    };
    let told: Vec<&str> = ["Code", "Message"]
        .into_iter()
        .filter_map(content)
        .collect();
    format!("{before}{}", told.join(": "))
}

impl Store {
    /// Makes the client of a place. `timeout` bounds each request as a whole.
    ///
    /// # Errors
    /// If the place is none, or what opens it is not complete.
    pub fn open(
        place: &StoreAddress,
        credentials: &Credentials,
        timeout: Duration,
    ) -> Result<Store, Failure> {
        let failed = |what: String| Failure {
            what: format!("{place}: {}", credentials.hide(&what)),
            is_missing: false,
        };
        let (kind, prefix) =
            kind(place).map_err(|(what, hint)| failed(format!("{what}; {hint}")))?;
        // The HTTP client takes the process's own; the first one that was installed stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options: Vec<(String, String)> = credentials
            .all()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
        set("timeout", format!("{}s", timeout.as_secs()));
        set("connect_timeout", "10s".into());
        if let Some(region) = &place.region {
            set("aws_region", region.clone());
        }
        if let Some(endpoint) = &place.endpoint {
            for name in ["aws_endpoint", "azure_endpoint", "google_base_url"] {
                set(name, endpoint.clone());
            }
            set("allow_http", endpoint.starts_with("http:").to_string());
        }
        let inner = match kind {
            ObjectStoreScheme::AmazonS3 => client!(AmazonS3Builder, place, options),
            ObjectStoreScheme::GoogleCloudStorage => {
                client!(GoogleCloudStorageBuilder, place, options)
            }
            _ => client!(MicrosoftAzureBuilder, place, options),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Ok(Store {
            runtime: runtime.map_err(|error| failed(error.to_string()))?,
            inner: inner.map_err(|error| failed(error.to_string()))?,
            prefix,
            place: place.clone(),
            credentials: credentials.clone(),
        })
    }

    /// The path of an object, from its path below the prefix.
    fn path(&self, below: &str) -> Path {
        below
            .split('/')
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failure(&self, below: &str, error: &object_store::Error) -> Failure {
        let mut what = error.to_string();
        // The innermost cause is what helps, and stands in none of the others.
        let mut inner: &dyn std::error::Error = error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        let cause = inner.to_string();
        if !what.contains(&cause) {
            what = format!("{what}: {cause}");
        }
        // Behind the `?` of an address may be a signature.
        let short = in_short(&what);
        let words = short
            .split_whitespace()
            .map(|word| match word.split_once('?') {
                Some((before, _)) if word.contains("://") => before,
                _ => word,
            });
        let what = words.collect::<Vec<_>>().join(" ");
        Failure {
            what: format!("{}/{below}: {}", self.place, self.credentials.hide(&what)),
            is_missing: matches!(error, object_store::Error::NotFound { .. }),
        }
    }

    /// Puts an object as a whole where none is, and returns when the store has confirmed it. One of the same content that
    /// is there is it. `None` if another one is there, which stays. The store itself sees to that; where it cannot, it is
    /// looked at first.
    ///
    /// # Errors
    /// Why it may not be there.
    pub fn upload(&self, below: &str, bytes: Bytes) -> Result<Option<Object>, Failure> {
        match self.put_as(below, &bytes, PutMode::Create) {
            Ok(object) => Ok(Some(object)),
            Err(object_store::Error::AlreadyExists { .. }) => self.same(below, &bytes),
            Err(error) if lacks_conditions(&error) => match self.look(below) {
                Err(failure) if failure.is_missing => self.replace(below, bytes).map(Some),
                Err(failure) => Err(failure),
                Ok(_) => self.same(below, &bytes),
            },
            Err(error) => Err(self.failure(below, &error)),
        }
    }

    /// Puts an object as a whole, in place of one that is there, and returns when the store has confirmed it.
    ///
    /// # Errors
    /// Why it may not be there.
    pub fn replace(&self, below: &str, bytes: Bytes) -> Result<Object, Failure> {
        self.put_as(below, &bytes, PutMode::Overwrite)
            .map_err(|error| self.failure(below, &error))
    }

    fn put_as(
        &self,
        below: &str,
        bytes: &Bytes,
        mode: PutMode,
    ) -> Result<Object, object_store::Error> {
        let (path, options) = (self.path(below), PutOptions::from(mode));
        let put = self.inner.put_opts(&path, bytes.clone().into(), options);
        let put = self.runtime.block_on(put)?;
        Ok(Object {
            bytes: bytes.len() as u64,
            e_tag: put.e_tag,
        })
    }

    /// The object that is there, if it has this content.
    fn same(&self, below: &str, bytes: &Bytes) -> Result<Option<Object>, Failure> {
        let there = self.look(below)?;
        if there.bytes != bytes.len() as u64 {
            return Ok(None);
        }
        Ok((self.fetch(below)? == *bytes).then_some(there))
    }

    /// Asks the store for an object, without its content.
    ///
    /// # Errors
    /// If it is not there, or the store does not answer.
    pub fn look(&self, below: &str) -> Result<Object, Failure> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let got = self
            .runtime
            .block_on(self.inner.get_opts(&self.path(below), options));
        let meta = got.map_err(|error| self.failure(below, &error))?.meta;
        Ok(Object {
            bytes: meta.size,
            e_tag: meta.e_tag,
        })
    }

    /// An object's content.
    ///
    /// # Errors
    /// If it is not there, or the store does not answer.
    pub fn fetch(&self, below: &str) -> Result<Bytes, Failure> {
        let fetched = self.runtime.block_on(async {
            let got = self
                .inner
                .get_opts(&self.path(below), GetOptions::default())
                .await?;
            got.bytes().await
        });
        fetched.map_err(|error| self.failure(below, &error))
    }
}
