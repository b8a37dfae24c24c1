//! How the client works, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use pubgauge_quantities::Span;
use pubgauge_setup::ClientSetup;

use super::absent::is_default;
use super::testbed::LimitsFile;

/// How the client works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClientFile {
    /// Scheduled messages that fall due within this span leave together, in one wake-up of their
    /// worker: none early, none scheduled later than the span. Above 0, up to 100ms; each leaves at
    /// its own time if absent.
    pub pacing_within: Option<Span>,
    /// Idle processors of the hosts that have the workers poll for work instead of sleeping, while clients of a
    /// trial are open; they sleep if absent. It takes `/dev/cpu_dma_latency`, which is root's.
    pub poll_when_idle: Option<bool>,
    /// Publishing devices run in so many processes and the others in as many, each with one worker, 1
    /// to 64; all are threads of one process if absent, unless that may not open enough files.
    #[schemars(range(min = 1, max = 64))]
    pub processes: Option<u32>,
    /// The largest share of the machine for each worker process.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: LimitsFile,
}

impl ClientFile {
    /// Its values, and those of `study` where it has none.
    pub(crate) fn merge_over(&self, study: &ClientFile) -> ClientFile {
        ClientFile {
            pacing_within: self.pacing_within.or(study.pacing_within),
            poll_when_idle: self.poll_when_idle.or(study.poll_when_idle),
            processes: self.processes.or(study.processes),
            limits: self.limits.merge_over(&study.limits),
        }
    }

    /// How each worker works; a real-time priority is no matter of a study.
    pub(crate) fn setup(&self) -> ClientSetup {
        ClientSetup {
            pacing_within: self.pacing_within.map_or(0, |span| span.0),
            poll_when_idle: self.poll_when_idle.unwrap_or(false),
            realtime: None,
        }
    }
}
