//! The file with defaults of options.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use pubgauge_command::exit::Ending;
use pubgauge_command::options::Output;
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_strict_toml::{
    Entry, InvalidInput, Node, Noun, Sources, TomlValue, read_text, read_tree,
};

use super::{
    CONFIG, Default, FILE, has_option, is_switch, known_options, name, options, switch, with_value,
};
use crate::args::{ClientArgs, Selection, UntilArgs};

const NOUN: Noun = Noun {
    name: "options",
    article: "an",
    missing: "name a file with options, such as rate = \"1k/s\"; a study is named without an option: pubgauge run FILE",
    too_big: None,
    empty: "it has options by their names, such as rate = \"1k/s\"; see docs/defaults.md",
};

/// Options of what is measured that a file may not set that merely lies in the current folder: they read files, or set
/// anything.
const HARMFUL: [&str; 2] = ["systems", "set"];

/// Other options that it may set.
const HARMLESS: [&str; 8] = [
    "verbose", "margin", "figure", "axis", "width", "budget", "confirm", "format",
];

/// Keys of studies, which somebody may take for options.
const OF_STUDIES: [&str; 5] = ["name", "question", "workload", "phases", "settings"];

/// A file whose keys are all known.
pub(super) struct DefaultsFile {
    sources: Sources,
    tree: Node,
    /// The name that messages begin with.
    name: String,
    /// Whether somebody has named it.
    is_named: bool,
}

impl DefaultsFile {
    /// The file that is named, by the option or else by the variable, or else the one in the current folder; `None` if
    /// there is none, or the variable is empty.
    ///
    /// # Errors
    /// If it cannot be read, or has a key that is no option; all such keys.
    pub(super) fn find(
        root: &Command,
        typed: Option<&Path>,
    ) -> Result<Option<DefaultsFile>, Ending> {
        let variable = std::env::var_os(CONFIG);
        let named = typed.map(PathBuf::from).or(variable.map(PathBuf::from));
        let (path, is_named) = match named {
            Some(path) if path.as_os_str().is_empty() => return Ok(None),
            Some(path) => (path, true),
            None if Path::new(FILE).is_file() => (PathBuf::from(FILE), false),
            None => return Ok(None),
        };
        let name = path.display().to_string();
        let mut sources = Sources::default();
        let text = read_text(&path, &NOUN).map_err(Ending::bad_input)?;
        // A file of comments alone sets nothing.
        let tree = read_tree(&name, &text, &NOUN, &mut sources).map_err(Ending::bad_input)?;
        let file = DefaultsFile {
            sources,
            tree,
            name,
            is_named,
        };
        file.check(root)?;
        Ok(Some(file))
    }

