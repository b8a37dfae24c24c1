//! Cores that client and system used.

use pubgauge_figures::model::Trial;

/// Cores in use by the client and, where it can be seen, by the system.
pub(super) fn cores_in_use(trial: &Trial) -> (f64, Option<f64>) {
    let duration = trial.duration_s.max(f64::MIN_POSITIVE);
    (
        trial.client_cpu_s.total() / duration,
        trial.system_cpu_s.map(|seconds| seconds / duration),
    )
}

/// Cores in use, in words.
pub(super) fn in_use(trial: &Trial) -> String {
    let (client, system) = cores_in_use(trial);
    let system = system.map_or("an unknown number".to_owned(), |cores| {
        format!("{cores:.2}")
    });
    format!("{client:.2} cores by the client and {system} by the system")
}
