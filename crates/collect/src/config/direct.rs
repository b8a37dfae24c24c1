//! Collecting without a data folder.

use std::time::Duration;

use super::faults::Faults;
use super::file::{CollectFile, LogFile};

/// How messages are gathered without a data folder, before they go to a store or to Kafka.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    pub every: Duration,
    pub bytes: usize,
    /// Messages a second that each broker has to deliver.
    pub per_s: Option<f64>,
}

/// Reports keys that need a data folder; `with` names what replaces it, and `at` is where the file asks for that.
pub(super) fn nothing_here(written: &CollectFile, with: &str, at: &[&str], faults: &mut Faults) {
    if written.to.is_some() {
        let message = format!("nothing is stored here with {with}");
        faults.add(&["to"], message, Some("leave out `to`"));
    }
    if written.log != LogFile::default() {
        let message = format!("there is no log with {with}");
        faults.add(&["log"], message, Some("leave out `log`"));
    }
    if written.name.is_none() {
        let hint = "nothing is kept here: by its name the collector finds its sessions again";
        let message = format!("{with} needs a `name` of the collector");
        faults.add(at, message, Some(hint));
    }
}
