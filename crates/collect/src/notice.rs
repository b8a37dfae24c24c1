//! Notices of a collector at work.

use std::fmt;
use std::sync::Arc;

use pubgauge_quantities::shown::so_many;
use serde::Serialize;

use crate::dead::Why;
use crate::files::Misplacement;
use crate::store::OTHER;

/// Takes notices. They come from several threads.
pub type Watch = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Something that whoever runs a collector should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
    /// The log was taken, and messages go into it.
    Begun {
        collector: String,
        folder: String,
        segments: usize,
    },
    /// The end of the log is no whole message: the collector was stopped while it wrote.
    TailCut {
        bytes: u64,
        /// It was not acknowledged for certain; a version that did not note how far the log was on disk leaves that open.
        is_noted: bool,
    },
    /// Messages that were on disk are in no finished file, and no segment of the log has them.
    Missing { first: u64, last: u64 },
    /// Messages cannot be read in the log.
    Damaged {
        segment: String,
        first: u64,
        last: u64,
    },
    /// A connection is made, and the subscriptions stand.
    Connected {
        broker: String,
        session_present: bool,
    },
    /// The broker has no session although there was one: what it kept is gone.
    SessionLost { broker: String },
    /// The broker keeps sessions for less time than was asked for (5.0 §3.2.2.3.2).
    ShorterSession {
        broker: String,
        granted_s: u32,
        asked_s: u32,
    },
    /// A connection failed.
    Failed {
        broker: String,
        why: String,
        again_in_ms: u64,
    },
    /// The broker has taken what was subscribed to on a connection that stood already.
    Subscribed { broker: String },
    /// The broker refused a subscription.
    SubscriptionRefused {
        broker: String,
        filter: String,
        why: String,
    },
    /// The broker delivers at a lower quality of service than was asked for.
    LowerQos {
        broker: String,
        filter: String,
        qos: u8,
    },
    /// A broker has acknowledged messages of the collector's own and has lost them: of others' it has lost some, too.
    CanariesLost {
        broker: String,
        count: u64,
        /// Their numbers, in words.
        numbers: String,
    },
    /// A broker does not deliver a message of the collector's own.
    CanaryOverdue { broker: String },
    /// A broker does not take messages of the collector's own.
    CanaryRefused { broker: String, why: String },
    /// A message cannot be stored with the others: it is acknowledged, and listed among the dead letters where there is a
    /// data folder. Told of the first, the tenth, the hundredth and so on of a broker and a reason.
    DeadLetter {
        broker: String,
        topic: String,
        bytes: usize,
        why: Why,
        words: String,
        /// How many there are so far of this broker, for this reason.
        so_far: u64,
    },
    /// A broker's name stands for one more address.
    AddressFound { name: String, broker: String },
    /// A broker's name does not stand for this address any more.
    AddressGone { name: String, broker: String },
    /// A broker's name does not stand for this address any more, and the password does not go there.
    AddressHeld { name: String, broker: String },
    /// An address that is gone was not reached for as long as its session lasts.
    AddressGivenUp { name: String, broker: String },
    /// A broker is not in the configuration any more.
    BrokerLeft { name: String, broker: String },
    /// A name cannot be looked up.
    NameNotFound { name: String, why: String },
    /// Messages cannot be stored: none is acknowledged.
    Stalled { why: String },
    /// They can again.
    GoesOn { after_ms: u64 },
    /// The time of day was set, forward if positive.
    ClockStepped { by_ms: i64 },
    /// A file is finished.
    Finished {
        path: String,
        messages: u64,
        bytes: u64,
    },
    /// Messages do not lie where their time or topic would have them. Told of the first, the tenth, the hundredth and so on
    /// of a reason.
    Misplaced { why: Misplacement, so_far: u64 },
    /// A segment cannot be made into finished files at present.
    NotFinished { segment: String, why: String },
    /// A segment cannot be read, and the others go on without it.
    SetAside {
        segment: String,
        /// Its path now; none if it is not there any more, or cannot be renamed.
        kept_as: Option<String>,
        first: u64,
        last: u64,
        why: String,
    },
    /// Somebody has removed the segment that is being written: it is written anew, and nothing of it is lost.
    SegmentRestored { segment: String },
    /// A finished file is in the store, and removed here.
    Uploaded { path: String, to: String },
    /// Finished files cannot be put to the store at present, and are kept.
    NotUploaded {
        why: String,
        files: usize,
        /// `None`: by the next start.
        again_in_ms: Option<u64>,
    },
    /// The store is opened by what the files with credentials have now.
    CredentialsRenewed { to: String },
    /// The files with credentials have nothing that opens the store, which stays open by what they had.
    CredentialsKept { why: String },
    /// A finished file is kept: the store has another object of its name, which is not replaced.
    Conflict { path: String, to: String },
    /// A finished file is not as it was written, and is not put to the store.
    DamagedFile { path: String, what: String },
    /// It goes on with the configuration as it was read again.
    Reloaded,
    /// The configuration that was read again cannot be taken, and nothing changes.
    NotReloaded { why: String },
    /// The sessions are given up: nothing more is subscribed to, and what they hold is collected.
    Leaving,
    /// A broker has dropped the session, of which all was collected.
    Left { broker: String },
    /// It ends: what was received is stored and acknowledged, and the log becomes files.
    Ending,
}

