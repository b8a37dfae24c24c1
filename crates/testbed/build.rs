//! Builds the files of `systems/` into the program: a file that is added there is known.

use std::path::Path;

fn main() {
    // As it is now: a build script may have been compiled in another checkout that shares its folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo");
    let folder = Path::new(&here).join("../../systems");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("systems/ is part of the sources")
        .map(|entry| entry.expect("readable").file_name())
        .map(|name| name.into_string().expect("file names are text"))
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    let mut code = String::from("[\n");
    for name in names {
        let path = folder.join(&name);
        println!("cargo::rerun-if-changed={}", path.display());
        code.push_str(&format!("({name:?}, include_str!({path:?})),\n"));
    }
    code.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&out).join("systems.rs"), code).expect("writable");
}
