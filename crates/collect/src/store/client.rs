//! A store that stays open over its credentials: they are read again from their files before each use.

use std::time::Duration;

use super::{Credentials, Failure, Store, StoreAddress};
use crate::notice::{Notice, Watch};

/// The store of one place. It is opened when it is needed first: credentials may come later than the collector.
pub(crate) struct StoreClient {
    place: StoreAddress,
    credentials: Credentials,
    timeout: Duration,
    store: Option<Store>,
    /// It has failed since it was opened.
    is_doubtful: bool,
    /// Why what the files have now was not taken, as it was told last.
    told: Option<String>,
}

impl StoreClient {
    /// `timeout` bounds each request as a whole.
    pub fn new(place: &StoreAddress, credentials: &Credentials, timeout: Duration) -> StoreClient {
        StoreClient {
            place: place.clone(),
            credentials: credentials.clone(),
            timeout,
            store: None,
            is_doubtful: false,
            told: None,
        }
    }

    /// The store, opened with what the files have now. Where that does not do, what they had before goes on.
    ///
    /// # Errors
    /// If it was never opened, and cannot be.
    pub fn store(&mut self, watch: &Watch) -> Result<&Store, Failure> {
        let mut is_unread = false;
        let credentials = match self.credentials.read_again() {
            Ok(credentials) => credentials,
            Err(why) => {
                is_unread = true;
                self.keep(why, watch);
                self.credentials.clone()
            }
        };
        let is_new = credentials != self.credentials;
        if !is_new {
            self.told = self.told.take().filter(|_| is_unread);
        }
        let opened = match self.store.take() {
            Some(store) if !is_new && !self.is_doubtful => Ok(store),
            before => {
                let opened = Store::open(&self.place, &credentials, self.timeout);
                match (opened, before) {
                    (Ok(store), _) => {
                        self.is_doubtful = false;
                        self.credentials = credentials;
                        if is_new {
                            self.told = None;
                            watch(&Notice::CredentialsRenewed {
                                to: self.place.to_string(),
                            });
                        }
                        Ok(store)
                    }
                    (Err(failure), Some(before)) => {
                        self.keep(failure.what, watch);
                        Ok(before)
                    }
                    (Err(failure), None) => Err(failure),
                }
            }
        };
        opened.map(|store| &*self.store.insert(store))
    }

    /// Has it opened anew the next time: what opens it may have expired, also what others gave for it.
    pub fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    fn keep(&mut self, why: String, watch: &Watch) {
        if self.told.as_ref() != Some(&why) {
            watch(&Notice::CredentialsKept { why: why.clone() });
            self.told = Some(why);
        }
    }
}
