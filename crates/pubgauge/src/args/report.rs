//! `pubgauge report`, as the user types it.

use std::path::PathBuf;

use clap::Args;
use pubgauge_command::options::Output;

use super::GateArgs;

const REPORT_EXAMPLES: &str = "\
Examples:
  pubgauge report results/first-look     the answer and the page again
  pubgauge report results/first-look -v  with every figure behind it
  pubgauge report results/gate-*         what changed from run to run
  pubgauge report results/k --claims studies/papers/kang2020.toml
  pubgauge report --claims kang2020.toml --from kang2020.csv";

/// `pubgauge report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct ReportArgs {
    /// Folder of a run, or one with a run in each folder in it. Folders of several runs make one page of each figure over
    /// the runs in the order of time, with the changes beyond noise marked.
    #[arg(required_unless_present = "from", value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Judge the run by the claims of this study, as they are now, and store the outcomes. Nothing
    /// is measured. The study has the name of the one that was run.
    #[arg(long, value_name = "STUDY")]
    pub claims: Option<PathBuf>,
    /// With --claims: write the trials that the claims are judged by, a row each, to this file (CSV), which is enough to judge
    /// them again.
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "claims")]
    pub keep: Option<PathBuf>,
    /// With --keep: how the bed of the run differs from the study's, such as "hosts of twice the size". Judged together with runs
    /// on the study's bed, it shows whether an outcome depends on that.
    #[arg(hide_short_help = true, long, value_name = "TEXT", requires = "keep")]
    pub bed: Option<String>,
    /// With --claims, in place of a folder: judge by the trials in this file, as --keep has written it; repeat it for runs of
    /// several days, which must agree.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        requires = "claims",
        conflicts_with_all = ["dirs", "keep", "figure", "out"]
    )]
    pub from: Vec<PathBuf>,
    /// Of several runs: only these figures, such as latency.p99. Fewer figures have narrower intervals.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FIGURE,...",
        value_delimiter = ','
    )]
    pub figure: Vec<String>,
    /// Of several runs: change up to which two figures are the same.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "PERCENT",
        default_value = "5%"
    )]
    pub margin: String,
    /// Of several runs: the page [default: trend.html beside the first folder].
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Options of a gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// Show the figures behind the answer as well: the table of all rows, and every reason of a verdict.
    #[arg(short, long)]
    pub verbose: bool,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}
