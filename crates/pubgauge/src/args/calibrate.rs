//! `pubgauge calibrate`, as the user types it.

use clap::Args;

use super::Output;

fn limits(text: &str) -> Result<(f64, f64), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.parse(), most.parse()) {
        (Ok(least), Ok(most)) if (100.0..=most).contains(&least) && most <= 1e6 => {
            Ok((least, most))
        }
        _ => Err("two rates from 100 to 1000000 are expected, such as 5000..300000".into()),
    }
}

fn noise(text: &str) -> Result<f64, String> {
    let share = text
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share from 0 to 1 is expected, such as 0.03".into())
}

/// `pubgauge calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Only measure; do not store the result for later runs.
    #[arg(long)]
    pub no_store: bool,
    /// Calibrate the search of `pubgauge find` instead: so many searches over simulated systems whose limit
    /// is known; how many intervals hold it.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub search: Option<u32>,
    /// Limits of the simulated systems, messages a second, 100 to 1,000,000.
    #[arg(long, value_name = "LEAST..MOST", default_value = "5000..300000", value_parser = limits,
          requires = "search")]
    pub limits: (f64, f64),
    /// By how much their limit differs from trial to trial: standard deviation, as a share of it, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value = "0.03", value_parser = noise, requires = "search")]
    pub noise: f64,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}
