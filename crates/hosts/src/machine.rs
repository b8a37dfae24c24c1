//! Which host this is.

use serde::{Deserialize, Serialize};

/// A host as its processes see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostIdentity {
    /// Host name; empty if unknown.
    pub host: String,
    /// The identity that the kernel chose at random when it started; empty if unknown.
    pub boot_id: String,
    /// The time namespace, which may have a monotonic clock of its own; empty where there are none.
    pub time_namespace: String,
}

impl HostIdentity {
    /// This host.
    pub fn of_this_host() -> HostIdentity {
        let line = |path: &str| {
            let text = std::fs::read(path).unwrap_or_default();
            plain(text.trim_ascii())
        };
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        HostIdentity {
            host: line("/proc/sys/kernel/hostname"),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            time_namespace: namespace.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn names(&self) -> [&str; 3] {
        [&self.host, &self.boot_id, &self.time_namespace]
    }

    /// Whether both have the same `CLOCK_MONOTONIC`, so that there is no offset to measure: the same kernel
    /// since its start, the same time namespace.
    pub fn shares_clock(&self, other: &HostIdentity) -> bool {
        !self.boot_id.is_empty()
            && self.boot_id == other.boot_id
            && self.time_namespace == other.time_namespace
    }
}

/// A name as it may be printed anywhere: what is no printable ASCII becomes a question mark.
fn plain(name: &[u8]) -> String {
    let shown = name.iter().map(|byte| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_steer_no_terminal() {
        assert_eq!(plain(b"node-1"), "node-1");
        assert_eq!(plain(b"a\x1b[2Jb\xff"), "a?[2Jb?");
    }

    #[test]
    fn one_kernel_and_one_namespace_are_one_clock() {
        let here = HostIdentity::of_this_host();
        assert!(
            !here.host.is_empty() && here.boot_id.len() == 36,
            "{here:?}"
        );
        assert!(here.shares_clock(&HostIdentity::of_this_host()));
        let renamed = HostIdentity {
            host: "other".into(),
            ..here.clone()
        };
        assert!(
            here.shares_clock(&renamed),
            "network namespaces may have names of their own"
        );
        let elsewhere = HostIdentity {
            boot_id: "other".into(),
            ..here.clone()
        };
        assert!(!here.shares_clock(&elsewhere));
        let shifted = HostIdentity {
            time_namespace: "time:[1]".into(),
            ..here.clone()
        };
        assert!(!here.shares_clock(&shifted));
        assert!(
            !HostIdentity::default().shares_clock(&HostIdentity::default()),
            "unknown is not the same"
        );
    }
}
