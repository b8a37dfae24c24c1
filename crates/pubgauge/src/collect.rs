//! `pubgauge collect`: messages of a fleet into files, each acknowledged once it is on disk.

mod attend;
mod compact;
mod log;
mod metrics;
mod progress;
mod replay;
mod service;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pubgauge_collect::config::{self, CollectFile, Fault, Form, Given, Mqtt, TlsFile};
use pubgauge_collect::store::{Credentials, Place};
use pubgauge_collect::verify::{Look, Sequences, SequencesFound};
use pubgauge_collect::{
    Collector, Config, EndsAfter, Leave, Notice, Summary, Watch, names, verify,
};
use pubgauge_command::exit::{CRITERION, Ending, FINE, NOT_VALID};
use pubgauge_command::options::{Login, Output};
use pubgauge_command::signals::{self, Reactions};
use pubgauge_place::shell::quoted;
use pubgauge_quantities::Span;
use pubgauge_quantities::shown::so_many;

use crate::args::{CollectArgs, CollectVerb, FileForm, MqttVersion};
use attend::{Again, Attendant};
use log::Log;
use service::Service;

/// How long nothing may come before a collection with `--once` ends.
const QUIET: Duration = Duration::from_secs(2);

/// `pubgauge collect`.
pub fn collect(args: &CollectArgs) -> Result<i32, Ending> {
    match &args.verb {
        Some(CollectVerb::Verify {
            dir,
            sequence,
            by,
            fetch,
            config,
            upload_to,
            upload_endpoint,
            upload_region,
            credentials_file,
            output,
        }) => {
            let mut look = Look {
                credentials: Credentials::of_environment(),
                named: Vec::new(),
                fetch: *fetch || sequence.is_some(),
            };
            if let Some(path) = config {
                let config = config::read(path, &Given::default()).map_err(Ending::bad_input)?;
                if let Some(upload) = config.upload {
                    look.credentials = upload.credentials;
                    look.named.push(upload.place);
                }
            }
            look.named.extend(upload_to.iter().map(|url| Place {
                url: url.clone(),
                endpoint: upload_endpoint.clone(),
                region: upload_region.clone(),
            }));
            if let Some(path) = credentials_file {
                let added = look.credentials.add_file(path);
                added.map_err(Ending::bad_input)?;
            }
            let sequences = sequence.as_ref().map(|number| Sequences::new(number, by));
            verified(dir, sequences.transpose().map_err(ending)?, look, output)
        }
        Some(CollectVerb::Compact {
            dir,
            older_than,
            target,
            output,
        }) => compact::compact(dir, older_than, target, output),
        Some(CollectVerb::Replay(args)) => replay::replay(args),
        Some(CollectVerb::Leave {
            config,
            name,
            time,
            log,
            output,
        }) => {
            let log = Log::new(*log, output.quiet);
            leave(config, name.as_ref(), time, &log, output).or_else(|ending| log.failed(ending))
        }
        None => {
            let log = Log::new(args.log, args.output.quiet);
            begin(args, &log).or_else(|ending| log.failed(ending))
        }
    }
}

/// The error of a collector, with its exit code.
fn ending(error: pubgauge_collect::Error) -> Ending {
    if error.is_input {
        Ending::bad_input(error)
    } else {
        Ending::not_valid(error)
    }
}

/// What a collector is to do.
struct Work<'a> {
    given: Given,
    config: Config,
    /// The collect file, if it is to be read again on SIGHUP.
    file: Option<&'a Path>,
    until: EndsAfter,
    listen: Option<String>,
}

fn begin(args: &CollectArgs, log: &Log) -> Result<i32, Ending> {
    let given = given(args.name.as_ref())?;
    let config = configuration(args, &given)?;
    let listen = args.listen.clone().or_else(|| config.listen.clone());
    let until = EndsAfter {
        messages: args.messages,
        time: args.time.as_deref().map(time).transpose()?,
        quiet: args.once.then_some(QUIET),
        leave: args.leave.then_some(Leave::AtEnd),
    };
    let file = args.config.as_deref();
    let work = Work {
        given,
        config,
        file,
        until,
        listen,
    };
    work.done(log, &args.output)
}

