//! Loads that are shares of limits: the limit, and the load itself.

use pubgauge_figures::search::{Axis, LimitShare};
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown;

use crate::summary::{Cell, WorkloadCells};

/// The axis of a workload's load that is a share of a limit, and the share in words.
pub(crate) fn describe_share(workload: &WorkloadCells<'_>) -> Option<(Axis, String)> {
    let all = || workload.cells.iter().filter_map(limit_share);
    let axis = all().next()?.axis;
    let words =
        unique(all().map(|share| format!("{} of {}", shown::percent(share.share, 9), share.of)));
    let words = format!("{axis} at {}", words.join(" | "));
    Some((axis, words))
}

/// The load of a cell and what it is a share of, in one sentence; `None` if it is no share.
pub(crate) fn sentence(cell: &Cell<'_>) -> Option<String> {
    let share = limit_share(cell)?;
    let end = match (share.share > 1.0, share.at_least) {
        (true, _) => "the upper end of its limit",
        (false, false) => "the lower end of its limit",
        (false, true) => "its limit is that or more",
    };
    Some(format!(
        "{}: {} is {} of what {} carries, {} ({end})",
        cell.label,
        share.axis.format_load(share.load),
        shown::percent(share.share, 9),
        share.of,
        share.axis.format_load(share.end)
    ))
}

fn limit_share<'a>(cell: &Cell<'a>) -> Option<&'a LimitShare> {
    cell.trials
        .iter()
        .find_map(|trial| trial.limit_share.as_ref())
}
