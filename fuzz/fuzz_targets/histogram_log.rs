//! Any text as an interval log of histograms: read or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_figures::histogram;

fuzz_target!(|text: &str| {
    if let Err(error) = histogram::read_log(text) {
        assert!(!error.to_string().is_empty());
    }
});
