//! The trials that claims are judged by, kept as a table: one row a trial, small enough for version control, and enough to
//! judge them again.
//!
//! A first line, `# ` and JSON, tells the run ([`KeptRun`]); the table below it is CSV. A row has what the rules of its claims
//! asked of the trial: figures, and the records of a series, in full precision.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use pubgauge_claims::{
    Absent, CellKey, Figures, MeasuredRun, Observation, SearchedLimit, is_judged_by,
};
use pubgauge_driver::shortened;
use pubgauge_figures::claim::ClaimOutcome;
use pubgauge_figures::rule::Claim;
use pubgauge_figures::studies::StudyOutcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_of_speed, is_shorter_than_stops, outcome, show_value};

/// Name and version of the format.
pub const FORMAT: &str = "pubgauge-cells/1";

/// The begin of the first line, which readers of CSV take for a comment.
const COMMENT: &str = "# ";

/// Why a text has no trials to judge by.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// No first line with the run.
    #[error(
        "the first line is no `# ` with the run as JSON; expected what `pubgauge report --keep` writes"
    )]
    NoRun,
    /// A first line that cannot be read.
    #[error("the first line: {0}")]
    Run(#[from] serde_json::Error),
    /// Another version's format.
    #[error("its format is {0:?}, and this pubgauge reads {known:?}", known = FORMAT)]
    OtherFormat(String),
    /// A row that cannot be read.
    #[error("{0}")]
    Row(#[from] csv::Error),
    /// A value of a row that is none.
    #[error("row {row}: `{text}` is no {wanted}")]
    Value {
        /// The number of the row below the names of columns, from 1.
        row: usize,
        /// The text there.
        text: String,
        /// The kind of value that stands there otherwise.
        wanted: &'static str,
    },
}

/// The conditions that the cells of a study are measured under, as JSON, by what asks for them: `workload NAME`, `settings NAME`.
pub type Conditions = BTreeMap<String, Value>;

/// The run that the rows are of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptRun {
    /// Name and version of the format: `pubgauge-cells/1`.
    pub format: String,
    /// The study without its claims: name, question, day, machine, systems.
    pub study: StudyOutcome,
    /// The commit that the program was built from; empty where that is not known.
    #[serde(default)]
    pub commit: String,
    /// How its bed differs from the study's, in the words of who kept it: `hosts of twice the size`; empty: it is the study's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bed: String,
    /// The scale at which it was run, if that is not the whole study.
    #[serde(default)]
    pub scale: Option<String>,
    /// Whether what was undecided was repeated in rounds.
    #[serde(default)]
    pub in_rounds: bool,
    /// The rule of each claim in words when the run began.
    #[serde(default)]
    pub claim_rules: BTreeMap<String, String>,
    /// The conditions of its workloads and settings; those of runs that were kept by versions before 0.3 are not known.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}

/// The row of a trial, of a limit that was searched for, or of a cell of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptRow {
    /// The name of the study.
    pub study: String,
    /// The day on which the run began.
    pub day: String,
    /// The commit of the program; empty where that is not known.
    pub commit: String,
    /// `trial`, `limit` or `absent`.
    pub kind: String,
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
    pub workload: String,
    /// Axes of the grid with their values: `payload=64B; rate=200/s`.
    pub axes: String,
    /// The network, in the words of claims, separated by `; `; empty for one host.
    pub bed: String,
    pub repeat: u32,
    /// The round of repeats that it belongs to.
    pub round: u32,
    pub verdict: String,
    /// Why it shows nothing of the system; empty where it does.
    pub void: String,
    /// Whether its system calls were counted, which slows it.
    pub slowed: bool,
    /// Whether a quota stopped one of its hosts.
    pub stopped: bool,
    /// The figures that rules asked for: `delivered-rate=1234.5; telemetry::latency.p90=[1 2 3]`, of a flow after its name; of a limit
    /// `low` and `high`.
    pub figures: String,
    /// Of a cell of which nothing is known: why.
    pub reason: String,
}

/// The text between the members of a list in a cell of the table.
const BETWEEN: &str = "; ";

