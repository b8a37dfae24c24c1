//! The failures that clients ran into, in the words of the driver or the server: each kind once, with a count.

use serde::{Deserialize, Serialize};

use pubgauge_driver::shortened;

/// The thing that a failure happened to.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum FailureKind {
    /// A connection that could not be made: the system turned the client away.
    Refused,
    /// A connection that had been made.
    Lost,
    /// A subscription.
    Subscription,
    /// Something else, such as the removal of what clients leave on the system.
    #[default]
    Other,
}

/// A failure that clients of one worker had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFailure {
    /// The thing that it happened to.
    pub kind: FailureKind,
    /// In words; long ones are [`shortened`].
    pub why: String,
    /// Name of the first client that had it; empty where it is the whole fleet's.
    pub first: String,
    /// How often.
    pub count: u64,
}

/// The failures of one worker's clients, in the order in which each came first.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// Each once.
    pub each: Vec<ClientFailure>,
    /// Failures beyond [`Failures::MOST`] different ones.
    pub more: u64,
}

impl Failures {
    /// Different failures that are kept in words.
    pub const MOST: usize = 50;

    /// Notes one more failure.
    pub fn note(&mut self, kind: FailureKind, first: &str, why: String) {
        // A server's own reason may be of any length.
        let why = shortened(why);
        let mut known = self.each.iter_mut();
        if let Some(known) = known.find(|known| known.kind == kind && known.why == why) {
            known.count += 1;
        } else if self.each.len() < Failures::MOST {
            self.each.push(ClientFailure {
                kind,
                why,
                first: first.to_owned(),
                count: 1,
            });
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_kept_once_with_the_first_that_had_it() {
        let mut failures = Failures::default();
        for n in 0..1_000 {
            failures.note(FailureKind::Refused, &format!("pub{n}"), "quota".into());
        }
        failures.note(FailureKind::Lost, "pub0", "quota".into());
        let seen: Vec<_> = (failures.each.iter())
            .map(|f| (f.kind, f.first.as_str(), f.count))
            .collect();
        assert_eq!(
            seen,
            [
                (FailureKind::Refused, "pub0", 1_000),
                (FailureKind::Lost, "pub0", 1)
            ]
        );
        for n in 0..100 {
            failures.note(FailureKind::Other, "", n.to_string());
        }
        assert_eq!((failures.each.len(), failures.more), (Failures::MOST, 52));
    }
}
