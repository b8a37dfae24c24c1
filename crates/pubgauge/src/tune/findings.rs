//! The findings of a tuning, with all that is needed to act on them.

use pubgauge_campaign::tuning::{SideEffect, Tuner, only_cell, side_effects};
use pubgauge_campaign::{Error, Prepared};
use pubgauge_driver::{Mapping, Settings};
use pubgauge_figures::Results;
use pubgauge_runner::searching;
use pubgauge_tuning::{Conclusion, Ended, Objective};
use serde::Serialize;

/// The findings of a tuning.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Findings {
    /// The figure that was to become better.
    #[serde(rename = "for")]
    pub objective: Objective,
    /// The system, and the workload.
    pub system: String,
    pub workload: String,
    /// Seconds that trials could take, and took.
    pub budget_s: f64,
    pub took_s: f64,
    /// Measurements.
    pub measurements: usize,
    /// Why it is over; absent: it was cut off.
    pub ended: Option<&'static str>,
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// The best settings, those of the study among them; absent where nothing looked better.
    pub settings: Option<Settings>,
    /// The settings that were chosen, as a study has them.
    pub toml: Option<String>,
    /// Their form in the system's own terms and lines of configuration.
    pub configuration: Vec<Mapping>,
    /// Other figures that became worse in the pairs.
    pub worse: Vec<SideEffect>,
    /// Prices and lost promises that the system's file tells of them.
    pub costs: Vec<(String, String)>,
    /// Settings that were not varied, and why.
    pub not_varied: Vec<(String, String)>,
}

/// The findings of the trials.
///
/// # Errors
/// If a setting cannot have the value that it was measured with.
pub fn find(
    prepared: &Prepared,
    tuner: &Tuner<'_>,
    results: &Results,
    is_cut_off: bool,
) -> Result<Findings, Error> {
    let (trials, plan) = (&results.trials, tuner.plan());
    let cell = only_cell(prepared)?;
    let conclusion = tuner.conclusion(trials);
    let best = tuner.best(trials);
    let settings = best.map(|point| tuner.settings(&point)).transpose()?;
    let chosen = conclusion.best.clone().unwrap_or_default();
    let is_chosen = |name: &str| chosen.iter().any(|(own, _)| own == name);
    let resolved = settings
        .as_ref()
        .map(|own| prepared.resolved(&cell.system, own));
    let mut configuration = resolved.unwrap_or_default();
    configuration.retain(|mapping| is_chosen(&mapping.setting));
    let varied = plan
        .factors
        .iter()
        .filter(|tuned| is_chosen(&tuned.factor.name));
    let costs = varied.flat_map(|tuned| {
        let words = tuned.gives_up.iter().map(|what| format!("gives up {what}"));
        let words = words.chain(tuned.costs.clone());
        words
            .map(|words| (tuned.factor.name.clone(), words))
            .collect::<Vec<_>>()
    });
    let toml = chosen.iter().map(|(name, value)| toml_line(name, value));
    Ok(Findings {
        objective: plan.objective,
        system: cell.system.clone(),
        workload: cell.workload.name.clone(),
        budget_s: plan.budget_s,
        took_s: trials.iter().map(searching::seconds).sum(),
        measurements: tuner.points_seen(trials).len(),
        ended: tuner
            .reason_to_end(trials)
            .filter(|_| !is_cut_off)
            .map(ended_words),
        toml: settings
            .as_ref()
            .map(|_| toml.collect::<Vec<_>>().join("\n")),
        costs: costs.collect(),
        not_varied: plan
            .left_out
            .iter()
            .map(|one| (one.name.clone(), one.why.clone()))
            .collect(),
        worse: side_effects(trials),
        configuration,
        settings,
        conclusion,
    })
}

/// Why a tuning is over, in words.
fn ended_words(ended: Ended) -> &'static str {
    match ended {
        Ended::Compared => "the pairs are measured",
        Ended::NothingBetter => "nothing looked better than the default",
        Ended::NoBase => "the default has no figure that ranks",
        Ended::NoFactors => "there is nothing to vary",
    }
}

/// A setting as a line of TOML.
pub fn toml_line(path: &str, value: &str) -> String {
    let is_bare = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !part.is_empty() && part.chars().all(plain)
    };
    let key = match path
        .strip_prefix("options.")
        .and_then(|rest| rest.rsplit_once('.'))
    {
        Some((system, name)) if !is_bare(system) => format!("options.{system:?}.{name}"),
        _ => path.to_owned(),
    };
    let value = match serde_json::from_str::<serde_json::Value>(value) {
        Ok(serde_json::Value::Object(table)) => {
            let pairs: Vec<String> = table.iter().map(|(k, v)| format!("{k} = {v}")).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Ok(plain) if !plain.is_string() => plain.to_string(),
        _ => serde_json::Value::String(value.to_owned()).to_string(),
    };
    format!("{key} = {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_toml() {
        for (path, value, line) in [
            ("in-flight", "100", "in-flight = 100"),
            ("batching", "off", "batching = \"off\""),
            (
                "batching",
                r#"{"bytes":4096}"#,
                "batching = { bytes = 4096 }",
            ),
            (
                "native.mqtt.no-delay",
                "false",
                "native.mqtt.no-delay = false",
            ),
            (
                "options.x.credit",
                "400, 200",
                "options.x.credit = \"400, 200\"",
            ),
            ("options.broker-2.0.a", "1", "options.\"broker-2.0\".a = 1"),
        ] {
            assert_eq!(toml_line(path, value), line);
        }
    }
}
