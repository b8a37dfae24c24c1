//! Collecting, and giving up sessions.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pubgauge_collect::config::{self, CollectFile, Fault, Form, Given, Mqtt, TlsFile};
use pubgauge_collect::{Collector, Config, EndsAfter, Leave, Notice, Summary, Watch, names};
use pubgauge_command::exit::{Ending, FINE, NOT_VALID};
use pubgauge_command::options::{Login, Output};
use pubgauge_command::signals::{self, Reactions};
use pubgauge_quantities::Span;
use pubgauge_quantities::shown::so_many;

use crate::args::{CollectArgs, FileForm, LeaveArgs, MqttVersion};
use crate::attend::{Again, Attendant};
use crate::log::Log;
use crate::service::Service;
use crate::{ending, metrics};

/// How long nothing may come before a collection with `--once` ends.
const QUIET: Duration = Duration::from_secs(2);

/// The task of a collector.
struct Work<'a> {
    given: Given,
    config: Config,
    /// The collect file, if it is to be read again on SIGHUP.
    file: Option<&'a Path>,
    until: EndsAfter,
    listen: Option<String>,
}

/// Collects; the exit code.
pub fn collect(args: &CollectArgs) -> Result<i32, Ending> {
    let log = Log::new(args.log, args.output.quiet);
    begin(args, &log).or_else(|ending| log.failed(ending))
}

fn begin(args: &CollectArgs, log: &Log) -> Result<i32, Ending> {
    let given = values_given(args.name.as_ref())?;
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

/// Gives up the sessions of a collector that has ended; the exit code.
pub fn leave(args: &LeaveArgs) -> Result<i32, Ending> {
    let log = Log::new(args.log, args.output.quiet);
    begin_to_leave(args, &log).or_else(|ending| log.failed(ending))
}

fn begin_to_leave(args: &LeaveArgs, log: &Log) -> Result<i32, Ending> {
    let given = values_given(args.name.as_ref())?;
    let config = config::read(&args.config, &given).map_err(Ending::bad_input)?;
    let until = EndsAfter {
        time: Some(time(&args.time)?),
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
    work.done(log, &args.output)
}

fn values_given(name: Option<&String>) -> Result<Given, Ending> {
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
        output.print_result(&summary, || describe(&summary));
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
    Config::from_written(&written, Path::new(""), given.password.clone()).map_err(|faults| {
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

fn describe(summary: &Summary) -> String {
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
