//! The conditions under which the repeats of a cell were measured: machine, workload, settings, and how the client worked.

use std::collections::BTreeMap;

use pubgauge_figures::model::HeldLimits;
use pubgauge_figures::{Results, Status, Trial, processors};
use pubgauge_quantities::shown;

use super::super::pairing::workload_words;

/// The value of each condition, by its name. Figures under different ones are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conditions(BTreeMap<String, String>);

impl Conditions {
    /// Those of the repeats of a cell, of which there is at least one.
    pub(super) fn new(results: &Results, trials: &[&Trial]) -> Conditions {
        let machine = &results.machine;
        // A server that did not start has granted nothing.
        let valid = trials.iter().find(|t| t.verdict.status == Status::Valid);
        let trial = *valid.unwrap_or(&trials[0]);
        let client = &trial.circumstances.client;
        let longest = trials.iter().map(|t| t.duration_s).fold(0.0, f64::max);
        let processors = processors::available(machine.cores, machine.quota_cores);
        let mut all = BTreeMap::new();
        let mut add = |name: &str, value: String| {
            if !value.is_empty() {
                all.insert(name.to_owned(), value);
            }
        };
        add("the processor", machine.cpu_model.clone());
        add(
            "the number of processors",
            shown::three_decimals(processors),
        );
        add("the memory of the machine", memory(machine.memory_bytes));
        add(
            "the frequency governor",
            machine.governor.clone().unwrap_or_default(),
        );
        add("the workload", workload_words(trial));
        add("the length of the measurement", format!("{longest:.1} s"));
        add("pacing-within", shown::span(client.pacing_within));
        add("poll-when-idle", client.poll_when_idle.to_string());
        add("the real-time priority", number(client.realtime));
        add(
            "the number of client processes",
            number(trial.client_processes),
        );
        add(
            "the number of brokers",
            trial.brokers.len().max(1).to_string(),
        );
        add(
            "the number of hosts of workers",
            trial.hosts.len().to_string(),
        );
        let network = match &trial.network {
            Some(network) => format!(
                "an emulated one of {}",
                network
                    .path_ns
                    .map_or("an unknown delay".to_owned(), shown::span)
            ),
            None => "none".to_owned(),
        };
        add("the network", network);
        add("the limits of the system", limits(trial.limits.as_ref()));
        add(
            "the limits of the client",
            limits(trial.client_limits.as_ref()),
        );
        for host in &trial.sized_hosts {
            let of = format!("the size of host {}", host.host);
            add(&of, limits(Some(&host.limits)));
        }
        // Counting slows every system call.
        add(
            "count-system-calls",
            trial.system_calls.is_some().to_string(),
        );
        for mapping in &trial.mappings {
            let value = format!("{} ({})", mapping.value, mapping.native);
            add(&format!("the setting {}", mapping.setting), value);
        }
        for flow in &trial.flows {
            for mapping in &flow.mappings {
                let of = format!("the setting {} of flow {}", mapping.setting, flow.name);
                add(&of, format!("{} ({})", mapping.value, mapping.native));
            }
        }
        Conditions(all)
    }

    /// The ways in which these differ from those of an earlier run, in sentences.
    pub(super) fn differences(&self, earlier: &Conditions, run: u32) -> Vec<String> {
        let (now, before) = (&self.0, &earlier.0);
        let gone = before.keys().filter(|name| !now.contains_key(*name));
        let names = now.keys().chain(gone);
        let different = names.filter(|name| now.get(*name) != before.get(*name));
        different
            .map(|name| {
                let value = |of: &BTreeMap<String, String>| {
                    of.get(name).cloned().unwrap_or_else(|| "not told".into())
                };
                format!(
                    "{name} differs: {}, {} in run {run}",
                    value(now),
                    value(before)
                )
            })
            .collect()
    }
}

fn number(of: Option<impl ToString>) -> String {
    of.map_or(String::new(), |number| number.to_string())
}

/// A size to the next power of two: kernels of one machine differ a little in what they leave.
fn memory(bytes: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!("about {}", shown::bytes(bytes.next_power_of_two())),
    }
}

/// The limits that were asked for.
fn limits(held: Option<&HeldLimits>) -> String {
    let Some(held) = held else {
        return "none".to_owned();
    };
    let cores = held.cores.map(|cores| format!("{cores} processors"));
    let memory = held.memory_bytes.map(shown::bytes);
    let not_held = (!held.not_held.is_empty()).then(|| "not held as asked for".to_owned());
    let parts: Vec<String> = [cores, memory, not_held].into_iter().flatten().collect();
    match &parts[..] {
        [] => "none".to_owned(),
        parts => parts.join(", "),
    }
}

/// The ways in which two runs differ that do not keep them from being compared, in sentences; `run` is the number of the
/// first.
pub(super) fn remarks([before, now]: [&Results; 2], run: u32) -> Vec<String> {
    let facts = |results: &Results| {
        let (machine, study) = (&results.machine, &results.study);
        let scale = study.scale.clone().unwrap_or_else(|| "full".to_owned());
        let mut facts = vec![
            ("the study".to_owned(), study.name.clone()),
            ("the scale of the study".to_owned(), scale),
            ("the kernel".to_owned(), machine.kernel.clone()),
            ("the distribution".to_owned(), machine.os.clone()),
            (
                "the version of pubgauge".to_owned(),
                machine.pubgauge_version.clone(),
            ),
        ];
        for trial in &results.trials {
            let of = format!("the version of {}", trial.system.name);
            if !facts.iter().any(|(name, _)| *name == of) {
                facts.push((of, trial.system.version.clone()));
            }
        }
        facts
    };
    let before = facts(before);
    let known = |name: &String| before.iter().find(|(other, _)| other == name);
    let different = facts(now).into_iter().filter_map(|(name, value)| {
        let (_, earlier) = known(&name)?;
        (*earlier != value).then(|| format!("{name} differs: {value}, {earlier} in run {run}"))
    });
    different.collect()
}
