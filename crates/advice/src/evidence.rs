//! Where the figures of an advice come from.

use pubgauge_quantities::lists::{grouped, unique};
use schemars::JsonSchema;
use serde::Serialize;

/// Where a figure of a choice comes from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The figure.
    pub figure: EvidenceOf,
    /// Whether it was measured, or was stored.
    pub source: Source,
    /// The stored runs that it is from.
    pub stored: Vec<StoredAt>,
}

/// Figures of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceOf {
    /// That the fleet is carried.
    Fleet,
    /// That so many times the fleet is carried.
    Headroom,
    /// How many times the fleet is carried at the most.
    Limit,
    /// The 99th percentile of latency.
    P99,
    /// The cost of a message.
    Cost,
    /// The memory.
    Memory,
}

impl EvidenceOf {
    fn name(self) -> &'static str {
        match self {
            EvidenceOf::Fleet => "the fleet",
            EvidenceOf::Headroom => "the headroom",
            EvidenceOf::Limit => "the limit",
            EvidenceOf::P99 => "p99",
            EvidenceOf::Cost => "cost",
            EvidenceOf::Memory => "memory",
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// From trials of this advice.
    Measured,
    /// From stored runs.
    Stored,
    /// From trials of this advice and from stored runs.
    MeasuredAndStored,
    /// There is none.
    NotMeasured,
}

/// A stored run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredAt {
    /// Its folder.
    pub folder: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// The folder of what was measured in turns with it.
    #[serde(skip)]
    pub(crate) together: String,
}

impl StoredAt {
    /// Its folder, and the day on which it began: `results/meters (2026-11-29)`.
    pub fn describe(&self) -> String {
        let day = self.started.split('T').next().unwrap_or_default();
        if day.is_empty() {
            self.folder.clone()
        } else {
            format!("{} ({day})", self.folder)
        }
    }
}

/// A stored trial, or all of a run, that does not count.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NotCounted {
    /// The run's folder.
    pub folder: String,
    /// The system and the load; absent: all of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Why, in a sentence.
    pub because: String,
}

impl NotCounted {
    /// Of a run in this folder.
    pub fn new(folder: &str, of: Option<String>, because: impl Into<String>) -> NotCounted {
        NotCounted {
            folder: folder.to_owned(),
            of,
            because: because.into(),
        }
    }

    /// In a sentence.
    pub fn describe(&self) -> String {
        match &self.of {
            Some(of) => format!("{}, {of}: {}", self.folder, self.because),
            None => format!("{}: {}", self.folder, self.because),
        }
    }
}

/// The source of a figure from trials, each with the stored run that it is from, if it is from one.
pub(crate) fn evidence<'a>(
    figure: EvidenceOf,
    trials: impl IntoIterator<Item = Option<&'a StoredAt>>,
) -> Evidence {
    let sources: Vec<Option<&StoredAt>> = trials.into_iter().collect();
    let is_measured = sources.contains(&None);
    let stored: Vec<StoredAt> = unique(sources.into_iter().flatten().cloned());
    let source = match (is_measured, stored.is_empty()) {
        (true, true) => Source::Measured,
        (true, false) => Source::MeasuredAndStored,
        (false, false) => Source::Stored,
        (false, true) => Source::NotMeasured,
    };
    Evidence {
        figure,
        source,
        stored,
    }
}

/// Where all figures come from, in words: `the fleet, p99, cost: measured; the limit: not measured`.
pub(crate) fn in_words(all: &[Evidence]) -> String {
    let each = all
        .iter()
        .map(|one| ((one.source, &one.stored), one.figure.name()));
    let grouped = grouped(each)
        .into_iter()
        .map(|((source, stored), figures)| {
            let runs: Vec<String> = stored.iter().map(StoredAt::describe).collect();
            let runs = runs.join(", ");
            let source = match source {
                Source::Measured => "measured".to_owned(),
                Source::Stored => format!("stored, {runs}"),
                Source::MeasuredAndStored => format!("measured, and stored, {runs}"),
                Source::NotMeasured => "not measured".to_owned(),
            };
            format!("{}: {source}", figures.join(", "))
        });
    grouped.collect::<Vec<_>>().join("; ")
}
