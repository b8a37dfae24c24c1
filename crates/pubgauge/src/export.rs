//! `pubgauge export`: the figures of a run in the forms that other programs read.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf, absolute};

use pubgauge_command::exit::{Ending, FINE, print, print_all, print_json};
use pubgauge_export::tables::{NAMES, NamedRun};
use pubgauge_export::{
    Format, FormatError, Table, benchmark, check, openmetrics, without_empty_columns,
};
use pubgauge_figures::model::Results;
use pubgauge_place::OpenFolder;
use pubgauge_results::store;
use serde::Serialize;

use crate::args::{ExportArgs, ExportFormat};
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

/// A file to be written. It is made in one without a name: nothing is written where one of several cannot be made, and
/// none is held in memory.
struct Content {
    name: String,
    rows: Option<usize>,
    file: File,
}

impl Content {
    /// A file of this name with what `fill` writes, which returns its number of rows.
    fn new(
        name: String,
        fill: impl FnOnce(&mut BufWriter<File>) -> Result<Option<usize>, Ending>,
    ) -> Result<Content, Ending> {
        let wrong =
            |e: io::Error| Ending::not_valid(format!("cannot make {name}: no temporary file: {e}"));
        let mut out = BufWriter::new(tempfile::tempfile().map_err(wrong)?);
        let rows = fill(&mut out)?;
        let mut file = out.into_inner().map_err(|e| wrong(e.into_error()))?;
        file.rewind().map_err(wrong)?;
        Ok(Content { name, rows, file })
    }

    /// A file of this name with a text.
    fn of_text(name: &str, text: &str) -> Result<Content, Ending> {
        Content::new(name.to_owned(), |out| {
            let written = out.write_all(text.as_bytes());
            written.map(|()| None).map_err(|e| not_made(name, &e))
        })
    }
}

fn not_made(name: &str, why: &dyn Display) -> Ending {
    Ending::not_valid(format!("cannot make {name}: {why}"))
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
    if to_stdout && args.format == ExportFormat::GithubBenchmark {
        return Err(wrong(
            "--out -: this form is two files",
            "name a folder: --out DIR",
        ));
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
        for mut content in contents {
            print_all(&mut content.file).map_err(|e| not_made(&content.name, &e))?;
        }
        return Ok(FINE);
    }
    let (out, place) = match &args.out {
        Some(out) => (out.clone(), OpenFolder::open_or_create(out)),
        None => {
            let below = OpenFolder::open(&args.dir).and_then(|dir| dir.below(EXPORT));
            (args.dir.join(EXPORT), below)
        }
    };
    let place =
        place.map_err(|e| Ending::bad_input(format!("cannot make {}: {e}", out.display())))?;
    let mut files = Vec::new();
    for mut content in contents {
        let path = out.join(&content.name);
        place
            .fill(&content.name, |file| {
                io::copy(&mut content.file, file).map(drop)
            })
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
        ExportFormat::Openmetrics
        | ExportFormat::Junit
        | ExportFormat::Markdown
        | ExportFormat::GithubBenchmark
        | ExportFormat::Claims => None,
    }
}

/// Results of the claims of a run, or of several, without the curves.
fn claims(dir: &Path) -> Result<Vec<Content>, Ending> {
    let studies = folder::studies(dir)?.without_pictures();
    Ok(vec![Content::of_text("claims.json", &studies.to_json())?])
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
        let content = match args.format {
            ExportFormat::GithubBenchmark => {
                let [smaller, bigger] = benchmark::entries(results);
                return [
                    ("benchmark-smaller.json", smaller),
                    ("benchmark-bigger.json", bigger),
                ]
                .into_iter()
                .map(|(name, entries)| Content::of_text(name, &benchmark::text(&entries)))
                .collect();
            }
            ExportFormat::Markdown => {
                Content::of_text("answer.md", &pubgauge_report::markdown(results))
            }
            ExportFormat::Junit => {
                let suite = format!("pubgauge {}", results.study.name);
                let text = check::junit(&suite, &gate::of_run(results));
                Content::of_text("junit.xml", &text)
            }
            _ => Content::new("metrics.txt".to_owned(), |out| {
                let written = openmetrics::write_run(name, results, out);
                written
                    .map(|()| None)
                    .map_err(|e| not_made("metrics.txt", &e))
            }),
        };
        return Ok(vec![content?]);
    };
    let run = NamedRun { name, results };
    let mut contents = Vec::new();
    for wanted in NAMES {
        if !args.table.is_empty() && !args.table.iter().any(|name| name == wanted) {
            continue;
        }
        let name = format!("{wanted}.{}", format.extension());
        let make = || table(&run, wanted, &args.dir);
        // Of percentiles no column is ever empty, and making them takes long.
        let table = if args.all_columns || wanted == "percentiles" {
            make()
        } else {
            without_empty_columns(make).map_err(Ending::not_valid)?
        };
        contents.push(Content::new(name, |out| match format.write(table, out) {
            Ok(rows) => Ok(Some(rows)),
            Err(FormatError::Row(why)) => Err(Ending::not_valid(why)),
            Err(e) => Err(Ending::not_valid(format!("table {wanted}: {e}"))),
        })?);
    }
    Ok(contents)
}

fn table<'a>(run: &NamedRun<'a>, name: &str, dir: &'a Path) -> Table<'a> {
    match name {
        "trials" => run.trials(),
        "flows" => run.flows(),
        "windows" => run.windows(),
        "series" => run.series(),
        "searches" => run.searches(),
        _ => run.percentiles(|trial, log| store::load_log(dir, trial, log)),
    }
}