/// The trials of one run that claims are judged by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    pub run: KeptRun,
    pub rows: Vec<KeptRow>,
    /// The claims about trials that [`Kept::leave_out_changed`] has left out.
    pub(super) aged: BTreeSet<String>,
}

impl Kept {
    /// The trials of a run.
    pub fn new(run: KeptRun, rows: Vec<KeptRow>) -> Kept {
        Kept {
            run,
            rows,
            aged: BTreeSet::new(),
        }
    }

    /// As a text: a line with the run, then the table.
    pub fn to_text(&self) -> String {
        let run = serde_json::to_string(&self.run).expect("a run is plain data");
        let mut table = csv::Writer::from_writer(Vec::new());
        for row in &self.rows {
            table.serialize(row).expect("rows are plain data");
        }
        let table = table.into_inner().expect("written to memory");
        let table = String::from_utf8(table).expect("made of texts");
        format!("{COMMENT}{run}\n{table}")
    }

    /// Reads what [`Kept::to_text`] has written.
    ///
    /// # Errors
    /// Another text, another version's format, or a row that cannot be read.
    pub fn parse(text: &str) -> Result<Kept, KeptError> {
        let (first, table) = text.split_once('\n').ok_or(KeptError::NoRun)?;
        let run = first.strip_prefix(COMMENT).ok_or(KeptError::NoRun)?;
        let run: KeptRun = serde_json::from_str(run)?;
        if run.format != FORMAT {
            return Err(KeptError::OtherFormat(run.format));
        }
        let mut table = csv::Reader::from_reader(table.as_bytes());
        let rows = table.deserialize().collect::<Result<Vec<KeptRow>, _>>()?;
        for (row, number) in rows.iter().zip(1..) {
            read_asked(row, number)?;
        }
        Ok(Kept::new(run, rows))
    }

    /// Judges claims by these trials.
    pub fn judge(&self, claims: &[Claim]) -> Vec<ClaimOutcome> {
        self.as_run(|run| claims.iter().map(|claim| outcome(claim, run)).collect())
    }

    /// The day on which the run began: `2026-11-30`.
    pub fn day(&self) -> &str {
        self.run.study.started.get(..10).unwrap_or_default()
    }

    /// Its name among the runs of a study: its day, and its bed where that is not the study's.
    pub fn label(&self) -> String {
        match self.run.bed.as_str() {
            "" => self.day().to_owned(),
            bed => format!("{}, {}", self.day(), shortened(bed)),
        }
    }

    /// Whether its bed is the study's.
    pub fn is_on_own_bed(&self) -> bool {
        self.run.bed.is_empty()
    }

    /// Whether the run was to judge a claim: it began with it, one of the rows is a trial, a limit or a known lack that
    /// the claim is about, and none of these was left out. A run of some claims (`--claim`) has cells of others by chance.
    pub fn is_about(&self, claim: &Claim) -> bool {
        let began = &self.run.claim_rules;
        let of_run = began.is_empty() || began.contains_key(&claim.id);
        let aged = self.aged.contains(&claim.id);
        of_run && !aged && self.rows.iter().any(|row| is_judged_by(claim, &row.cell()))
    }

