//! How a trace differs from its files, and what they say that is not taken: counted, each by its cause.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Most columns, and most files that are cut short, which are named.
const MOST_NAMED: usize = 16;

/// Longest name of a column that is kept.
const LONGEST_NAME: usize = 60;

/// How a trace differs from its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remarks {
    /// Readings that `drop-repeats` or `on-change` left out.
    pub unchanged: u64,
    /// Objects that `skip-incomplete` left out, because they lack a field.
    pub incomplete: u64,
    /// Payloads that are not taken, because their length is not the recorded size.
    pub other_length: u64,
    /// Files that end in the middle of a record.
    pub cut: Vec<CutFile>,
    /// Columns, or fields of objects, that nothing is taken from.
    pub ignored: Vec<String>,
    /// Further ones that are not named.
    pub more_ignored: bool,
    /// Local times that clocks showed twice, which were taken as the first and as the second.
    pub twice: [u64; 2],
    /// Readings that were before one above them, and were sorted.
    pub out_of_order: u64,
    /// How far the furthest of them was before the latest reading above it, ns.
    pub furthest_ns: u64,
    /// The topic stands for the device, which the recording does not name.
    pub device_is_topic: bool,
}

/// A file that ends in the middle of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutFile {
    /// Stored by its name alone: the folder is one of this machine.
    #[serde(serialize_with = "name_alone")]
    pub file: PathBuf,
    /// The line at which the record that is not whole begins, or after which nothing can be read.
    pub line: u64,
    /// The part that ends there: the gzip file, the list, the record.
    pub what: &'static str,
}

fn name_alone<S: Serializer>(file: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let name = file.file_name().unwrap_or_default();
    serializer.serialize_str(&name.to_string_lossy())
}

impl Remarks {
    /// Readings that were left out, for whatever cause.
    pub fn left_out(&self) -> u64 {
        self.unchanged + self.incomplete
    }

    /// Notes that a file ends in the middle.
    pub(super) fn add_cut(&mut self, file: &Path, line: u64, what: &'static str) {
        if self.cut.len() < MOST_NAMED {
            self.cut.push(CutFile {
                file: file.to_path_buf(),
                line,
                what,
            });
        }
    }

    /// Notes that nothing is taken from a column.
    pub(super) fn add_ignored(&mut self, name: &str) {
        let name: String = name.chars().take(LONGEST_NAME).collect();
        if self.ignored.contains(&name) {
            return;
        }
        if self.ignored.len() < MOST_NAMED {
            self.ignored.push(name);
        } else {
            self.more_ignored = true;
        }
    }

    /// One sentence for each.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        for cut in &self.cut {
            all.push(format!(
                "{}: {} ends in the middle, at line {}; all that is whole before that is kept",
                cut.file.display(),
                cut.what,
                cut.line
            ));
        }
        let mut left_out = Vec::new();
        if self.unchanged > 0 {
            left_out.push(format!("{} as unchanged", self.unchanged));
        }
        if self.incomplete > 0 {
            left_out.push(format!("{} because they lack a field", self.incomplete));
        }
        if !left_out.is_empty() {
            all.push(format!("left out: {}", left_out.join(", ")));
        }
        if self.other_length > 0 {
            all.push(format!(
                "{} payloads are not taken: their length is not the recorded size, which counts",
                self.other_length
            ));
        }
        if self.out_of_order > 0 {
            all.push(format!(
                "{} readings were out of order, by {:.1} s at the most, and were sorted",
                self.out_of_order,
                self.furthest_ns as f64 / 1e9
            ));
        }
        if self.twice != [0; 2] {
            let [first, second] = self.twice;
            all.push(format!(
                "{} readings have local times that clocks showed twice: by their order, {first} are taken as before \
                 the clocks were set back and {second} as after",
                first + second
            ));
        }
        if self.device_is_topic {
            all.push("the recording names no device: each topic is taken as one".into());
        }
        if !self.ignored.is_empty() {
            let names: Vec<String> = self
                .ignored
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            let mut sentence = format!("nothing is taken from: {}", names.join(", "));
            if self.more_ignored {
                // Writing to a string cannot fail.
                let _ = write!(sentence, " and others");
            }
            all.push(sentence);
        }
        all
    }
}
