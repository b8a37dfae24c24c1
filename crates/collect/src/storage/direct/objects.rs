//! Objects of a store, each a file of the messages of one commit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;

use super::super::Shared;
use super::Sink;
use crate::config::{Config, Form, Upload};
use crate::file_name::fresh_mark;
use crate::files::{Layout, Made, in_memory};
use crate::folder::COLLECTORS;
use crate::notice::{Notice, Watch};
use crate::store::{Failure, OTHER, StoreClient};

/// Longest time that one request may take.
const REQUEST: Duration = Duration::from_secs(60);

/// Puts commits into objects of a store.
pub struct Objects {
    client: StoreClient,
    place: String,
    /// The collector's name, and a mark of this start: numbers begin with 1 at each start, since nothing is kept here.
    start: String,
    form: Form,
    layout: Layout,
    /// Files that are not confirmed yet.
    made: VecDeque<Made>,
}

impl Objects {
    /// Opens the store and puts a first object there, which says that a collector has begun; how long that took, too.
    ///
    /// # Errors
    /// If the store does not take it.
    pub fn begin(
        config: &Config,
        upload: &Upload,
        name: &str,
        watch: &Watch,
    ) -> Result<(Objects, Duration), Failure> {
        let mut client = StoreClient::new(&upload.place, &upload.credentials, REQUEST);
        let store = client.store(watch)?;
        let start = format!("{name}.{}", fresh_mark());
        let version = env!("CARGO_PKG_VERSION");
        let about = json!({"collector": name, "start": start, "pubgauge": version}).to_string();
        let path = format!("{COLLECTORS}/{name}/{start}.json");
        // The first request also looks names up and connects.
        store.replace(&path, about.clone().into())?;
        let begun = Instant::now();
        store.replace(&path, about.into())?;
        let took = begun.elapsed();
        let objects = Objects {
            client,
            place: upload.place.to_string(),
            start,
            form: config.form,
            layout: config.layout.clone(),
            made: VecDeque::new(),
        };
        Ok((objects, took))
    }
}

impl Sink for Objects {
    fn description(&self) -> String {
        self.place.clone()
    }

    fn take(&mut self, frames: &Bytes, mark: u32, shared: &Shared) -> Result<(), String> {
        let made = in_memory(&self.start, (self.form, &self.layout), mark, frames);
        let (made, finished) = made.map_err(|error| error.to_string())?;
        shared.count(&finished);
        self.made = made.into();
        Ok(())
    }

    fn deliver(&mut self, shared: &Shared) -> Result<(), Failure> {
        while let Some(file) = self.made.front() {
            let put = self.client.store(&shared.watch)?;
            let put = put.upload(&file.path, file.bytes.clone());
            let put = put.inspect_err(|_| self.client.doubt())?;
            if put.is_none() {
                return Err(Failure {
                    what: format!("{}/{}: {OTHER}", self.place, file.path),
                    is_missing: false,
                });
            }
            let bytes = file.bytes.len() as u64;
            shared.status.uploaded_files.add(1);
            shared.status.uploaded_bytes.add(bytes);
            shared.status.files.add(1);
            shared.status.file_messages.add(file.messages);
            shared.status.file_bytes.add(bytes);
            (shared.watch)(&Notice::Finished {
                path: file.path.clone(),
                messages: file.messages,
                bytes,
            });
            self.made.pop_front();
        }
        Ok(())
    }
}
