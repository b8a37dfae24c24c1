//! Whether this process may make network namespaces.

use std::io;

/// Why this process may not make network namespaces, and what to do about it, from the error of trying; `None`
/// for other errors.
pub(crate) fn why_not(error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some(format!(
            "an emulated network takes root, or a user namespace of one's own: {error}\n  hint: {}",
            hint(&Facts::of_this_machine())
        )),
        // ENOSPC: the user's share of namespaces is used up.
        io::ErrorKind::StorageFull => Some(format!(
            "the user's share of network namespaces is used up: {error}\n  hint: sysctl \
             user.max_net_namespaces=10000"
        )),
        io::ErrorKind::InvalidInput => Some(format!(
            "this kernel has no network namespaces (CONFIG_NET_NS): {error}"
        )),
        _ => None,
    }
}

/// Settings that decide whether a user without privileges may make user namespaces.
struct Facts {
    /// `user.max_user_namespaces`.
    most: Option<u64>,
    /// `kernel.unprivileged_userns_clone` (Debian): `Some(0)` forbids.
    clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns` (Ubuntu): `Some(1)` restricts.
    restricted: Option<u64>,
}

impl Facts {
    fn of_this_machine() -> Facts {
        let number = |file: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/{file}")).ok()?;
            text.trim().parse().ok()
        };
        Facts {
            most: number("user/max_user_namespaces"),
            clone: number("kernel/unprivileged_userns_clone"),
            restricted: number("kernel/apparmor_restrict_unprivileged_userns"),
        }
    }
}

fn hint(facts: &Facts) -> String {
    let mut allow = Vec::new();
    if facts.most.is_none_or(|most| most == 0) {
        allow.push("user.max_user_namespaces=10000");
    }
    if facts.clone == Some(0) {
        allow.push("kernel.unprivileged_userns_clone=1");
    }
    if facts.restricted == Some(1) {
        allow.push("kernel.apparmor_restrict_unprivileged_userns=0");
    }
    let start = "start pubgauge as root, or by `unshare --user --map-root-user pubgauge ...`";
    if allow.is_empty() {
        start.into()
    } else {
        format!(
            "{start}, which root has to allow first: sysctl {}",
            allow.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forbids_is_named_with_what_allows() {
        let free = Facts {
            most: Some(9),
            clone: None,
            restricted: None,
        };
        assert!(hint(&free).ends_with("pubgauge ...`"));
        let bound = Facts {
            most: Some(0),
            clone: Some(0),
            restricted: Some(1),
        };
        assert!(hint(&bound).ends_with(
            "sysctl user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 \
             kernel.apparmor_restrict_unprivileged_userns=0"
        ));
    }

    #[test]
    fn errors_of_other_kinds_are_not_explained() {
        let of = |number| why_not(&io::Error::from_raw_os_error(number));
        // EPERM, ENOSPC, EMFILE.
        assert!(of(1).unwrap().contains("root"));
        assert!(of(28).unwrap().contains("max_net_namespaces"));
        assert_eq!(of(24), None);
    }
}
