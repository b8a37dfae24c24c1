//! pubgauge: compares publish/subscribe middleware under one IoT workload.
//!
//! Programs alone print or exit; how they do so is in `pubgauge_command`.

// `println!` and `eprintln!` panic when a write fails.
#![deny(clippy::print_stderr, clippy::print_stdout)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "pubgauge runs on Linux only (5.11 or newer): it starts, watches and times processes by means that are Linux's own"
);

mod addresses;
mod advise;
mod args;
mod calibrate;
mod check;
mod collect;
mod compare;
mod crowd;
mod defaults;
#[cfg(test)]
mod documented;
mod drivers;
mod endpoint;
mod export;
mod folder;
mod forecast;
mod gate;
mod hosts;
mod identities;
mod install;
mod invocation;
mod matrix;
mod page;
mod plan;
mod prepare;
mod progress;
mod question;
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
mod trend;
mod tune;
mod vocabulary;
mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::CommandFactory;
use pubgauge_command::exit::{self, BAD_INPUT, Ending, FINE};
use pubgauge_command::{pages, program};

use args::{Cli, SchemaOf, Verb};
use defaults::CommandLine;

/// The value that a mutex guards, also after a thread has panicked that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a run, with its exit code.
fn ending(error: pubgauge_campaign::Error) -> Ending {
    match error {
        pubgauge_campaign::Error::Input(message) => Ending::bad_input(message),
        pubgauge_campaign::Error::NotValid(message) => Ending::not_valid(message),
    }
}

fn main() {
    // The other program reads the arguments behind it, --help included.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|verb| verb == "collect")
    {
        program::end_process(collect::collect());
    }
    let typed: Vec<_> = std::env::args_os().collect();
    if let Some(words) = vocabulary::explain_host(&typed) {
        exit::write_plain(format_args!("{words}"));
        std::process::exit(BAD_INPUT);
    }
    let line =
        CommandLine::complete(typed).unwrap_or_else(|ending| program::end_process(Err(ending)));
    program::run_with(line.arguments.clone(), vocabulary::explain, |cli| {
        line.tell_sources();
        act(cli).map_err(|ending| line.explain(ending))
    })
}

fn act(cli: Cli) -> Result<i32, Ending> {
    if cli.verb.reads_studies() {
        tune::load_profiles()?;
    }
    match cli.verb {
        Verb::Run(verb) => run::run(&verb.args()?),
        Verb::Find(mut args) => {
            args.run.selection.resolve_words()?;
            run::find(*args)
        }
        Verb::Advise(args) => advise::advise(&args),
        Verb::Guard(args) => run::run(&args.run_args()?),
        Verb::Tune(args) => tune::tune(*args),
        Verb::Plan(mut args) => {
            args.selection.resolve_words()?;
            plan::plan(&args)
        }
        Verb::Systems(args) => systems::systems(&args),
        Verb::Check(args) => check::check(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Export(args) => export::export(&args),
        Verb::Completions { shell } => {
            pages::print_completions(Cli::command(), shell);
            Ok(FINE)
        }
        Verb::Man { verb, out } => match verb.split_first() {
            Some((first, rest)) if first == "collect" => {
                collect::become_program(["man"].into_iter().chain(rest.iter().map(String::as_str)))
            }
            _ => pages::print_man(Cli::command(), &verb, out.as_deref()),
        },
        Verb::Collect { .. } => collect::collect(),
        Verb::Calibrate(args) => calibrate::calibrate(&args),
        Verb::Trace(verb) => traces::act(&verb),
        Verb::Schema { of, .. } => {
            let schema = match of {
                SchemaOf::Study => {
                    serde_json::to_string_pretty(&drivers::study_schema()).unwrap_or_default()
                }
                SchemaOf::Results => pubgauge_results::schema::results_schema(),
                SchemaOf::Answer => pubgauge_conclusions::answer::schema(),
                SchemaOf::Trend => pubgauge_conclusions::compare::trend::schema(),
                SchemaOf::Claims => pubgauge_results::schema::claims_schema(),
                SchemaOf::Fleet => serde_json::to_string_pretty(&pubgauge_advice::fleet_schema())
                    .unwrap_or_default(),
                SchemaOf::Advice => pubgauge_advice::schema(),
                SchemaOf::Collect => return collect::become_program(["schema"]),
            };
            exit::print(&format!("{}\n", schema.trim_end()));
            Ok(FINE)
        }
        Verb::Worker(args) => worker::worker(&args),
        Verb::Serve(verb) => serve::serve(&verb),
    }
}
