//! Options that nobody typed: from variables of the environment and from `pubgauge.toml`, put behind what was typed.
//!
//! One mechanism for all options: what the command line lacks is looked up by the option's own name, `rate` in the file and
//! `PUBGAUGE_RATE` in the environment, and read by the same parser. docs/defaults.md says what applies where.

mod file;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory};
use pubgauge_command::exit::{Ending, tell};

use crate::args::{Cli, Selection, UntilArgs};
use file::DefaultsFile;

/// The beginning of the names of variables.
const PREFIX: &str = "PUBGAUGE_";

/// The variable that names the file.
const CONFIG: &str = "PUBGAUGE_CONFIG";

/// The file that is read if no other is named and it is there.
const FILE: &str = "pubgauge.toml";

/// Options that are only typed: consent, and what one command line is about.
const TYPED_ONLY: [&str; 5] = ["help", "help-all", "config", "yes", "resume"];

/// An option that was not typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Default {
    option: String,
    /// As it is put behind what was typed.
    arguments: Vec<OsString>,
    /// Where it is from: `PUBGAUGE_RATE`, `pubgauge.toml:3:8`.
    place: String,
    /// Whether it is a variable of the environment.
    by_variable: bool,
}

impl Default {
    /// The option with its value and its place: `--rate=1k/s (PUBGAUGE_RATE)`. An address with a user stays untold, because a
    /// password may stand in it that is refused later.
    fn describe(&self) -> String {
        let typed = self.arguments.iter().map(|a| a.to_string_lossy());
        let typed = typed.collect::<Vec<_>>().join(" ");
        if typed.contains('@') {
            format!("--{} ({})", self.option, self.place)
        } else {
            format!("{typed} ({})", self.place)
        }
    }
}

/// The command line with the options that were not typed.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The typed ones, and then the others.
    pub arguments: Vec<OsString>,
    applied: Vec<Default>,
    /// Options that a study of its own leaves out.
    left_out: Vec<Default>,
    /// Names of variables that are none of pubgauge's, each with the option that may have been meant.
    misspelt: Vec<(String, String)>,
    is_quiet: bool,
}

impl CommandLine {
    /// Completes what was typed.
    ///
    /// # Errors
    /// A file that cannot be read or has a wrong key, and a value that the option does not take.
    pub fn complete(typed: Vec<OsString>) -> Result<CommandLine, Ending> {
        let as_typed = CommandLine {
            arguments: typed.clone(),
            ..CommandLine::default()
        };
        let root = Cli::command();
        let lenient = root.clone().ignore_errors(true);
        let Ok(matches) = lenient.try_get_matches_from(&typed) else {
            return Ok(as_typed);
        };
        let Some((verb, command, of_verb)) = chosen(&root, &matches) else {
            return Ok(as_typed);
        };
        // Errors in what was typed are told first, and by those who know the words of other tools.
        let base = problem(&typed).map(|error| error.kind());
        if !matches!(base, None | Some(ErrorKind::MissingRequiredArgument)) {
            return Ok(as_typed);
        }
        let named = of_verb.try_get_one::<PathBuf>("config").ok().flatten();
        let file = DefaultsFile::find(&root, named.map(PathBuf::as_path))?;
        let mut found = Vec::new();
        for option in options(command) {
            let typed = of_verb.value_source(option.get_id().as_str());
            if typed.is_some_and(|source| source != ValueSource::DefaultValue) {
                continue;
            }
            let by_variable = from_environment(option)?;
            let by_file = || file.as_ref().map(|file| file.value(&verb, option));
            found.extend(match by_variable {
                Some(default) => Some(default),
                None => by_file().transpose()?.flatten(),
            });
        }
        let study = of_verb.try_get_one::<PathBuf>("study").ok().flatten();
        let resumed = matches!(of_verb.try_contains_id("resume"), Ok(true));
        let is_own = resumed || study.is_some_and(|study| names_a_study(study));
        let (left_out, found): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|default: &Default| is_own && is_of_study(&default.option));
        let mut line = with_all(typed, found)?;
        line.left_out = left_out;
        line.misspelt = misspelt(&root);
        let is_quiet = |default: &Default| default.option == "quiet";
        line.is_quiet = of_verb.try_get_one("quiet").ok().flatten() == Some(&true)
            || line.applied.iter().any(is_quiet);
        Ok(line)
    }

    /// Says which options were not typed, on standard error.
    pub fn tell_sources(&self) {
        if self.is_quiet {
            return;
        }
        for (name, meant) in &self.misspelt {
            tell!("{name} is no variable of pubgauge (did you mean `{meant}`?)");
        }
        let applied = self.applied.iter().map(Default::describe);
        let applied: Vec<String> = applied.collect();
        if !applied.is_empty() {
            tell!("not typed: {}", applied.join(", "));
        }
        let left_out = self.left_out.iter().map(Default::describe);
        let left_out: Vec<String> = left_out.collect();
        if !left_out.is_empty() {
            tell!("left to the study: {}", left_out.join(", "));
        }
    }

    /// The error with the places of the options that it names and that were not typed.
    pub fn explain(&self, mut ending: Ending) -> Ending {
        for default in &self.applied {
            let flag = format!("--{}", default.option);
            let is_named = ending.message.match_indices(&flag).any(|(at, _)| {
                let rest = &ending.message[at + flag.len()..];
                !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
            });
            if is_named {
                ending.message += &format!("\n  note: {flag} is from {}", default.place);
            }
        }
        ending
    }
}

