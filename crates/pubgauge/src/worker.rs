//! `pubgauge worker`: a worker of a run, as a process. It reads orders on standard input and writes what it
//! measured to standard output. With `--join`: the agent of another host, which starts such processes for a
//! run that it joins.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use pubgauge_driver::Clock;
use pubgauge_engine::link::stream::serve;
use pubgauge_hosts::{Credentials, Dial, JoinError, Machine, PlaceError, Rank};
use pubgauge_runner::agent::{Agent, AgentError};
use pubgauge_runner::trial::prepare_thread;

use crate::args::WorkerArgs;
use crate::drivers;
use crate::exit::{Ending, FINE, tell};

/// Works until the run ends it.
pub fn worker(args: &WorkerArgs) -> Result<i32, Ending> {
    if let Some(conductor) = &args.join {
        return join(args, conductor);
    }
    if io::stdin().is_terminal() {
        return Err(Ending::bad_input(
            "a worker is told by a run what to do, not by hand\n  hint: pubgauge run --processes 1, or --join HOST:PORT to join a run of another host",
        ));
    }
    // For as many clients as possible; if it is not permitted, the present limit holds.
    let _ = pubgauge_testbed::raise_nofile();
    let owned =
        |fd: io::Result<std::os::fd::OwnedFd>| fd.map(File::from).map_err(Ending::not_valid);
    let input = owned(io::stdin().as_fd().try_clone_to_owned())?;
    let output = owned(io::stdout().as_fd().try_clone_to_owned())?;
    let by_name = |name: &str| drivers::all().by_name(name);
    let clock = args.clock.map_or(Clock::Monotonic, Clock::Converted);
    let below = args.files.as_deref();
    serve(input, output, by_name, prepare_thread, clock, below).map_err(Ending::not_valid)?;
    Ok(FINE)
}

/// Joins the run that waits at `conductor`, or where the environment says, and works until it is over.
fn join(args: &WorkerArgs, conductor: &str) -> Result<i32, Ending> {
    let variable = |name: &str| std::env::var(name).ok();
    let asked = Some(conductor).filter(|text| !text.is_empty());
    let conductor = pubgauge_hosts::conductor(asked, variable).map_err(Ending::bad_input)?;
    let credentials = Credentials::from_environment(variable).map_err(Ending::bad_input)?;
    let agent = Agent {
        dial: Dial {
            conductor,
            rank: rank(args, &credentials, variable).map_err(Ending::bad_input)?,
            credentials,
            machine: Machine::here(),
            patience: Dial::PATIENCE,
        },
        program: std::env::current_exe().map_err(Ending::not_valid)?,
        files: args.files.clone(),
    };
    let served = agent.serve(&mut |words| {
        if !args.quiet {
            tell!("{words}");
        }
    });
    served.map_err(|error| match error {
        AgentError::Join(JoinError::Credentials(_)) => Ending::bad_input(error),
        _ => Ending::not_valid(error),
    })?;
    Ok(FINE)
}

/// This host's rank: as asked, as what started it says, or the only one that there are credentials for.
fn rank(
    args: &WorkerArgs,
    credentials: &Credentials,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Rank, PlaceError> {
    if let Some(rank) = args.rank {
        return Ok(Rank { rank, size: None });
    }
    match pubgauge_hosts::rank(variable) {
        Err(PlaceError::NoRank) if credentials.tokens.len() == 1 => {
            let rank = credentials.tokens.keys().next().copied();
            let rank = rank.ok_or(PlaceError::NoRank)?;
            Ok(Rank { rank, size: None })
        }
        found => found,
    }
}
