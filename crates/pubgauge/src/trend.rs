//! `pubgauge report` over several runs: what changed from one to the next, in the order of time.

use std::path::{Component, Path, PathBuf};

use pubgauge_campaign::pairs::figures;
use pubgauge_command::exit::{Ending, FINE, print};
use pubgauge_conclusions::compare::trend::{NamedRun, trend};
use pubgauge_place::shell::quoted;
use pubgauge_report::{trend_page, trend_text};
use pubgauge_results::store;

use crate::args::ReportArgs;
use crate::page::{PAGE_FILE, width};
use crate::{compare, ending, folder, stored_json};

/// Name of the page, if no other is asked for.
const PAGE: &str = "trend.html";

/// The flag that only several runs have, if one is given.
pub fn flag(args: &ReportArgs) -> Option<&'static str> {
    let figure = (!args.figure.is_empty()).then_some("--figure");
    let out = args.out.is_some().then_some("--out");
    figure.or(out)
}

/// Compares the runs in the order of time; prints what changed, and writes the page.
pub fn report(args: &ReportArgs) -> Result<i32, Ending> {
    let of_one = [
        ("--claims", args.claims.is_some()),
        ("--junit", args.gate.junit.is_some()),
    ];
    if let Some((flag, _)) = of_one.into_iter().find(|(_, given)| *given) {
        return Err(Ending::bad_input(format!(
            "{flag} is of one run, and {} are named\n  hint: pubgauge report {} {flag} ...",
            args.dirs.len(),
            quoted(&args.dirs[0])
        )));
    }
    let margin = compare::share(&args.margin)?;
    let figures = figures("--figure", &args.figure).map_err(ending)?;
    let mut runs = Vec::new();
    let mut known: Vec<PathBuf> = Vec::new();
    for dir in &args.dirs {
        folder::one_run_of(dir)?;
        let results = store::load(dir).map_err(Ending::bad_input)?;
        let place = dir.canonicalize().unwrap_or_else(|_| dir.clone());
        if known.contains(&place) {
            return Err(Ending::bad_input(format!(
                "{} is named twice\n  hint: name each run once",
                dir.display()
            )));
        }
        known.push(place);
        let name = dir.display().to_string();
        runs.push(NamedRun { name, results });
    }
    let folders: Vec<(String, PathBuf)> = (args.dirs.iter().zip(known))
        .map(|(dir, place)| (dir.display().to_string(), place))
        .collect();
    let trend = trend(runs, &figures, margin);
    let page = match &args.out {
        Some(page) => page.clone(),
        None => args.dirs[0].parent().unwrap_or(Path::new("")).join(PAGE),
    };
    // A name alone has no folder that could be opened.
    let page = match page.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new(".").join(page),
        _ => page,
    };
    let from = std::path::absolute(&page).unwrap_or_else(|_| page.clone());
    let from = from.parent().unwrap_or(Path::new("/"));
    let from = from.canonicalize().unwrap_or_else(|_| from.to_owned());
    let links = trend.runs.iter().map(|run| {
        let (_, folder) = folders.iter().find(|(name, _)| *name == run.name)?;
        let to = folder.join(PAGE_FILE);
        to.exists().then(|| link(&from, &to))
    });
    let links: Vec<Option<String>> = links.collect();
    stored_json::write(&page, trend_page(&trend, &links)).map_err(|e| {
        Ending::not_valid(format!("{e}\n  hint: name another page with --out FILE"))
    })?;
    if args.output.json {
        args.output.print_result(&trend, String::new);
    } else {
        let text = trend_text(&trend, width());
        print(&format!("{}\npage: {}\n", text.trim_end(), page.display()));
    }
    Ok(FINE)
}

/// A link from a folder to a file, both absolute: relative, so that both can move together, with percent-encoding.
fn link(from: &Path, to: &Path) -> String {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| "..".to_owned());
    let down = to[common..].iter().map(|part| match part {
        Component::Normal(name) => pubgauge_report::in_url(&name.to_string_lossy()),
        _ => String::new(),
    });
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative() {
        for (from, to, meant) in [
            ("/r", "/r/a/report.html", "a/report.html"),
            ("/r/x", "/r/a b/report.html", "../a%20b/report.html"),
            ("/", "/q/report.html", "q/report.html"),
        ] {
            assert_eq!(link(Path::new(from), Path::new(to)), meant);
        }
    }
}
