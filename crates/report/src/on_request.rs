//! Figures that were counted on request.

use pubgauge_figures::figure::figure;
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;

use crate::summary::Cell;

/// Means of the counted figures over the trials of a cell, in one sentence; `None` without any.
pub(crate) fn sentence(cell: &Cell<'_>) -> Option<String> {
    let mean = |name: &str| {
        let values = cell
            .trials
            .iter()
            .filter_map(|trial| figure(trial, None, name));
        mean(values).map(shown::digits)
    };
    let mut said = Vec::new();
    if cell.trials.iter().any(|trial| trial.system_calls.is_some()) {
        said.push("system calls were counted, which slows them".to_owned());
    }
    for (name, words) in [
        (
            "client_syscalls_per_message",
            "of the client for each delivery",
        ),
        (
            "system_syscalls_per_message",
            "of the system for each delivery",
        ),
        ("system_sync_calls", "that sync to disk"),
    ] {
        said.extend(mean(name).map(|mean| format!("{mean} {words}")));
    }
    let interface = cell
        .trials
        .iter()
        .find_map(|trial| trial.interface.as_ref());
    if let Some(interface) = interface {
        let bytes = mean("interface_bytes_per_payload_byte");
        let packets = mean("interface_packets_per_message");
        said.push(match bytes.zip(packets) {
            Some((bytes, packets)) => format!(
                "{bytes} B crossed {} for each payload byte, in {packets} packets for each delivery",
                interface.interface
            ),
            None => format!("what crossed {} tells nothing of its messages", interface.interface),
        });
    }
    (!said.is_empty()).then(|| format!("{}: {}", cell.label, said.join(", ")))
}
