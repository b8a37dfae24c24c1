//! `pubgauge find`, as the user types it.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pubgauge_search::Axis;

use super::RunArgs;

const FIND_DEFAULTS: &str = "\
Without a study file: 1 publisher, 1 subscriber, 64 B, over the systems of the
first look; --duration is the length of a short trial, 5s if absent, --warm-up
1s, and with --axis rate --pacing-within 1ms.

Examples:
  pubgauge find --on mosquitto,nats             messages a second
  pubgauge find --axis publishers --rate 1/s-each --on rabbitmq:mqtt
  pubgauge find --on mqtt://host:1883 --require 'p99 < 50ms'   asks first";

/// `pubgauge find`.
#[derive(Debug, Args)]
#[command(after_help = FIND_DEFAULTS)]
pub struct FindArgs {
    /// Load that is made larger until the system gives way: messages a second, devices, topics, bytes of a
    /// message, or messages back to back.
    #[arg(long, value_name = "WHAT", value_parser = axes(), default_value = "rate")]
    pub axis: Axis,
    /// Width of the interval at which a search ends, as a share of its lower end, 0.02 to 1 [default: 0.1].
    #[arg(long, value_name = "SHARE")]
    pub width: Option<String>,
    /// Longest search [default: 8min].
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Length of the trial that confirms the limit [default: 45s].
    #[arg(long, value_name = "TIME")]
    pub confirm: Option<String>,
    /// As for a run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Loads that `pubgauge find` can make larger, by the keys of a flow.
fn axes() -> impl TypedValueParser<Value = Axis> {
    PossibleValuesParser::new(Axis::ALL.map(Axis::name))
        .map(|name| Axis::named(&name).unwrap_or(Axis::Rate))
}
