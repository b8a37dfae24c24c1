//! A workload and the settings of its cells in one line.

use std::collections::BTreeSet;

use pubgauge_driver::{Mapping, Settings};
use pubgauge_figures::Trial;
use pubgauge_figures::search::Axis;
use pubgauge_quantities::lists::unique;

use crate::shares;

use crate::summary::WorkloadCells;

/// A workload in one line: its name, devices, topics, sizes, arrivals, and the settings that all systems were
/// asked for: `fleet (100 -> 1, 100 topics, 64 B, 1000/s, at-least-once, QoS 1, MQTT 5, settings safe)`.
pub(crate) fn describe_workload(workload: &WorkloadCells<'_>) -> String {
    words_without(workload, None)
}

/// Its description without the value of the axis that was searched, if one was. A load that
/// is a share of a limit is given as the share, because the limits differ.
pub(crate) fn words_without(workload: &WorkloadCells<'_>, sought: Option<Axis>) -> String {
    let cells = &workload.cells;
    let shared = shares::describe_share(workload);
    let same = |axis: Axis, of: fn(&Trial) -> String| {
        if Some(axis) == sought {
            return "?".to_owned();
        }
        if let Some((_, words)) = shared.as_ref().filter(|(of, _)| *of == axis) {
            return words.clone();
        }
        unique(cells.iter().map(|cell| of(cell.trials[0]))).join(" | ")
    };
    let mut words = vec![
        format!(
            "{} -> {}",
            same(Axis::Publishers, |t| t.workload.publishers.to_string()),
            same(Axis::Subscribers, |t| t.workload.subscribers.to_string())
        ),
        format!(
            "{} topic{}",
            same(Axis::Topics, |t| t.workload.topics.to_string()),
            if cells[0].trials[0].workload.topics == 1 {
                ""
            } else {
                "s"
            }
        ),
        match sought {
            Some(Axis::Payload) => "? B".to_owned(),
            _ => same(Axis::Payload, |t| t.workload.payload.clone()),
        },
        match sought {
            Some(Axis::Rate) => "any rate".to_owned(),
            Some(Axis::Burst) => "any burst".to_owned(),
            _ => {
                let of = shared.as_ref().map(|(of, _)| *of);
                let axis = of.filter(|of| *of == Axis::Burst).unwrap_or(Axis::Rate);
                same(axis, |t| t.workload.arrivals.clone())
            }
        },
    ];
    words.extend(settings_words(workload));
    format!("{} ({})", workload.name, words.join(", "))
}

/// The settings that all systems of a workload were asked for, the systems' terms for them, and the name of
/// the settings; then the same for each flow with settings of its own. Where all flows have their own, the first are
/// those that they have in common.
fn settings_words(workload: &WorkloadCells<'_>) -> Vec<String> {
    let trials = || workload.cells.iter().map(|cell| cell.trials[0]);
    let own = || {
        trials()
            .flat_map(|t| &t.flows)
            .filter(|flow| flow.settings.is_some())
    };
    let flows = unique(own().map(|flow| flow.name.as_str()));
    let of_flow = |name: &str| {
        let of_flow = own().filter(|flow| flow.name == name);
        let pairs = of_flow.filter_map(|flow| Some((flow.settings.as_ref()?, &flow.mappings[..])));
        asked_words(pairs)
    };
    let flows: Vec<_> = flows
        .into_iter()
        .map(|name| (name, of_flow(name)))
        .collect();
    let of_trial = |trial: &&Trial| {
        trial.flows.is_empty() || trial.flows.iter().any(|flow| flow.settings.is_none())
    };
    let common = || trials().filter(of_trial);
    let mut words = asked_words(common().map(|t| (&t.settings, &t.mappings[..])));
    if let ([(_, first), others @ ..], None) = (&flows[..], common().next()) {
        let have = |word: &&String| others.iter().all(|(_, words)| words.contains(word));
        words.extend(first.iter().filter(have).cloned());
    }
    let names = alike(
        common()
            .map(|t| t.settings_name.clone())
            .filter(|name| !name.is_empty()),
    );
    let flows = flows.into_iter().filter_map(|(name, own)| {
        let own: Vec<String> = own
            .into_iter()
            .filter(|word| !words.contains(word))
            .collect();
        (!own.is_empty()).then(|| format!("{name}: {}", own.join(" ")))
    });
    let flows: Vec<String> = flows.collect();
    words.extend(names.map(|names| format!("settings {names}")));
    words.extend(flows);
    words
}

/// Settings that are not the default everywhere, and the systems' terms for all of them.
fn asked_words<'t>(
    pairs: impl Iterator<Item = (&'t Settings, &'t [Mapping])> + Clone,
) -> Vec<String> {
    let asked = Settings::NAMES.iter().filter_map(|name| {
        let values = pairs.clone().map(|(settings, _)| settings.value_of(name));
        // `default` stands beside the values of other rows, so that none is taken for that of all.
        let value = alike(values).filter(|value| value != "default")?;
        match *name {
            "reliability" => Some(value),
            name => Some(format!("{name} = {value}")),
        }
    });
    let rows = || pairs.clone().flat_map(|(_, rows)| rows);
    let terms = Settings::NAMES.iter().filter_map(|name| {
        let of = rows().filter(|row| row.setting == *name);
        alike(of.filter_map(|row| row.term.clone()))
    });
    asked.chain(terms).collect()
}

/// The different words, each once, joined; `None` if there are none.
fn alike(words: impl Iterator<Item = String>) -> Option<String> {
    let words: BTreeSet<String> = words.collect();
    let words: Vec<String> = words.into_iter().collect();
    Some(words.join(" | ")).filter(|words| !words.is_empty())
}
