//! `pubgauge trace`: inspects recorded traces, and makes them from ordinary files.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use pubgauge_command::exit::{Ending, FINE};
use pubgauge_workload::SECOND;
use pubgauge_workload::trace::{OnChange, Remarks, Trace, TraceColumn, TraceFormat, TraceSource};
use serde::Serialize;

use crate::args::{ConvertArgs, TraceVerb};
use crate::prepare::quantity;
use crate::stored_json;

/// `pubgauge trace`.
pub fn act(verb: &TraceVerb) -> Result<i32, Ending> {
    match verb {
        TraceVerb::Show { file, output } => {
            let source = TraceSource {
                files: vec![file.clone()],
                ..TraceSource::default()
            };
            let about = About::new(&Trace::read(&source).map_err(Ending::bad_input)?, None);
            output.print_result(&about, || about.describe());
        }
        TraceVerb::Convert(args) => {
            let source = TraceSource {
                files: args.files.clone(),
                format: Some(format(args)?),
                sort: args.sort,
            };
            let trace = Trace::read(&source).map_err(Ending::bad_input)?;
            write(&trace, &args.out)?;
            let about = About::new(&trace, Some(&args.out));
            if args.output.json || !args.output.quiet {
                args.output.print_result(&about, || about.describe());
            }
        }
    }
    Ok(FINE)
}

/// Writes the whole file or none.
fn write(trace: &Trace, path: &Path) -> Result<(), Ending> {
    let written = stored_json::fill(path, |file| {
        let mut out = BufWriter::new(file);
        if path.extension().is_some_and(|e| e == "gz") {
            let mut zipped = GzEncoder::new(&mut out, Compression::default());
            trace.write_plain(&mut zipped)?;
            zipped.finish()?;
        } else {
            trace.write_plain(&mut out)?;
        }
        out.flush()
    });
    written.map_err(Ending::bad_input)
}

/// Contents of a trace.
#[derive(Serialize)]
struct About {
    messages: usize,
    devices: usize,
    span_s: f64,
    size_smallest_bytes: u32,
    size_median_bytes: u32,
    size_largest_bytes: u32,
    /// Messages too short for the header of pubgauge, which are padded when replayed.
    below_minimum: u64,
    /// How the trace differs from its files.
    remarks: Remarks,
    /// Where the trace was written.
    written_to: Option<PathBuf>,
}

impl About {
    fn new(trace: &Trace, written_to: Option<&Path>) -> About {
        let mut sizes: Vec<u32> = trace.readings.iter().map(|r| r.size).collect();
        sizes.sort_unstable();
        let last = sizes.len().saturating_sub(1) as f64;
        let at = |share: f64| sizes.get((last * share) as usize).copied().unwrap_or(0);
        About {
            messages: trace.readings.len(),
            devices: trace.devices.len(),
            span_s: trace.span() as f64 / SECOND as f64,
            size_smallest_bytes: at(0.0),
            size_median_bytes: at(0.5),
            size_largest_bytes: at(1.0),
            below_minimum: trace.below_minimum,
            remarks: trace.remarks.clone(),
            written_to: written_to.map(Path::to_owned),
        }
    }

    fn describe(&self) -> String {
        let mut out = format!(
            "{} messages of {} devices over {:.1} h\nsize: smallest {} B, median {} B, largest {} B\n",
            self.messages,
            self.devices,
            self.span_s / 3600.0,
            self.size_smallest_bytes,
            self.size_median_bytes,
            self.size_largest_bytes
        );
        if self.below_minimum > 0 {
            out.push_str(&format!(
                "{} messages are shorter than 16 B and will be padded to that when replayed\n",
                self.below_minimum
            ));
        }
        for sentence in self.remarks.sentences() {
            out.push_str(&sentence);
            out.push('\n');
        }
        if let Some(path) = &self.written_to {
            out.push_str(&format!("written to {}\n", path.display()));
        }
        out
    }
}

fn format(args: &ConvertArgs) -> Result<TraceFormat, Ending> {
    let column = |text: &String| column(text);
    Ok(TraceFormat {
        delimiter: args.delimiter,
        header: args.no_header.then_some(false),
        columns: args.columns,
        comment: args.comment,
        skip_lines: args.skip_lines,
        time: column(&args.time),
        date: args.date.as_ref().map(column),
        time_format: quantity("--time-format", &args.time_format)?,
        time_zone: quantity("--time-zone", &args.time_zone)?,
        decimal: args.decimal,
        device: args.device.as_ref().map(column),
        device_from_file: args.device_from_file.clone(),
        topic: args.topic.as_ref().map(column),
        size: args.size.as_ref().map(column),
        size_bytes: args.size_bytes,
        size_of_json: (!args.size_of_json.is_empty()).then(|| {
            let members = args.size_of_json.iter().map(|member| {
                let (key, of) = member.split_once('=').unwrap_or((member, member));
                (key.to_owned(), self::column(of))
            });
            members.collect()
        }),
        payload: args.payload.as_ref().map(column),
        payload_as: quantity("--payload-as", &args.payload_as)?,
        qos: args.qos.as_ref().map(column),
        retain: args.retain.as_ref().map(column),
        skip_incomplete: args.skip_incomplete.then_some(true),
        drop_repeats: args.drop_repeats.as_ref().map(column),
        on_change: args
            .on_change
            .iter()
            .map(|text| on_change(text))
            .collect::<Result<_, _>>()?,
    })
}

fn column(text: &str) -> TraceColumn {
    text.parse()
        .map_or_else(|_| TraceColumn::Name(text.to_owned()), TraceColumn::Number)
}

fn on_change(text: &str) -> Result<OnChange, Ending> {
    let wrong = || {
        Ending::bad_input(format!(
            "--on-change {text}: expected COLUMN:CHANGE, COLUMN:PERCENT% or COLUMN:CHANGE:PERCENT%, for example watts:2:5%"
        ))
    };
    let mut parts = text.split(':');
    let name = parts.next().filter(|n| !n.is_empty()).ok_or_else(wrong)?;
    let mut change = OnChange {
        column: column(name),
        absolute: None,
        relative: None,
    };
    for part in parts {
        match part.strip_suffix('%') {
            Some(percent) => {
                change.relative = Some(percent.parse::<f64>().map_err(|_| wrong())? / 100.0)
            }
            None => change.absolute = Some(part.parse().map_err(|_| wrong())?),
        }
    }
    if change.absolute.is_none() && change.relative.is_none() {
        return Err(wrong());
    }
    Ok(change)
}
