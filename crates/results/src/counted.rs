//! What is counted during a measurement where a study asks for it: system calls, and what crosses an
//! interface.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Trial;

/// System calls of the measurement, of the client and of the system apart. That they were counted slowed
/// every system call of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SystemCalls {
    /// Of the workers and their libraries' threads; a system that is a library of theirs is in it.
    pub client: Option<SyscallCounts>,
    /// Of the system's processes.
    pub system: Option<SyscallCounts>,
    /// Why a side is absent.
    pub not_counted: Vec<String>,
}

/// Numbers of system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyscallCounts {
    /// All of them.
    pub all: u64,
    /// How often bytes went into a socket, whichever call brought them; absent before Linux 6.3.
    pub sends: Option<u64>,
    /// How often bytes came out of a socket; absent before Linux 6.3.
    pub receives: Option<u64>,
    /// Calls of `fsync`, `fdatasync`, `msync`, `sync`, `syncfs`, `sync_file_range`.
    pub syncs: u64,
}

/// What crossed a network interface during the measurement, headers included, whoever sent it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct InterfaceTraffic {
    /// The interface.
    pub interface: String,
    /// Its network namespace, as `ip netns` names it; absent: that of pubgauge.
    pub namespace: Option<String>,
    /// Bytes, with the headers that the interface counts; of loopback what was sent, else both ways.
    pub bytes: u64,
    /// Packets as the interface takes them, up to 64 KiB each.
    pub packets: u64,
    /// Payload bytes of the first deliveries that came meanwhile.
    pub payload_bytes: Option<u64>,
    /// Bytes that others sent over it meanwhile: at the larger of the rates at which it was crossed before the first
    /// client connected and after the last one had closed, or beyond what clients can have had it crossed by, if
    /// that is more.
    pub foreign_bytes: u64,
    /// Why bytes and packets tell nothing of the trial's messages; absent: they do.
    pub not_told: Option<String>,
}

impl InterfaceTraffic {
    /// Largest share of what others sent, of the bytes that crossed or of the payload bytes: the error of the
    /// figures.
    pub const MOST_FOREIGN: f64 = 0.01;
}

/// Names of the figures of this module in `results.json`'s words.
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

/// A figure of [`FIGURES`]; `None` where it was not counted, or tells nothing. A message is a first delivery
/// that came during the measurement.
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
        // What is no payload, in bytes; below 0 where payloads cross another way.
        "interface_overhead_per_message" => {
            let traffic = interface()?;
            let overhead = traffic.bytes as f64 - traffic.payload_bytes? as f64;
            (deliveries > 0.0).then(|| overhead / deliveries)
        }
        _ => None,
    }
}

/// Why something that was to be counted was not, or tells nothing, each in a line.
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

/// A trial in which everything was counted, for the question whether there is a figure of some name.
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
        // What is not asked for is not 0, and nothing is per message where none came.
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
