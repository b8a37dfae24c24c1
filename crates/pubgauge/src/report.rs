//! `pubgauge report`: table and page from the folder of a run.

use pubgauge_results::store;

use crate::args::ReportArgs;
use crate::exit::{Ending, FINE};
use crate::page::{show, write_page};
use crate::{folder, gate};

/// Rebuilds table and page.
pub fn report(args: &ReportArgs) -> Result<i32, Ending> {
    if folder::has_runs(&args.dir) {
        return folder::report(args);
    }
    let results = store::load(&args.dir).map_err(Ending::bad_input)?;
    gate::can_be_written(&args.gate)?;
    let page = write_page(&args.dir, &results)?;
    show(&results, &page, args.output.json);
    gate::tell(
        &args.gate,
        &results.study.name,
        None,
        &gate::of_run(&results),
    )?;
    Ok(FINE)
}
