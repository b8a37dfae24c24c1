//! Messages of a collector on standard error: in words, with progress in a line of the terminal, or as JSON.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use pubgauge_collect::{Level, Notice};
use pubgauge_command::exit::{Ending, tell};
use serde::Serialize;

use crate::args::LogForm;
use crate::progress::Progress;

/// Messages of the program beside the collector's notices.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Own<'a> {
    Serving { address: &'a str },
    Progress(&'a Progress),
    Error { exit_code: i32 },
}

/// A line of JSON.
#[derive(Serialize)]
struct Line<'a, T> {
    /// UTC.
    time: &'a str,
    level: Level,
    #[serde(flatten)]
    event: &'a T,
    /// The message in words.
    message: &'a str,
}

/// The log of a collector.
#[derive(Clone)]
pub struct Log {
    form: LogForm,
    /// Errors alone.
    quiet: bool,
    /// The line of the terminal, if there is one.
    bar: Option<ProgressBar>,
}

impl Log {
    pub fn new(form: LogForm, quiet: bool) -> Log {
        let draws = form == LogForm::Plain && !quiet && std::io::stderr().is_terminal();
        Log {
            form,
            quiet,
            bar: draws.then(bar),
        }
    }

    /// Whether progress has a line of its own, which is drawn again and again.
    pub fn draws(&self) -> bool {
        self.bar.is_some()
    }

    pub fn notice(&self, notice: &Notice) {
        self.line(notice.level(), notice, &notice.to_string());
    }

    /// Metrics and health are served there.
    pub fn serving(&self, address: &str) {
        let words = format!("metrics at http://{address}/metrics");
        self.line(Level::Info, &Own::Serving { address }, &words);
    }

    pub fn progress(&self, progress: &Progress) {
        let words = progress.to_string();
        match &self.bar {
            Some(bar) => {
                bar.set_message(words);
                bar.tick();
            }
            None => self.line(Level::Info, &Own::Progress(progress), &words),
        }
    }

    /// Tells why it could not be begun or carried through, if the program would not tell it in this form.
    ///
    /// # Errors
    /// Writes how the program failed, for the program to end with.
    pub fn failed(&self, ending: Ending) -> Result<i32, Ending> {
        if self.form == LogForm::Plain {
            return Err(ending);
        }
        let exit_code = ending.code;
        let event = Own::Error { exit_code };
        self.line(Level::Error, &event, &ending.message);
        Ok(exit_code)
    }

    /// Clears the progress line of the terminal.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, level: Level, event: &impl Serialize, message: &str) {
        if self.quiet && level != Level::Error {
            return;
        }
        if self.form == LogForm::Json {
            let time = format!("{:.6}", Timestamp::now());
            let line = Line {
                time: &time,
                level,
                event,
                message,
            };
            return tell!("{}", serde_json::to_string(&line).unwrap_or_default());
        }
        match &self.bar {
            Some(bar) => bar.suspend(|| tell!("{message}")),
            None => tell!("{message}"),
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    let bar = ProgressBar::new_spinner();
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
