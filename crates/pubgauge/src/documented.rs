//! Commands of the documentation are read as a user's are.

use clap::Parser;
use clap::error::ErrorKind;
use pubgauge_testing::pages::pages;

use crate::args::Cli;

#[test]
fn every_command_in_the_documentation_is_read() {
    let mut read = 0;
    let mut refused = Vec::new();
    for page in pages() {
        for command in page.commands("pubgauge") {
            read += 1;
            match Cli::try_parse_from(&command.words) {
                Err(error)
                    if ![ErrorKind::DisplayHelp, ErrorKind::DisplayVersion]
                        .contains(&error.kind()) =>
                {
                    refused.push(format!("{}: {:?}\n{error}", command.place, command.words));
                }
                _ => {}
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(read >= 70, "only {read} commands were found");
}
