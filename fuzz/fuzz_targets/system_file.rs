//! Any text as a system file: read or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_testbed::SystemFile;

fuzz_target!(|text: &str| {
    if let Err(error) = SystemFile::parse(text, "fuzz.toml") {
        assert!(!error.to_string().is_empty());
    }
});
