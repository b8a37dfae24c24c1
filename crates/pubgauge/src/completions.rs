//! `pubgauge completions` and `pubgauge man`: generated from the command line itself.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::exit::{Ending, FINE, print, print_bytes};

/// Prints a completion script.
pub fn completions(shell: Shell) -> Result<i32, Ending> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "pubgauge", &mut script);
    print_bytes(&script);
    Ok(FINE)
}

/// Prints the manual page of a verb, or writes all pages into a folder.
pub fn man(verb: &[String], out: Option<&Path>) -> Result<i32, Ending> {
    let mut root = Cli::command();
    root.build();
    let Some(out) = out else {
        let mut command = &root;
        for word in verb {
            command = command.find_subcommand(word).ok_or_else(|| {
                let known = visible(command).map(Command::get_name).collect::<Vec<_>>();
                Ending::bad_input(format!(
                    "no verb `{word}`\n  hint: {}",
                    if known.is_empty() {
                        format!("`{}` has none", command.get_name())
                    } else {
                        format!("known are {}", known.join(", "))
                    }
                ))
            })?;
        }
        print_bytes(&page(command)?.1);
        return Ok(FINE);
    };
    let pages = pages(&root)?;
    let wrong =
        |e: std::io::Error| Ending::bad_input(format!("cannot write into {}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(wrong)?;
    for (name, text) in pages {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(wrong)?;
        print(&format!("{}\n", path.display()));
    }
    Ok(FINE)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    command.get_subcommands().filter(shown)
}

/// The pages of a command and of all verbs below it: (name of the file, roff).
fn pages(command: &Command) -> Result<Vec<(String, Vec<u8>)>, Ending> {
    let mut all = vec![page(command)?];
    for below in visible(command) {
        all.extend(pages(below)?);
    }
    Ok(all)
}

fn page(command: &Command) -> Result<(String, Vec<u8>), Ending> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text).map_err(Ending::not_valid)?;
    Ok((man.get_filename(), text))
}
