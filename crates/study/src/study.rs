//! A study file, read and ready to be planned.

use std::ops::Range;
use std::path::{Path, PathBuf};

use pubgauge_strict_toml::{
    Entry, InvalidInput, MAX_DEPTH, Node, Noun, Sources, TomlValue, read_text, read_tree, too_deep,
};
use toml::de::DeValue;

use pubgauge_quantities::spelling::did_you_mean;

use crate::file::{READING_KEYS, StudyFile};
use crate::places;
use crate::profile;
use crate::resolve::traces::unset_variables;
use crate::tree::{PathFault, full_path, put_value, short_names, split_settings, with_profile};

/// How messages speak of a study file.
const STUDY: Noun = Noun {
    name: "study",
    article: "a",
    missing: "check the path; a study that comes with pubgauge is named as in `pubgauge run papers/kang2020`",
    too_big: Some(
        "did you mean a trace? A study refers to traces by `[trace.NAME]` with `files = [...]`",
    ),
    empty: "a study needs at least a name and a workload; docs/study-format.md begins with the smallest one",
};

/// A study file that was read, with the changes that the command line asks for.
#[derive(Clone, Debug)]
pub struct Study {
    pub(crate) sources: Sources,
    pub(crate) tree: Node,
    /// The folder that relative paths start from.
    pub(crate) folder: PathBuf,
    /// The size that was chosen by name.
    pub(crate) scale: Option<String>,
}

/// Keys at the top of a study.
const TOP: [&str; 18] = [
    "name",
    "question",
    "systems",
    "seed",
    "repeats",
    "order",
    "phases",
    "topology",
    "client",
    "testbed",
    "search",
    "compare",
    "grid",
    "settings",
    "ablation",
    "trace",
    "workload",
    "criterion",
];

impl Study {
    /// Reads a study file.
    ///
    /// # Errors
    /// When it cannot be read, is larger than [`pubgauge_strict_toml::MAX_FILE_BYTES`], or is not TOML. What the keys
    /// mean is checked by [`Study::file`] and [`Study::plan`].
    pub fn open(path: &Path) -> Result<Self, InvalidInput> {
        Study::open_with_text(path).map(|(study, _)| study)
    }

    /// Reads a study file, and returns its text besides; `-` is standard input.
    ///
    /// # Errors
    /// As [`Study::open`].
    pub fn open_with_text(path: &Path) -> Result<(Self, String), InvalidInput> {
        let (name, path) = if path == Path::new("-") {
            ("standard input".to_owned(), Path::new("/dev/stdin"))
        } else {
            (path.display().to_string(), path)
        };
        let text = read_text(path, &STUDY)?;
        let folder = match path.parent() {
            Some(folder) if path != Path::new("/dev/stdin") => folder.to_path_buf(),
            _ => PathBuf::new(),
        };
        let study = Study::parse(&name, &text, &folder)?;
        Ok((study, text))
    }

