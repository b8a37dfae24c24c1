//! Somebody else's optimiser: a command that is asked and told in lines of JSON.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use pubgauge_campaign::tuning::Optimizer;
use pubgauge_command::exit::Ending;
use pubgauge_testbed::{Confinement, Piped};
use pubgauge_tuning::{Factor, Finding, Levels, Objective, Point, Seen};
use serde_json::{Map, Value, json};

/// Longest line that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// Lines that are read ahead: one that says more than it is asked waits.
const MOST_LINES: usize = 4;

/// A command that names combinations.
pub struct Engine {
    command: String,
    process: Piped,
    input: Option<File>,
    lines: Receiver<String>,
    objective: Objective,
    factors: Vec<Factor>,
    /// How many measurements it was told of.
    told: usize,
    asked: u32,
    /// The question that no measurement was told for yet.
    pending: Option<u32>,
    stop: Arc<AtomicBool>,
}

impl Engine {
    /// Starts the command, and tells it what is varied.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn new(
        command: &str,
        objective: Objective,
        factors: Vec<Factor>,
    ) -> Result<Engine, Ending> {
        let wrong = |why: String| Ending::bad_input(format!("--engine {command}: {why}"));
        let shell = ["-c", command];
        let started = Piped::start(Path::new("/bin/sh"), &shell, &Confinement::default());
        let (process, streams) =
            started.map_err(|error| wrong(format!("cannot be started: {error}")))?;
        let (sender, lines) = sync_channel(MOST_LINES);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(streams.output);
            let mut read = || {
                let mut line = String::new();
                let read = (&mut reader).take(MOST_BYTES).read_line(&mut line);
                read.is_ok_and(|bytes| bytes > 0).then_some(line)
            };
            while let Some(line) = read() {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut engine = Engine {
            command: command.to_owned(),
            process,
            input: Some(streams.input),
            lines,
            objective,
            factors,
            told: 0,
            asked: 0,
            pending: None,
            stop: Arc::default(),
        };
        let factors: Vec<Value> = engine.factors.iter().map(describe).collect();
        let begin = json!({ "begin": {
            "for": objective.name(),
            "smaller-is-better": !objective.is_larger_better(),
            "factors": factors,
        } });
        engine.write_line(&begin).map_err(Ending::bad_input)?;
        Ok(engine)
    }

    /// Lets this end the wait for an answer.
    pub fn stopped_by(mut self, stop: &Arc<AtomicBool>) -> Engine {
        self.stop = stop.clone();
        self
    }

    fn write_line(&mut self, value: &Value) -> Result<(), String> {
        let written = self.input.as_mut().map(|input| {
            writeln!(input, "{value}")?;
            input.flush()
        });
        match written {
            Some(Err(error)) => Err(self.wrong(&format!("it reads no more: {error}"))),
            _ => Ok(()),
        }
    }

    fn wrong(&self, why: &str) -> String {
        format!(
            "--engine {}: {why}\n  hint: docs/tune.md says what is asked and answered, line by line",
            self.command
        )
    }

    /// Tells of a measurement: the first one after a question is its answer's.
    fn tell_result(&mut self, one: &Seen) -> Result<(), String> {
        let named = self.factors.iter().zip(&one.point.0);
        let point: Map<String, Value> = named
            .map(|(factor, value)| (factor.name.clone(), value.clone().unwrap_or(Value::Null)))
            .collect();
        let (value, hopeless) = match one.finding {
            Finding::Score(score) => (json!(self.objective.figure(score)), false),
            Finding::Hopeless => (Value::Null, true),
            Finding::Nothing => (Value::Null, false),
        };
        let tell = json!({ "tell": {
            "ask": self.pending.take(), "point": point, "value": value, "hopeless": hopeless,
        } });
        self.write_line(&tell)
    }

    /// The next line; `None` if the user ends the run meanwhile.
    fn read(&mut self) -> Result<Option<String>, String> {
        loop {
            if self.stop.load(Relaxed) {
                return Ok(None);
            }
            match self.lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let how = self.process.ending();
                    return Err(self.wrong(&format!("it ended without an answer: {how}")));
                }
            }
        }
    }

    /// The point of an answer.
    fn point(&self, answer: &Map<String, Value>) -> Result<Point, String> {
        let mut point = Point::default_of(&self.factors);
        for (name, value) in answer {
            let Some(nth) = self.factors.iter().position(|factor| factor.name == *name) else {
                return Err(self.wrong(&format!(
                    "it names `{}`, which is not varied",
                    clipped(name, 60)
                )));
            };
            if value.is_null() {
                continue;
            }
            point.0[nth] = self.factors[nth].levels.accept(value);
            if point.0[nth].is_none() {
                let shown = clipped(&value.to_string(), 60);
                return Err(self.wrong(&format!("{name} cannot be {shown}")));
            }
        }
        Ok(point)
    }
}

/// The beginning of a text of somebody else's.
fn clipped(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// A factor as it is told.
fn describe(factor: &Factor) -> Value {
    match &factor.levels {
        // The first one is as it comes.
        Levels::Choices(values) => {
            let all: Vec<Value> = std::iter::once(Value::Null)
                .chain(values.iter().cloned())
                .collect();
            json!({ "name": factor.name, "values": all })
        }
        Levels::Range {
            from,
            to,
            is_logarithmic,
            whole,
            default,
        } => json!({
            "name": factor.name, "from": from, "to": to, "log": is_logarithmic, "whole": whole, "default": default,
        }),
    }
}

impl Optimizer for Engine {
    fn ask(&mut self, seen: &[Seen]) -> Result<Option<Point>, String> {
        for one in &seen[self.told.min(seen.len())..] {
            self.tell_result(one)?;
        }
        self.told = seen.len();
        self.asked += 1;
        self.pending = Some(self.asked);
        let ask = json!({ "ask": self.asked });
        self.write_line(&ask)?;
        let Some(line) = self.read()? else {
            return Ok(None);
        };
        let answer: Value = serde_json::from_str(&line).map_err(|error| {
            self.wrong(&format!(
                "its answer is no JSON: {error}: {}",
                clipped(line.trim(), 120)
            ))
        })?;
        match (&answer["point"], &answer["end"]) {
            (Value::Object(point), _) => self.point(point).map(Some),
            (_, Value::Bool(true)) => Ok(None),
            _ => Err(self.wrong(&format!(
                "its answer has neither a point nor an end: {}",
                clipped(line.trim(), 120)
            ))),
        }
    }

    fn tell_known(&mut self, known: &Seen) -> Result<(), String> {
        self.tell_result(known)
    }
}

impl Drop for Engine {
    /// The end of its input tells it to end; the guard sees to one that does not.
    fn drop(&mut self) {
        self.input = None;
        self.process.ending();
    }
}
