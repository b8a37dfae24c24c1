//! pubgauge: compares publish/subscribe middleware under one IoT workload.
//!
//! This crate is the only one that prints or exits.

// `println!` and `eprintln!` panic when a write fails.
#![deny(clippy::print_stderr, clippy::print_stdout)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "pubgauge runs on Linux only (5.11 or newer): it starts, watches and times processes by means that are Linux's own"
);

mod args;
mod calibrate;
mod check;
mod collect;
mod compare;
mod completions;
mod crowd;
mod drivers;
mod endpoint;
mod exit;
mod export;
mod folder;
mod forecast;
mod gate;
mod hosts;
mod http;
mod install;
mod invocation;
mod matrix;
mod page;
mod plan;
mod prepare;
mod progress;
mod report;
mod run;
mod secret;
mod serve;
mod signals;
mod stored_json;
mod study_run;
mod systems;
mod terminal;
mod traces;
mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Parser;
use clap::error::ErrorKind;

use args::{Cli, SchemaOf, Verb};
use exit::{BAD_INPUT, Ending, FINE, tell};

/// What a mutex guards, also after a thread has panicked that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn main() {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; everything else here is bad input.
            let asked = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            if asked {
                drop(error.print());
            } else {
                // The text repeats the command line, so it is made plain.
                exit::say(format_args!("{}", error.render()));
            }
            std::process::exit(if asked { FINE } else { BAD_INPUT });
        }
    };
    let ended = signals::ignore_size_limit()
        .and_then(|()| act(cli))
        .and_then(|code| exit::complete().map(|()| code));
    let code = ended.unwrap_or_else(|ending| {
        tell!("error: {}", ending.message);
        ending.code
    });
    std::process::exit(signals::exit_code(code));
}

fn act(cli: Cli) -> Result<i32, Ending> {
    match cli.verb {
        Verb::Run(verb) => run::run(&verb.args()),
        Verb::Find(args) => run::find(*args),
        Verb::Plan(args) => plan::plan(&args),
        Verb::Systems(args) => systems::systems(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Export(args) => export::export(&args),
        Verb::Completions { shell } => completions::completions(shell),
        Verb::Man { verb, out } => completions::man(&verb, out.as_deref()),
        Verb::Collect(args) => collect::collect(&args),
        Verb::Calibrate(args) => calibrate::calibrate(&args),
        Verb::Trace(verb) => traces::act(&verb),
        Verb::Schema { of, .. } => {
            let schema = match of {
                SchemaOf::Study => {
                    serde_json::to_string_pretty(&drivers::study_schema()).unwrap_or_default()
                }
                SchemaOf::Results => pubgauge_results::schema::results_schema(),
                SchemaOf::Claims => pubgauge_results::schema::claims_schema(),
                SchemaOf::Collect => {
                    serde_json::to_string_pretty(&pubgauge_collect::config::schema())
                        .unwrap_or_default()
                }
            };
            exit::print(&format!("{}\n", schema.trim_end()));
            Ok(FINE)
        }
        Verb::Worker(args) => worker::worker(&args),
        Verb::Serve(verb) => serve::serve(&verb),
    }
}