    fn as_run<T>(&self, of: impl FnOnce(&MeasuredRun<'_>) -> T) -> T {
        let figures: Vec<OfRow> = (self.rows.iter().zip(1..))
            .map(|(row, number)| OfRow {
                asked: read_asked(row, number).unwrap_or_default(),
                slowed: row.slowed,
                stopped: row.stopped,
            })
            .collect();
        let of_kind = |kind: &'static str| {
            let rows = self.rows.iter().zip(&figures);
            rows.filter(move |(row, _)| row.kind == kind)
        };
        let trials = of_kind(TRIAL).map(|(row, figures)| Observation {
            cell: row.cell(),
            repeat: row.repeat,
            round: row.round,
            verdict: row.verdict.clone(),
            void: Some(row.void.clone()).filter(|why| !why.is_empty()),
            figures,
        });
        let end = |figures: &OfRow, name: &str, or: f64| figures.figure(None, name).unwrap_or(or);
        let limits = of_kind(LIMIT).map(|(row, figures)| SearchedLimit {
            cell: row.cell(),
            low: end(figures, "low", 0.0),
            high: end(figures, "high", f64::INFINITY),
        });
        let absent = of_kind(ABSENT).map(|(row, _)| Absent {
            cell: row.cell(),
            reason: row.reason.clone(),
        });
        let networks = self.rows.iter().filter(|row| !row.bed.is_empty());
        let networks = networks.map(|row| {
            let words = row.bed.split(BETWEEN).map(str::to_owned);
            (row.cell(), words.collect())
        });
        // A run that was cut off may lack other cells than those that its scale leaves out.
        let whole = self.run.study.trials >= self.run.study.planned_trials;
        of(&MeasuredRun {
            trials: trials.collect(),
            limits: limits.collect(),
            absent: absent.collect(),
            networks: networks.collect(),
            in_rounds: self.run.in_rounds,
            scale: self.run.scale.clone().filter(|_| whole),
            day: Some(self.day().to_owned()).filter(|day| !day.is_empty()),
            claim_rules: self.run.claim_rules.clone(),
            show: &show_value,
        })
    }
}

const TRIAL: &str = "trial";
const LIMIT: &str = "limit";
pub(super) const ABSENT: &str = "absent";

impl KeptRow {
    fn of_cell(kind: &str, cell: &CellKey, run: &MeasuredRun<'_>) -> KeptRow {
        let axes = cell.axes.iter();
        let axes: Vec<String> = axes
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let bed = run.networks.get(cell).map(|words| words.join(BETWEEN));
        KeptRow {
            day: run.day.clone().unwrap_or_default(),
            kind: kind.to_owned(),
            system: cell.system.clone(),
            settings: cell.settings.clone(),
            workload: cell.workload.clone(),
            axes: axes.join(BETWEEN),
            bed: bed.unwrap_or_default(),
            ..KeptRow::default()
        }
    }

    /// The names of the conditions that it was measured under.
    pub fn conditions(&self) -> [String; 2] {
        let (workload, settings) = (&self.workload, &self.settings);
        [
            format!("workload {workload}"),
            format!("settings {settings}"),
        ]
    }

    pub(super) fn cell(&self) -> CellKey {
        let axes = self
            .axes
            .split(BETWEEN)
            .filter_map(|axis| axis.split_once('='));
        CellKey {
            system: self.system.clone(),
            settings: self.settings.clone(),
            workload: self.workload.clone(),
            axes: axes
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }
}

/// The figures that rules asked of a trial: the name of one with its value, or that of a series with its records.
#[derive(Clone, Debug, Default, PartialEq)]
struct Asked {
    values: BTreeMap<String, f64>,
    records: BTreeMap<String, Vec<f64>>,
}

/// The name of a figure, of a flow after the flow's.
fn asked_name(flow: Option<&str>, name: &str) -> String {
    match flow {
        Some(flow) => format!("{flow}::{name}"),
        None => name.to_owned(),
    }
}

impl Asked {
    fn to_text(&self) -> String {
        let values = self
            .values
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let records = self.records.iter().map(|(name, records)| {
            let records: Vec<String> = records.iter().map(f64::to_string).collect();
            format!("{name}=[{}]", records.join(" "))
        });
        values.chain(records).collect::<Vec<_>>().join(BETWEEN)
    }
}

/// The figures that a row has.
fn read_asked(row: &KeptRow, number: usize) -> Result<Asked, KeptError> {
    let wrong = |text: &str, wanted| KeptError::Value {
        row: number,
        text: shortened(text),
        wanted,
    };
    let value = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| !number.is_nan());
        number.ok_or_else(|| wrong(text, "number"))
    };
    let mut asked = Asked::default();
    for one in row.figures.split(BETWEEN).filter(|one| !one.is_empty()) {
        let (name, said) = one
            .split_once('=')
            .ok_or_else(|| wrong(one, "figure with its value"))?;
        let records = said
            .strip_prefix('[')
            .and_then(|said| said.strip_suffix(']'));
        match records {
            Some(records) => {
                let records = records
                    .split_whitespace()
                    .map(value)
                    .collect::<Result<_, _>>()?;
                asked.records.insert(name.to_owned(), records);
            }
            None => {
                asked.values.insert(name.to_owned(), value(said)?);
            }
        }
    }
    Ok(asked)
}