/// The verb that was typed, the innermost command and what was typed for it; `None` without any, and for those that have no
/// options of their own: other programs, and verbs that pubgauge starts itself.
fn chosen<'a>(
    root: &'a Command,
    matches: &'a ArgMatches,
) -> Option<(String, &'a Command, &'a ArgMatches)> {
    let (mut command, mut matches) = (root, matches);
    let mut verb = None;
    while let Some((name, inner)) = matches.subcommand() {
        command = command.find_subcommand(name)?;
        matches = inner;
        if command.is_hide_set() || name == "collect" {
            return None;
        }
        verb.get_or_insert_with(|| name.to_owned());
    }
    Some((verb?, command, matches))
}

/// The options of a command that may come from elsewhere.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let all = command.get_arguments();
    all.filter(|arg| name(arg).is_some_and(|name| !TYPED_ONLY.contains(&name)))
}

fn name(option: &Arg) -> Option<&str> {
    option.get_long()
}

/// Whether it is a switch without a value.
fn is_switch(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue)
}

/// The name of the variable of an option.
fn variable(option: &str) -> String {
    PREFIX.to_owned() + &option.to_uppercase().replace('-', "_")
}

/// The value of an option's variable. Those that have one by other means are read there.
fn from_environment(option: &Arg) -> Result<Option<Default>, Ending> {
    let long = name(option).unwrap_or_default();
    let name = variable(long);
    let value = std::env::var_os(&name).filter(|value| !value.is_empty());
    let Some(value) = value.filter(|_| option.get_env().is_none()) else {
        return Ok(None);
    };
    let arguments = if is_switch(option) {
        match value.to_str().map(str::to_lowercase).as_deref() {
            Some("1" | "true" | "yes") => switch(long, true),
            Some("0" | "false" | "no") => switch(long, false),
            _ => {
                return Err(Ending::bad_input(format!(
                    "{name}={}: expected true or false, because --{long} is a switch",
                    value.to_string_lossy()
                )));
            }
        }
    } else {
        vec![with_value(long, &value)]
    };
    Ok(Some(Default {
        option: long.to_owned(),
        arguments,
        place: name,
        by_variable: true,
    }))
}

fn switch(long: &str, is_on: bool) -> Vec<OsString> {
    let typed = is_on.then(|| format!("--{long}").into());
    typed.into_iter().collect()
}

fn with_value(long: &str, value: &OsStr) -> OsString {
    let mut typed = OsString::from(format!("--{long}="));
    typed.push(value);
    typed
}

/// Whether what was typed in place of a study is one.
fn names_a_study(study: &Path) -> bool {
    let mut alone = Selection {
        study: Some(study.to_owned()),
        ..Selection::default()
    };
    study.as_os_str() == "first-look" || alone.resolve_words().is_err() || alone.study.is_some()
}

/// Whether an option says what is measured. Where a study is named, it says so.
fn is_of_study(long: &str) -> bool {
    long != "systems" && (has_option::<Selection>(long) || has_option::<UntilArgs>(long))
}

/// Whether one of these arguments has this name.
fn has_option<T: Args>(long: &str) -> bool {
    let command = T::augment_args(Command::new(""));
    command.get_arguments().any(|arg| name(arg) == Some(long))
}

/// Why a command line cannot be read.
fn problem(arguments: &[OsString]) -> Option<clap::Error> {
    Cli::command().try_get_matches_from(arguments).err()
}

