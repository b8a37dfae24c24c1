//! `pubgauge worker`: what a run starts, on this host or on others. It reads orders on standard input and writes what it
//! measured to standard output.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use pubgauge_command::exit::{Ending, FINE};
use pubgauge_driver::{Clock, monotonic_now};
use pubgauge_engine::link::stream::serve;
use pubgauge_hosts::echo;
use pubgauge_runner::worker_thread::prepare_thread;

use crate::args::WorkerArgs;
use crate::drivers;

/// Works until the run ends it.
pub fn worker(args: &WorkerArgs) -> Result<i32, Ending> {
    if io::stdin().is_terminal() {
        return Err(Ending::bad_input(
            "a run starts its workers itself, and speaks to them over standard input\n  hint: pubgauge run --processes 1, or --load-host COMMAND for other hosts (docs/hosts.md)",
        ));
    }
    let owned =
        |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from).map_err(Ending::not_valid);
    let input = owned(io::stdin().as_fd().try_clone_to_owned())?;
    let output = owned(io::stdout().as_fd().try_clone_to_owned())?;
    if let Some(conductor) = args.echo {
        echo::serve(conductor, input, output, monotonic_now).map_err(Ending::not_valid)?;
        return Ok(FINE);
    }
    // For as many clients as possible; if it is not permitted, the present limit holds.
    let _ = pubgauge_testbed::raise_nofile();
    let by_name = |name: &str| drivers::all().by_name(name);
    let clock = args.clock.map_or(Clock::Monotonic, Clock::Converted);
    serve(input, output, by_name, prepare_thread, clock).map_err(Ending::not_valid)?;
    Ok(FINE)
}