/// The figures of a row.
struct OfRow {
    asked: Asked,
    slowed: bool,
    stopped: bool,
}

impl Figures for OfRow {
    fn figure(&self, flow: Option<&str>, name: &str) -> Option<f64> {
        self.asked.values.get(&asked_name(flow, name)).copied()
    }

    fn windows(&self, flow: Option<&str>, name: &str) -> Vec<f64> {
        let records = self.asked.records.get(&asked_name(flow, name));
        records.cloned().unwrap_or_default()
    }

    fn is_slowed(&self, name: &str) -> bool {
        self.slowed && is_of_speed(name)
    }

    fn is_stretched(&self, name: &str, value: f64) -> bool {
        self.stopped && is_shorter_than_stops(name, value)
    }
}

/// The figures of a trial, which writes down what it is asked.
struct Asking<'a> {
    of: &'a dyn Figures,
    asked: RefCell<Asked>,
}

impl Figures for Asking<'_> {
    fn figure(&self, flow: Option<&str>, name: &str) -> Option<f64> {
        let value = self.of.figure(flow, name)?;
        let mut asked = self.asked.borrow_mut();
        asked.values.insert(asked_name(flow, name), value);
        Some(value)
    }

    fn windows(&self, flow: Option<&str>, name: &str) -> Vec<f64> {
        let records = self.of.windows(flow, name);
        if !records.is_empty() {
            let mut asked = self.asked.borrow_mut();
            asked
                .records
                .insert(asked_name(flow, name), records.clone());
        }
        records
    }

    fn is_slowed(&self, name: &str) -> bool {
        self.of.is_slowed(name)
    }

    fn is_stretched(&self, name: &str, value: f64) -> bool {
        self.of.is_stretched(name, value)
    }
}

/// A figure that counting system calls changes, and a time that is shorter than the stops of a quota: by the answers about
/// these a trial shows whether it was slowed, and whether it was stopped.
const OF_SPEED: &str = "delivered-rate";
const SHORT_TIME: (&str, f64) = ("latency.p50", 1.0);

