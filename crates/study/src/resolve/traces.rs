//! Traces of a study: paths made absolute, files found, opened once.

use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pubgauge_workload::{Trace, TraceSource};

use crate::clash::{Clash, Clashes};
use crate::file::TraceFile;

/// The traces of a study.
pub(crate) struct Traces<'a> {
    files: &'a BTreeMap<String, TraceFile>,
    /// The folder that relative paths start from.
    pub(super) folder: &'a Path,
    sources: HashMap<String, TraceSource>,
    /// Held so that workers need not read them again.
    pub(crate) open: Vec<Arc<Trace>>,
    devices: HashMap<String, Option<u32>>,
    /// Checksums of those that were read.
    checksums: HashMap<String, u32>,
    /// Errors in them.
    pub(crate) found: Vec<Clash>,
    /// How those that were read differ from their files, in words.
    pub(crate) notes: Vec<String>,
}

impl<'a> Traces<'a> {
    /// Finds the files of every trace.
    pub(crate) fn new(files: &'a BTreeMap<String, TraceFile>, folder: &'a Path) -> Self {
        let mut traces = Traces {
            files,
            folder,
            sources: HashMap::new(),
            open: Vec::new(),
            devices: HashMap::new(),
            checksums: HashMap::new(),
            found: Vec::new(),
            notes: Vec::new(),
        };
        for (name, file) in files {
            let mut clashes = Clashes::new(&["trace", name], &mut traces.found);
            let mut paths = Vec::new();
            for pattern in file.files.list() {
                match find(pattern, folder) {
                    Ok(found) => paths.extend(found),
                    Err(message) => clashes.add("files", message),
                }
            }
            if paths.is_empty() && file.files.list().is_empty() {
                clashes.add("files", "a trace needs at least one file");
            }
            let source = TraceSource {
                files: paths,
                format: file.format.clone(),
                sort: file.sort.unwrap_or(false),
            };
            traces.sources.insert(name.clone(), source);
        }
        traces
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    pub(super) fn source(&self, name: &str) -> Option<TraceSource> {
        self.sources.get(name).cloned()
    }

    /// How many devices a trace has; reads it on the first call. An error in it is reported once.
    pub(super) fn devices(&mut self, name: &str) -> Option<u32> {
        if let Some(known) = self.devices.get(name) {
            return *known;
        }
        let source = self.sources.get(name)?;
        let devices = match Trace::open(source) {
            _ if source.files.is_empty() => None,
            Ok(trace) => {
                let devices = trace.devices.len() as u32;
                self.checksums.insert(name.to_string(), trace.checksum());
                let sentences = trace.remarks.sentences().into_iter();
                self.notes
                    .extend(sentences.map(|sentence| format!("trace {name}: {sentence}")));
                self.open.push(trace);
                Some(devices)
            }
            Err(error) => {
                let mut clashes = Clashes::new(&["trace", name], &mut self.found);
                clashes.add("", format!("the trace cannot be used\n  {error}"));
                None
            }
        };
        self.devices.insert(name.to_string(), devices);
        devices
    }

    /// A trace that [`Traces::devices`] has read.
    pub(super) fn trace(&self, name: &str) -> Option<Arc<Trace>> {
        self.devices.get(name).copied().flatten()?;
        // It is held open, so that it is not read again.
        Trace::open(self.sources.get(name)?).ok()
    }

    /// The checksum of a trace that [`Traces::devices`] has read.
    pub(super) fn checksum(&self, name: &str) -> Option<u32> {
        self.checksums.get(name).copied()
    }
}

/// The files that a pattern names, sorted; at least one.
fn find(pattern: &str, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let path = folder.join(substituted(pattern)?);
    let path = std::path::absolute(&path).map_err(|e| format!("`{pattern}`: {e}"))?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| format!("`{pattern}` is not a file"))?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    if parent.to_string_lossy().contains('*') {
        return Err(format!("`{pattern}`: `*` is allowed in the file name only"));
    }
    if !name.contains('*') {
        return match fs::metadata(&path) {
            Ok(about) if about.is_file() => Ok(vec![path]),
            Ok(_) => Err(format!("`{}` is not a file", path.display())),
            Err(error) => Err(format!("`{}`: {error}", path.display())),
        };
    }
    let entries = fs::read_dir(parent).map_err(|e| format!("`{}`: {e}", parent.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| fits(&name, &entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(format!("no file fits `{}`", path.display()));
    }
    Ok(found)
}

/// The names of the variables in a text, `${NAME}`, that are not set.
pub(crate) fn unset_variables(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("${").skip(1);
    let names = parts.filter_map(|part| part.split_once('}').map(|(name, _)| name));
    names.filter(|name| env::var_os(name).is_none())
}

/// `${NAME}` replaced by the environment.
pub(super) fn substituted(text: &str) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let inner = &rest[start + 2..];
        let end = inner
            .find('}')
            .ok_or_else(|| format!("`{text}`: `${{` without `}}`"))?;
        let name = &inner[..end];
        let value = env::var(name).map_err(|_| {
            format!("the environment variable `{name}` is not set; `{text}` needs it")
        })?;
        done.push_str(&rest[..start]);
        done.push_str(&value);
        rest = &inner[end + 1..];
    }
    done.push_str(rest);
    Ok(done)
}

/// Whether a file name fits a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_of_file_names() {
        for (pattern, name, is) in [
            ("a*.gz", "abc.gz", true),
            ("a*.gz", "a.gz", true),
            ("a*b*c", "a_b_c", true),
            ("a*b*c", "a_c", false),
            ("a", "ab", false),
            ("*", "x", true),
            ("ab*b", "ab", false),
        ] {
            assert_eq!(fits(pattern, name), is, "{pattern} {name}");
        }
    }
}