/// `pubgauge collect leave`.
fn leave(
    path: &Path,
    name: Option<&String>,
    within: &str,
    log: &Log,
    output: &Output,
) -> Result<i32, Ending> {
    let given = given(name)?;
    let config = config::read(path, &given).map_err(Ending::bad_input)?;
    let until = EndsAfter {
        time: Some(time(within)?),
        leave: Some(Leave::AtOnce),
        ..EndsAfter::default()
    };
    let work = Work {
        given,
        config,
        file: None,
        until,
        listen: None,
    };
    work.done(log, output)
}

fn given(name: Option<&String>) -> Result<Given, Ending> {
    Ok(Given {
        password: Login::default().password()?,
        name: name.cloned(),
    })
}

impl Work<'_> {
    /// Does it, and returns the exit code.
    fn done(self, log: &Log, output: &Output) -> Result<i32, Ending> {
        let until = self.until;
        let service = Service::new();
        let again = Arc::<AtomicBool>::default();
        let on_hangup = self.file.map(|_| again.clone());
        // That it ends is told by a notice.
        let reactions = Reactions {
            first: Box::new(|| {}),
            again: on_hangup,
            ..Reactions::default()
        };
        let stop = signals::install(reactions).map_err(Ending::not_valid)?;
        let watch = watch(log, &service);
        let collector =
            Collector::new(self.config.clone(), names::system(), watch.clone()).map_err(ending)?;
        let status = collector.status();
        let served = self
            .listen
            .map(|address| metrics::serve(&address, status.clone()))
            .transpose()?;
        if let Some(http) = &served {
            log.serving(&http.address().to_string());
        }
        let file = self.file.map(|path| Again {
            path,
            given: self.given,
            config: self.config,
            asked: &again,
            reloads: collector.reloads(),
            watch,
        });
        let attendant = &Attendant {
            status: &status,
            log,
            service: &service,
            file,
        };
        let (working, over) = channel();
        let summary = std::thread::scope(|scope| {
            scope.spawn(move || attendant.attend(&over));
            // Dropped at the end, after a panic too.
            let _working: Sender<()> = working;
            collector.run(until, &stop)
        })
        .map_err(ending)?;
        output.show(&summary, || words(&summary));
        let is_once = until.quiet.is_some();
        let all_heard = !is_once || (summary.out_of_reach == 0 && summary.not_uploaded == 0);
        let all_reached = until.time.is_none() || summary.never_connected == 0;
        let is_whole = summary.damaged == 0
            && summary.dead_letters == 0
            && summary.conflicts == 0
            && summary.canaries_lost == 0
            && summary.complete;
        let is_fine = is_whole && all_heard && all_reached && summary.not_left == 0;
        Ok(if is_fine { FINE } else { NOT_VALID })
    }
}

/// Tells notices to whoever is concerned.
fn watch(log: &Log, service: &Service) -> Watch {
    let (log, service) = (log.clone(), service.clone());
    Arc::new(move |notice: &Notice| {
        log.notice(notice);
        service.notice(notice);
    })
}

fn time(text: &str) -> Result<Duration, Ending> {
    let span: Result<Span, _> = text.parse();
    span.map(|Span(ns)| Duration::from_nanos(ns))
        .map_err(|error| Ending::bad_input(format!("--for {text}: {error}")))
}

