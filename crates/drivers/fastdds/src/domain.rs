//! Which DDS domain a trial uses.

use std::path::Path;

use pubgauge_driver::DriverError;

/// The highest domain whose ports are all below 65536 (DDSI-RTPS 2.3, section 9.6.1).
pub(crate) const MAX_DOMAIN: u32 = 232;

/// Domains that trials without an address of their own are spread over.
const SPREAD: u64 = 200;

/// The domain of a trial whose private folder is `scratch`: FNV-1a (64 bits) of the path's bytes,
/// modulo 200. The other DDS drivers follow the same rule, so that all of a trial are in one
/// domain.
pub(crate) fn of_scratch(scratch: &Path) -> u32 {
    use std::os::unix::ffi::OsStrExt;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in scratch.as_os_str().as_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash % SPREAD) as u32
}

/// The domain in `dds://localhost/N`.
///
/// # Errors
/// Another scheme, another host (discovery is told to stay on the loopback interface), no domain.
pub(crate) fn of_url(url: &str) -> Result<u32, DriverError> {
    let wrong = |what: &str| {
        DriverError::with_hint(
            format!("the endpoint {url:?} {what}"),
            format!("write dds://localhost/N with a domain N from 0 to {MAX_DOMAIN}"),
        )
    };
    let rest = url
        .strip_prefix("dds://")
        .ok_or_else(|| wrong("is no DDS domain"))?;
    let (host, domain) = rest
        .split_once('/')
        .ok_or_else(|| wrong("names no domain"))?;
    if !matches!(host, "localhost" | "127.0.0.1") {
        return Err(wrong("is not on this host"));
    }
    match domain.parse::<u32>() {
        Ok(domain) if domain <= MAX_DOMAIN => Ok(domain),
        _ => Err(wrong("names no domain")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vectors of the FNV specification (draft-eastlake-fnv, appendix C).
        assert_eq!(
            of_scratch(Path::new("")),
            (0xcbf29ce484222325_u64 % 200) as u32
        );
        assert_eq!(
            of_scratch(Path::new("a")),
            (0xaf63dc4c8601ec8c_u64 % 200) as u32
        );
        assert_eq!(
            of_scratch(Path::new("foobar")),
            (0x85944171f73967e8_u64 % 200) as u32
        );
    }

    #[test]
    fn urls() {
        assert_eq!(of_url("dds://localhost/0").unwrap(), 0);
        assert_eq!(of_url("dds://127.0.0.1/232").unwrap(), 232);
        for bad in [
            "dds://localhost/233",
            "dds://localhost/",
            "dds://localhost",
            "mqtt://a/1",
            "dds://h/1",
            "dds://localhost/-1",
        ] {
            assert!(of_url(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".*") {
            let _ = of_url(&text);
            prop_assert!(of_scratch(Path::new(&text)) < 200);
        }
    }
}
