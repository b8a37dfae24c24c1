//! Programs that configure a network, run to their end.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use pubgauge_testbed::{Namespace, PASSWORD_VARIABLE, on_path};

/// Why a program failed: what it said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(String);

impl<S: Into<String>> From<S> for ToolError {
    fn from(said: S) -> ToolError {
        ToolError(said.into())
    }
}

/// Runs a program in a namespace with this input.
pub(crate) fn run(place: &Namespace, argv: &[&str], input: &str) -> Result<(), ToolError> {
    place
        .run(|| Ok(run_in_namespace(argv, input)))
        .map_err(|error| format!("the namespace cannot be entered: {error}"))?
        .map(|_| ())
}

/// Runs a program in the network namespace of this thread; returns its standard output.
pub(crate) fn run_in_namespace(argv: &[&str], input: &str) -> Result<String, ToolError> {
    let (program, arguments) = (argv[0], &argv[1..]);
    let file = on_path(program).ok_or_else(|| format!("there is no program `{program}`"))?;
    let run = || -> io::Result<std::process::Output> {
        let mut child = Command::new(&file)
            .args(arguments)
            .env("LC_ALL", "C")
            .env_remove(PASSWORD_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that has ended reports the reason itself.
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output()
    };
    let output = run().map_err(|error| format!("{}: {error}", file.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    Err(ToolError(if lines.is_empty() {
        format!("ended with {}", output.status)
    } else {
        lines.join("; ")
    }))
}
