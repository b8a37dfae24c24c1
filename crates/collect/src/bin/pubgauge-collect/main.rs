//! pubgauge-collect: messages of a fleet into files, each acknowledged once it is on disk.

// `println!` and `eprintln!` panic when a write fails.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod attend;
mod collecting;
mod compact;
mod log;
mod metrics;
mod progress;
mod replay;
mod service;
mod verifying;

use clap::CommandFactory;
use pubgauge_command::exit::{Ending, FINE, print};
use pubgauge_command::{pages, program};

use args::{CollectArgs, CollectVerb};

/// The error of a collector, with its exit code.
fn ending(error: pubgauge_collect::Error) -> Ending {
    if error.is_input {
        Ending::bad_input(error)
    } else {
        Ending::not_valid(error)
    }
}

fn main() {
    program::run(|_| None, act)
}

fn act(args: CollectArgs) -> Result<i32, Ending> {
    match &args.verb {
        None => collecting::collect(&args),
        Some(CollectVerb::Leave(args)) => collecting::leave(args),
        Some(CollectVerb::Verify(args)) => verifying::verify(args),
        Some(CollectVerb::Compact {
            dir,
            older_than,
            target,
            output,
        }) => compact::compact(dir, older_than, target, output),
        Some(CollectVerb::Replay(args)) => replay::replay(args),
        Some(CollectVerb::Schema) => {
            let schema = serde_json::to_string_pretty(&pubgauge_collect::config::schema());
            print(&format!("{}\n", schema.unwrap_or_default()));
            Ok(FINE)
        }
        Some(CollectVerb::Completions { shell }) => {
            pages::print_completions(CollectArgs::command(), *shell);
            Ok(FINE)
        }
        Some(CollectVerb::Man { verb, out }) => {
            pages::print_man(CollectArgs::command(), verb, out.as_deref())
        }
    }
}