/// The typed arguments with these options, variables first. One that cannot be had together with what was typed, or with a variable,
/// gives way.
fn with_all(typed: Vec<OsString>, mut found: Vec<Default>) -> Result<CommandLine, Ending> {
    found.sort_by_key(|default| !default.by_variable);
    let is_whole = problem(&typed).is_none();
    let (mut applied, mut waiting): (Vec<Default>, Vec<Default>) = (Vec::new(), Vec::new());
    for default in found {
        applied.push(default);
        let Some(error) = problem(&joined(&typed, &applied)) else {
            continue;
        };
        match error.kind() {
            ErrorKind::ArgumentConflict => drop(applied.pop()),
            // Another one that comes later may be the one that it needs.
            ErrorKind::MissingRequiredArgument if is_whole => waiting.extend(applied.pop()),
            ErrorKind::MissingRequiredArgument => {}
            _ => {
                let place = applied.pop().map_or(String::new(), |default| default.place);
                let text = error.render().to_string();
                let first = text.split("\n\n").next().unwrap_or_default();
                let words = first.trim_start_matches("error: ").trim_end();
                return Err(Ending::bad_input(format!("{place}: {words}")));
            }
        }
    }
    let all = [&applied[..], &waiting[..]].concat();
    if !waiting.is_empty() && problem(&joined(&typed, &all)).is_none() {
        applied = all;
    }
    applied.retain(|default| !default.arguments.is_empty());
    Ok(CommandLine {
        arguments: joined(&typed, &applied),
        applied,
        ..CommandLine::default()
    })
}

/// The options behind what was typed, before words that are no options any more.
fn joined(typed: &[OsString], defaults: &[Default]) -> Vec<OsString> {
    let end = typed.iter().position(|argument| argument == "--");
    let (options, words) = typed.split_at(end.unwrap_or(typed.len()));
    let added = defaults.iter().flat_map(|default| &default.arguments);
    let all = options.iter().chain(added).chain(words);
    all.cloned().collect()
}

/// The names of all options that may come from elsewhere.
fn known_options(root: &Command) -> Vec<&str> {
    let mut known = Vec::new();
    let mut commands: Vec<&Command> = root.get_subcommands().collect();
    while let Some(command) = commands.pop() {
        if !command.is_hide_set() {
            known.extend(options(command).filter_map(name));
            commands.extend(command.get_subcommands());
        }
    }
    known.sort_unstable();
    known.dedup();
    known
}

/// The folder of recorded data, by which studies that come with pubgauge name their files.
const DATA_VARIABLE: &str = "PUBGAUGE_DATA";

/// Variables that are those of an option but for a slip. Others may be those of systems' files.
fn misspelt(root: &Command) -> Vec<(String, String)> {
    let known: Vec<String> = known_options(root).into_iter().map(variable).collect();
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let other = |name: &String| name != DATA_VARIABLE && !known.contains(name);
    let own = set.filter(|name| name.starts_with(PREFIX) && other(name));
    let meant = own.filter_map(|name| {
        let meant = known.iter().find(|known| is_slip(&name, known))?;
        Some((name, meant.clone()))
    });
    meant.collect()
}

/// Whether two names differ in one letter, in one that one of them lacks, or in the order of letters.
fn is_slip(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let (mut short, mut long) = (short.as_bytes().to_vec(), long.as_bytes().to_vec());
    let same = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    let is_lacking = long.len() == short.len() + 1 && short[same..] == long[same + 1..];
    let is_other = long.len() == short.len() && short[same..].get(1..) == long[same..].get(1..);
    short.sort_unstable();
    long.sort_unstable();
    is_lacking || is_other || short == long
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_names_are_not() {
        for (typed, meant, is) in [
            ("RAET", "RATE", true),
            ("RATES", "RATE", true),
            ("PUBLISHER", "PUBLISHERS", true),
            ("RSTE", "RATE", true),
            ("DATA", "RATE", false),
            ("CACHE", "RATE", false),
            ("SEARCHES", "SEARCH", false),
        ] {
            assert_eq!(is_slip(typed, meant), is, "{typed}");
        }
    }

    /// No variable of an option is one that means something else.
    #[test]
    fn variables_mean_one_thing() {
        let root = Cli::command();
        let known: Vec<String> = known_options(&root).into_iter().map(variable).collect();
        for other in ["PASSWORD", "DATA", "CACHE", "CONFIG", "RENEW"] {
            assert!(!known.contains(&(PREFIX.to_owned() + other)), "{other}");
        }
        assert!(known.contains(&"PUBGAUGE_WARM_UP".to_owned()));
    }
}
