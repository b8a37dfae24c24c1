//! docs/collect.md, "In five minutes": its blocks are run as they stand there.

use std::process::Command;

use super::*;

/// The `sh` blocks of the page, from the second on; the first one installs.
fn blocks(page: &str) -> Vec<String> {
    let begin = page.split("## In five minutes").nth(1).unwrap();
    let section = begin.split("\n## ").next().unwrap();
    let parts = section.split("```sh\n").skip(2);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// The commands of the page, up to the query, on a broker of the test's own.
fn newcomer(place: &Place, broker: &Mosquitto, blocks: &[String]) -> String {
    let own = std::path::Path::new(PROGRAM)
        .parent()
        .unwrap()
        .to_path_buf();
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&usual))).unwrap();
    let mut printed = String::new();
    for block in blocks {
        let mut shell = Command::new("sh");
        shell.args(["-ec", &block.replace("18830", &broker.port.to_string())]);
        place.run_here(&mut shell);
        shell.env("PATH", &path);
        printed += &place.finish(shell).exits(0).out;
    }
    printed
}

#[test]
fn the_page_brings_a_newcomer_to_files_that_are_whole() {
    let page = std::fs::read_to_string(repository("docs/collect.md")).unwrap();
    let (place, broker) = (new_place(), Mosquitto::start());
    let blocks = blocks(&page);
    assert_eq!(blocks.len(), 5);
    let printed = newcomer(&place, &broker, &blocks[..3]);
    assert!(
        printed.contains("3 messages of 1 collector: 3 in 1 finished file"),
        "{printed}"
    );
}

/// Tests that need a package of PyPI.
mod long {
    use super::*;

    #[test]
    fn the_page_brings_a_newcomer_to_a_query() {
        let page = std::fs::read_to_string(repository("docs/collect.md")).unwrap();
        let (place, broker) = (new_place(), Mosquitto::start());
        let printed = newcomer(&place, &broker, &blocks(&page));
        for line in [
            "meters/1/power │   100",
            "meters/2/power │   200",
            "meters/3/power │   300",
            "{'topic': ['meters/1/power', 'meters/2/power', 'meters/3/power'], 'seq_count': [1, 1, 1]}",
        ] {
            assert!(printed.contains(line), "{printed}");
        }
    }
}
