//! Criteria and claims of a study, and checks of the names in them.

use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::rule::{Claim, ClaimPart};
use pubgauge_strict_toml::Problem;

use crate::claim::{ClaimFault, claim};
use crate::criterion::{self, criterion};
use crate::file::{NamedSettings, StudyFile, Systems};
use crate::resolve;
use crate::study::Study;
use crate::unknown_name::not_of_study;
use crate::window;

impl Study {
    pub(crate) fn criteria(
        &self,
        base: &StudyFile,
        problems: &mut Vec<Problem>,
    ) -> Vec<CriterionSpec> {
        let mut criteria = Vec::new();
        for (nth, file) in base.criterion.iter().enumerate() {
            let read =
                criterion(file).and_then(|criterion| match window::unknown(&file.figure, base) {
                    None => Ok(criterion),
                    Some(message) => Err(criterion::CriterionFault {
                        key: "figure",
                        message,
                    }),
                });
            match read {
                Ok(criterion) => criteria.push(criterion),
                Err(fault) => {
                    let path = ["criterion", &nth.to_string(), fault.key];
                    problems.push(self.problem(&self.tree, &path, fault.message, None));
                }
            }
        }
        criteria
    }

    pub(crate) fn claims(&self, base: &StudyFile, problems: &mut Vec<Problem>) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for (nth, file) in base.claim.iter().enumerate() {
            let known = claims.iter().any(|claim| claim.id == file.id);
            let read = if known {
                Err(ClaimFault::new(
                    "id",
                    format!("claim `{}` is there twice", file.id),
                ))
            } else {
                claim(file, &base.side).and_then(|claim| {
                    let unknown = |part: &ClaimPart| {
                        let mut rules = part.rules().into_iter();
                        rules.find_map(|rule| window::unknown(&rule.figure, base))
                    };
                    let wrong = claim.parts.iter().find_map(unknown);
                    wrong.map_or(Ok(claim), |message| Err(ClaimFault::new("rule", message)))
                })
            };
            match read {
                Ok(claim) => claims.push(claim),
                Err(fault) => {
                    let number = nth.to_string();
                    let mut path = vec!["claim", number.as_str()];
                    path.extend(fault.path.iter().map(String::as_str));
                    problems.push(self.problem(&self.tree, &path, fault.message, None));
                }
            }
        }
        claims
    }

    /// Checks names that must be unique, and names that must exist.
    pub(crate) fn check_names(
        &self,
        base: &StudyFile,
        systems: &[String],
        problems: &mut Vec<Problem>,
    ) {
        let mut wrong = |path: &[&str], message: String, hint: Option<String>| {
            problems.push(self.problem(&self.tree, path, message, hint));
        };
        if base.name.trim().is_empty() {
            wrong(&["name"], "the study needs a name".into(), None);
        }
        if base.repeats == Some(0) {
            wrong(
                &["repeats"],
                "0 repeats run nothing; the smallest is 1".into(),
                None,
            );
        }
        if base.workload.is_empty() {
            let hint = "add [[workload]] with a name and [[workload.flow]] below it".to_string();
            wrong(&[], "the study has no workload".into(), Some(hint));
        }
        let workloads: Vec<&str> = base.workload.iter().map(|w| w.name.as_str()).collect();
        let variants = base.variants();
        let settings: Vec<&str> = variants.iter().map(NamedSettings::shown_name).collect();
        for (list, names) in [("workload", &workloads), ("settings", &settings)] {
            for (nth, name) in names.iter().enumerate() {
                let number = nth.to_string();
                if name.trim().is_empty() {
                    wrong(
                        &[list, &number, "name"],
                        "a name must not be empty".into(),
                        None,
                    );
                }
                if names[..nth].contains(name) {
                    wrong(
                        &[list, &number, "name"],
                        format!("`{name}` is there twice; names must differ"),
                        None,
                    );
                }
            }
        }
        let flows: Vec<String> = base.workload.iter().flat_map(resolve::flow_names).collect();
        for (nth, criterion) in base.criterion.iter().enumerate() {
            let number = nth.to_string();
            let mut check = |key: &str, name: &Option<String>, names: &[&str]| {
                if let Some(name) = name
                    && !names.contains(&name.as_str())
                {
                    let message = not_of_study(name, &format!("no {key}"), names);
                    wrong(&["criterion", &number, key], message, None);
                }
            };
            check("workload", &criterion.workload, &workloads);
            check("settings", &criterion.settings, &settings);
            let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
            check("flow", &criterion.flow, &flows);
            // A study may name systems that this run leaves out.
            if let Some(Systems::Many(_)) = base.systems {
                let systems: Vec<&str> = systems.iter().map(String::as_str).collect();
                if criterion.system.is_some() && !systems.is_empty() {
                    check("system", &criterion.system, &systems);
                }
            }
        }
    }
}
