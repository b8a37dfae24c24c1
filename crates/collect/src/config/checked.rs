//! From the file, or from flags, to what a collector works with.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pubgauge_driver::Secret;
use pubgauge_mqtt_codec::{MAX_PACKET_LEN, QoS, Version};
use pubgauge_place::Access;
use pubgauge_strict_toml::{InvalidInput, Noun, Problem, StrictFile};

use super::brokers::{Broker, brokers};
use super::canary::Canary;
use super::direct::Direct;
use super::faults::{Fault, Faults, HOUR, MS, SECOND};
use super::file::{AccessFile, CollectFile, Form, Mqtt};
use super::filters::filters;
use super::kafka::Kafka;
use super::upload::Upload;
use crate::files::Layout;
use crate::folder::is_name;
use crate::log::Limits;

pub(super) const COLLECT: Noun = Noun {
    name: "collect",
    article: "a",
    missing: "check the path; docs/collect.md begins with the smallest file",
    too_big: None,
    empty: "a collect file needs at least `brokers`, `topics` and `to`; docs/collect.md begins with the smallest one",
};

/// A configuration that a collector can work with.
#[derive(Clone, Debug)]
pub struct Config {
    pub brokers: Vec<Broker>,
    /// Topic filters, as they are subscribed to: with the group.
    pub filters: Vec<String>,
    /// The data folder; none where messages are acknowledged once they are uploaded.
    pub to: Option<PathBuf>,
    pub name: Option<String>,
    pub qos: QoS,
    pub version: Version,
    pub form: Form,
    pub group: Option<String>,
    pub canary: Option<Canary>,
    /// Where metrics and health are to be served.
    pub listen: Option<String>,
    pub stop_within: Duration,
    pub session_expiry_s: u32,
    pub keep_alive_s: u16,
    /// Largest packet of a message that is taken, bytes.
    pub largest_message: usize,
    /// Whether brokers are told so.
    pub announces_largest: bool,
    pub resolve_every: Duration,
    pub commit_every: Duration,
    pub commit_bytes: usize,
    pub limits: Limits,
    pub layout: Layout,
    /// Who may use the data folder.
    pub access: Access,
    pub upload: Option<Upload>,
    pub kafka: Option<Kafka>,
}

/// Facts that a collect file does not hold.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Password for the list of brokers, where the file names no other file that has it.
    pub password: Option<Secret>,
    /// Name of the collector, in place of the file's.
    pub name: Option<String>,
}

/// Reads a collect file; all its relative paths start from its folder.
///
/// # Errors
/// Everything that is wrong in it, with line and column.
pub fn read(path: &Path, given: &Given) -> Result<Config, InvalidInput> {
    let file = StrictFile::open(path, &COLLECT)?;
    check(&file, folder_of(path), given)
}

/// The folder that relative paths start from.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

pub(super) fn check(
    file: &StrictFile,
    folder: &Path,
    given: &Given,
) -> Result<Config, InvalidInput> {
    let mut written: CollectFile = file.decode()?;
    if given.name.is_some() {
        written.name.clone_from(&given.name);
    }
    Config::from_written(&written, folder, given.password.clone()).map_err(|faults| {
        let at = |fault: &Fault| {
            let steps: Vec<&str> = fault.steps.iter().map(String::as_str).collect();
            file.problem(&steps, fault.message.clone(), fault.hint.clone())
        };
        let problems: Vec<Problem> = faults.iter().map(at).collect();
        InvalidInput { problems }
    })
}

