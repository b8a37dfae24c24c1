//! `pubgauge report`: table and page from the folder of a run.

use std::path::Path;

use pubgauge_command::exit::{Ending, FINE, print, print_json};
use pubgauge_conclusions::claims::kept::{Conditions, FORMAT, Kept, KeptRow, KeptRun};
use pubgauge_conclusions::claims::several::{judge_all_by_runs, sort};
use pubgauge_conclusions::claims::{judge, judge_and_keep};
use pubgauge_figures::model::Results;
use pubgauge_figures::rule::Claim;
use pubgauge_figures::studies::{OutcomeCounts, StudyOutcome};
use pubgauge_place::OpenFolder;
use pubgauge_report::studies::{collect_studies, outcome, table};
use pubgauge_results::store::{self, RunFolder};
use pubgauge_study::Study;

use crate::args::ReportArgs;
use crate::invocation::Invocation;
use crate::page::{Detail, print_results, width, write_page};
use crate::{folder, gate, trend};

/// Rebuilds table and page.
pub fn report(args: &ReportArgs) -> Result<i32, Ending> {
    if let (false, Some(study)) = (args.from.is_empty(), &args.claims) {
        return from_kept(args, study);
    }
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
        let claims = claims_of(dir, file, &results)?;
        results = RunFolder::judge_again(dir, |results| judge(results, &claims))
            .map_err(Ending::bad_input)?;
        if let Some(file) = &args.keep {
            let conditions = conditions_of(dir)?;
            keep(&results, &claims, file, args.bed.as_deref(), conditions)?;
        }
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

/// The claims of a study as they are now, which must be the one that was run.
fn claims_of(dir: &Path, file: &Path, results: &Results) -> Result<Vec<Claim>, Ending> {
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
    Ok(claims)
}

/// The conditions of the study as the run began with it; none where that was not stored.
fn conditions_of(dir: &Path) -> Result<Conditions, Ending> {
    let Some(begun) = Invocation::read(dir)? else {
        return Ok(Conditions::new());
    };
    let name = format!("the study of {}", dir.display());
    let study = Study::parse(&name, &begun.study, &begun.folder).map_err(Ending::bad_input)?;
    Ok(study.file().map_err(Ending::bad_input)?.conditions())
}

/// Writes the trials that claims are judged by: those with which the run began, of a run of some of them. `bed` says how the bed
/// of the run differs from the study's.
fn keep(
    results: &Results,
    claims: &[Claim],
    file: &Path,
    bed: Option<&str>,
    mut conditions: Conditions,
) -> Result<(), Ending> {
    let began = &results.study.claim_rules;
    let mut claims = claims.to_vec();
    claims.retain(|claim| began.is_empty() || began.contains_key(&claim.id));
    let (_, rows) = judge_and_keep(results, &claims);
    let (study, commit) = (&results.study, &results.machine.pubgauge_commit);
    let of_study = |row: KeptRow| KeptRow {
        study: study.name.clone(),
        commit: commit.clone(),
        ..row
    };
    conditions.retain(|name, _| rows.iter().any(|row| row.conditions().contains(name)));
    let run = KeptRun {
        format: FORMAT.to_owned(),
        study: StudyOutcome {
            claims: Vec::new(),
            counts: OutcomeCounts::default(),
            ..outcome(results, "")
        },
        commit: commit.clone(),
        bed: bed.unwrap_or_default().to_owned(),
        scale: study.scale.clone(),
        in_rounds: study.until_decided_s.is_some(),
        claim_rules: study.claim_rules.clone(),
        conditions,
    };
    let kept = Kept::new(run, rows.into_iter().map(of_study).collect());
    let failed = |e: std::io::Error| {
        Ending::bad_input(format!("--keep: cannot write {}: {e}", file.display()))
    };
    let name = file.file_name().ok_or_else(|| {
        Ending::bad_input(format!("--keep: {} is no name of a file", file.display()))
    })?;
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = OpenFolder::open(folder.unwrap_or(Path::new("."))).map_err(failed)?;
    folder.write(name, kept.to_text()).map_err(failed)
}

/// The largest file of kept trials that is read, in bytes.
const MOST_KEPT_BYTES: u64 = 64 << 20;

/// Judges claims by the trials that files have, and says so; nothing is stored.
fn from_kept(args: &ReportArgs, path: &Path) -> Result<i32, Ending> {
    let mut study = Study::open(path).map_err(Ending::bad_input)?;
    let name = study.file().map_err(Ending::bad_input)?.name;
    let mut runs: Vec<Kept> = Vec::new();
    for file in &args.from {
        let kept = read_kept(file, &name)?;
        if let Some(first) = runs
            .first()
            .filter(|first| first.run.scale != kept.run.scale)
        {
            let scale = |run: &Kept| run.run.scale.clone().unwrap_or("whole".into());
            return Err(Ending::bad_input(format!(
                "{}: its run is one of scale {}, and that before one of scale {}\n  hint: runs of one scale are judged together",
                file.display(),
                scale(&kept),
                scale(first)
            )));
        }
        runs.push(kept);
    }
    sort(&mut runs);
    let newest = runs.last().expect("a file is named");
    if !runs.iter().any(Kept::is_on_own_bed) {
        return Err(Ending::bad_input(format!(
            "the runs that were kept are on another bed than the study's ({}), which shows what an answer depends on, and gives none\n  \
             hint: name a run on the study's own bed as well, with another --from",
            newest.label()
        )));
    }
    if let Some(scale) = &newest.run.scale {
        study.apply_scale(scale).map_err(Ending::bad_input)?;
    }
    let claims = study.claims_alone().map_err(Ending::bad_input)?;
    let conditions = study.file().map_err(Ending::bad_input)?.conditions();
    for run in &mut runs {
        run.leave_out_changed(&claims, &conditions);
    }
    let newest = runs.last().expect("a file is named");
    let claims = match &runs[..] {
        [run] => run.judge(&claims),
        runs => judge_all_by_runs(&claims, runs),
    };
    let studies = collect_studies(vec![StudyOutcome {
        counts: OutcomeCounts::count(&claims),
        claims,
        ..newest.run.study.clone()
    }]);
    if args.output.json {
        print_json(&studies.without_pictures());
    } else {
        print(&table(&studies, width()));
    }
    Ok(FINE)
}

/// The trials that a file has, which must be those of this study.
fn read_kept(file: &Path, study: &str) -> Result<Kept, Ending> {
    let wrong = |why: String| Ending::bad_input(format!("{}: {why}", file.display()));
    let text = store::read_text(file, MOST_KEPT_BYTES).map_err(|e| wrong(e.to_string()))?;
    let kept = Kept::parse(&text).map_err(|e| wrong(e.to_string()))?;
    if kept.run.study.study != study {
        return Err(wrong(format!(
            "its trials are those of study `{}`, and the claims those of `{study}`\n  hint: name the study that was run",
            kept.run.study.study
        )));
    }
    Ok(kept)
}
