//! `pubgauge collect`: the program `pubgauge-collect`, where it is installed.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use pubgauge_command::exit::Ending;

const PROGRAM: &str = "pubgauge-collect";

/// Becomes the program, with the arguments that this process has behind `collect`.
///
/// # Errors
/// If it is not installed, or cannot be started; otherwise this does not return.
pub fn collect() -> Result<i32, Ending> {
    let typed = std::env::args_os().skip_while(|word| word != "collect");
    become_program(typed.skip(1))
}

/// Becomes the program, with these arguments.
///
/// # Errors
/// If it is not installed, or cannot be started; otherwise this does not return.
pub fn become_program(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<i32, Ending> {
    let args = args.into_iter().map(Into::into);
    let program = beside_this().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(args).exec();
    Err(Ending::bad_input(match error.kind() {
        ErrorKind::NotFound => format!(
            "{PROGRAM} is not installed: it is neither beside this program nor on the PATH\n  \
             hint: it is a package of its own: apt-get install ./pubgauge-collect_*.deb, or from a checkout \
             cargo install --locked --path crates/collect (docs/install.md)"
        ),
        _ => format!("{} cannot be started: {error}", program.display()),
    }))
}

/// The program in the folder of this one, if it is there.
fn beside_this() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    beside.is_file().then_some(beside)
}
