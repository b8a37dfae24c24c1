//! Contradictions in a study, and where they are.

use crate::file::StudyFile;

/// A contradiction in a workload, and the key to point at.
#[derive(Clone, Debug)]
pub(crate) struct Clash {
    pub(crate) path: Vec<String>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Clash {
    /// Points into the workload if the key is set there.
    pub(crate) fn of_workload(mut self, file: &StudyFile, nth: usize) -> Clash {
        if file.workload[nth].topology.is_given() {
            let place = ["workload".to_owned(), nth.to_string()];
            self.path.splice(0..0, place);
        }
        self
    }
}

/// Collects clashes below one place of the file.
pub(crate) struct Clashes<'a> {
    base: Vec<String>,
    pub(crate) found: &'a mut Vec<Clash>,
}

impl Clashes<'_> {
    pub(crate) fn new<'a>(base: &[&str], found: &'a mut Vec<Clash>) -> Clashes<'a> {
        Clashes {
            base: base.iter().map(|step| step.to_string()).collect(),
            found,
        }
    }

    pub(crate) fn below(&mut self, steps: &[&str]) -> Clashes<'_> {
        let mut base = self.base.clone();
        base.extend(steps.iter().map(|step| step.to_string()));
        Clashes {
            base,
            found: self.found,
        }
    }

    pub(crate) fn add(&mut self, key: &str, message: impl Into<String>) {
        self.hinted(key, message, None);
    }

    pub(crate) fn hinted(&mut self, key: &str, message: impl Into<String>, hint: Option<String>) {
        let mut path = self.base.clone();
        path.extend(key.split('.').filter(|k| !k.is_empty()).map(str::to_string));
        self.found.push(Clash {
            path,
            message: message.into(),
            hint,
        });
    }
}