/// Whether the first, the tenth, the hundredth and so on of a kind is among those that came since there were `before` of them.
pub(crate) fn is_worth_telling(before: u64, so_far: u64) -> bool {
    before.checked_ilog10() != so_far.checked_ilog10()
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// All goes as it should.
    Info,
    /// Something is not as it should be, and nothing that was acknowledged is lost by it.
    Warning,
    /// Messages are lost, or may be.
    Error,
}

impl Notice {
    /// How much it matters.
    pub fn level(&self) -> Level {
        match self {
            Notice::Begun { .. }
            | Notice::TailCut { .. }
            | Notice::Connected { .. }
            | Notice::Subscribed { .. }
            | Notice::AddressFound { .. }
            | Notice::GoesOn { .. }
            | Notice::Finished { .. }
            | Notice::Uploaded { .. }
            | Notice::Reloaded
            | Notice::CredentialsRenewed { .. }
            | Notice::Leaving
            | Notice::Left { .. }
            | Notice::Ending => Level::Info,
            Notice::Failed { .. }
            | Notice::SubscriptionRefused { .. }
            | Notice::LowerQos { .. }
            | Notice::CanaryOverdue { .. }
            | Notice::CanaryRefused { .. }
            | Notice::ShorterSession { .. }
            | Notice::AddressGone { .. }
            | Notice::AddressHeld { .. }
            | Notice::BrokerLeft { .. }
            | Notice::NameNotFound { .. }
            | Notice::Stalled { .. }
            | Notice::ClockStepped { .. }
            | Notice::Misplaced { .. }
            | Notice::NotFinished { .. }
            | Notice::SegmentRestored { .. }
            | Notice::NotUploaded { .. }
            | Notice::CredentialsKept { .. }
            | Notice::NotReloaded { .. } => Level::Warning,
            Notice::Damaged { .. }
            | Notice::Missing { .. }
            | Notice::SetAside { .. }
            | Notice::SessionLost { .. }
            | Notice::CanariesLost { .. }
            | Notice::DeadLetter { .. }
            | Notice::AddressGivenUp { .. }
            | Notice::Conflict { .. }
            | Notice::DamagedFile { .. } => Level::Error,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Begun {
                collector,
                folder,
                segments,
            } => {
                write!(f, "collector {collector} stores in {folder}")?;
                match segments {
                    0 => Ok(()),
                    1 => f.write_str("; 1 segment of its log becomes files now"),
                    several => write!(f, "; {several} segments of its log become files now"),
                }
            }
            Notice::TailCut { bytes, is_noted } => write!(
                f,
                "{bytes} bytes at the end of the log were no whole message and are cut off; {}",
                if *is_noted {
                    "nothing of that was acknowledged"
                } else {
                    "whether any of that was acknowledged was not noted by the version that wrote it"
                }
            ),
            Notice::Missing { first, last } => write!(
                f,
                "messages {first} to {last} were on disk, and are in no finished file and in no segment of the log\n  hint: they may have been acknowledged; was a file of the log removed? check the disk"
            ),
            Notice::Damaged {
                segment,
                first,
                last,
            } => write!(
                f,
                "{segment} is damaged: messages {first} to {last} cannot be read\n  hint: they may have been acknowledged; check the disk"
            ),
            Notice::Connected {
                broker,
                session_present,
            } => {
                write!(f, "{broker}: connected, with ")?;
                f.write_str(if *session_present {
                    "the session from before"
                } else {
                    "a new session"
                })
            }
            Notice::SessionLost { broker } => write!(
                f,
                "{broker}: the broker has lost the session: what came while the collector was away was not kept\n  hint: does the broker keep sessions on disk, and as long as session.expiry says?"
            ),
            Notice::ShorterSession {
                broker,
                granted_s,
                asked_s,
            } => write!(
                f,
                "{broker}: keeps a session for {granted_s} s, where session.expiry asks for {asked_s} s: what comes while the collector is away for longer is not kept\n  hint: raise the broker's own limit"
            ),
            Notice::Failed {
                broker,
                why,
                again_in_ms,
            } => {
                write!(
                    f,
                    "{why}\n  {broker} is tried again in {:.1} s",
                    *again_in_ms as f64 / 1e3
                )
            }
            Notice::Subscribed { broker } => write!(f, "{broker}: the new subscriptions stand"),
            Notice::SubscriptionRefused {
                broker,
                filter,
                why,
            } => {
                write!(f, "{broker}: the subscription {filter} was refused: {why}")
            }
            Notice::LowerQos {
                broker,
                filter,
                qos,
            } => {
                write!(f, "{broker}: delivers {filter} at QoS {qos} at the most")
            }
            Notice::CanariesLost {
                broker,
                count,
                numbers,
            } => write!(
                f,
                "{broker}: the broker has acknowledged and lost {} of the collector's own ({numbers}): of what others published at that time it has lost some, too\n  hint: was it killed, does it write what it has acknowledged to its disk, or is its queue too small?",
                so_many(*count, "message")
            ),
            Notice::CanaryOverdue { broker } => write!(
                f,
                "{broker}: the broker does not deliver the collector's own messages within a minute\n  hint: has it a long queue for this collector, or does it not know the subscription any more?"
            ),
            Notice::CanaryRefused { broker, why } => write!(
                f,
                "{broker}: does not take the collector's own messages: {why}\n  hint: this user must be allowed to publish to the topic of `canary`"
            ),
            Notice::DeadLetter {
                broker,
                topic,
                bytes,
                words,
                so_far,
                ..
            } => {
                write!(
                    f,
                    "{broker}: a message of {bytes} bytes on {topic} is a dead letter: {words}; it is acknowledged, and not among the others"
                )?;
                if *so_far > 1 {
                    write!(f, "; {so_far} of this broker so far are")?;
                }
                Ok(())
            }
            Notice::AddressFound { name, broker } => write!(f, "{name}: found {broker}"),
            Notice::AddressGone { name, broker } => write!(
                f,
                "{name}: {broker} is no address of it any more; it may hold messages, so it is still tried"
            ),
            Notice::AddressHeld { name, broker } => write!(
                f,
                "{name}: {broker} is no address of it now; it may hold messages, and is not tried: the password goes to an address that the name stands for, or where TLS proves the name\n  hint: with mqtts:// and without `tls.insecure` it is tried"
            ),
            Notice::AddressGivenUp { name, broker } => write!(
                f,
                "{name}: {broker} was not reached until its session had expired, and is given up; messages that it held are lost"
            ),
            Notice::BrokerLeft { name, broker } => write!(
                f,
                "{name}: {broker} is not in the configuration any more; messages that it may hold are not collected"
            ),
            Notice::NameNotFound { name, why } => write!(f, "{name}: {why}"),
            Notice::Stalled { why } => write!(
                f,
                "messages cannot be stored, and none is acknowledged: {why}\n  brokers keep them within their limits; it goes on by itself"
            ),
            Notice::GoesOn { after_ms } => {
                write!(
                    f,
                    "messages are stored again, after {:.1} s",
                    *after_ms as f64 / 1e3
                )
            }
            Notice::ClockStepped { by_ms } => write!(
                f,
                "the clock was set {:.1} s {}: messages are stored under the new time, and their numbers go on",
                by_ms.unsigned_abs() as f64 / 1e3,
                if *by_ms < 0 { "back" } else { "forward" }
            ),
            Notice::Finished {
                path,
                messages,
                bytes,
            } => {
                write!(f, "{path}: {messages} messages, {bytes} bytes")
            }
            Notice::NotFinished { segment, why } => {
                write!(
                    f,
                    "{segment} cannot be made into files and is kept: {why}; it is tried again"
                )
            }
            Notice::SetAside {
                segment,
                kept_as,
                first,
                last,
                why,
            } => {
                write!(
                    f,
                    "{segment} cannot be read: {why}; messages {first} to {last} are in no finished file, and the others go on"
                )?;
                match kept_as {
                    Some(path) => write!(f, "\n  it is kept as {path}; check the disk"),
                    None => f.write_str("\n  hint: who removes or changes files of the log?"),
                }
            }
            Notice::SegmentRestored { segment } => write!(
                f,
                "{segment} was removed while it was being written; it is written anew, and nothing of it is lost\n  hint: who removes files of the log?"
            ),
            Notice::Uploaded { path, to } => write!(f, "{path}: moved to {to}"),
            Notice::CredentialsRenewed { to } => {
                write!(f, "{to}: the credentials are renewed")
            }
            Notice::CredentialsKept { why } => {
                write!(f, "{why}\n  the credentials from before are kept")
            }
            Notice::NotUploaded {
                why,
                files,
                again_in_ms,
            } => {
                write!(
                    f,
                    "{why}\n  {} kept here, and tried again ",
                    so_many(*files as u64, "file")
                )?;
                match again_in_ms {
                    Some(ms) => write!(f, "in {:.1} s", *ms as f64 / 1e3),
                    None => f.write_str("by the next start"),
                }
            }
            Notice::Misplaced { why, so_far } => {
                let (what, hint) = match why {
                    Misplacement::NoTime => (
                        "with no event time in the payload, and lie by when they were received",
                        "is `files.event-time` where the payloads have it?",
                    ),
                    Misplacement::FarTime => (
                        "with an event time farther off than `files.event-time-within`, and lie by when they were received",
                        "is the clock of a device wrong, or `files.event-time-unit`?",
                    ),
                    Misplacement::LongLevel => (
                        "with a level of the topic that is too long for a folder, and lie in `__other__`",
                        "all messages have their topics in them",
                    ),
                    Misplacement::TooMany => (
                        "beyond `files.most-partitions` folders of their segment, and lie in one of all others",
                        "partition by what has fewer values: each segment becomes a file for each",
                    ),
                };
                write!(
                    f,
                    "{} so far {what}\n  hint: {hint}",
                    so_many(*so_far, "message")
                )
            }
            Notice::Conflict { path, to } => write!(
                f,
                "{to}/{path}: {OTHER}; the file is kept here\n  hint: another collector may have this name: give each its own, or `upload.to` another prefix"
            ),
            Notice::DamagedFile { path, what } => write!(
                f,
                "{path} {what}, and is kept here\n  hint: check the disk; `pubgauge-collect verify` tells what is wrong"
            ),
            Notice::Reloaded => f.write_str("goes on with the configuration as it was read again"),
            Notice::NotReloaded { why } => {
                write!(f, "the configuration stays as it was: {why}")
            }
            Notice::Leaving => {
                f.write_str("gives up its sessions: what they hold is collected first")
            }
            Notice::Left { broker } => write!(
                f,
                "{broker}: all of the session was collected, and the broker has dropped it"
            ),
            Notice::Ending => f.write_str("ends in order"),
        }
    }
}
