//! A share of a machine.

/// The most that a process may use of a machine, or all processes of a host together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Processor time in processors; not limited if absent.
    pub cores: Option<f64>,
    /// Memory in bytes; not limited if absent.
    pub memory_bytes: Option<u64>,
}

impl Share {
    /// Whether it limits nothing.
    pub fn is_none(&self) -> bool {
        *self == Share::default()
    }

    /// In words: `0.3 cores and 512 MiB of memory`; `None` where nothing is limited.
    pub fn describe(&self) -> Option<String> {
        // Sums of numbers such as 0.1 are not exact.
        let rounded = |cores: f64| (cores * 1e6).round() / 1e6;
        let cores = self.cores.map(|cores| format!("{} cores", rounded(cores)));
        let memory = self.memory_bytes;
        let memory = memory.map(|bytes| format!("{} MiB of memory", bytes >> 20));
        let parts: Vec<String> = cores.into_iter().chain(memory).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}
