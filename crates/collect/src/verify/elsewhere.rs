//! Finished files that were moved to a store.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::NotSeen;
use crate::manifest::{FileEntry, Uploaded};
use crate::store::{Credentials, Failure, Store, StoreAddress};

/// Longest time that one request may take.
const REQUEST: Duration = Duration::from_secs(900);

/// How files that were moved to a store are looked at.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pub credentials: Credentials,
    /// The stores that the user names, by their addresses and prefixes. Credentials go to no other, whatever the list of
    /// files says.
    pub named: Vec<StoreAddress>,
    /// Their content is fetched and read, instead of asking for length and tag alone.
    pub fetch: bool,
}

/// The outcome of looking at a file.
pub enum RemoteFile {
    /// Its length and its tag are as they were told when it was put there.
    Told,
    Content(Bytes),
    Wrong(String),
    /// The store could not be asked.
    Not,
}

/// The stores of all files, each of which is opened once.
pub struct Elsewhere {
    look: Look,
    stores: BTreeMap<StoreAddress, Result<Store, NotSeen>>,
}

impl Elsewhere {
    pub fn new(look: Look) -> Elsewhere {
        let stores = BTreeMap::new();
        Elsewhere { look, stores }
    }

    pub fn look(&mut self, file: &FileEntry, uploaded: &Uploaded) -> RemoteFile {
        let Look {
            credentials,
            named,
            fetch,
        } = &self.look;
        let not_seen = |failure: Failure| NotSeen {
            place: uploaded.to.to_string(),
            files: 0,
            why: failure.what,
            unnamed: None,
        };
        let unnamed = || NotSeen {
            place: uploaded.to.to_string(),
            files: 0,
            why: "the list of files names this store, you have not, and credentials go to no other"
                .into(),
            unnamed: Some(Box::new(uploaded.to.clone())),
        };
        let place = self.stores.entry(uploaded.to.clone());
        let place = place.or_insert_with(|| {
            if !named.iter().any(|named| named.covers(&uploaded.to)) {
                return Err(unnamed());
            }
            Store::open(&uploaded.to, credentials, REQUEST).map_err(not_seen)
        });
        let seen = match place {
            Ok(store) => look_at(store, file, uploaded, *fetch),
            Err(there) => {
                there.files += 1;
                return RemoteFile::Not;
            }
        };
        seen.unwrap_or_else(|failure| {
            // One that does not answer now is not asked for each of its files.
            *place = Err(NotSeen {
                files: 1,
                ..not_seen(failure)
            });
            RemoteFile::Not
        })
    }

    pub fn not_seen(self) -> Vec<NotSeen> {
        self.stores.into_values().filter_map(Result::err).collect()
    }
}

fn look_at(
    store: &Store,
    file: &FileEntry,
    uploaded: &Uploaded,
    fetch: bool,
) -> Result<RemoteFile, Failure> {
    let place = &uploaded.to;
    let object = match store.look(&uploaded.path) {
        Err(failure) if failure.is_missing => {
            return Ok(RemoteFile::Wrong(format!("is missing in {place}")));
        }
        other => other?,
    };
    if object.bytes != file.bytes {
        let what = format!(
            "has {} bytes instead of {} in {place}",
            object.bytes, file.bytes
        );
        return Ok(RemoteFile::Wrong(what));
    }
    if object.e_tag != uploaded.e_tag {
        let shown = |tag: &Option<String>| tag.clone().unwrap_or_else(|| "none".into());
        let (is, was) = (shown(&object.e_tag), shown(&uploaded.e_tag));
        return Ok(RemoteFile::Wrong(format!(
            "has the tag {is} instead of {was} in {place}: it was written again"
        )));
    }
    Ok(if fetch {
        RemoteFile::Content(store.fetch(&uploaded.path)?)
    } else {
        RemoteFile::Told
    })
}
