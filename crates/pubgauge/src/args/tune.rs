//! `pubgauge tune`, as the user types it.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pubgauge_tuning::Objective;

use super::RunArgs;

const TUNE_DEFAULTS: &str = "\
Varies what the system's file says can be tuned (pubgauge systems): each
setting alone at first, then combinations, then the best against the default in
pairs, measured in turns. `better` is said only if the interval of the pairs
leaves out no change. Reliability, order and what else the study sets is never
traded away; --give-up names what may be.

Examples:
  pubgauge tune --on rabbitmq --for p99 --rate 5k/s --budget 30min
  pubgauge tune studies/mine.toml --on fastdds --for limit --save-profile mine
  pubgauge tune --on mosquitto --for cost --engine 'python3 optuna-engine.py'

Exit code 0: it was told whether the best settings are better; 2: it cannot be
told, or it was cut off.";

/// `pubgauge tune`.
#[derive(Debug, Args)]
#[command(after_help = TUNE_DEFAULTS)]
pub struct TuneArgs {
    /// Figure that is to become better: 99th percentile of latency, the highest rate that stays within what is asked
    /// for, or processor time of client and system for a message.
    #[arg(long = "for", value_name = "WHAT", value_parser = objectives(), default_value = "p99", help_heading = "Tuning")]
    pub objective: Objective,
    /// Time that all trials may take together.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30min",
        help_heading = "Tuning"
    )]
    pub budget: String,
    /// The workload of the study, where it has several.
    #[arg(long, value_name = "NAME", help_heading = "Tuning")]
    pub workload: Option<String>,
    /// Vary only these settings, by their names.
    #[arg(
        long,
        value_name = "SETTING,...",
        value_delimiter = ',',
        help_heading = "Tuning"
    )]
    pub vary: Vec<String>,
    /// Vary these settings too, although the system then promises less.
    #[arg(
        long,
        value_name = "SETTING,...",
        value_delimiter = ',',
        help_heading = "Tuning"
    )]
    pub give_up: Vec<String>,
    /// Fewest pairs of the best settings and the default; more where there is time.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(5..=100), help_heading = "Tuning")]
    pub pairs: u32,
    /// If they are better, keep them as a profile of this name, for --profile of later runs.
    #[arg(long, value_name = "NAME", help_heading = "Tuning")]
    pub save_profile: Option<String>,
    /// Command that names the combinations in place of the built-in estimator, asked and told in lines of JSON
    /// (docs/tune.md).
    #[arg(
        long,
        value_name = "COMMAND",
        help_heading = "Tuning",
        hide_short_help = true
    )]
    pub engine: Option<String>,
    /// As for a run.
    #[command(flatten)]
    pub run: RunArgs,
}

fn objectives() -> impl TypedValueParser<Value = Objective> {
    let named = |name: String| Objective::ALL.into_iter().find(|one| one.name() == name);
    PossibleValuesParser::new(Objective::ALL.map(Objective::name))
        .map(move |name| named(name).unwrap_or(Objective::P99))
}
