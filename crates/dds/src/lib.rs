//! Common parts of the drivers on DDS libraries: a whole fleet but for the library ([`fleet`]), and its
//! parts: domains, topics as partitions, settings that DDS itself answers, and figures of a footprint. No library is known here.

pub mod advertised;
pub mod domain;
pub mod fleet;
pub mod footprint;
pub mod library;
pub mod settings;
pub mod topic;

use std::time::{SystemTime, UNIX_EPOCH};

use pubgauge_driver::{ClientSpec, DriverError};

/// CLOCK_REALTIME, with which DDS stamps messages, ns.
pub fn realtime_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Refuses a client with a will, or with an address of its own: none has those in DDS.
///
/// # Errors
/// If there is one.
pub fn check_client(spec: &ClientSpec) -> Result<(), DriverError> {
    spec.without_will("DDS", "DDS")?;
    match spec.source {
        None => Ok(()),
        Some(_) => Err(DriverError::with_hint(
            format!(
                "client {}: DDS clients of a worker share their sockets",
                spec.name
            ),
            "leave the source address out",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_their_sockets() {
        assert_eq!(check_client(&ClientSpec::default()), Ok(()));
        let spec = ClientSpec {
            name: "c7".into(),
            source: Some([127, 0, 0, 2].into()),
            ..ClientSpec::default()
        };
        let why = check_client(&spec).unwrap_err().to_string();
        assert!(
            why.contains("c7") && why.contains("source address"),
            "{why}"
        );
    }
}
