//! `pubgauge-collect verify`.

use std::path::{Path, PathBuf};

use pubgauge_collect::config::{self, Given};
use pubgauge_collect::store::{Credentials, StoreAddress};
use pubgauge_collect::verify::{self, Look, Sequences, SequencesFound};
use pubgauge_command::exit::{CRITERION, Ending, FINE, NOT_VALID};
use pubgauge_place::shell::quoted;
use pubgauge_quantities::shown::so_many;

use crate::args::VerifyArgs;
use crate::ending;

/// Reads everything in the data folders again; the exit code.
pub fn verify(args: &VerifyArgs) -> Result<i32, Ending> {
    let sequences = args.sequence.as_ref();
    let sequences = sequences.map(|number| Sequences::new(number, &args.by));
    let mut sequences = sequences.transpose().map_err(ending)?;
    let mut found = verify::verify_all(&args.dir, look(args)?, &mut |counted| {
        if let Some(sequences) = &mut sequences {
            sequences.add(counted);
        }
    })
    .map_err(ending)?;
    found.sequence = sequences.map(Sequences::findings);
    args.output
        .print_result(&found, || in_words(&args.dir, &found));
    let sequence = found.sequence.as_ref();
    let is_whole = found.faults.is_empty() && sequence.is_none_or(|found| found.missing == 0);
    let is_seen = found.not_seen.is_empty()
        && sequence.is_none_or(|found| found.numbers > 0 || found.unnumbered == 0);
    Ok(match (is_whole, is_seen) {
        (false, _) => CRITERION,
        (true, false) => NOT_VALID,
        (true, true) => FINE,
    })
}

/// Which stores are asked, and with which credentials.
fn look(args: &VerifyArgs) -> Result<Look, Ending> {
    let mut look = Look {
        credentials: Credentials::of_environment(),
        named: Vec::new(),
        fetch: args.fetch || args.sequence.is_some(),
    };
    if let Some(path) = &args.config {
        let config = config::read(path, &Given::default()).map_err(Ending::bad_input)?;
        if let Some(upload) = config.upload {
            look.credentials = upload.credentials;
            look.named.push(upload.place);
        }
    }
    look.named
        .extend(args.upload_to.iter().map(|url| StoreAddress {
            url: url.clone(),
            endpoint: args.upload_endpoint.clone(),
            region: args.upload_region.clone(),
        }));
    if let Some(path) = &args.credentials_file {
        let added = look.credentials.add_file(path);
        added.map_err(Ending::bad_input)?;
    }
    Ok(look)
}

/// The command that names a store.
fn naming(dirs: &[PathBuf], place: &StoreAddress) -> String {
    let dirs: Vec<String> = dirs.iter().map(|dir| quoted(dir)).collect();
    let word = |text: &str| quoted(Path::new(text));
    let mut command = format!(
        "pubgauge-collect verify {} --upload-to {}",
        dirs.join(" "),
        word(&place.url)
    );
    if let Some(endpoint) = &place.endpoint {
        command += &format!(" --upload-endpoint {}", word(endpoint));
    }
    command + ", or --config with the collect file"
}

fn in_words(dirs: &[PathBuf], found: &verify::Verified) -> String {
    let [qos_0, qos_1, qos_2] = found.by_qos;
    let mut text = format!(
        "{} of {}: {} in {}, {} in the log\n\
         QoS 0: {qos_0}, QoS 1: {qos_1}, QoS 2: {qos_2}; {} marked by the broker as perhaps sent before\n",
        so_many(found.messages + found.messages_in_log, "message"),
        so_many(found.collectors as u64, "collector"),
        found.messages,
        so_many(found.files, "finished file"),
        found.messages_in_log,
        found.marked_duplicate,
    );
    if found.unfinished_bytes > 0 {
        text += &format!(
            "{} bytes at the end of a log are no whole message, and were not acknowledged\n",
            found.unfinished_bytes
        );
    }
    for run in &found.streams {
        text += &format!(
            "run {}: {} of {}; {} missing, {} more than once, {} foreign\n",
            run.run,
            so_many(run.messages, "message"),
            so_many(run.streams, "stream"),
            run.missing,
            run.duplicates,
            run.foreign,
        );
    }
    if found.files_elsewhere > 0 {
        text += &format!(
            "{} in {} elsewhere, by what the store tells of them\n",
            so_many(found.messages_elsewhere, "message"),
            so_many(found.files_elsewhere, "finished file"),
        );
    }
    for there in &found.not_seen {
        let files = so_many(there.files, "finished file");
        text += &format!("not looked at: {files} in {}: {}\n", there.place, there.why);
        if let Some(place) = &there.unnamed {
            text += &format!("  hint: if it is yours: {}\n", naming(dirs, place));
        }
    }
    if let Some(sequence) = &found.sequence {
        text += &numbers_in_words(sequence);
    }
    for fault in &found.faults {
        text += &format!("fault: {} {}\n", fault.place, fault.what);
    }
    if found.faults.is_empty() && found.not_seen.is_empty() {
        text += "everything is as it was written\n";
    }
    text
}

/// So many counts with gaps are shown.
const GAPS: usize = 20;

fn numbers_in_words(found: &SequencesFound) -> String {
    let mut text = format!(
        "{} in payloads, of {}: {} missing, {} more than once; {} without a number\n",
        so_many(found.numbers, "number"),
        so_many(found.counts, "count"),
        found.missing,
        found.copies,
        so_many(found.unnumbered, "message"),
    );
    for gap in found.gaps.iter().take(GAPS) {
        text += &format!(
            "  {}: {} missing: {}\n",
            gap.of,
            gap.missing,
            gap.ranges_in_words()
        );
    }
    if found.gaps.len() > GAPS {
        text += &format!("  and {} more counts\n", found.gaps.len() - GAPS);
    }
    if found.missing > 0 {
        text += "  hint: what a broker has acknowledged to its publisher and lost is missing, and what the publisher has never sent\n";
    } else if found.numbers == 0 && found.unnumbered > 0 {
        text += "  hint: no payload is JSON or CBOR with a whole number there\n";
    }
    text
}
