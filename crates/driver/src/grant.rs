//! Limits that a system grants its clients when they connect.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A limit of a fleet's clients: what was asked for, or set by the client itself, and what holds after the system had its
/// say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The setting, as in [`crate::Mapping::setting`].
    pub setting: Cow<'static, str>,
    /// The value that was asked for, or the driver's default.
    pub asked: u64,
    /// The value that holds: the smallest one over the clients that have connected.
    pub granted: u64,
    /// The system's own name of the limit, for example `Receive Maximum`, where it has one.
    pub term: Cow<'static, str>,
}

impl Grant {
    /// The setting for how many messages a publisher may have under way without an acknowledgement.
    pub const WINDOW: &'static str = "in-flight";

    /// The setting for how many bytes a message may have at the most.
    pub const SIZE: &'static str = "size";

    /// The system announces that it takes messages of so many bytes; `term` is its name of the limit.
    pub fn size(bytes: u64, term: &'static str) -> Grant {
        Grant {
            setting: Grant::SIZE.into(),
            asked: u64::MAX,
            granted: bytes,
            term: term.into(),
        }
    }

    /// A window that no system has a say in.
    pub fn own_window(messages: u64) -> Grant {
        Grant {
            setting: Grant::WINDOW.into(),
            asked: messages,
            granted: messages,
            term: "".into(),
        }
    }

    /// Whether something else holds than was asked for.
    pub fn differs(&self) -> bool {
        self.asked != self.granted
    }

    /// Adds what other clients were granted: of each setting the smallest value holds.
    pub fn unite(all: &mut Vec<Grant>, others: impl IntoIterator<Item = Grant>) {
        for other in others {
            match all.iter_mut().find(|grant| grant.setting == other.setting) {
                Some(grant) => grant.granted = grant.granted.min(other.granted),
                None => all.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_value_of_each_setting_holds() {
        let granted = |granted| Grant {
            granted,
            ..Grant::own_window(200)
        };
        let mut all = Vec::new();
        Grant::unite(&mut all, [granted(200), granted(10), granted(50)]);
        assert_eq!(all, [granted(10)]);
        assert!(all[0].differs() && !granted(200).differs());
    }
}
