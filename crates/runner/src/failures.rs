//! The failures of all clients of a trial, in the words of the driver or the server.

use pubgauge_driver::Driver;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::failures::FailureKind as Kind;
use pubgauge_figures::model::{ClientFailure, FailureKind};

use crate::convert::one_line;

/// Each failure once, with its count over all workers; rejections by the name that the driver has for them.
pub fn of_clients(record: &TrialRecord, driver: Option<&dyn Driver>) -> Vec<ClientFailure> {
    let mut all: Vec<ClientFailure> = Vec::new();
    let mut add = |failure: ClientFailure| {
        let same =
            |known: &&mut ClientFailure| known.kind == failure.kind && known.why == failure.why;
        match all.iter_mut().find(same) {
            Some(known) => known.count += failure.count,
            None => all.push(failure),
        }
    };
    for failure in record.recordings.iter().flat_map(|r| &r.failures) {
        add(ClientFailure {
            kind: match failure.kind {
                Kind::Refused => FailureKind::Refused,
                Kind::Lost => FailureKind::Lost,
                Kind::Subscription => FailureKind::Subscription,
                Kind::Other => FailureKind::Other,
            },
            why: one_line(&failure.why),
            first: failure.first.clone(),
            count: failure.count,
        });
    }
    for rejected in record.recordings.iter().flat_map(|r| &r.early_rejections) {
        let name = driver.map_or_else(String::new, |driver| driver.rejection(rejected.code));
        add(ClientFailure {
            kind: FailureKind::Rejected,
            why: if name.is_empty() {
                format!("code {}", rejected.code)
            } else {
                name
            },
            first: String::new(),
            count: rejected.messages,
        });
    }
    let more: u64 = record.recordings.iter().map(|r| r.more_failures).sum();
    if more > 0 {
        add(ClientFailure {
            kind: FailureKind::Other,
            why: format!("and {more} more"),
            first: String::new(),
            count: 1,
        });
    }
    all
}