    /// Reads a study from a text; `name` is for messages, relative paths start from `folder`.
    ///
    /// # Errors
    /// When the text is not TOML.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, InvalidInput> {
        let mut sources = Sources::default();
        let tree = read_tree(name, text, &STUDY, &mut sources)?;
        Ok(Study {
            sources,
            tree,
            folder: folder.to_path_buf(),
            scale: None,
        })
    }

    /// Changes one value, as `--set PATH=VALUE` asks: `--set phases.measure=30s`, `--set
    /// workload.fleet.flow.publishers=200`, `--set payload=1KiB`. The value is TOML, or else a
    /// text. A step into a list of tables is a name or an index from 0; without it, all elements
    /// are changed.
    ///
    /// # Errors
    /// When it is not `PATH=VALUE`, or the path does not exist. Whether the key exists and the
    /// value fits is checked by [`Study::file`], in messages that name the flag.
    pub fn apply_set(&mut self, set: &str) -> Result<(), InvalidInput> {
        self.apply(&format!("--set {set}"), set)
    }

    /// Changes one value by a flag of its own: [`Study::apply_set`], with messages that name `flag`.
    ///
    /// # Errors
    /// As [`Study::apply_set`].
    pub fn apply_flag(&mut self, flag: &str, path: &str, value: &str) -> Result<(), InvalidInput> {
        self.apply(&format!("{flag} {value}"), &format!("{path}={value}"))
    }

    fn apply(&mut self, flag: &str, set: &str) -> Result<(), InvalidInput> {
        let wrong = |message: String| InvalidInput::plain(flag, message, None);
        let Some((path, value)) = set.split_once('=') else {
            return Err(wrong(
                "expected PATH=VALUE, such as `phases.measure=30s`".into(),
            ));
        };
        let (path, value) = (path.trim(), value.trim());
        let steps: Vec<&str> = full_path(path).split('.').collect();
        if path.is_empty() || steps.iter().any(|step| step.is_empty()) {
            return Err(wrong(format!(
                "`{path}` is not a path; expected keys parted by dots"
            )));
        }
        if let [step] = steps[..]
            && !TOP.contains(&step)
        {
            let near = did_you_mean(step, short_names().chain(TOP));
            return Err(wrong(format!("there is no `{step}`{near}")));
        }
        if too_deep(value).is_some() || steps.len() > MAX_DEPTH {
            return Err(wrong(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        let base = self.sources.add(flag, set, true);
        let span = base..base + set.len();
        let mut node = match DeValue::parse(value) {
            Ok(parsed) => Node::new(parsed, base),
            Err(_) => Ok(Node::at_span(&span, TomlValue::Text(value.to_string()))),
        }
        .map_err(|_| wrong(format!("{value} is out of range")))?;
        // Text whose quotes the shell removed, such as `64B`; and dates, which no key has.
        if let TomlValue::Date(text) = node.value {
            node.value = TomlValue::Text(text);
        }
        node.span = span.clone();
        let mut tree = self.tree.clone();
        put_value(&mut tree, &steps, span, &node)
            .map_err(|fault| wrong(path_fault(path, &fault)))?;
        self.tree = tree;
        Ok(())
    }

    /// Runs every variant of the settings with each of these profiles, as `--profile` asks, in
    /// place of the profile that it may name. A variant's own settings override the profile's; a
    /// variant with a name becomes `NAME-PROFILE`.
    ///
    /// # Errors
    /// A name that no profile has, or one that is given twice.
    pub fn apply_profiles(&mut self, names: &[String]) -> Result<(), InvalidInput> {
        let mut given = Vec::new();
        for (nth, name) in names.iter().enumerate() {
            let flag = format!("--profile {name}");
            if profile::profile(name).is_none() {
                let near = did_you_mean(name, profile::names());
                let message = format!("there is no profile `{name}`{near}");
                let hint = format!("there is {}", profile::names().join(", "));
                return Err(InvalidInput::plain(&flag, message, Some(&hint)));
            }
            if names[..nth].contains(name) {
                return Err(InvalidInput::plain(&flag, "is given twice", None));
            }
            let base = self.sources.add(&flag, name, true);
            given.push((name, base..base + name.len()));
        }
        let TomlValue::Table(entries) = &mut self.tree.value else {
            return Ok(());
        };
        let Some((_, span)) = given.first().cloned() else {
            return Ok(());
        };
        if !entries.iter().any(|entry| entry.key == "settings") {
            let one = Node::at_span(&span, TomlValue::Table(Vec::new()));
            entries.push(Entry::at_span(
                &span,
                "settings",
                TomlValue::List(vec![one]),
            ));
        }
        for entry in entries.iter_mut().filter(|entry| entry.key == "settings") {
            let variants = match &entry.node.value {
                TomlValue::List(variants) => variants.clone(),
                _ => vec![entry.node.clone()],
            };
            let with_each = variants.iter().flat_map(|variant| {
                given
                    .iter()
                    .map(|(name, span)| with_profile(variant, name, span.clone()))
            });
            let with_each = with_each.collect();
            entry.node.value = TomlValue::List(with_each);
        }
        self.rename_variants(&given);
        Ok(())
    }

    /// Replaces the names of variants in workloads by those with the profiles.
    fn rename_variants(&mut self, profiles: &[(&String, Range<usize>)]) {
        let variants = self.tree.list("settings").iter();
        let named: Vec<String> = variants.filter_map(Node::name).map(str::to_owned).collect();
        for workload in self.tree.list_mut("workload").into_iter().flatten() {
            let Some(names) = workload.list_mut("settings") else {
                continue;
            };
            let each = names
                .iter()
                .flat_map(|name| profiles.iter().map(move |p| (name, p)));
            *names = each
                .map(|(name, (profile, _))| {
                    let mut node = name.clone();
                    if let TomlValue::Text(text) = &mut node.value {
                        let own = format!("{text}-{profile}");
                        // A variant without a name has that of its profile.
                        *text = if named.contains(&own) {
                            own
                        } else {
                            (*profile).clone()
                        };
                    }
                    node
                })
                .collect();
        }
    }

    /// The study as typed data, without the grid applied. A value that is searched for, or a share
    /// of one, is the value that a search begins with.
    ///
    /// # Errors
    /// Every key or value that does not fit.
    pub fn file(&self) -> Result<StudyFile, InvalidInput> {
        self.decode(&self.tree)
    }

    /// Whether planning it may read other files than its own, or variables: recorded traces, identities of clients.
    pub fn reads_files(&self) -> bool {
        let workloads = self.tree.list("workload").iter();
        let grids = workloads.clone().map(|own| own.get("grid"));
        let grids = grids.chain([self.tree.get("grid")]).flatten();
        let mut axes = grids.flat_map(|grid| grid.node.entries());
        let flows = workloads.flat_map(|own| own.list("flow"));
        let mut nodes = flows.chain([&self.tree]);
        let reads = |step: &str| READING_KEYS.contains(&step);
        nodes.any(|node| READING_KEYS.iter().any(|key| node.get(key).is_some()))
            || axes.any(|axis| axis.key.split('.').any(reads))
    }

    /// The variables of the environment that its recordings need and that are not set, each once.
    pub fn missing_variables(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut left = vec![&self.tree];
        while let Some(node) = left.pop() {
            for entry in node.entries() {
                match &entry.node.value {
                    TomlValue::Text(text) if entry.key == "files" => {
                        names.extend(unset_variables(text).map(str::to_owned));
                    }
                    TomlValue::List(nodes) if entry.key == "files" => {
                        for node in nodes {
                            if let TomlValue::Text(text) = &node.value {
                                names.extend(unset_variables(text).map(str::to_owned));
                            }
                        }
                    }
                    TomlValue::List(nodes) => left.extend(nodes),
                    _ => left.push(&entry.node),
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// Decodes a changed copy of the tree.
    pub(crate) fn decode(&self, tree: &Node) -> Result<StudyFile, InvalidInput> {
        let mut tree = tree.clone();
        places::fill(&mut tree);
        split_settings(&mut tree);
        self.sources.decode(&tree)
    }
}

/// The error of a path, in words.
pub(crate) fn path_fault(path: &str, fault: &PathFault) -> String {
    match fault {
        PathFault::NoTable(step) => {
            format!("`{path}` leads nowhere: there is nothing below `{step}`")
        }
        PathFault::NoElement { list, step, names } if names.is_empty() => {
            format!("`{path}` leads nowhere: `{list}` has no element `{step}`")
        }
        PathFault::NoElement { list, step, names } => {
            let near = did_you_mean(step, names);
            let there = names.join(", ");
            format!(
                "`{path}` leads nowhere: `{list}` has no element `{step}`{near}; there is {there}"
            )
        }
    }
}