impl Config {
    /// From what was written, by a file or by flags. The password is for the list of brokers, unless a file has it.
    ///
    /// # Errors
    /// Everything that is wrong in it.
    pub fn from_written(
        written: &CollectFile,
        folder: &Path,
        password: Option<Secret>,
    ) -> Result<Config, Vec<Fault>> {
        let mut faults = Faults::default();
        let brokers = brokers(written, folder, password, &mut faults);
        let filters = filters(written, &mut faults);
        let upload = super::upload::check_upload(written, folder, &mut faults);
        let columns = super::payload::check_columns(written, &mut faults);
        let partitioning = super::files::check_partitioning(written, &mut faults);
        let kafka = super::kafka::check_kafka(written, folder, &mut faults);
        let canary = super::canary::check_canary(written, &mut faults);
        let direct = direct(upload.as_ref(), kafka.as_ref());
        let has_folder = written
            .to
            .as_ref()
            .is_some_and(|to| !to.as_os_str().is_empty());
        if !has_folder && direct.is_none() {
            faults.add(&["to"], "a data folder is needed", None);
        }
        if let Some(name) = written.name.as_deref().filter(|name| !is_name(name)) {
            let hint =
                "expected up to 64 letters, digits, `-`, `_` and `.`, which file names can have";
            faults.add(
                &["name"],
                format!("`{name}` cannot be a collector's name"),
                Some(hint),
            );
        }
        let qos = written.qos.map_or(Some(QoS::AtLeastOnce), QoS::from_bits);
        if qos.is_none() {
            faults.add(&["qos"], "QoS is 0, 1 or 2", None);
        }
        let session = &written.session;
        let log = &written.log;
        let expiry = faults.span(
            &["session", "expiry"],
            session.expiry,
            24 * HOUR,
            (SECOND, 8760 * HOUR),
        );
        let keep_alive = faults.span(
            &["session", "keep-alive"],
            session.keep_alive,
            30 * SECOND,
            (SECOND, 18 * HOUR),
        );
        let resolve_every = faults.span(
            &["session", "resolve-every"],
            session.resolve_every,
            30 * SECOND,
            (SECOND, 24 * HOUR),
        );
        let largest_message = faults.size(
            &["session", "largest-message"],
            session.largest_message,
            1 << 20,
            (1 << 10, MAX_PACKET_LEN as u64),
        );
        if session.announce_largest == Some(true) && written.mqtt == Some(Mqtt::V311) {
            faults.add(
                &["session", "announce-largest"],
                "MQTT 3.1.1 has no way to tell it",
                Some("leave it out: what is larger passes by here"),
            );
        }
        let commit_every = faults.span(
            &["log", "commit-every"],
            log.commit_every,
            5 * MS,
            (MS / 10, 10 * SECOND),
        );
        let stop_within = faults.span(
            &["stop-within"],
            written.stop_within,
            10 * SECOND,
            (SECOND, HOUR),
        );
        let segment_age = faults.span(
            &["log", "segment-age"],
            log.segment_age,
            300 * SECOND,
            (SECOND, 24 * HOUR),
        );
        let commit_bytes = faults.size(
            &["log", "commit-bytes"],
            log.commit_bytes,
            4 << 20,
            (64 << 10, 64 << 20),
        );
        let segment_bytes = faults.size(
            &["log", "segment"],
            log.segment,
            128 << 20,
            (1 << 20, 1 << 30),
        );
        let reserve_bytes = faults.size(
            &["log", "reserve"],
            log.reserve,
            2 * segment_bytes,
            (0, 1 << 40),
        );
        if written.compression.is_some() && written.form == Some(Form::Ndjson) {
            faults.add(
                &["compression"],
                "only Parquet is compressed",
                Some("leave it out, or take form = \"parquet\""),
            );
        }
        if !faults.0.is_empty() {
            return Err(faults.0);
        }
        Ok(Config {
            brokers,
            filters,
            to: written.to.as_ref().map(|to| folder.join(to)),
            name: written.name.clone(),
            qos: qos.unwrap_or_default(),
            version: written.mqtt.unwrap_or_default().version(),
            form: written.form.unwrap_or_default(),
            group: written.group.clone(),
            canary,
            listen: written.listen.clone(),
            stop_within,
            session_expiry_s: expiry.as_secs() as u32,
            keep_alive_s: keep_alive.as_secs() as u16,
            largest_message: largest_message as usize,
            announces_largest: session.announce_largest.unwrap_or_default(),
            resolve_every,
            commit_every,
            commit_bytes: direct.map_or(commit_bytes as usize, |direct| direct.bytes),
            limits: Limits {
                segment_bytes,
                segment_age,
                reserve_bytes,
            },
            access: match written.access.unwrap_or_default() {
                AccessFile::Owner => Access::Owner,
                AccessFile::Group => Access::Group,
                AccessFile::Umask => Access::Umask,
            },
            layout: Layout {
                columns,
                partitioning,
                compression: written.compression.unwrap_or_default(),
            },
            upload,
            kafka,
        })
    }

    /// How messages are gathered, if nothing is on a disk here.
    pub fn direct(&self) -> Option<Direct> {
        direct(self.upload.as_ref(), self.kafka.as_ref())
    }
}

fn direct(upload: Option<&Upload>, kafka: Option<&Kafka>) -> Option<Direct> {
    let kafka = kafka.map(|kafka| kafka.direct);
    kafka.or_else(|| upload?.direct)
}

#[cfg(test)]
mod tests;
