//! The flags of `pubgauge run` that stand for a study without a file.

use std::path::Path;

use pubgauge_driver::{Reliability, Settings};
use pubgauge_quantities::{Rate, Size, Span};
use pubgauge_strict_toml::InvalidInput;

use crate::file::{
    FlowFile, NamedSettings, OneSize, PayloadFile, PhasesFile, StudyFile, UntilFile, WorkloadFile,
};
use crate::study::Study;

/// The options of `pubgauge run` without a study file. Every value may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DailyFlags {
    /// `--publishers`; 1 if absent, 0 is allowed.
    pub publishers: Option<u32>,
    /// `--subscribers`; 1 if absent, 0 is allowed.
    pub subscribers: Option<u32>,
    /// `--topics`, distributed round-robin to publishers and to subscribers; 1 if absent: every
    /// subscriber gets every publisher's messages.
    pub topics: Option<u32>,
    /// `--payload`; 64 B if absent.
    pub payload: Option<Size>,
    /// `--rate`; 1,000 messages a second in all if absent.
    pub rate: Option<Rate>,
    /// `--duration` of the measurement; 10 s if absent.
    pub duration: Option<Span>,
    /// `--warm-up`; 2 s if absent.
    pub warm_up: Option<Span>,
    /// `--qos`: 0, 1 or 2, in words of MQTT.
    pub qos: Option<u8>,
    /// `--mqtt`: `3.1.1` or `5`.
    pub mqtt: Option<String>,
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
        let reliability = match self.qos {
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
        if let Some(version) = &self.mqtt {
            if version != "3.1.1" && version != "5" {
                return Err(InvalidInput::plain(
                    &format!("--mqtt {version}"),
                    "expected 3.1.1 or 5",
                    None,
                ));
            }
            let native = ask.native.entry("mqtt".into()).or_default();
            native.insert("version".into(), version.clone().into());
        }
        let settings = if ask == Settings::default() {
            Vec::new()
        } else {
            vec![NamedSettings {
                ask,
                ..NamedSettings::default()
            }]
        };
        Ok(StudyFile {
            name: "flags".into(),
            phases: PhasesFile {
                warm_up: self.warm_up.map(UntilFile::Time),
                measure: self.duration.map(UntilFile::Time),
                ..PhasesFile::default()
            },
            settings,
            workload: vec![WorkloadFile {
                name: "flags".into(),
                flow: vec![FlowFile {
                    publishers: Some(self.publishers.unwrap_or(1)),
                    subscribers: Some(self.subscribers.unwrap_or(1)),
                    topics: self.topics,
                    payload: Some(PayloadFile::One(OneSize::Fixed(
                        self.payload.unwrap_or(Size(64)),
                    ))),
                    rate: Some(self.rate.unwrap_or(Rate::All(1000.0))),
                    ..FlowFile::default()
                }],
                ..WorkloadFile::default()
            }],
            ..StudyFile::default()
        })
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
