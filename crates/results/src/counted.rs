//! What a study may have counted during a measurement: system calls and interface traffic.

use crate::model::Trial;
pub use crate::syscalls::{SyscallCounts, SystemCalls};
pub use crate::traffic::InterfaceTraffic;

/// Names of this module's figures in `results.json`.
pub const FIGURES: [&str; 9] = [
    "client_syscalls_per_message",
    "system_syscalls_per_message",
    "client_send_calls_per_message",
    "client_receive_calls_per_message",
    "system_sync_calls",
    "system_sync_calls_per_message",
    "interface_bytes_per_payload_byte",
    "interface_packets_per_message",
    "interface_overhead_per_message",
];

/// A figure of [`FIGURES`]; `None` where it was not counted, or does not describe the trial. A message is a
/// first delivery that came during the measurement.
pub fn figure(trial: &Trial, name: &str) -> Option<f64> {
    let deliveries = (trial.delivered_msgs_per_s * trial.duration_s).round();
    let each = |count: u64| (deliveries > 0.0).then(|| count as f64 / deliveries);
    let calls = trial.system_calls.as_ref();
    let client = || calls?.client;
    let system = || calls?.system;
    let interface = trial.interface.as_ref();
    let interface = || interface.filter(|traffic| traffic.not_told.is_none());
    match name {
        "client_syscalls_per_message" => each(client()?.all),
        "system_syscalls_per_message" => each(system()?.all),
        "client_send_calls_per_message" => each(client()?.sends?),
        "client_receive_calls_per_message" => each(client()?.receives?),
        "system_sync_calls" => Some(system()?.syncs as f64),
        "system_sync_calls_per_message" => each(system()?.syncs),
        "interface_bytes_per_payload_byte" => {
            let traffic = interface()?;
            let payload = traffic.payload_bytes.filter(|bytes| *bytes > 0)?;
            Some(traffic.bytes as f64 / payload as f64)
        }
        "interface_packets_per_message" => each(interface()?.packets),
        // Bytes that are not payload; negative where payloads cross another interface.
        "interface_overhead_per_message" => {
            let traffic = interface()?;
            let overhead = traffic.bytes as f64 - traffic.payload_bytes? as f64;
            (deliveries > 0.0).then(|| overhead / deliveries)
        }
        _ => None,
    }
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

/// A trial in which everything was counted: shows which figures exist.
pub(crate) fn everything(trial: Trial) -> Trial {
    let calls = SyscallCounts {
        all: 4,
        sends: Some(1),
        receives: Some(1),
        syncs: 1,
    };
    Trial {
        delivered_msgs_per_s: 1.0,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_deliveries_of_the_same_time() {
        let trial = Trial {
            delivered_msgs_per_s: 100.0,
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
        let of = |name: &str| figure(&counted, name);
        assert_eq!(of("client_syscalls_per_message"), Some(3.0));
        assert_eq!(of("client_send_calls_per_message"), Some(0.5));
        assert_eq!(of("client_receive_calls_per_message"), Some(0.25));
        assert_eq!(of("system_syscalls_per_message"), None);
        assert_eq!(of("system_sync_calls"), None);
        assert_eq!(of("interface_bytes_per_payload_byte"), Some(1.5));
        assert_eq!(of("interface_packets_per_message"), Some(2.0));
        assert_eq!(of("interface_overhead_per_message"), Some(50.0));
        counted.interface.as_mut().unwrap().not_told = Some("others sent more than 1 %".into());
        assert_eq!(figure(&counted, "interface_bytes_per_payload_byte"), None);
        assert_eq!(figure(&counted, "interface_packets_per_message"), None);
        // A figure that was not asked for is not 0, and none is per message where no message came.
        assert!(
            FIGURES
                .iter()
                .all(|name| figure(&Trial::default(), name).is_none())
        );
        counted.delivered_msgs_per_s = 0.0;
        assert_eq!(figure(&counted, "client_syscalls_per_message"), None);
    }

    #[test]
    fn every_figure_has_its_name() {
        let trial = everything(Trial::default());
        assert!(FIGURES.iter().all(|name| figure(&trial, name).is_some()));
        assert_eq!(figure(&trial, "delivered"), None);
    }
}
