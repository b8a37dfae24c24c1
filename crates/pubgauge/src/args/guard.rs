//! `pubgauge guard`, as the user types it.

use clap::Args;
use pubgauge_command::exit::Ending;

use super::RunArgs;

const GUARD_DEFAULTS: &str = "\
The old and the new one are measured in turns, until the interval of each change
is narrower than the margin. Exit code 0: nothing is worse by more than the
margin, and what is required is met; 1: something is worse, or not met; 2: that
cannot be told. Without a study file and a workload: those of the first look.

Examples:
  pubgauge guard --old mosquitto --new mosquitto:persistent --rate 5k/s
  pubgauge guard --old mqtt://test:1883 --new mqtt://test:1884 --margin 10% \\
           --rate 1k/s --qos 1 --require 'lost = 0' --junit guard.xml

Two releases on this machine are two system files (docs/add-a-broker.md).";

/// `pubgauge guard`.
#[derive(Debug, Args)]
#[command(after_help = GUARD_DEFAULTS)]
pub struct GuardArgs {
    /// The release that is in use, by the name of a system or by address.
    #[arg(long, value_name = "SYSTEM", help_heading = "Releases")]
    pub old: String,
    /// The release that is to replace it.
    #[arg(long, value_name = "SYSTEM", help_heading = "Releases")]
    pub new: String,
    /// A figure may be worse by so much.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "5%",
        help_heading = "Releases"
    )]
    pub margin: String,
    /// As for a run.
    #[command(flatten)]
    pub run: RunArgs,
}

impl GuardArgs {
    /// The run that compares the two releases.
    ///
    /// # Errors
    /// If systems are named besides, or a release twice.
    pub fn run_args(self) -> Result<RunArgs, Ending> {
        let mut run = self.run;
        let selection = &mut run.selection;
        let wrong = |message: String| Err(Ending::bad_input(message));
        if !selection.on.is_empty() {
            return wrong(format!(
                "--on {}: the releases of a guard are named by --old and --new",
                selection.on.join(",")
            ));
        }
        if self.old == self.new {
            return wrong(format!(
                "--new {}: is the old one\n  hint: two releases on this machine are two system files, each with a name \
                 (docs/add-a-broker.md)",
                self.new
            ));
        }
        let percent = self.margin.strip_suffix('%').unwrap_or_default().trim();
        let Some(margin) = percent.parse().ok().filter(|m| (0.5..=50.0).contains(m)) else {
            return wrong(format!(
                "--margin {}: expected a percentage from 0.5% to 50%\n  hint: for example --margin 5%",
                self.margin
            ));
        };
        let margin: f64 = margin;
        selection.on = vec![self.old, self.new];
        // With an interval of half the margin on either side a release that is no worse passes, and one that is worse
        // by twice the margin does not; between them it cannot be told.
        let precision = format!("{}%", margin / 2.0);
        selection.precision.get_or_insert(precision);
        for rule in [
            format!("compare.margin={margin}%"),
            "compare.guard=true".to_owned(),
        ] {
            selection.set.push(rule);
        }
        selection.resolve_words()?;
        Ok(run)
    }
}
