//! The flags of `pubgauge run` that stand for a study without a file.

use std::collections::BTreeMap;
use std::path::Path;

use pubgauge_driver::{Reliability, Settings};
use pubgauge_quantities::{Rate, Size, Span};
use pubgauge_strict_toml::InvalidInput;
use serde::Serialize;

use crate::file::{
    FlowFile, NamedSettings, OneSize, PayloadFile, PhasesFile, StudyFile, UntilFile, WorkloadFile,
};
use crate::study::Study;

/// The options of `pubgauge run` without a study file. Every value may be absent; of several, each is measured with each
/// of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DailyFlags {
    /// `--publishers`; 1 if absent, 0 is allowed.
    pub publishers: Vec<u32>,
    /// `--subscribers`; 1 if absent, 0 is allowed.
    pub subscribers: Vec<u32>,
    /// `--topics`, distributed round-robin to publishers and to subscribers; 1 if absent: every
    /// subscriber gets every publisher's messages.
    pub topics: Vec<u32>,
    /// `--payload`; 64 B if absent.
    pub payload: Vec<Size>,
    /// `--rate`; 1,000 messages a second in all if absent.
    pub rate: Vec<Rate>,
    /// `--duration` of the measurement; 10 s if absent.
    pub duration: Option<Span>,
    /// `--warm-up`; 2 s if absent.
    pub warm_up: Option<Span>,
    /// `--qos`: 0, 1 or 2, in words of MQTT.
    pub qos: Vec<u8>,
    /// `--mqtt`: `3.1.1` or `5`.
    pub mqtt: Vec<String>,
}

impl DailyFlags {
    /// Whether no flag was given.
    pub fn is_empty(&self) -> bool {
        *self == DailyFlags::default()
    }

    /// The study that the flags stand for.
    ///
    /// # Errors
    /// A value out of range; the message names the flag.
    pub fn file(&self) -> Result<StudyFile, InvalidInput> {
        let settings = self.settings()?;
        let mut grid = BTreeMap::new();
        vary(&mut grid, "publishers", &self.publishers);
        vary(&mut grid, "subscribers", &self.subscribers);
        vary(&mut grid, "topics", &self.topics);
        vary(&mut grid, "payload", &self.payload);
        vary(&mut grid, "rate", &self.rate);
        Ok(StudyFile {
            name: "flags".into(),
            phases: PhasesFile {
                warm_up: self.warm_up.map(UntilFile::Time),
                measure: self.duration.map(UntilFile::Time),
                ..PhasesFile::default()
            },
            grid,
            settings,
            workload: vec![WorkloadFile {
                name: "flags".into(),
                flow: vec![FlowFile {
                    publishers: Some(first(&self.publishers).unwrap_or(1)),
                    subscribers: Some(first(&self.subscribers).unwrap_or(1)),
                    topics: first(&self.topics),
                    payload: Some(PayloadFile::One(OneSize::Fixed(
                        first(&self.payload).unwrap_or(Size(64)),
                    ))),
                    rate: Some(first(&self.rate).unwrap_or(Rate::All(1000.0)).into()),
                    ..FlowFile::default()
                }],
                ..WorkloadFile::default()
            }],
            ..StudyFile::default()
        })
    }

    /// The settings: one for each quality of service with each version of MQTT.
    fn settings(&self) -> Result<Vec<NamedSettings>, InvalidInput> {
        let qualities = or_none(&self.qos);
        let versions = or_none(&self.mqtt);
        let mut all = Vec::new();
        for qos in &qualities {
            for version in &versions {
                let ask = ask(*qos, version.as_deref())?;
                let quality = qos
                    .filter(|_| qualities.len() > 1)
                    .map(|qos| format!("qos-{qos}"));
                let version = version.as_ref().filter(|_| versions.len() > 1);
                let parts = quality
                    .into_iter()
                    .chain(version.map(|version| format!("mqtt-{version}")));
                let parts: Vec<String> = parts.collect();
                if ask != Settings::default() {
                    let name = Some(parts.join("-")).filter(|name| !name.is_empty());
                    all.push(NamedSettings {
                        name,
                        ask,
                        ..NamedSettings::default()
                    });
                }
            }
        }
        Ok(all)
    }

    /// The file as a [`Study`], which `--set` can change and which can be planned.
    ///
    /// # Errors
    /// As [`DailyFlags::file`].
    pub fn study(&self) -> Result<Study, InvalidInput> {
        let wrong = |error: String| InvalidInput::plain("flags", error, None);
        let text = toml::to_string(&self.file()?).map_err(|error| wrong(error.to_string()))?;
        Study::parse("flags", &text, Path::new(""))
    }
}

fn first<T: Copy>(values: &[T]) -> Option<T> {
    values.first().copied()
}

/// Each value, or once none.
fn or_none<T: Clone>(values: &[T]) -> Vec<Option<T>> {
    match values {
        [] => vec![None],
        values => values.iter().cloned().map(Some).collect(),
    }
}

/// Adds an axis where there are several values.
fn vary<T: Serialize>(
    grid: &mut BTreeMap<String, Vec<serde_json::Value>>,
    axis: &str,
    values: &[T],
) {
    if values.len() > 1 {
        let values = values.iter().map(|value| serde_json::json!(value));
        grid.insert(axis.to_owned(), values.collect());
    }
}

/// The settings for a quality of service and a version of MQTT.
fn ask(qos: Option<u8>, version: Option<&str>) -> Result<Settings, InvalidInput> {
    let reliability = match qos {
        None => None,
        Some(0) => Some(Reliability::AtMostOnce),
        Some(1) => Some(Reliability::AtLeastOnce),
        Some(2) => Some(Reliability::ExactlyOnce),
        Some(other) => {
            return Err(InvalidInput::plain(
                &format!("--qos {other}"),
                "expected 0 (at most once), 1 (at least once) or 2 (exactly once)",
                None,
            ));
        }
    };
    let mut ask = Settings {
        reliability,
        ..Settings::default()
    };
    if let Some(version) = version {
        if version != "3.1.1" && version != "5" {
            return Err(InvalidInput::plain(
                &format!("--mqtt {version}"),
                "expected 3.1.1 or 5",
                None,
            ));
        }
        let native = ask.native.entry("mqtt".into()).or_default();
        native.insert("version".into(), version.into());
    }
    Ok(ask)
}
