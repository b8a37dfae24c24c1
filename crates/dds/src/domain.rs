//! Which DDS domain a trial uses: one rule for all DDS drivers, so that all of a trial are in one domain.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pubgauge_driver::{DriverError, Target};

/// The highest domain whose ports are all below 65536 (DDSI-RTPS 2.3, section 9.6.1).
pub const MAX_DOMAIN: u32 = 232;

/// Domains that trials without an address of their own are spread over.
const SPREAD: u64 = 200;

/// The domain of the fleets at `target`: what `native`, the setting of `driver`, or the endpoints say, else that of the
/// trial's private folder.
///
/// # Errors
/// They name no domain, or several.
pub fn choose(target: &Target, native: Option<u32>, driver: &str) -> Result<u32, DriverError> {
    let mut domains = target.endpoints.iter().map(|url| of_url(url));
    let endpoint = domains.next().transpose()?;
    for other in domains {
        if Some(other?) != endpoint {
            return Err(DriverError::with_hint(
                "the endpoints are of several DDS domains",
                "the clients of one system share a domain; name one endpoint",
            ));
        }
    }
    match (native, endpoint) {
        (Some(native), Some(endpoint)) if native != endpoint => Err(DriverError::with_hint(
            format!("native.{driver}.domain is {native}, but the endpoint says {endpoint}"),
            "leave one of them out",
        )),
        (native, endpoint) => Ok(native
            .or(endpoint)
            .unwrap_or_else(|| of_scratch(&target.scratch))),
    }
}

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

    #[test]
    fn a_domain_is_said_once_or_follows_from_the_folder() {
        let choose = |endpoints: &[&str], native| {
            let target = Target {
                endpoints: endpoints.iter().map(ToString::to_string).collect(),
                scratch: "/tmp/trial".into(),
                ..Target::default()
            };
            choose(&target, native, "some").map_err(|error| error.what)
        };
        let (three, four) = ("dds://localhost/3", "dds://localhost/4");
        let of_folder = of_scratch(Path::new("/tmp/trial"));
        assert_eq!(choose(&[], None), Ok(of_folder));
        assert_eq!(choose(&[], Some(9)), Ok(9));
        assert_eq!(choose(&[three, "dds://127.0.0.1/3"], Some(3)), Ok(3));
        for (endpoints, native, words) in [
            (
                &[three][..],
                Some(4),
                "native.some.domain is 4, but the endpoint says 3",
            ),
            (&[three, four], Some(3), "several DDS domains"),
            (&[three, "dds://localhost"], None, "no DDS domain"),
        ] {
            let why = choose(endpoints, native).unwrap_err();
            assert!(why.contains(words), "{why}");
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