fn configuration(args: &CollectArgs, given: &Given) -> Result<Config, Ending> {
    if let Some(path) = &args.config {
        return config::read(path, given).map_err(Ending::bad_input);
    }
    let written = CollectFile {
        brokers: args.on.clone(),
        topics: args.topic.clone(),
        to: args.to.clone(),
        name: args.name.clone(),
        group: args.group.clone(),
        qos: args.qos,
        mqtt: args.mqtt.map(|version| match version {
            MqttVersion::V5 => Mqtt::V5,
            MqttVersion::V311 => Mqtt::V311,
        }),
        form: args.form.map(|form| match form {
            FileForm::Parquet => Form::Parquet,
            FileForm::Ndjson => Form::Ndjson,
        }),
        password_file: args.login.password_file.clone(),
        tls: TlsFile {
            ca: args.login.ca.clone(),
            cert: args.login.cert.clone(),
            key: args.login.key.clone(),
            insecure: args.login.insecure,
            server_name: None,
        },
        ..CollectFile::default()
    };
    Config::of(&written, Path::new(""), given.password.clone()).map_err(|faults| {
        let each: Vec<String> = faults.iter().map(of_flag).collect();
        Ending::bad_input(each.join("\n"))
    })
}

/// A fault, with the flag that it comes from.
fn of_flag(fault: &Fault) -> String {
    let flag = match fault.steps.first().map(String::as_str) {
        Some("brokers") => "on",
        Some("topics") => "topic",
        Some(key) => key,
        None => "config",
    };
    let hint = fault.hint.as_ref().map(|hint| format!("\n  hint: {hint}"));
    format!("--{flag}: {}{}", fault.message, hint.unwrap_or_default())
}

fn words(summary: &Summary) -> String {
    let mut text = format!(
        "{} stored, {} of them acknowledged, in {}\n",
        so_many(summary.messages, "message"),
        summary.acknowledged,
        so_many(summary.files, "finished file"),
    );
    if !summary.complete {
        text += "the log holds messages that are in no finished file yet: the next start goes on with them\n";
    }
    if summary.not_uploaded > 0 {
        text += &format!(
            "{} not in the store yet: the next start goes on with it\n",
            so_many(summary.not_uploaded, "finished file")
        );
    }
    if summary.conflicts > 0 {
        text += &format!(
            "{} kept here: the store has other objects of these names\n",
            so_many(summary.conflicts, "finished file")
        );
    }
    if summary.out_of_reach > 0 {
        text += &format!(
            "{} not connected at the end: what waits there is not here\n",
            so_many(summary.out_of_reach, "broker")
        );
    }
    if summary.never_connected > 0 {
        text += &format!(
            "{} never connected\n",
            so_many(summary.never_connected, "broker")
        );
    }
    if summary.not_left > 0 {
        text += &format!(
            "the session is not given up at {}: what it holds, and what still goes into it, waits there\n",
            so_many(summary.not_left, "broker")
        );
    }
    if summary.canaries_lost > 0 {
        text += &format!(
            "{} of the collector's own acknowledged and lost by brokers: of others' they have lost some, too\n",
            so_many(summary.canaries_lost, "message")
        );
    }
    if summary.dead_letters > 0 {
        text += &format!(
            "{}: messages that are not among the others\n",
            so_many(summary.dead_letters, "dead letter")
        );
    }
    if summary.damaged > 0 {
        text += &format!(
            "{} cannot be read in the log\n",
            so_many(summary.damaged, "message")
        );
    }
    text
}

fn verified(
    dirs: &[PathBuf],
    mut sequences: Option<Sequences>,
    look: Look,
    output: &Output,
) -> Result<i32, Ending> {
    let mut found = verify::verify_all(dirs, look, &mut |counted| {
        if let Some(sequences) = &mut sequences {
            sequences.add(counted);
        }
    })
    .map_err(ending)?;
    found.sequence = sequences.map(Sequences::found);
    output.show(&found, || in_words(dirs, &found));
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

/// The command that names a store.
fn naming(dirs: &[PathBuf], place: &Place) -> String {
    let dirs: Vec<String> = dirs.iter().map(|dir| quoted(dir)).collect();
    let word = |text: &str| quoted(Path::new(text));
    let mut command = format!(
        "pubgauge collect verify {} --upload-to {}",
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
