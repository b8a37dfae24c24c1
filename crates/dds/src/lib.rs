//! What drivers on DDS libraries have in common.

pub mod domain;

use pubgauge_driver::{ClientSpec, DriverError};

/// Refuses what no client has in DDS: a will, and an address of its own.
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
