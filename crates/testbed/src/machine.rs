//! Facts about the machine.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::limits::{limit_bytes, max_open_files, quotas};
use crate::procfs::number_in;
use crate::realtime::usable_cpus;

/// Facts about the machine and about what this process may use of it. A fact that the operating
/// system does not report is empty, 0 or `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineFacts {
    /// Kernel name and release.
    pub kernel: String,
    pub os: String,
    /// Processor model.
    pub cpu_model: String,
    /// Processors that this process may run on.
    pub cores: u32,
    /// The tightest quota of processor time of the control groups around this process (a container's), in processors.
    pub quota_cores: Option<f64>,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Frequency governor; several, separated by commas, where processors differ.
    pub governor: Option<String>,
    /// The kernel's driver and governor that send idle processors to sleep (cpuidle).
    pub idle_driver: Option<String>,
    /// Open files allowed for this process.
    pub max_open_files: u64,
    /// Load average over the last minute.
    pub load_average_1min: f64,
}

/// Reads the facts about the machine.
pub fn machine_facts() -> MachineFacts {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    MachineFacts {
        kernel: format!(
            "{} {}",
            read("/proc/sys/kernel/ostype").trim(),
            read("/proc/sys/kernel/osrelease").trim()
        ),
        os: os_name(&read("/etc/os-release")),
        cpu_model: cpu_model(&read("/proc/cpuinfo")),
        cores: usable_cpus().len() as u32,
        quota_cores: quota_cores(),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        governor: governor(),
        idle_driver: idle_driver(),
        max_open_files: max_open_files(),
        load_average_1min: load_average(),
    }
}

/// Processors that this process may use: those that it may run on, or fewer by the quota of a control group (a
/// container's).
pub fn processors() -> f64 {
    let usable = usable_cpus().len() as f64;
    quota_cores().map_or(usable, |quota| quota.min(usable))
}

fn quota_cores() -> Option<f64> {
    Some(quotas().first()?.cores)
}

/// Memory that this process may use, in bytes: the machine's, or less by the limit of a control group (a container's).
pub fn memory() -> u64 {
    let all = memory_bytes(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default());
    limit_bytes().map_or(all, |limit| limit.min(all))
}

/// The load average over the last minute; 0 if it cannot be read.
pub fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

fn os_name(os_release: &str) -> String {
    let field = |name: &str| {
        let line = os_release
            .lines()
            .find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_matches('"').to_owned())
    };
    field("PRETTY_NAME=")
        .or_else(|| field("NAME="))
        .unwrap_or_default()
}

fn cpu_model(cpuinfo: &str) -> String {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    // ARM boards name the board in `Model`, at the end, or nothing but numbers.
    field("model name")
        .or_else(|| field("Model"))
        .or_else(|| field("Hardware"))
        .or_else(|| {
            let numbers = [field("CPU implementer")?, field("CPU part")?];
            Some(format!(
                "ARM implementer {}, part {}",
                numbers[0], numbers[1]
            ))
        })
        .unwrap_or_default()
}

fn memory_bytes(meminfo: &str) -> u64 {
    number_in(meminfo, "MemTotal:").unwrap_or(0) * 1024
}

fn governor() -> Option<String> {
    let cpus = usable_cpus().into_iter();
    let governors: BTreeSet<String> = cpus
        .filter_map(|cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
        })
        .collect();
    let list: Vec<String> = governors.into_iter().collect();
    (!list.is_empty()).then(|| list.join(", "))
}

fn idle_driver() -> Option<String> {
    let told = |file: &str| {
        let path = format!("/sys/devices/system/cpu/cpuidle/{file}");
        Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
    };
    Some(format!(
        "{}, governor {}",
        told("current_driver")?,
        told("current_governor")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_what_kernels_write() {
        assert_eq!(
            os_name("NAME=\"X\"\nPRETTY_NAME=\"X 12 (y)\"\n"),
            "X 12 (y)"
        );
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Fast CPU @ 2GHz\n"),
            "Fast CPU @ 2GHz"
        );
        assert_eq!(cpu_model("processor : 0\nModel : Board 4\n"), "Board 4");
        assert_eq!(cpu_model(""), "");
        assert_eq!(
            memory_bytes("MemTotal:       1000 kB\nMemFree: 1 kB"),
            1_024_000
        );
    }

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let facts = machine_facts();
        assert!(facts.kernel.starts_with("Linux "), "{facts:?}");
        assert!(facts.cores >= 1 && facts.memory_bytes > 1 << 20 && facts.max_open_files > 10);
    }
}
