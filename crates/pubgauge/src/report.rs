//! `pubgauge report`: table and page from the folder of a run.

use std::path::Path;

use pubgauge_command::exit::{Ending, FINE};
use pubgauge_conclusions::claims::judge;
use pubgauge_figures::model::Results;
use pubgauge_results::store::{self, RunFolder};
use pubgauge_study::Study;

use crate::args::ReportArgs;
use crate::invocation::Invocation;
use crate::page::{Detail, print_results, write_page};
use crate::{folder, gate, trend};

/// Rebuilds table and page.
pub fn report(args: &ReportArgs) -> Result<i32, Ending> {
    let [dir] = &args.dirs[..] else {
        return trend::report(args);
    };
    if let Some(flag) = trend::flag(args) {
        return Err(Ending::bad_input(format!(
            "{flag} is of several runs in the order of time, and {} is one folder\n  hint: pubgauge report A B C {flag} ...",
            dir.display()
        )));
    }
    if folder::has_runs(dir) {
        return match &args.claims {
            None => folder::report(args, dir),
            Some(_) => Err(Ending::bad_input(format!(
                "{} holds several runs, and --claims has the claims of one study\n  hint: name the folder of that study's run",
                dir.display()
            ))),
        };
    }
    let mut results = store::load(dir).map_err(Ending::bad_input)?;
    gate::can_be_written(&args.gate)?;
    if let Some(file) = &args.claims {
        results = judged_again(dir, file, &results)?;
    }
    // The table needs no place to write to.
    let page = write_page(dir, &results);
    let detail = Detail::from_flags(args.verbose, args.output.json);
    print_results(&results, dir, page.as_deref().ok(), detail);
    gate::report(
        &args.gate,
        &results.study.name,
        None,
        &gate::of_run(&results),
    )?;
    page.map(|_| FINE)
}

/// The run, judged by the claims of a study as they are now.
fn judged_again(dir: &Path, file: &Path, results: &Results) -> Result<Results, Ending> {
    let mut study = Study::open(file).map_err(Ending::bad_input)?;
    if let Some(scale) = Invocation::read(dir)?.and_then(|begun| begun.scale) {
        study.apply_scale(&scale).map_err(Ending::bad_input)?;
    }
    let name = study.file().map_err(Ending::bad_input)?.name;
    let claims = study.claims_alone().map_err(Ending::bad_input)?;
    if name != results.study.name {
        return Err(Ending::bad_input(format!(
            "{}: its claims are about the runs of study `{name}`; {} holds one of `{}`\n  hint: name the study that was run",
            file.display(),
            dir.display(),
            results.study.name
        )));
    }
    RunFolder::judge_again(dir, |results| judge(results, &claims)).map_err(Ending::bad_input)
}
