//! The parts that the programs `pubgauge` and `pubgauge-collect` have in common.
//!
//! - [`program`]: from the command line to the exit code.
//! - [`exit`]: exit codes, and output that cannot harm a terminal.
//! - [`signals`]: the first Ctrl-C ends a program in order, the second at once.
//! - [`options`]: flags that every verb has.
//! - [`pages`]: completions and manual pages.
//! - [`http`]: a few pages over HTTP, for scrapers and health checks.

// `println!` and `eprintln!` panic when a write fails.
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod exit;
pub mod http;
pub mod options;
pub mod pages;
pub mod program;
pub mod signals;
