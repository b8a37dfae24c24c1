//! Collecting without a data folder.

use std::time::Duration;

use super::faults::Faults;
use super::file::{CollectFile, LogFile};

/// How messages are gathered that go elsewhere at once, when nothing is on a disk here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    pub every: Duration,
    pub bytes: usize,
    /// Messages a second that each broker has to deliver.
    pub per_s: Option<f64>,
}

/// Finds what needs a data folder. `with` says what there is instead, which is asked for `at` this place.
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
