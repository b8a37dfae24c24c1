//! How trials proceed, as it is written.

use pubgauge_quantities::{Rate, Span};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How each trial proceeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PhasesFile {
    /// Connections begun per second, such as "500/s"; "max" if absent.
    pub connect_rate: Option<Rate>,
    /// Longest time for connecting, subscribing and proving readiness; 30s if absent.
    pub ready_within: Option<Span>,
    /// Traffic before the measurement, by time or count; 2s if absent.
    pub warm_up: Option<UntilFile>,
    /// The measurement, by time or count; 10s if absent.
    pub measure: Option<UntilFile>,
    /// Length of a record of the course over time, 100ms at least, such that a measurement has 8 to 1,800 of them; 1s if
    /// absent, a tenth of a measurement shorter than 10s, whole seconds of one longer than half an hour.
    pub record: Option<Span>,
    /// Silence after which missing messages that later ones overtook count as lost, and repeated
    /// ones are no longer awaited; 1s if absent.
    pub drain_quiet: Option<Span>,
    /// Longest drain; messages that are still arriving then count as under way, neither delivered
    /// nor lost. 10s if absent.
    pub drain_within: Option<Span>,
    /// Reconnect a client that was lost, after this long; lost clients stay lost if absent.
    pub reconnect_after: Option<Span>,
    /// Connections are cut on purpose from outside: a lost connection does not make the trial
    /// broken; false if absent.
    pub allow_disconnects: Option<bool>,
    /// Loss is the subject: a lost message does not make the trial lossy; false if absent.
    pub allow_losses: Option<bool>,
    /// Named spans of the measurement, each with its own figures; a workload's own replace the study's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub window: Vec<WindowFile>,
}

/// A named span of the measurement, with figures of its own: a message belongs to the window that it was
/// due in, with its latency and its loss, whenever it comes; rates count what happens in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowFile {
    /// Its name, unique among the windows: small letters, digits and `-`. A figure of it is named
    /// FIGURE@NAME, such as "latency.p99@during".
    pub name: String,
    /// Its beginning, from the start of the measurement.
    pub from: Span,
    /// Its end, from the start of the measurement.
    pub to: Span,
}

/// The end of a phase: "10s", or { messages = 1000, within = "60s" }.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum UntilFile {
    /// After a time.
    Time(Span),
    /// After a number of messages.
    Count(UntilCount),
}

/// The end of a phase by count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UntilCount {
    /// Messages over all flows. The phase ends some milliseconds after so many, as all workers must
    /// know its end before it comes; it has what falls due until then.
    pub messages: u64,
    /// The phase ends after this long even if fewer messages were sent.
    pub within: Span,
}
