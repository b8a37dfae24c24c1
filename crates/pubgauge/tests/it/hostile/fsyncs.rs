//! Ends of the program at a chosen `fsync`: a library of a few lines, loaded before the C library, counts the calls and
//! kills the process at the chosen one, before anything is written out. Processes that it starts are left alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use pubgauge_testing::hostile::Dice;

use super::{BROKERS, goes_on, short_run};
use crate::common::*;

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static long until;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("PUBGAUGE_TEST_FSYNC");
    until = text ? atol(text) : 0;
    unsetenv("LD_PRELOAD");
    unsetenv("PUBGAUGE_TEST_FSYNC");
}

int fsync(int fd) {
    static int (*next)(int);
    if (__atomic_fetch_sub(&until, 1, __ATOMIC_SEQ_CST) == 1) kill(getpid(), SIGKILL);
    if (!next) next = dlsym(RTLD_NEXT, "fsync");
    return next(fd);
}
"#;

struct Library {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("fsync.c");
    std::fs::write(&source, SOURCE).unwrap();
    let path = folder.path().join("fsync.so");
    let cc = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&path, &source])
        .arg("-ldl")
        .status();
    assert!(cc.expect("this test needs cc (apt install gcc)").success());
    Library {
        _folder: folder,
        path,
    }
});

/// A run that is killed at its `n`th `fsync`, counted from 1; whether it lived so long. It goes on and is then whole.
pub fn killed_at(n: usize, system: &str) -> bool {
    let place = Place::new();
    let mut command = place.command(&short_run(system));
    let library: &Path = &LIBRARY.path;
    command.env("LD_PRELOAD", library);
    command.env("PUBGAUGE_TEST_FSYNC", n.to_string());
    let done = place.finish(command);
    let killed = done.code == -libc::SIGKILL;
    assert!(
        killed || done.code == 0 || done.code == 2,
        "fsync {n}: {done:?}"
    );
    place.has_no_process_soon();
    goes_on(&place, system);
    killed
}

/// At any of those of a run of three trials.
pub fn killed_at_some(dice: &mut Dice) {
    let system = dice.one_of(&BROKERS);
    killed_at(1 + dice.below(60), system);
}

#[test]
fn killed_at_each_of_the_first_fsyncs() {
    for n in 1..=10 {
        assert!(killed_at(n, "simulated"), "the run has no {n}th fsync");
    }
}
