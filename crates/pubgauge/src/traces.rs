//! `pubgauge trace`: look at recorded traces, and make them from ordinary CSV.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use pubgauge_workload::SECOND;
use pubgauge_workload::trace::{Column, OnChange, Trace, TraceFormat, TraceSource};

use crate::args::{ConvertArgs, TraceVerb};
use crate::exit::{Ending, FINE, print};

/// Acts.
pub fn act(verb: &TraceVerb) -> Result<i32, Ending> {
    match verb {
        TraceVerb::Show { file } => {
            let source = TraceSource {
                files: vec![file.clone()],
                ..TraceSource::default()
            };
            print(&describe(&Trace::read(&source).map_err(Ending::bad_input)?));
        }
        TraceVerb::Convert(args) => {
            let source = TraceSource {
                files: args.files.clone(),
                format: Some(format(args)?),
                sort: args.sort,
            };
            let trace = Trace::read(&source).map_err(Ending::bad_input)?;
            write(&trace, &args.out)?;
            print(&format!(
                "{}written to {}\n",
                describe(&trace),
                args.out.display()
            ));
        }
    }
    Ok(FINE)
}

/// Writes the whole file or none.
fn write(trace: &Trace, path: &Path) -> Result<(), Ending> {
    let partial = path.with_extension("partial");
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        if path.extension().is_some_and(|e| e == "gz") {
            let mut zipped = GzEncoder::new(&mut out, Compression::default());
            trace.write_plain(&mut zipped)?;
            zipped.finish()?;
        } else {
            trace.write_plain(&mut out)?;
        }
        out.flush()?;
        std::fs::rename(&partial, path)
    });
    written.map_err(|e| {
        let _ = std::fs::remove_file(&partial);
        Ending::bad_input(format!("cannot write {}: {e}", path.display()))
    })
}

fn describe(trace: &Trace) -> String {
    let mut sizes: Vec<u32> = trace.readings.iter().map(|r| r.size).collect();
    sizes.sort_unstable();
    let at = |share: f64| {
        sizes
            .get(((sizes.len() - 1) as f64 * share) as usize)
            .copied()
            .unwrap_or(0)
    };
    let mut out = format!(
        "{} messages of {} devices over {:.1} h\nsize: smallest {} B, median {} B, largest {} B\n",
        trace.readings.len(),
        trace.devices.len(),
        trace.span() as f64 / SECOND as f64 / 3600.0,
        at(0.0),
        at(0.5),
        at(1.0)
    );
    if trace.below_minimum > 0 {
        out.push_str(&format!(
            "{} messages are shorter than 16 B and will be padded to that when replayed\n",
            trace.below_minimum
        ));
    }
    if trace.left_out > 0 {
        out.push_str(&format!(
            "{} messages were left out as unchanged\n",
            trace.left_out
        ));
    }
    out
}

fn format(args: &ConvertArgs) -> Result<TraceFormat, Ending> {
    let column = |text: &String| column(text);
    Ok(TraceFormat {
        delimiter: args.delimiter,
        header: args.no_header.then_some(false),
        time: column(&args.time),
        time_format: args
            .time_format
            .as_ref()
            .map(|text| {
                serde_json::from_value(serde_json::Value::String(text.clone()))
                    .map_err(|e| Ending::bad_input(format!("--time-format {text}: {e}")))
            })
            .transpose()?,
        device: args.device.as_ref().map(column),
        device_from_file: args.device_from_file.clone(),
        topic: args.topic.as_ref().map(column),
        size: args.size.as_ref().map(column),
        size_bytes: args.size_bytes,
        size_of_json: if args.size_of_json.is_empty() {
            None
        } else {
            Some(
                args.size_of_json
                    .iter()
                    .map(|member| {
                        let (key, of) = member.split_once('=').unwrap_or((member, member));
                        (key.to_owned(), self::column(of))
                    })
                    .collect(),
            )
        },
        payload: args.payload.as_ref().map(column),
        drop_repeats: args.drop_repeats.as_ref().map(column),
        on_change: args
            .on_change
            .iter()
            .map(|text| on_change(text))
            .collect::<Result<_, _>>()?,
    })
}

fn column(text: &str) -> Column {
    text.parse()
        .map_or_else(|_| Column::Name(text.to_owned()), Column::Number)
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
