//! The findings of a tuning on one screen.

use pubgauge_place::shell::quoted;
use pubgauge_quantities::shown::{self, so_many};
use pubgauge_quantities::text::wrap;
use pubgauge_tuning::{CannotTell, Effect, Gain, Objective, Verdict};

use super::findings::Findings;
use crate::progress::about;
use crate::study_run::Done;

/// Effects beyond which the smaller ones are left to `--verbose`.
const MOST_EFFECTS: usize = 24;

/// One screen: what each factor did, what was chosen, what is given up, and whether it is better.
pub fn describe(findings: &Findings, done: &Done, all: bool) -> String {
    let mut out = String::new();
    let took = about(std::time::Duration::from_secs_f64(findings.took_s));
    out += &format!(
        "{} of {} on {}: {}, {} in {took}{}\n",
        findings.objective.name(),
        findings.workload,
        findings.system,
        so_many(findings.conclusion.points as u64, "point"),
        so_many(findings.measurements as u64, "measurement"),
        match (findings.conclusion.hopeless, findings.conclusion.nothing) {
            (0, 0) => String::new(),
            (hopeless, 0) => format!("; {hopeless} did not carry the load"),
            (0, nothing) => format!("; {nothing} told nothing"),
            (hopeless, nothing) => {
                format!("; {hopeless} did not carry the load, {nothing} told nothing")
            }
        }
    );
    out += &effects(findings, if all { usize::MAX } else { MOST_EFFECTS });
    out += &choice(findings);
    out += &costs(findings);
    out += &format!("\n{}", wrap(&verdict(findings), 0));
    out += &format!(
        "\nthe trials: {}; again: pubgauge report {}\n",
        done.page.display(),
        quoted(&done.folder)
    );
    out
}

/// A figure of an objective.
fn figure(objective: Objective, value: f64) -> String {
    match objective {
        Objective::P99 => shown::time(value),
        Objective::Limit => shown::rate(value),
        Objective::Cost => format!("{value:.1} us"),
    }
}

/// `0.82 (0.75 to 0.90)`.
fn ratio(gain: &Gain) -> String {
    match (gain.low, gain.high) {
        (Some(low), Some(high)) => format!("{:.2} ({low:.2} to {high:.2})", gain.ratio),
        _ => format!("{:.2}", gain.ratio),
    }
}

/// The effect of each factor alone.
fn effects(findings: &Findings, most: usize) -> String {
    let conclusion = &findings.conclusion;
    let Some(default) = conclusion.default_figure else {
        return String::new();
    };
    let mut out = format!(
        "\neach setting alone, times the default ({}; 95 % interval):\n",
        figure(findings.objective, default)
    );
    let mut rows: Vec<&Effect> = conclusion.effects.iter().collect();
    let off = |effect: &Effect| {
        effect
            .gain
            .map_or(f64::INFINITY, |gain| gain.ratio.ln().abs())
    };
    let more = rows.len().saturating_sub(most);
    if more > 0 {
        rows.sort_by(|a, b| off(b).total_cmp(&off(a)));
        rows.truncate(most);
    }
    let name = |effect: &Effect| format!("{} = {}", effect.factor, effect.value);
    let widest = rows
        .iter()
        .map(|effect| name(effect).len())
        .max()
        .unwrap_or(0)
        .min(48);
    for effect in rows {
        let words = match (&effect.gain, effect.hopeless) {
            (Some(gain), false) => {
                format!("{}  {}", ratio(gain), name_change(findings.objective, gain))
            }
            (_, true) => "does not carry the load, or loses messages".to_owned(),
            (None, false) => "tells nothing".to_owned(),
        };
        out += &format!("  {:widest$}  {words}\n", name(effect));
    }
    if more > 0 {
        out += &format!("  and {more} smaller ones: -v\n");
    }
    out
}

/// Whether a change is one.
fn name_change(objective: Objective, gain: &Gain) -> &'static str {
    let (Some(low), Some(high)) = (gain.low, gain.high) else {
        return "";
    };
    match (low > 1.0, high < 1.0) {
        (true, _) if objective.is_larger_better() => "better",
        (_, true) if !objective.is_larger_better() => "better",
        (true, _) | (_, true) => "worse",
        _ => "within chance",
    }
}

/// The chosen settings, as a study and as the system have them.
fn choice(findings: &Findings) -> String {
    let Some(toml) = &findings.toml else {
        return String::new();
    };
    let mut out = String::from("\nchosen, as a study has it:\n");
    for line in toml.lines() {
        out += &format!("  {line}\n");
    }
    if !findings.configuration.is_empty() {
        out += "as the system has it:\n";
    }
    for mapping in &findings.configuration {
        out += &format!("  {}: {}\n", mapping.setting, mapping.native);
    }
    out
}

/// The price of the chosen settings.
fn costs(findings: &Findings) -> String {
    if findings.conclusion.best.is_none() {
        return String::new();
    }
    let mut lines: Vec<String> = findings
        .worse
        .iter()
        .map(|side| {
            format!(
                "{}: {} times the default's in the pairs",
                side.figure,
                ratio(&side.gain)
            )
        })
        .collect();
    lines.extend(
        findings
            .costs
            .iter()
            .map(|(name, words)| format!("{name}: {words}")),
    );
    if lines.is_empty() {
        return "given up: nothing that was seen\n".to_owned();
    }
    let lines: Vec<String> = lines.iter().map(|line| wrap(line, 2)).collect();
    format!("given up:\n{}", lines.concat())
}

fn verdict(findings: &Findings) -> String {
    let objective = findings.objective;
    let pairs_of = |pairs: usize, gain: &Gain| {
        format!(
            "{} is {} times the default's in {}",
            objective.name(),
            ratio(gain),
            so_many(pairs as u64, "pair")
        )
    };
    match &findings.conclusion.verdict {
        Verdict::Better { pairs, gain } => format!("better: {}", pairs_of(*pairs, gain)),
        Verdict::NotBetter { pairs, gain } => format!(
            "not better: {}, and that may be chance; keep the default",
            pairs_of(*pairs, gain)
        ),
        Verdict::NothingFound => "nothing looked better than the default: keep it".to_owned(),
        Verdict::CannotTell { why } => format!(
            "it cannot be told whether anything is better: {}",
            match why {
                CannotTell::NoDefault => {
                    "no trial of the default ranks (overloaded, lossy, unsteady, or limited by the client). A smaller load, a longer \
                     measurement or a quieter machine may help; pubgauge run says why"
                }
                CannotTell::BestGaveWay => {
                    "the best settings did not carry the load in one of the pairs. A smaller load may tell"
                }
                CannotTell::FewPairs => "fewer than 5 pairs are whole. A larger --budget has more",
            }
        ),
    }
}
