//! Kept trials that were measured under other conditions than their study asks for now.

use std::collections::BTreeMap;

use pubgauge_claims::is_judged_by;
use pubgauge_driver::shortened;
use pubgauge_figures::rule::Claim;
use pubgauge_results::first_difference;
use serde_json::Value;

use super::kept::{ABSENT, Conditions, Kept, KeptRow};

impl Kept {
    /// Leaves out the trials whose conditions are not those of `now`: nothing is known of their cells, for the first difference,
    /// and the run is about no claim of these. Where a run did not note a condition, it counts as unchanged. A run on another
    /// bed than the study's keeps all, since it differs on purpose.
    pub fn leave_out_changed(&mut self, claims: &[Claim], now: &Conditions) {
        if !self.is_on_own_bed() {
            return;
        }
        let then = self.run.conditions.iter();
        let changes: BTreeMap<&String, String> = then
            .filter_map(|(name, then)| {
                let change = first_difference(name, then, now.get(name).unwrap_or(&Value::Null))?;
                Some((name, shortened(change)))
            })
            .collect();
        for row in &mut self.rows {
            let change = row.conditions().iter().find_map(|name| changes.get(name));
            let Some(change) = change else {
                continue;
            };
            let about = claims
                .iter()
                .filter(|claim| is_judged_by(claim, &row.cell()));
            self.aged.extend(about.map(|claim| claim.id.clone()));
            *row = KeptRow {
                kind: ABSENT.to_owned(),
                reason: format!("it was measured before its study was changed: {change}"),
                verdict: String::new(),
                void: String::new(),
                figures: String::new(),
                ..std::mem::take(row)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pubgauge_figures::rule::{ClaimPart, ClaimRule, Judge, Side};
    use serde_json::json;

    use super::*;
    use crate::claims::kept::KeptRun;

    fn row(workload: &str, figures: &str) -> KeptRow {
        KeptRow {
            kind: "trial".into(),
            system: "a".into(),
            settings: "qos1".into(),
            workload: workload.into(),
            verdict: "valid".into(),
            figures: figures.into(),
            ..KeptRow::default()
        }
    }

    /// A claim about the rate of one workload.
    fn claim(id: &str, workload: &str) -> Claim {
        let cells = [("workload".to_owned(), vec![workload.to_owned()])];
        let rule = ClaimRule {
            figure: "delivered-rate".into(),
            filter: Default::default(),
            along: None,
            points: Default::default(),
            sides: vec![Side {
                name: workload.into(),
                choice: None,
                alternatives: vec![BTreeMap::from(cells)],
            }],
            against: Vec::new(),
            gap: false,
            judge: Judge::Equal(0.1),
            wide: false,
            blocks: None,
            paired: false,
            margin: 0.0,
            verdicts: Vec::new(),
            leave_out: Vec::new(),
        };
        Claim {
            id: id.into(),
            parts: vec![ClaimPart {
                rule: Some(rule),
                ..ClaimPart::default()
            }],
            ..Claim::default()
        }
    }

    fn conditions(window: u32) -> Conditions {
        Conditions::from([
            (
                "workload cars".into(),
                json!({ "flow": [{ "rate": "max" }] }),
            ),
            (
                "workload cameras".into(),
                json!({ "flow": [{ "window": window }] }),
            ),
            (
                "settings qos1".into(),
                json!({ "reliability": "at-least-once" }),
            ),
        ])
    }

    fn kept() -> Kept {
        let run = KeptRun {
            conditions: conditions(160),
            ..KeptRun::default()
        };
        let rows = [
            row("cars", "delivered-rate=7"),
            row("cameras", "delivered-rate=5"),
        ];
        Kept::new(run, rows.to_vec())
    }

    #[test]
    fn trials_of_a_changed_workload_are_left_out_with_the_change() {
        let claims = [claim("C1", "cars"), claim("C2", "cameras")];
        let mut run = kept();
        run.leave_out_changed(&claims, &conditions(160));
        assert_eq!(run, kept());

        run.leave_out_changed(&claims, &conditions(40));
        assert_eq!(run.rows[0], kept().rows[0]);
        assert_eq!((&*run.rows[1].kind, &*run.rows[1].figures), ("absent", ""));
        let change = "workload cameras.flow[0].window was 160 and is 40 now";
        assert!(
            run.rows[1].reason.ends_with(change),
            "{}",
            run.rows[1].reason
        );
        assert_eq!(run.aged, BTreeSet::from(["C2".to_owned()]));
        assert!(run.is_about(&claims[0]) && !run.is_about(&claims[1]));
    }

    #[test]
    fn changed_settings_leave_out_all_their_trials() {
        let mut run = kept();
        let mut now = conditions(160);
        now.remove("settings qos1");
        run.leave_out_changed(&[], &now);
        assert!(run.rows.iter().all(|row| row.kind == "absent"));
    }

    #[test]
    fn a_run_without_notes_or_on_another_bed_keeps_all() {
        let mut unnoted = kept();
        unnoted.run.conditions.clear();
        let mut elsewhere = kept();
        elsewhere.run.bed = "queues of 10 ms".into();
        for run in [unnoted, elsewhere] {
            let mut left = run.clone();
            left.leave_out_changed(&[claim("C2", "cameras")], &conditions(40));
            assert_eq!(left, run);
        }
    }
}
