//! Any bytes as `results.json` of somebody else: read and shown, or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_export::Format;
use pubgauge_export::tables::NamedRun;
use pubgauge_report::{Logs, page, table};
use pubgauge_results::store;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("results.json"), data).expect("room for it");
    match store::load(folder.path()) {
        Ok(results) => {
            let _ = table(&results, 80);
            let _ = page(&results, &Logs::default());
            let run = NamedRun {
                name: "fuzz",
                results: &results,
            };
            for table in [
                run.trials(),
                run.flows(),
                run.windows(),
                run.series(),
                run.searches(),
            ] {
                let _ = Format::Csv.write(table, &mut std::io::sink());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
