//! The system's answers to messages that asked for acknowledgement, and the limits that it granted its clients.

use pubgauge_driver::{Driver, Grant, Mapping};
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_figures::model::{PublisherWindow, Rejection, SizeLimit};

/// Rejected messages of a flow, or of all, by code, the most frequent first; named by the driver, if that is known.
pub fn rejections(
    record: &TrialRecord,
    flow: Option<usize>,
    driver: Option<&dyn Driver>,
) -> Vec<Rejection> {
    let all = record.recordings.iter().flat_map(|r| &r.rejections);
    let mut found: Vec<Rejection> = Vec::new();
    for rejected in all.filter(|r| flow.is_none_or(|flow| r.flow as usize == flow)) {
        match found.iter_mut().find(|known| known.code == rejected.code) {
            Some(known) => known.messages += rejected.messages,
            None => found.push(Rejection {
                code: rejected.code,
                name: driver.map_or_else(String::new, |driver| driver.rejection(rejected.code)),
                messages: rejected.messages,
            }),
        }
    }
    found.sort_by_key(|rejection| (std::cmp::Reverse(rejection.messages), rejection.code));
    found
}

/// The limits that held for the clients of all workers.
fn grants(record: &TrialRecord) -> Vec<Grant> {
    let mut all = Vec::new();
    for recording in &record.recordings {
        Grant::unite(&mut all, recording.grants.iter().cloned());
    }
    all
}

/// The window of the publishers, with the shortest acknowledgement seen; `measured` is that of the measurement, ns.
pub fn publisher_window(record: &TrialRecord, measured: Option<u64>) -> Option<PublisherWindow> {
    let window = grants(record)
        .into_iter()
        .find(|grant| grant.setting == Grant::WINDOW)?;
    let before = record
        .recordings
        .iter()
        .filter_map(|r| r.fastest_acknowledgement);
    Some(PublisherWindow {
        setting: window.setting.into_owned(),
        asked: window.asked,
        granted: window.granted,
        term: window.term.into_owned(),
        fastest_acknowledgement_ns: before.chain(measured).min(),
    })
}

/// The largest message that the system said it takes.
pub fn size_limit(record: &TrialRecord) -> Option<SizeLimit> {
    let all = grants(record).into_iter();
    let mut sizes = all.filter(|grant| grant.setting == Grant::SIZE);
    sizes.next().map(|grant| SizeLimit {
        bytes: grant.granted,
        term: grant.term.into_owned(),
    })
}

/// Adds to the mappings what the system granted in place of what was asked for.
pub fn add_grants(mappings: &mut [Mapping], record: &TrialRecord) {
    for grant in grants(record).iter().filter(|grant| grant.differs()) {
        for mapping in mappings.iter_mut().filter(|m| m.setting == grant.setting) {
            let Grant {
                asked,
                granted,
                term,
                ..
            } = grant;
            mapping.native = format!(
                "{}; asked {asked}, granted {granted} ({term})",
                mapping.native
            );
        }
    }
}