/// The claims judged, and of each cell that they are about what their rules asked of its trials.
pub(super) fn judge_and_keep(
    run: &MeasuredRun<'_>,
    claims: &[Claim],
) -> (Vec<ClaimOutcome>, Vec<KeptRow>) {
    let asking: Vec<Asking<'_>> = (run.trials.iter())
        .map(|trial| Asking {
            of: trial.figures,
            asked: RefCell::default(),
        })
        .collect();
    let trials = run.trials.iter().zip(&asking);
    let trials = trials.map(|(trial, figures)| Observation {
        cell: trial.cell.clone(),
        repeat: trial.repeat,
        round: trial.round,
        verdict: trial.verdict.clone(),
        void: trial.void.clone(),
        figures,
    });
    let asked = MeasuredRun {
        trials: trials.collect(),
        limits: run.limits.clone(),
        absent: run.absent.clone(),
        networks: run.networks.clone(),
        in_rounds: run.in_rounds,
        scale: run.scale.clone(),
        day: run.day.clone(),
        claim_rules: run.claim_rules.clone(),
        show: run.show,
    };
    let outcomes = claims.iter().map(|claim| outcome(claim, &asked)).collect();
    let is_kept = |cell: &CellKey| claims.iter().any(|claim| is_judged_by(claim, cell));
    let trials = run.trials.iter().zip(&asking);
    let trials = trials.filter(|(trial, _)| is_kept(&trial.cell));
    let trials = trials.map(|(trial, asking)| KeptRow {
        repeat: trial.repeat,
        round: trial.round,
        verdict: trial.verdict.clone(),
        void: trial.void.clone().unwrap_or_default(),
        slowed: trial.figures.is_slowed(OF_SPEED),
        stopped: trial.figures.is_stretched(SHORT_TIME.0, SHORT_TIME.1),
        figures: asking.asked.borrow().to_text(),
        ..KeptRow::of_cell(TRIAL, &trial.cell, run)
    });
    let limits = run.limits.iter().filter(|limit| is_kept(&limit.cell));
    let limits = limits.map(|limit| {
        let ends = [("low", limit.low), ("high", limit.high)];
        let known = ends.into_iter().filter(|(_, end)| end.is_finite());
        let asked = Asked {
            values: known.map(|(name, end)| (name.to_owned(), end)).collect(),
            ..Asked::default()
        };
        KeptRow {
            figures: asked.to_text(),
            ..KeptRow::of_cell(LIMIT, &limit.cell, run)
        }
    });
    let absent = run.absent.iter().filter(|absent| is_kept(&absent.cell));
    let absent = absent.map(|absent| KeptRow {
        reason: absent.reason.clone(),
        ..KeptRow::of_cell(ABSENT, &absent.cell, run)
    });
    (outcomes, trials.chain(limits).chain(absent).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(figures: &str) -> Kept {
        let run = KeptRun {
            format: FORMAT.into(),
            ..KeptRun::default()
        };
        let row = KeptRow {
            kind: TRIAL.into(),
            figures: figures.into(),
            ..KeptRow::default()
        };
        Kept::new(run, vec![row])
    }

    #[test]
    fn another_text_is_refused_with_its_place() {
        let said = |text: &str| Kept::parse(text).unwrap_err().to_string();
        for none in ["", "study,day\n", "kang2020\nstudy,day\n"] {
            assert!(said(none).starts_with("the first line is no"), "{none}");
        }
        assert!(said("# {}\nstudy\n").starts_with("the first line: missing field"));
        let other = kept("").to_text().replace(FORMAT, "pubgauge-cells/9");
        assert!(said(&other).starts_with("its format is \"pubgauge-cells/9\""));
        let lacking = kept("").to_text().replace("verdict", "verdct");
        assert!(said(&lacking).contains("missing field `verdict`"));
        for (figures, wanted) in [
            ("lost", "row 1: `lost` is no figure with its value"),
            ("lost=none", "row 1: `none` is no number"),
            ("latency.p90=[1 x]", "row 1: `x` is no number"),
        ] {
            assert_eq!(said(&kept(figures).to_text()), wanted);
        }
    }

    #[test]
    fn a_run_of_some_claims_is_about_these_alone() {
        let mut some = kept("");
        some.rows[0].system = "a".into();
        let mut claim = Claim {
            id: "K1".into(),
            ..Claim::default()
        };
        assert!(!some.is_about(&claim), "a claim without rules has no cells");
        claim.parts = vec![pubgauge_figures::rule::ClaimPart {
            rule: Some(pubgauge_figures::rule::ClaimRule {
                figure: "lost".into(),
                filter: Default::default(),
                along: None,
                points: Default::default(),
                sides: vec![pubgauge_figures::rule::Side {
                    name: "a".into(),
                    choice: None,
                    alternatives: vec![BTreeMap::from([("system".into(), vec!["a".into()])])],
                }],
                against: Vec::new(),
                gap: false,
                judge: pubgauge_figures::rule::Judge::Equal(0.1),
                wide: false,
                blocks: None,
                paired: false,
                margin: 0.0,
                verdicts: Vec::new(),
                leave_out: Vec::new(),
            }),
            ..Default::default()
        }];
        assert!(some.is_about(&claim));
        some.run.claim_rules = BTreeMap::from([("K2".into(), String::new())]);
        assert!(!some.is_about(&claim), "the run was to judge another one");
    }

    proptest! {
        /// Figures and records are read as they were written, to the last bit.
        #[test]
        fn figures_keep_their_value(
            value in any::<f64>().prop_filter("no number", |v| !v.is_nan()),
            records in prop::collection::vec(-1e18..1e18f64, 1..12),
        ) {
            let asked = Asked {
                values: BTreeMap::from([(asked_name(Some("telemetry"), "latency.p90"), value)]),
                records: BTreeMap::from([("delivered-rate".to_owned(), records)]),
            };
            let row = KeptRow { figures: asked.to_text(), ..KeptRow::default() };
            prop_assert_eq!(read_asked(&row, 1).unwrap(), asked);
        }
    }
}
