//! Which DDS domain a trial uses: one rule for all DDS drivers, so that all of a trial are in one domain.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::seam::DriverError;

/// The highest domain whose ports are all below 65536 (DDSI-RTPS 2.3, section 9.6.1).
pub const MAX_DOMAIN: u32 = 232;

/// Domains that trials without an address of their own are spread over.
const SPREAD: u64 = 200;

/// The domain of a trial whose private folder is `scratch`: FNV-1a (64 bits) of the path's bytes,
/// modulo 200.
pub fn of_scratch(scratch: &Path) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in scratch.as_os_str().as_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash % SPREAD) as u32
}

/// The domain in `dds://localhost/N`.
///
/// # Errors
/// The text is no such URL.
pub fn of_url(url: &str) -> Result<u32, DriverError> {
    let wrong = || {
        DriverError::with_hint(
            format!("the endpoint {url:?} names no DDS domain"),
            format!("write dds://localhost/N with a domain N from 0 to {MAX_DOMAIN}"),
        )
    };
    let (host, domain) = url
        .strip_prefix("dds://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(wrong)?;
    if !matches!(host, "localhost" | "127.0.0.1") || domain.starts_with('+') {
        return Err(wrong());
    }
    domain
        .parse()
        .ok()
        .filter(|domain| *domain <= MAX_DOMAIN)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Test vectors of the FNV specification (draft-eastlake-fnv, appendix C).
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325_u64),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(of_scratch(Path::new(text)), (hash % 200) as u32);
        }
    }

    #[test]
    fn urls() {
        assert_eq!(of_url("dds://localhost/0").unwrap(), 0);
        assert_eq!(of_url("dds://127.0.0.1/232").unwrap(), 232);
        for bad in [
            "dds://localhost/233",
            "dds://localhost/",
            "dds://localhost",
            "mqtt://localhost/1",
            "dds://elsewhere/1",
            "dds://localhost/-1",
            "dds://localhost/+1",
        ] {
            assert!(of_url(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = of_url(&text);
            prop_assert!(of_scratch(Path::new(&text)) < 200);
        }
    }
}
