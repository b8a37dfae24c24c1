//! Until when the cells of a study are measured again.

use clap::Args;
use pubgauge_command::exit::Ending;
use pubgauge_quantities::Span;

use super::RunArgs;
use crate::prepare::quantity;

/// Budget where none is given, in seconds.
const BUDGET_S: f64 = 3600.0;

const EXAMPLES: &str = "\
Examples:
  pubgauge run                           the first look, over all systems here
  pubgauge run --publishers 500 --rate 1/s-each --payload 200B --on mosquitto
  pubgauge run --payload 64B,1KiB --rate 1k/s,10k/s --on mosquitto,nats
  pubgauge run --on mqtt://host:1883 --qos 1 --require 'p99 < 10ms'
  pubgauge run studies/mine.toml --set phases.measure=30s --repeats 5
  pubgauge run papers/kang2020 --claim K14,K15";

/// `pubgauge run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunVerb {
    /// As for a search.
    #[command(flatten)]
    run: RunArgs,
    /// Repeats of what is undecided.
    #[command(flatten)]
    until: UntilArgs,
}

impl RunVerb {
    /// All arguments of the run.
    ///
    /// # Errors
    /// As [`Selection::resolve_words`](super::Selection::resolve_words).
    pub fn args(self) -> Result<RunArgs, Ending> {
        let mut run = self.run;
        run.selection.resolve_words()?;
        Ok(RunArgs {
            until: self.until,
            ..run
        })
    }
}

/// Whether cells that undecided claims need are measured again.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Claims that cannot be told")]
pub struct UntilArgs {
    /// After the study's own repeats, measure again what undecided claims need, in rounds that double the
    /// repeats, until they are decided or the budget is spent. With --resume DIR also for a run that is over.
    #[arg(hide_short_help = true, long)]
    pub until_decided: bool,
    /// Time that these repeats may take, such as 3h, in all studies of a folder together; default: 1h.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SPAN",
        requires = "until_decided"
    )]
    pub budget: Option<String>,
}

impl UntilArgs {
    /// Seconds that repeats may take; `None` where there are none.
    ///
    /// # Errors
    /// If the budget is no span.
    pub fn seconds(&self) -> Result<Option<f64>, Ending> {
        let budget: Option<Span> = quantity("--budget", &self.budget)?;
        let seconds = budget.map_or(BUDGET_S, |span| span.0 as f64 / 1e9);
        Ok(self.until_decided.then_some(seconds))
    }
}
