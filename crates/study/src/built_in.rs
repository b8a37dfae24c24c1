//! The studies that come with pubgauge, by name: those of the folder `studies/`.

use std::path::Path;

use include_dir::{Dir, File, include_dir};
use pubgauge_strict_toml::InvalidInput;

use crate::study::Study;

static STUDIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../studies");

/// A study that comes with pubgauge.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name: its path below `studies/` without the ending, such as `first-look` or `papers/kang2020`.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

impl BuiltIn {
    /// The study of this name. The last part alone is enough: `kang2020`.
    pub fn named(name: &str) -> Option<BuiltIn> {
        let name = name.strip_suffix(".toml").unwrap_or(name);
        let is_last_part = |known: &str| known.rsplit('/').next() == Some(name);
        BuiltIn::list()
            .into_iter()
            .find(|study| study.name == name || is_last_part(study.name))
    }

    /// The one that runs when none is given.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn first_look() -> BuiltIn {
        BuiltIn::named("first-look").expect("it comes with pubgauge")
    }

    /// All of them, by name.
    pub fn list() -> Vec<BuiltIn> {
        let mut studies = Vec::new();
        add(&STUDIES, &mut studies);
        studies.sort_by_key(|study| (study.name.contains('/'), study.name));
        studies
    }

    /// The study, ready to be changed and planned. Its recordings are named by variables of the environment, never
    /// by paths beside it.
    ///
    /// # Errors
    /// Never: a test reads each.
    pub fn study(self) -> Result<Study, InvalidInput> {
        let source = format!("{}.toml (built in)", self.name);
        Study::parse(&source, self.text, Path::new(""))
    }
}

impl Study {
    /// The study that runs when none is given.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn first_look() -> Self {
        let study = BuiltIn::first_look().study();
        study.expect("the built-in study is tested")
    }
}

fn add(folder: &'static Dir<'static>, studies: &mut Vec<BuiltIn>) {
    let study = |file: &'static File<'static>| {
        Some(BuiltIn {
            name: file.path().to_str()?.strip_suffix(".toml")?,
            text: file.contents_utf8()?,
        })
    };
    studies.extend(folder.files().filter_map(study));
    for inner in folder.dirs() {
        add(inner, studies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_can_be_read_and_is_found_by_both_its_names() {
        let studies = BuiltIn::list();
        assert!(studies.len() >= 10, "{studies:?}");
        for built_in in studies {
            let study = built_in.study().unwrap_or_else(|error| panic!("{error}"));
            study.file().unwrap_or_else(|error| panic!("{error}"));
            assert!(!built_in.text.contains("files = \"../"), "{built_in:?}");
            let stem = built_in.name.rsplit('/').next().unwrap_or_default();
            for name in [built_in.name, stem] {
                let found = BuiltIn::named(name).map(|found| found.name);
                assert_eq!(found, Some(built_in.name), "two have the name {name}");
            }
        }
        assert!(BuiltIn::named("no-such-study").is_none());
    }
}
