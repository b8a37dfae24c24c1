//! Outputs that take nothing: a terminal that has been closed, a full disk, a limit of file size.

use crate::common;

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::*;

fn run_of(place: &Place, duration: &str) -> Command {
    let mut args = vec!["run", "--on", "reference-broker", "--rate", "100/s"];
    args.extend(["--out", "run", "--warm-up", "100ms", "--duration", duration]);
    let mut command = place.command(&args);
    command.stdout(closed_terminal()).stderr(closed_terminal());
    command
}

#[test]
fn a_run_goes_on_when_its_terminal_is_closed() {
    let place = Place::new();
    let mut child = run_of(&place, "1s").spawn().unwrap();
    let code = child.wait().unwrap().code();
    // The code says that something could not be printed; the results are whole.
    assert_eq!(code, Some(2));
    let trial = place.trial("run");
    adds_up(&trial);
    assert_eq!(count(&trial, "delivered"), 100);
    assert!(place.path_to("run/report.html").exists());
    place.is_clean();
}

#[test]
fn a_run_without_a_terminal_ends_in_order() {
    let place = Place::new();
    let mut child = run_of(&place, "100s").spawn().unwrap();
    let journal = place.path_to("run");
    let patience = Instant::now() + Duration::from_secs(60);
    while !journal.exists() {
        assert!(Instant::now() < patience, "no run begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_secs(1));
    // SAFETY: the process was started here and has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let told = Instant::now();
    let code = child.wait().unwrap().code();
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "{:?}",
        told.elapsed()
    );
    assert_eq!(code, Some(2));
    assert_eq!(place.results("run")["study"]["cut_off"], true);
    place.is_clean();
}

#[test]
fn what_does_not_reach_standard_output_is_said() {
    let place = Place::new();
    let mut command = place.command(&["schema", "results"]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("what was printed is not complete"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_limit_of_file_size_ends_in_words() {
    let place = Place::new();
    // 1 KiB; results take more.
    let line = "ulimit -f 2 && exec $0 run --on simulated --rate 200/s --duration 200ms --out run";
    let mut command = Command::new("sh");
    command.args(["-c", line]).arg(program());
    place.run_here(&mut command);
    place.finish(command).exits(3).assert_says("File too large");
    place.is_clean();
}
