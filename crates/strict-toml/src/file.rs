//! A file, from its bytes to its values.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::DeTable;

use crate::decode::decode;
use crate::problem::{InvalidInput, Problem, Sources};
use crate::tree::{Node, TomlValue};

/// Largest file in bytes; such a file is a page or two of text.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Deepest nesting of tables and lists; the formats need 5.
pub const MAX_DEPTH: usize = 24;

/// How messages speak of a file.
#[derive(Clone, Copy, Debug)]
pub struct Noun {
    /// The word before `file`: `study`.
    pub name: &'static str,
    /// `a` or `an`.
    pub article: &'static str,
    /// The hint where there is no such file.
    pub missing: &'static str,
    /// The hint where a file is too long, or compressed.
    pub too_big: Option<&'static str>,
    /// The hint where a file is empty.
    pub empty: &'static str,
}

impl fmt::Display for Noun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.article, self.name)
    }
}

/// A file that was read, with the positions of its values.
#[derive(Clone, Debug)]
pub struct StrictFile {
    sources: Sources,
    tree: Node,
}

impl StrictFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is larger than [`MAX_FILE_BYTES`], or is not TOML.
    pub fn open(path: &Path, noun: &Noun) -> Result<StrictFile, InvalidInput> {
        let text = read_text(path, noun)?;
        StrictFile::parse(&path.display().to_string(), &text, noun)
    }

    /// Reads a text; `name` is for messages.
    ///
    /// # Errors
    /// When the text is not TOML.
    pub fn parse(name: &str, text: &str, noun: &Noun) -> Result<StrictFile, InvalidInput> {
        let mut sources = Sources::default();
        let tree = read_tree(name, text, noun, &mut sources)?;
        Ok(StrictFile { sources, tree })
    }

    /// The file as typed data.
    ///
    /// # Errors
    /// Every key and value that does not fit.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, InvalidInput> {
        self.sources.decode(&self.tree)
    }

    /// An error at the value that these steps lead to: keys, and numbers of elements from 0. Where they lead to none,
    /// it points at the last that is there.
    pub fn problem(
        &self,
        steps: &[&str],
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Problem {
        let mut node = &self.tree;
        let mut span = None;
        for step in steps {
            let next = match &node.value {
                TomlValue::List(nodes) => step.parse().ok().and_then(|nth: usize| nodes.get(nth)),
                _ => node.get(step).map(|entry| &entry.node),
            };
            let Some(next) = next else {
                break;
            };
            node = next;
            span = Some(node.span.clone());
        }
        self.sources.problem(span, message, hint)
    }
}

impl Sources {
    /// A tree of these texts as typed data.
    ///
    /// # Errors
    /// Every key and value that does not fit.
    pub fn decode<T: DeserializeOwned>(&self, tree: &Node) -> Result<T, InvalidInput> {
        decode(tree).map_err(|misfits| {
            let each = misfits.into_iter();
            let mut problems: Vec<Problem> = each
                .map(|misfit| self.problem(misfit.span, misfit.message, misfit.hint))
                .collect();
            problems.dedup();
            InvalidInput { problems }
        })
    }
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read, is larger than [`MAX_FILE_BYTES`], or is no text.
pub fn read_text(path: &Path, noun: &Noun) -> Result<String, InvalidInput> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        InvalidInput::plain(
            &name,
            format!("cannot be read: {error}"),
            missing.then_some(noun.missing),
        )
    };
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(InvalidInput::plain(
            &name,
            format!("is a folder, not {noun} file"),
            None,
        ));
    }
    let too_big = |size: String| {
        let message = format!("is {size}; {noun} file has at most 1 MiB");
        InvalidInput::plain(&name, message, noun.too_big)
    };
    if about.len() > MAX_FILE_BYTES {
        return Err(too_big(format!("{} bytes long", about.len())));
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    // A device or pipe has no length to check beforehand.
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_big("longer than that".into()));
    }
    text_of(&name, bytes, noun)
}

/// The values of a text, which is added to `sources`.
///
/// # Errors
/// When it is empty, nested too deep, or not TOML.
pub fn read_tree(
    name: &str,
    text: &str,
    noun: &Noun,
    sources: &mut Sources,
) -> Result<Node, InvalidInput> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    sources.add(name, text, false);
    if text.trim().is_empty() {
        return Err(InvalidInput::at_byte(
            name,
            b"",
            0,
            "is empty",
            Some(noun.empty),
        ));
    }
    if let Some(at) = too_deep(text) {
        let message = format!("nested more than {MAX_DEPTH} levels deep");
        return Err(InvalidInput::single(sources.problem(
            Some(at..at + 1),
            message,
            None,
        )));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problems = errors
            .iter()
            .take(10)
            .map(|error| sources.problem(error.span(), syntax(error.message()), None))
            .collect();
        return Err(InvalidInput { problems });
    }
    let span = table.span();
    Node::table(table.into_inner(), span, 0).map_err(|span| {
        InvalidInput::single(sources.problem(Some(span), "this number is out of range", None))
    })
}

/// The text of a file, or what it is instead.
fn text_of(name: &str, bytes: Vec<u8>, noun: &Noun) -> Result<String, InvalidInput> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(InvalidInput::at_byte(
            name,
            &bytes,
            0,
            format!("is a gzip file, not {noun} file"),
            noun.too_big,
        ));
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(InvalidInput::at_byte(
            name,
            &bytes,
            at,
            format!("is a binary file, not {noun} file"),
            Some(&format!("{noun} file is TOML, that is, plain text")),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        InvalidInput::at_byte(
            name,
            error.as_bytes(),
            at,
            format!("is not UTF-8 text: byte {at} does not belong there"),
            Some("save the file as UTF-8"),
        )
    })
}

/// Where brackets or dotted keys are nested deeper than [`MAX_DEPTH`], which no format is. The parser has a
/// limit of its own, but dropping and walking a deep tree would overflow the stack before.
pub fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote: Option<char> = None;
    let mut escaped = false;
    let mut dots = 0;
    let mut comment = false;
    for (at, c) in text.char_indices() {
        if comment {
            comment = c != '\n';
            if comment {
                continue;
            }
        }
        match quote {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(q) if c == q || c == '\n' => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' => quote = Some(c),
                '#' => comment = true,
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                '.' => dots += 1,
                '\n' | '=' => dots = 0,
                _ => {}
            },
        }
        if depth + dots > MAX_DEPTH {
            return Some(at);
        }
    }
    None
}

/// The TOML parser's message, with the most common cause.
fn syntax(message: &str) -> String {
    match message {
        m if m.contains("duplicate key") => "this key is given twice".into(),
        m => format!("this is not TOML: {m}"),
    }
}
