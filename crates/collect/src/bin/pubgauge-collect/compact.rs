//! `pubgauge-collect compact`.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pubgauge_collect::compact::{self, CompactOptions, Compacted};
use pubgauge_command::exit::{CRITERION, Ending, FINE, NOT_VALID};
use pubgauge_command::options::Output;
use pubgauge_command::signals::{self, Reactions};
use pubgauge_quantities::shown::so_many;
use pubgauge_quantities::{Size, Span};

use crate::ending;

/// Merges small finished files; the exit code.
pub fn compact(dir: &Path, older_than: &str, target: &str, output: &Output) -> Result<i32, Ending> {
    let Span(older_than_ns) = older_than
        .parse::<Span>()
        .map_err(|error| Ending::bad_input(format!("--older-than {older_than}: {error}")))?;
    let Size(target_bytes) = target
        .parse::<Size>()
        .map_err(|error| Ending::bad_input(format!("--target {target}: {error}")))?;
    let options = CompactOptions {
        older_than: Duration::from_nanos(older_than_ns),
        target_bytes,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0, |now| now.as_secs().cast_signed());
    let stop = signals::install(Reactions::default()).map_err(Ending::not_valid)?;
    let compacted = compact::compact(dir, options, now_s, &stop).map_err(ending)?;
    output.print_result(&compacted, || in_words(&compacted));
    let is_through = compacted.left.is_empty() && !compacted.stopped;
    Ok(match (compacted.faults.is_empty(), is_through) {
        (false, _) => CRITERION,
        (true, false) => NOT_VALID,
        (true, true) => FINE,
    })
}

fn in_words(compacted: &Compacted) -> String {
    let mut text = format!(
        "{} of {} merged into {}: {} bytes, before {}\n",
        so_many(compacted.files, "finished file"),
        so_many(compacted.messages, "message"),
        so_many(compacted.merged_files, "file"),
        compacted.merged_bytes,
        compacted.bytes,
    );
    for left in &compacted.left {
        text += &format!("left as it is: {}: {}\n", left.place, left.what);
    }
    for fault in &compacted.faults {
        text += &format!("fault: {} {}\n", fault.place, fault.what);
    }
    if compacted.stopped {
        text += "stopped before it was through: the rest is as it was\n";
    }
    text
}
