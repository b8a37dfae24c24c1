//! The hashes of what Maven fetched, held against those of the system's file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use ring::digest::{Context, SHA256};

/// Holds every file of `folders` against its SHA-256 in `pinned`, by its name. The error says what is not as it was
/// when the hashes were written.
pub(super) fn check(pinned: &BTreeMap<String, String>, folders: &[&Path]) -> Result<(), String> {
    let mut there = BTreeMap::new();
    for folder in folders {
        let read = hashes(folder, &mut there);
        read.map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    }
    for (name, hash) in &there {
        match pinned.get(name) {
            None => {
                return Err(format!(
                    "Maven fetched {name}, whose hash is not in the file"
                ));
            }
            Some(wanted) if wanted != hash => {
                return Err(format!("{name} has the hash {hash}; the file has {wanted}"));
            }
            Some(_) => {}
        }
    }
    match pinned.keys().find(|name| !there.contains_key(*name)) {
        Some(name) => Err(format!(
            "Maven fetched no {name}, whose hash is in the file"
        )),
        None => Ok(()),
    }
}

/// Adds the SHA-256 of each file of a folder, which need not be there.
fn hashes(folder: &Path, to: &mut BTreeMap<String, String>) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let mut digest = Context::new(&SHA256);
        // Some have 100 MB.
        let mut file = io::BufReader::with_capacity(1 << 20, std::fs::File::open(entry.path())?);
        loop {
            let read = io::BufRead::fill_buf(&mut file)?;
            let length = read.len();
            if length == 0 {
                break;
            }
            digest.update(read);
            io::BufRead::consume(&mut file, length);
        }
        let hash: String = digest
            .finish()
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        to.insert(entry.file_name().to_string_lossy().into_owned(), hash);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6234's example: SHA-256 of `abc`.
    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn only_what_was_pinned_passes() {
        let all = tempfile::tempdir().unwrap();
        let [lib, none] = ["lib", "none"].map(|name| all.path().join(name));
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("a.jar"), "abc").unwrap();
        let told = |pinned: &[(&str, &str)]| {
            let pinned = pinned.iter().map(|(n, h)| ((*n).into(), (*h).into()));
            check(&pinned.collect(), &[&lib, &none])
        };
        assert_eq!(told(&[("a.jar", OF_ABC)]), Ok(()));
        let other = OF_ABC.replace('b', "c");
        for (pinned, why) in [
            (&[("a.jar", &*other)][..], "a.jar has the hash ba78"),
            (
                &[("b.jar", OF_ABC)],
                "Maven fetched a.jar, whose hash is not",
            ),
            (
                &[("a.jar", OF_ABC), ("b.jar", OF_ABC)],
                "Maven fetched no b.jar",
            ),
        ] {
            let said = told(pinned).unwrap_err();
            assert!(said.starts_with(why), "{said}");
        }
    }
}
