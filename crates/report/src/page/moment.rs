//! From an answer to the second that decided it.

use maud::{Markup, html};

use super::content::Page;
use crate::charts::series::wrong_second;

/// The second in which a row went wrong, on the chart of its course over time.
pub(super) struct Moment<'p> {
    figure: String,
    row: &'p str,
    pub(super) second: f64,
    pub(super) repeat: u32,
}

pub(super) fn moment<'p>(page: &'p Page<'_>, at: usize, nth: usize) -> Option<Moment<'p>> {
    let cell = &page.summary.workloads[at].cells[nth];
    let trial = page.answers[at].rows[nth].refusing_trial(cell)?;
    Some(Moment {
        figure: format!("w{}-series", at + 1),
        row: &cell.label,
        second: wrong_second(trial)?,
        repeat: trial.repeat,
    })
}

impl Moment<'_> {
    pub(super) fn link(&self, words: Markup) -> Markup {
        html! {
            a class="moment" href={ "#" (self.figure) } data-row=(self.row) data-at=(self.second)
                title={ "second " (self.second) " of repeat " (self.repeat) ": its course over time" } { (words) }
        }
    }
}
