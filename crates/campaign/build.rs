//! Tells the program which commit it was built from, and whether the tree had changes besides.

use std::env;
use std::path::Path;
use std::process::Command;

/// Folders and files that the program is made from.
const SOURCES: [&str; 6] = [
    "crates",
    "systems",
    "studies",
    "schema",
    "Cargo.toml",
    "Cargo.lock",
];

fn main() {
    println!("cargo:rerun-if-env-changed=PUBGAUGE_COMMIT");
    let given = env::var("PUBGAUGE_COMMIT").ok();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(commit) = given.or_else(|| commit_of_tree(&root)) {
        println!("cargo:rustc-env=PUBGAUGE_COMMIT={commit}");
    }
}

/// The commit, with `-dirty` where a file differs from it; `None` where the sources are not a checkout of their own.
fn commit_of_tree(root: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    // Sources that were unpacked in somebody else's checkout are no part of it.
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    let commit = git(&root, &["rev-parse", "--short=8", "HEAD"])?;
    let log = git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?;
    let sources = SOURCES.iter().map(|source| root.join(source));
    for path in sources.chain([root.join(log)]) {
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let mut asked = vec!["status", "--porcelain", "--"];
    asked.extend(SOURCES);
    let changes = git(&root, &asked)?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

/// The answer of git; `None` where there is none.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        // Reading changes nothing.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(words)
        .current_dir(root)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
