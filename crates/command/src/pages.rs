//! Completions and manual pages, made of the command line itself.

use std::path::Path;

use clap::{Arg, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::{Ending, FINE, print, print_bytes};

/// Prints the script that completes a command line in a shell.
pub fn print_completions(mut root: Command, shell: Shell) {
    let mut script = Vec::new();
    let name = root.get_name().to_owned();
    clap_complete::generate(shell, &mut root, name, &mut script);
    print_bytes(&script);
}

/// Prints the manual page of a verb, or writes all pages into a folder.
///
/// # Errors
/// If there is no such verb, or the folder cannot be written into.
pub fn print_man(mut root: Command, verb: &[String], out: Option<&Path>) -> Result<i32, Ending> {
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

/// The pages of a command and of all verbs below it: (name of the file, roff). A verb that takes
/// whatever stands behind it is another program, whose pages are its own.
fn pages(command: &Command) -> Result<Vec<(String, Vec<u8>)>, Ending> {
    let mut all = vec![page(command)?];
    let is_own = |below: &&Command| !below.get_arguments().any(Arg::is_trailing_var_arg_set);
    for below in visible(command).filter(is_own) {
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
