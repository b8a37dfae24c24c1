//! Gathers the faults of a configuration.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use pubgauge_driver::Secret;
use pubgauge_quantities::{Size, Span};

/// A value that does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Keys that lead to it, and numbers of elements.
    pub steps: Vec<String>,
    pub message: String,
    pub hint: Option<String>,
}

/// Gathers what is wrong.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, steps: &[&str], message: impl Into<String>, hint: Option<&str>) {
        self.0.push(Fault {
            steps: steps.iter().map(|step| (*step).to_owned()).collect(),
            message: message.into(),
            hint: hint.map(str::to_owned),
        });
    }

    /// A span within bounds.
    pub(super) fn span(
        &mut self,
        steps: &[&str],
        given: Option<Span>,
        usual: Duration,
        (least, most): (Duration, Duration),
    ) -> Duration {
        let span = given.map_or(usual, |span| Duration::from_nanos(span.0));
        if !(least..=most).contains(&span) {
            let of = |bound: Duration| Span(bound.as_nanos() as u64);
            let message = format!("this takes {} to {}", of(least), of(most));
            self.add(steps, message, None);
        }
        span
    }

    /// A size within bounds.
    pub(super) fn size(
        &mut self,
        steps: &[&str],
        given: Option<Size>,
        usual: u64,
        (least, most): (u64, u64),
    ) -> u64 {
        let size = given.map_or(usual, |size| size.0);
        if !(least..=most).contains(&size) {
            self.add(
                steps,
                format!("this takes {} to {}", Size(least), Size(most)),
                None,
            );
        }
        size
    }

    /// A password, called `what`: the line of a file.
    pub(super) fn secret(&mut self, steps: &[&str], what: &str, path: &Path) -> Option<Secret> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(64 << 10).read_to_string(&mut text));
        match read {
            Ok(_) => Some(Secret::new(text.trim_end_matches(['\r', '\n']))),
            Err(error) => {
                let path = path.display();
                let message = format!("{what} cannot be read from {path}: {error}");
                self.add(steps, message, None);
                None
            }
        }
    }
}

pub(super) const MS: Duration = Duration::from_millis(1);
pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
