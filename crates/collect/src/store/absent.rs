//! Built without object storage.

use std::time::Duration;

use bytes::Bytes;

use super::{Credentials, Failure, Object, StoreAddress};

const ABSENT: &str = "this program is built without object storage";

/// A store, which cannot be opened.
#[derive(Debug)]
pub enum Store {}

/// Whether objects can be put to a place: no.
///
/// # Errors
/// Always: what is missing, and what to do.
pub fn check(_: &StoreAddress, _: &Credentials) -> Result<(), (String, &'static str)> {
    Err((ABSENT.into(), "build it with the feature `upload`"))
}

impl Store {
    /// Opens nothing.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &StoreAddress, _: &Credentials, _: Duration) -> Result<Store, Failure> {
        let what = ABSENT.into();
        Err(Failure {
            what,
            is_missing: false,
        })
    }

    pub fn upload(&self, _path: &str, _bytes: Bytes) -> Result<Option<Object>, Failure> {
        match *self {}
    }

    pub fn replace(&self, _path: &str, _bytes: Bytes) -> Result<Object, Failure> {
        match *self {}
    }

    pub fn look(&self, _path: &str) -> Result<Object, Failure> {
        match *self {}
    }

    pub fn fetch(&self, _path: &str) -> Result<Bytes, Failure> {
        match *self {}
    }
}
