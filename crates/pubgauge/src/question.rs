//! Questions to whoever sits at the terminal.

use std::io::{BufRead, IsTerminal};

use pubgauge_command::exit::{Ending, tell, write_plain};

/// Asks whether to go on; anything but yes is no.
///
/// # Errors
/// If the answer is no, with what was left undone; if standard input is no terminal, with the hint.
pub fn ask(warning: &str, question: &str, undone: &str, hint: &str) -> Result<(), Ending> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let said = if warning.is_empty() { "" } else { "; " };
        return Err(Ending::bad_input(format!(
            "{warning}{said}nobody can be asked: standard input is no terminal\n  hint: to do it without a question: {hint}"
        )));
    }
    if !warning.is_empty() {
        tell!("{warning}");
    }
    write_plain(format_args!("{question}? [y/N] "));
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    let yes = ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if read.is_ok() && yes {
        Ok(())
    } else {
        Err(Ending::bad_input(format!("not wanted; {undone}")))
    }
}
