//! Compiles the C++ shim against the system's Fast DDS; only with the feature `native`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rustc-check-cfg=cfg(fastdds_version, values(any()))");
    #[cfg(feature = "native")]
    native::build();
}

#[cfg(feature = "native")]
mod native {
    use std::path::{Path, PathBuf};

    /// Header that the shim includes first; it tells the version, too.
    const HEADER: &str = "fastrtps/config.h";
    const DOMAIN_HEADER: &str = "fastdds/dds/domain/DomainParticipant.hpp";

    pub fn build() {
        println!("cargo:rerun-if-env-changed=FASTDDS_INCLUDE");
        println!("cargo:rerun-if-env-changed=FASTDDS_LIB");
        let given = std::env::var_os("FASTDDS_INCLUDE").map(PathBuf::from);
        let standard = ["/usr/include", "/usr/local/include"].map(PathBuf::from);
        let include = given
            .iter()
            .chain(&standard)
            .find(|folder| folder.join(DOMAIN_HEADER).exists());
        let Some(include) = include else {
            println!(
                "cargo:error=the feature `native` of pubgauge-driver-fastdds needs the headers of \
                 Fast DDS 2 ({DOMAIN_HEADER}), which are neither in /usr/include nor in \
                 /usr/local/include nor where FASTDDS_INCLUDE says. On Debian: apt-get install \
                 libfastrtps-dev libfastcdr-dev"
            );
            std::process::exit(1);
        };
        println!("cargo:rustc-env=FASTDDS_VERSION={}", version(include));
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .opt_level(2)
            .include(include)
            .files(["shim/shim.cpp", "shim/counting.cpp"])
            .warnings(true)
            .flag_if_supported("-Wno-deprecated-declarations")
            .compile("pubgauge_fastdds");
        #[cfg(feature = "bench-plain")]
        {
            println!("cargo:rerun-if-changed=benches/plain.cpp");
            cc::Build::new()
                .cpp(true)
                .std("c++17")
                .opt_level(2)
                .include(include)
                .file("benches/plain.cpp")
                .flag_if_supported("-Wno-deprecated-declarations")
                .compile("plain");
        }
        if let Some(folder) = std::env::var_os("FASTDDS_LIB") {
            println!(
                "cargo:rustc-link-search=native={}",
                PathBuf::from(folder).display()
            );
        }
        println!("cargo:rustc-link-lib=fastrtps");
        println!("cargo:rustc-link-lib=fastcdr");
    }

    /// The version in the header, where the package installs that header; Debian puts it in a
    /// folder of the machine's architecture.
    fn version(include: &Path) -> String {
        let mut places = vec![include.join(HEADER)];
        if let Ok(entries) = std::fs::read_dir(include) {
            places.extend(entries.flatten().map(|entry| entry.path().join(HEADER)));
        }
        let text = places
            .iter()
            .find_map(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_default();
        let part = |name: &str| {
            let line = text
                .lines()
                .find(|line| line.contains(&format!("define {name} ")))?;
            Some(line.split_whitespace().last()?.to_owned())
        };
        match (
            part("FASTRTPS_VERSION_MAJOR"),
            part("FASTRTPS_VERSION_MINOR"),
            part("FASTRTPS_VERSION_MICRO"),
        ) {
            (Some(major), Some(minor), Some(micro)) => format!("{major}.{minor}.{micro}"),
            _ => "2, release unknown".to_owned(),
        }
    }
}
