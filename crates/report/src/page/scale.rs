//! Bars of the matrix: how much of what is allowed each row uses.

use maud::{Markup, html};
use pubgauge_quantities::shown;

use crate::answers::RowAnswer;

/// The log scale of bars that show how much of what is allowed is used: from below the least to the limit, or to what exceeds it.
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// That of all rows; `None` if none has a figure with a limit.
    pub(super) fn of_rows<'r>(rows: impl Iterator<Item = &'r RowAnswer>) -> Option<Scale> {
        let used: Vec<f64> = rows.filter_map(|row| row.used).collect();
        let least = used.iter().copied().reduce(f64::min)?;
        Some(Scale {
            low: 10f64.powf(least.min(0.5).log10().floor()),
            high: used.iter().copied().fold(1.0, f64::max),
        })
    }

    /// The place of a share, in percent of the scale.
    fn percent_of(&self, used: f64) -> f64 {
        100.0 * (used / self.low).ln() / (self.high / self.low).ln()
    }

    pub(super) fn bar(&self, used: f64) -> Markup {
        let width = |used| format!("{:.1}%", self.percent_of(used));
        let class = if used > 1.0 { "bar over" } else { "bar" };
        html! {
            span class=(class) aria-hidden="true" {
                i style={ "width:" (width(used)) } {}
                b style={ "left:" (width(1.0)) } {}
            }
        }
    }

    /// The sentence that explains the bars.
    pub(super) fn describe(&self) -> String {
        format!(
            "Bars: how much of what is allowed is used, on a log scale from {} of it; the upright line is the limit.",
            shown::share(self.low)
        )
    }
}
