//! Studies that search for a limit: one value of a flow is "find".

use pubgauge_strict_toml::{InvalidInput, Problem};
use pubgauge_workload::SECOND;

use crate::file::SearchFile;
use crate::places::FIND;
use crate::study::Study;
use pubgauge_search::Axis;

/// Default length of a search's trials, ns.
pub(crate) const SHORT: u64 = 5 * SECOND;
/// Default length of the confirming trial, in seconds.
const LONG_S: u64 = 45;

/// How the searches of a plan proceed. A trial that stands for a search has the value from which
/// the search begins in place of the one that is searched for.
#[derive(Clone, Copy, Debug)]
pub struct SearchPlan {
    /// Width of the interval at which a search ends, as a share of its lower end.
    pub width: f64,
    /// Most trials of a search.
    pub trials: u32,
    /// Longest time of a search, ns.
    pub budget: u64,
    /// Length of the confirming trial's measurement, ns.
    pub long: u64,
}

impl Study {
    /// Puts "find" at the place of a flow's value, as `pubgauge find --axis` asks, unless the study
    /// searches already.
    ///
    /// # Errors
    /// If there is no flow.
    pub fn search_for(&mut self, axis: Axis) -> Result<(), InvalidInput> {
        if self.seeks() {
            Ok(())
        } else {
            self.apply_flag("find", axis.name(), FIND)
        }
    }

    /// How searches proceed; errors in that, and in comparisons beside them, are added to
    /// `problems`.
    pub(crate) fn search(
        &self,
        rules: &SearchFile,
        problems: &mut Vec<Problem>,
    ) -> Option<SearchPlan> {
        if !self.seeks() {
            return None;
        }
        if let Some(entry) = self.tree.get("compare").or(self.tree.get("ablation")) {
            let hint = "compare limits by their intervals, or take \"find\" out of the workload";
            problems.push(self.sources.problem(
                Some(entry.span.clone()),
                "a study that searches for a limit compares nothing else",
                Some(hint.to_owned()),
            ));
        }
        let mut wrong = |key: &str, message: &str| {
            let at = self.tree.locate(&["search", key]);
            problems.push(self.sources.problem(Some(at), message.to_owned(), None));
        };
        if rules
            .width
            .is_some_and(|width| !(0.02..=1.0).contains(&width))
        {
            wrong("width", "`width` is a share from 0.02 to 1, such as 0.1");
        }
        if rules
            .trials
            .is_some_and(|trials| !(6..=1000).contains(&trials))
        {
            wrong("trials", "`trials` is a number from 6 to 1000");
        }
        if rules.confirm.is_some_and(|span| span.0 < SECOND) {
            wrong("confirm", "`confirm` is 1s at the least");
        }
        Some(SearchPlan {
            width: rules.width.unwrap_or(0.1),
            trials: rules.trials.unwrap_or(30),
            budget: rules.budget.map_or(480 * SECOND, |span| span.0),
            long: rules.confirm.map_or(LONG_S * SECOND, |span| span.0),
        })
    }
}
