//! `pubgauge export`: the figures of a run in the forms that other programs read.

use std::path::{Path, PathBuf, absolute};

use pubgauge_export::tables::{NAMES, Run};
use pubgauge_export::{Format, Table, check, openmetrics};
use pubgauge_place::OpenFolder;
use pubgauge_results::model::Results;
use pubgauge_results::store;
use serde::Serialize;

use crate::args::{ExportArgs, ExportFormat};
use crate::exit::{Ending, FINE, print, print_bytes, print_json};
use crate::{folder, gate};

/// The files written, as JSON output.
#[derive(Serialize)]
struct ExportJson {
    run: String,
    files: Vec<FileJson>,
}

#[derive(Serialize)]
struct FileJson {
    path: PathBuf,
    /// Rows of a table, without its head line.
    rows: Option<usize>,
}

/// A file to be written.
struct Content {
    name: String,
    rows: Option<usize>,
    bytes: Vec<u8>,
}

/// The folder in that of a run, unless `--out` names one.
const EXPORT: &str = "export";

/// `pubgauge export`.
pub fn export(args: &ExportArgs) -> Result<i32, Ending> {
    let to_stdout = args.out.as_deref() == Some(Path::new("-"));
    let tabular = tabular(args.format);
    let wrong = |why: &str, hint: &str| Ending::bad_input(format!("{why}\n  hint: {hint}"));
    if tabular.is_none() && !args.table.is_empty() {
        return Err(wrong(
            "--table: this form has no tables",
            "leave --table out, or take --format csv, json or parquet",
        ));
    }
    if to_stdout && tabular.is_some() && args.table.len() != 1 {
        let hint = format!("name it: --table {}", NAMES.join(" or "));
        return Err(wrong("--out -: one table can be written there", &hint));
    }
    if to_stdout && args.output.json {
        return Err(wrong(
            "--out - with --json: both write to standard output",
            "leave --json out, or name a folder",
        ));
    }
    let name = run_name(&args.dir);
    let contents = match args.format {
        ExportFormat::Claims => claims(&args.dir)?,
        _ => {
            folder::one_run(&args.dir)?;
            let results = store::load(&args.dir).map_err(Ending::bad_input)?;
            contents(args, &results, &name, tabular)?
        }
    };
    if to_stdout {
        contents
            .iter()
            .for_each(|content| print_bytes(&content.bytes));
        return Ok(FINE);
    }
    let (out, place) = match &args.out {
        Some(out) => (out.clone(), OpenFolder::made(out)),
        None => {
            let below = OpenFolder::open(&args.dir).and_then(|dir| dir.below(EXPORT));
            (args.dir.join(EXPORT), below)
        }
    };
    let place =
        place.map_err(|e| Ending::bad_input(format!("cannot make {}: {e}", out.display())))?;
    let mut files = Vec::new();
    for content in contents {
        let path = out.join(&content.name);
        place
            .write(&content.name, content.bytes)
            .map_err(|e| Ending::not_valid(format!("cannot write {}: {e}", path.display())))?;
        if !args.output.json {
            let rows = content
                .rows
                .map_or(String::new(), |n| format!(", {n} rows"));
            print(&format!("{}{rows}\n", path.display()));
        }
        let rows = content.rows;
        files.push(FileJson { path, rows });
    }
    if args.output.json {
        print_json(&ExportJson { run: name, files });
    }
    Ok(FINE)
}

fn tabular(format: ExportFormat) -> Option<Format> {
    match format {
        ExportFormat::Csv => Some(Format::Csv),
        ExportFormat::Json => Some(Format::Json),
        ExportFormat::Parquet => Some(Format::Parquet),
        ExportFormat::Openmetrics | ExportFormat::Junit | ExportFormat::Claims => None,
    }
}

/// Results of the claims of a run, or of several, without the curves.
fn claims(dir: &Path) -> Result<Vec<Content>, Ending> {
    let studies = folder::studies(dir)?.without_pictures();
    Ok(vec![Content {
        name: "claims.json".to_owned(),
        rows: None,
        bytes: studies.to_json().into_bytes(),
    }])
}

/// The name of the folder, as rows and samples carry it.
fn run_name(dir: &Path) -> String {
    let dir = dir.canonicalize().or_else(|_| absolute(dir));
    let name = dir.ok().and_then(|dir| Some(dir.file_name()?.to_owned()));
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn contents(
    args: &ExportArgs,
    results: &Results,
    name: &str,
    tabular: Option<Format>,
) -> Result<Vec<Content>, Ending> {
    let Some(format) = tabular else {
        let (file, text) = match args.format {
            ExportFormat::Junit => {
                let suite = format!("pubgauge {}", results.study.name);
                ("junit.xml", check::junit(&suite, &gate::of_run(results)))
            }
            _ => ("metrics.txt", openmetrics::of_run(name, results)),
        };
        return Ok(vec![Content {
            name: file.to_owned(),
            rows: None,
            bytes: text.into_bytes(),
        }]);
    };
    let run = Run { name, results };
    let mut contents = Vec::new();
    for wanted in NAMES {
        if !args.table.is_empty() && !args.table.iter().any(|name| name == wanted) {
            continue;
        }
        let table = table(&run, wanted, &args.dir)?;
        let mut bytes = Vec::new();
        format
            .write(&table, &mut bytes)
            .map_err(|e| Ending::not_valid(format!("table {wanted}: {e}")))?;
        contents.push(Content {
            name: format!("{wanted}.{}", format.extension()),
            rows: Some(table.rows.len()),
            bytes,
        });
    }
    Ok(contents)
}

fn table(run: &Run<'_>, name: &str, dir: &Path) -> Result<Table, Ending> {
    match name {
        "trials" => Ok(run.trials()),
        "flows" => Ok(run.flows()),
        "windows" => Ok(run.windows()),
        "series" => Ok(run.series()),
        "searches" => Ok(run.searches()),
        _ => run
            .percentiles(|trial, log| store::load_log(dir, trial, log).map_err(Ending::not_valid)),
    }
}
