//! Compiles the C shim against Cyclone DDS; only where the feature `native` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "native")]
    shim();
}

#[cfg(feature = "native")]
fn shim() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=CYCLONEDDS_HOME");
    let mut build = cc::Build::new();
    let mut probe = cc::Build::new();
    build
        .files([
            "shim/message.c",
            "shim/names.c",
            "shim/pool.c",
            "shim/fleet.c",
            "shim/wire.c",
            "shim/room.c",
        ])
        .include("shim")
        .std("gnu11")
        .opt_level(2)
        .warnings(true);
    // A Cyclone DDS that was built by hand; otherwise the system's.
    if let Some(home) = std::env::var_os("CYCLONEDDS_HOME").map(std::path::PathBuf::from) {
        build.include(home.join("include"));
        probe.include(home.join("include"));
        println!(
            "cargo:rustc-link-search=native={}",
            home.join("lib").display()
        );
    }
    let version = version(probe);
    assert!(
        version.starts_with("0.10."),
        "Cyclone DDS {version} was found, but the shim of the feature `cyclonedds` is written for \
         0.10 (Debian 12 has 0.10.2): install that, or build without the feature"
    );
    build.compile("pubgauge_cyclonedds_shim");
    println!("cargo:rustc-link-lib=dylib=ddsc");
}

/// The version in the headers that the compiler finds.
#[cfg(feature = "native")]
fn version(mut build: cc::Build) -> String {
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let probe = std::path::Path::new(&out).join("probe.c");
    std::fs::write(&probe, "#include <dds/version.h>\nPUBGAUGE DDS_VERSION\n")
        .unwrap_or_else(|e| panic!("cannot write {}: {e}", probe.display()));
    let preprocessed = build.file(&probe).cargo_warnings(false).try_expand();
    let text = preprocessed.map(|b| String::from_utf8_lossy(&b).into_owned());
    // Lines that begin with # only say where the others come from.
    let found = text.ok().and_then(|text| {
        let lines = text.lines().skip_while(|l| !l.starts_with("PUBGAUGE"));
        let rest: String = lines.filter(|l| !l.starts_with('#')).collect();
        rest.split('"').nth(1).map(str::to_owned)
    });
    found.unwrap_or_else(|| {
        panic!(
            "the feature `cyclonedds` needs the headers and library of Cyclone DDS 0.10, and the \
             C compiler does not find dds/version.h. On Debian: apt-get install cyclonedds-dev; \
             elsewhere set CYCLONEDDS_HOME to where it is installed; or build without the feature"
        )
    })
}
