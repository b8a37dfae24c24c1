//! Programs that configure a network, run to their end.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use pubgauge_testbed::Namespace;

/// Folders of system programs that a user's search path may lack.
const BESIDE_PATH: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// The path of a program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(BESIDE_PATH.map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Runs a program in a namespace with this input; the error is its output.
pub(crate) fn run(place: &Namespace, argv: &[&str], input: &str) -> Result<(), String> {
    output(place, argv, input).map(|_| ())
}

/// As [`run`]; returns its standard output.
pub(crate) fn output(place: &Namespace, argv: &[&str], input: &str) -> Result<String, String> {
    let file = find(argv[0]).ok_or_else(|| format!("there is no program `{}`", argv[0]))?;
    place
        .run(|| Ok(within(file, &argv[1..], input)))
        .map_err(|error| format!("the namespace cannot be entered: {error}"))?
}

/// Runs a program in the network namespace of this thread.
pub(crate) fn within(file: PathBuf, arguments: &[&str], input: &str) -> Result<String, String> {
    let name = file.display().to_string();
    let run = || -> io::Result<std::process::Output> {
        let mut child = Command::new(file)
            .args(arguments)
            .env("LC_ALL", "C")
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
    let output = run().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    Err(match lines.is_empty() {
        true => format!("ended with {}", output.status),
        false => lines.join("; "),
    })
}
