//! From the command line to the exit code.

use std::ffi::OsString;

use clap::Parser;
use clap::error::ErrorKind;

use crate::exit::{self, BAD_INPUT, Ending, FINE, tell};
use crate::signals;

/// Reads the command line, acts by it, and ends the process with the exit code. An early end is told on standard error.
/// `explain` says what is wrong with a command line where it knows better than clap.
pub fn run<C: Parser>(
    explain: impl Fn(&clap::Error) -> Option<String>,
    act: impl FnOnce(C) -> Result<i32, Ending>,
) -> ! {
    run_with(std::env::args_os().collect(), explain, act)
}

/// As [`run`], with these arguments.
pub fn run_with<C: Parser>(
    arguments: Vec<OsString>,
    explain: impl Fn(&clap::Error) -> Option<String>,
    act: impl FnOnce(C) -> Result<i32, Ending>,
) -> ! {
    let read = C::try_parse_from(arguments);
    let command_line = read.unwrap_or_else(|error| end_unread(&error, explain(&error)));
    end_process(signals::ignore_size_limit().and_then(|()| act(command_line)))
}

/// Ends the process with the exit code. An early end is told on standard error.
pub fn end_process(acted: Result<i32, Ending>) -> ! {
    let ended = acted.and_then(|code| exit::complete().map(|()| code));
    let code = ended.unwrap_or_else(|ending| {
        tell!("error: {}", ending.message);
        ending.code
    });
    std::process::exit(signals::exit_code(code));
}

/// Prints the help or the version that was asked for, which are no errors; everything else here is bad input.
fn end_unread(error: &clap::Error, explained: Option<String>) -> ! {
    let is_asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if is_asked {
        drop(error.print());
    } else {
        // The text repeats the command line, so it is made plain.
        let text = explained.unwrap_or_else(|| error.render().to_string());
        exit::write_plain(format_args!("{text}"));
    }
    std::process::exit(if is_asked { FINE } else { BAD_INPUT });
}
