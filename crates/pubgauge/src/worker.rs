//! `pubgauge worker`: a worker of a run, as a process. The run tells it over standard input what to
//! do and hears over standard output what it saw.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use pubgauge_engine::link::stream::serve;
use pubgauge_runner::trial::prepare_thread;

use crate::drivers;
use crate::exit::{Ending, FINE};

/// Works until the run has what it wants.
pub fn worker() -> Result<i32, Ending> {
    if io::stdin().is_terminal() {
        return Err(Ending::bad_input(
            "a worker is told by a run what to do, not by hand\n  hint: pubgauge run --processes 1",
        ));
    }
    // As many clients as possible; without the right to it, what is allowed is used.
    let _ = pubgauge_testbed::raise_nofile();
    let owned =
        |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from).map_err(Ending::not_valid);
    let input = owned(io::stdin().as_fd().try_clone_to_owned())?;
    let output = owned(io::stdout().as_fd().try_clone_to_owned())?;
    let by_name = |name: &str| drivers::all().by_name(name);
    serve(input, output, by_name, prepare_thread).map_err(Ending::not_valid)?;
    Ok(FINE)
}