    /// Checks that each key is an option, or a verb with a table of options.
    fn check(&self, root: &Command) -> Result<(), Ending> {
        let mut problems = Vec::new();
        let mut wrong = |entry: &Entry, message: String, hint: Option<String>| {
            problems.push(
                self.sources
                    .problem(Some(entry.span.clone()), message, hint),
            );
        };
        let known = known_options(root);
        let verbs = root.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verbs: Vec<&str> = verbs.map(Command::get_name).collect();
        for entry in self.tree.entries() {
            let key = entry.key.as_str();
            match (&entry.node.value, verbs.contains(&key)) {
                // `systems` is both.
                (TomlValue::Table(inner), true) => {
                    let verb = root.find_subcommand(key).into_iter();
                    let own: Vec<&str> = verb.flat_map(known_in).collect();
                    for entry in inner.iter().filter(|e| !own.contains(&&*e.key)) {
                        let message = format!(
                            "`{}` is no option of `pubgauge {key}`{}",
                            entry.key,
                            did_you_mean(&entry.key, own.iter().copied())
                        );
                        wrong(entry, message, hint_of(&entry.key));
                    }
                }
                (TomlValue::Table(_), false) => {
                    let near = did_you_mean(key, verbs.iter().copied());
                    wrong(entry, format!("`{key}` is no verb{near}"), hint_of(key));
                }
                _ if !known.contains(&key) => {
                    let near = did_you_mean(key, known.iter().copied());
                    wrong(entry, format!("`{key}` is no option{near}"), hint_of(key));
                }
                _ => {}
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Ending::bad_input(InvalidInput { problems }))
    }

    /// The value of an option of a verb: that of the verb's table, or else that of the file.
    ///
    /// # Errors
    /// If it is no value of an option, or one that a file may not set that nobody has named.
    pub(super) fn value(&self, verb: &str, option: &Arg) -> Result<Option<Default>, Ending> {
        let Some(long) = name(option) else {
            return Ok(None);
        };
        let of_verb = self.tree.get(verb).and_then(|table| table.node.get(long));
        let of_all = self.tree.get(long);
        let of_all = of_all.filter(|entry| !matches!(entry.node.value, TomlValue::Table(_)));
        let Some(entry) = of_verb.or(of_all) else {
            return Ok(None);
        };
        let arguments = self.arguments(option, long, &entry.node)?;
        let texts = arguments.iter().map(|argument| argument.to_string_lossy());
        let is_address = |text: &str| {
            text.contains("://")
                || text.split(',').any(|one| {
                    let port = one.rsplit_once(':').map(|(_, port)| port);
                    port.is_some_and(|port| port.parse::<u16>().is_ok())
                })
        };
        let addresses = long != "rate" && texts.into_iter().any(|text| is_address(&text));
        if !self.is_named && (addresses || !is_harmless(long)) {
            let message = format!(
                "`{long}` may name servers, start programs, or read and write files, which no file may ask for that merely lies \
                 in the current folder"
            );
            let hint = format!("name the file: --config {}, or PUBGAUGE_CONFIG", self.name);
            return Err(self.wrong(&entry.span, message, Some(hint)));
        }
        let at = self.sources.problem(Some(entry.span.clone()), "", None);
        let place = match at.line {
            Some(line) => format!("{}:{line}", self.name),
            None => self.name.clone(),
        };
        Ok(Some(Default {
            option: long.to_owned(),
            arguments,
            place,
            by_variable: false,
        }))
    }

    /// The option as it would be typed.
    fn arguments(&self, option: &Arg, long: &str, node: &Node) -> Result<Vec<OsString>, Ending> {
        if is_switch(option) {
            return match node.value {
                TomlValue::Boolean(is_on) => Ok(switch(long, is_on)),
                _ => Err(self.wrong(
                    &node.span,
                    format!("`{long}` is a switch: expected true or false"),
                    None,
                )),
            };
        }
        let text = |node: &Node| match &node.value {
            TomlValue::Text(text) => Ok(text.clone()),
            TomlValue::Integer(number) => Ok(number.to_string()),
            TomlValue::Float(number) => Ok(number.to_string()),
            _ => Err(self.wrong(
                &node.span,
                format!("`{long}`: expected a text or a number"),
                Some(format!("for example {long} = \"...\"")),
            )),
        };
        let TomlValue::List(nodes) = &node.value else {
            return Ok(vec![with_value(long, text(node)?.as_ref())]);
        };
        let several = matches!(option.get_action(), ArgAction::Append);
        if !several {
            let message = format!("`{long}` takes one value, and this is a list");
            return Err(self.wrong(&node.span, message, None));
        }
        let texts: Result<Vec<String>, Ending> = nodes.iter().map(text).collect();
        let texts = texts?;
        Ok(texts
            .iter()
            .map(|text| with_value(long, text.as_ref()))
            .collect())
    }

    fn wrong(&self, span: &Range<usize>, message: String, hint: Option<String>) -> Ending {
        let problem = self.sources.problem(Some(span.clone()), message, hint);
        Ending::bad_input(InvalidInput::single(problem))
    }
}

/// The options of a verb and of those below it.
fn known_in(verb: &Command) -> Vec<&str> {
    let below = verb.get_subcommands().flat_map(options);
    options(verb).chain(below).filter_map(name).collect()
}

/// The hint for a key that is no option.
fn hint_of(key: &str) -> Option<String> {
    match key {
        "password" | "passwd" | "secret" => Some(
            "a password never stands in this file: PUBGAUGE_PASSWORD has it, or the file that `password-file` names".into(),
        ),
        key if OF_STUDIES.contains(&key) => {
            Some("this is a key of a study, which is named without an option: pubgauge run FILE".into())
        }
        _ => None,
    }
}

/// Whether any file may set the option: it starts no program, reads and writes no file, and names no server.
fn is_harmless(long: &str) -> bool {
    let of_run = has_option::<Selection>(long)
        || has_option::<UntilArgs>(long)
        || has_option::<ClientArgs>(long)
        || has_option::<Output>(long);
    (of_run && !HARMFUL.contains(&long)) || HARMLESS.contains(&long)
}
