//! Counts that a study may ask for: system calls and interface traffic during the measurement.

use crate::model::Trial;
pub use crate::syscalls::{SyscallCounts, SystemCalls};
pub use crate::traffic::InterfaceTraffic;

/// System calls of the client, where they were counted.
pub(crate) fn client(trial: &Trial) -> Option<SyscallCounts> {
    trial.system_calls.as_ref()?.client
}

/// System calls of the system, where they were counted.
pub(crate) fn system(trial: &Trial) -> Option<SyscallCounts> {
    trial.system_calls.as_ref()?.system
}

/// The traffic of the interface, where it was counted and describes the trial.
pub(crate) fn interface(trial: &Trial) -> Option<&InterfaceTraffic> {
    let interface = trial.interface.as_ref();
    interface.filter(|traffic| traffic.not_told.is_none())
}

/// Why something that was to be counted was not, or does not describe the trial, each in a line.
pub fn not_counted(trial: &Trial) -> impl Iterator<Item = String> + '_ {
    let calls = trial
        .system_calls
        .iter()
        .flat_map(|calls| &calls.not_counted);
    let calls = calls.map(|why| format!("system calls: {why}"));
    let interface = trial.interface.iter().filter_map(|traffic| {
        let why = traffic.not_told.as_ref()?;
        Some(format!("interface {}: {why}", traffic.interface))
    });
    calls.chain(interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Messages;
    use crate::figure::{Figure, figure};

    /// A trial in which everything was counted: shows which figures exist.
    fn everything(trial: Trial) -> Trial {
        let calls = SyscallCounts {
            all: 4,
            sends: Some(1),
            receives: Some(1),
            syncs: 1,
        };
        Trial {
            messages: Messages {
                delivered_msgs_per_s: 1.0,
                ..trial.messages
            },
            duration_s: 1.0,
            system_written_bytes: Some(1),
            system_calls: Some(SystemCalls {
                client: Some(calls),
                system: Some(calls),
                not_counted: Vec::new(),
            }),
            interface: Some(InterfaceTraffic {
                bytes: 1,
                packets: 1,
                payload_bytes: Some(1),
                ..InterfaceTraffic::default()
            }),
            ..trial
        }
    }

    #[test]
    fn figures_are_of_deliveries_of_the_same_time() {
        let trial = Trial {
            messages: Messages {
                delivered_msgs_per_s: 100.0,
                ..everything(Trial::default()).messages
            },
            duration_s: 2.0,
            ..everything(Trial::default())
        };
        let mut counted = trial.clone();
        counted.system_calls = Some(SystemCalls {
            client: Some(SyscallCounts {
                all: 600,
                sends: Some(100),
                receives: Some(50),
                syncs: 0,
            }),
            system: None,
            not_counted: vec!["out of sight".into()],
        });
        let traffic = counted.interface.as_mut().unwrap();
        (traffic.bytes, traffic.packets, traffic.payload_bytes) = (30_000, 400, Some(20_000));
        let of = |name: &str| figure(&counted, None, name);
        assert_eq!(of("client_syscalls_per_message"), Some(3.0));
        assert_eq!(of("client_send_calls_per_message"), Some(0.5));
        assert_eq!(of("client_receive_calls_per_message"), Some(0.25));
        assert_eq!(of("system_syscalls_per_message"), None);
        assert_eq!(of("system_sync_calls"), None);
        assert_eq!(of("interface_bytes_per_payload_byte"), Some(1.5));
        assert_eq!(of("interface_packets_per_message"), Some(2.0));
        assert_eq!(of("interface_overhead_per_message"), Some(50.0));
        counted.interface.as_mut().unwrap().not_told = Some("others sent more than 1 %".into());
        assert_eq!(
            figure(&counted, None, "interface_bytes_per_payload_byte"),
            None
        );
        assert_eq!(
            figure(&counted, None, "interface_packets_per_message"),
            None
        );
        // A figure that was not asked for is not 0, and none is per message where no message came.
        assert!(Figure::on_request().all(|of| of.value_in(&Trial::default(), None, None).is_err()));
        counted.messages.delivered_msgs_per_s = 0.0;
        assert_eq!(figure(&counted, None, "client_syscalls_per_message"), None);
    }

    #[test]
    fn every_figure_has_its_value() {
        let trial = everything(Trial::default());
        assert!(Figure::on_request().all(|of| of.value_in(&trial, None, None).is_ok()));
        assert_eq!(Figure::on_request().count(), 9);
    }
}
