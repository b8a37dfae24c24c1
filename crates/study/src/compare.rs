//! Studies that compare their cells with each other.

use pubgauge_strict_toml::{InvalidInput, Problem};
use pubgauge_workload::SECOND;

use crate::file::{NamedSettings, StudyFile, TrialOrder};
use crate::study::Study;
use crate::window;

/// Default change up to which two figures count as the same, as a share.
const MARGIN: f64 = 0.05;
/// Default for the most rounds.
const PAIRS: u32 = 100;
/// Default time after which no round begins, ns.
const BUDGET: u64 = 1800 * SECOND;

/// How the cells of a plan are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparePlan {
    /// Half-width of the interval at which a comparison is precise enough, as a share; absent: as many rounds
    /// as the plan has repeats.
    pub precision: Option<f64>,
    /// Figures that decide; if empty, they depend on the arrivals.
    pub figures: Vec<String>,
    /// Change up to which two figures count as the same, as a share.
    pub margin: f64,
    /// Whether a figure that is worse by more than the margin fails the run.
    pub guard: bool,
    /// Rounds at most.
    pub pairs: u32,
    /// Time after which no round begins, ns.
    pub budget: u64,
    /// Whether the order within a round is random.
    pub shuffled: bool,
    /// Name of the settings that each change is compared with, system by system; absent where the first cell
    /// is compared with all others.
    pub ablation: Option<String>,
}

impl StudyFile {
    /// All settings to run: the variants, or the base and the base with each change.
    pub(crate) fn variants(&self) -> Vec<NamedSettings> {
        let mut variants = if self.settings.is_empty() {
            vec![NamedSettings::default()]
        } else {
            self.settings.clone()
        };
        let base = variants[0].clone();
        variants.extend(self.ablation.iter().map(|change| NamedSettings {
            name: Some(change.shown_name().to_owned()),
            profile: change.profile.clone().or(base.profile.clone()),
            ask: base.ask.overridden_by(&change.ask),
        }));
        variants
    }
}

impl Study {
    /// How cells are compared, if the study asks for it; errors go to `problems`.
    pub(crate) fn compare(
        &self,
        base: &StudyFile,
        repeats: Option<u32>,
        problems: &mut Vec<Problem>,
    ) -> Option<ComparePlan> {
        let ablation = !base.ablation.is_empty();
        if !ablation && self.tree.get("compare").is_none() {
            return None;
        }
        let file = &base.compare;
        let mut wrong = |path: &[&str], message: &str, hint: Option<&str>| {
            let at = Some(self.tree.locate(path));
            let hint = hint.map(str::to_owned);
            problems.push(self.sources.problem(at, message.to_owned(), hint));
        };
        for (nth, change) in base.ablation.iter().enumerate() {
            let number = nth.to_string();
            if change.name.is_none() {
                wrong(
                    &["ablation", &number],
                    "a change needs a name",
                    Some("add `name`"),
                );
            }
            let none = NamedSettings {
                name: change.name.clone(),
                ..NamedSettings::default()
            };
            if *change == none {
                let hint =
                    "add the setting that it changes, such as `reliability = \"best-effort\"`";
                wrong(&["ablation", &number], "this changes nothing", Some(hint));
            }
        }
        if ablation && base.settings.len() > 1 {
            let hint = "leave one; what differs in the others becomes an [[ablation]]";
            wrong(&["settings"], "an ablation has one base", Some(hint));
        }
        let precision = file.precision.map(|percent| percent.0);
        if precision.is_some_and(|share| !(0.001..=0.5).contains(&share)) {
            let message = "`precision` is a percentage from 0.1% to 50%, such as \"3%\"";
            wrong(&["compare", "precision"], message, None);
        }
        if file.pairs.is_some_and(|pairs| !(6..=1000).contains(&pairs)) {
            wrong(
                &["compare", "pairs"],
                "`pairs` is a number from 6 to 1000",
                None,
            );
        }
        for (nth, figure) in file.figures.iter().enumerate() {
            if let Some(message) = window::unknown(figure, base) {
                wrong(&["compare", "figures", &nth.to_string()], &message, None);
            }
        }
        if file.precision.is_none() {
            for key in ["pairs", "budget"] {
                if self
                    .tree
                    .get("compare")
                    .is_some_and(|c| c.node.get(key).is_some())
                {
                    let message = format!("`{key}` bounds the rounds of a study with a precision");
                    let hint = "add `precision = \"3%\"` to [compare], or set `repeats`";
                    wrong(&["compare", key], &message, Some(hint));
                }
            }
        }
        if precision.is_some() && repeats.is_some() {
            let message = "with a precision the run decides how often each cell is measured";
            let hint = "leave it out; `compare.pairs` is the most, `compare.budget` the longest";
            problems.extend(InvalidInput::plain("--repeats", message, Some(hint)).problems);
        }
        Some(ComparePlan {
            precision,
            figures: file.figures.clone(),
            margin: file.margin.map_or(MARGIN, |percent| percent.0),
            guard: file.guard.unwrap_or_default(),
            pairs: file.pairs.unwrap_or(PAIRS),
            budget: file.budget.map_or(BUDGET, |span| span.0),
            shuffled: base.order != Some(TrialOrder::Listed),
            ablation: ablation.then(|| base.variants()[0].shown_name().to_owned()),
        })
    }
}
