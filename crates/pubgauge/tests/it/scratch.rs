//! Folders for systems in odd places.

use crate::common;

use common::*;

/// Runs a system with its folder in one of this name.
fn run_in(place: &Place, name: &str, system: &str) -> Done {
    let scratch = place.path_to(name);
    std::fs::create_dir_all(&scratch).unwrap();
    let mut args = vec!["run", "--on", system, "--rate", "50/s", "--out", "run"];
    args.extend(SHORT);
    let mut command = place.command(&args);
    command.env("TMPDIR", &scratch);
    // Systems from Maven are installed once, for all tests.
    if let Some(home) = std::env::var_os("HOME") {
        let cache = std::path::Path::new(&home).join(".cache/pubgauge");
        let known = std::env::var_os("PUBGAUGE_CACHE");
        command.env("PUBGAUGE_CACHE", known.unwrap_or(cache.into()));
    }
    let done = place.finish(command);
    let left: Vec<_> = scratch.read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    done
}

/// Letters beyond ASCII and a dollar sign work; a space and quotes are refused before the start.
fn works_or_is_refused(system: &str) {
    let place = Place::new();
    run_in(&place, "é温$x", system);
    let trial = place.trial("run");
    let status = &trial["verdict"]["status"];
    assert!(status != "broken", "{system}: {}", reasons(&trial));
    adds_up(&trial);
    assert!(count(&trial, "delivered") > 0, "{system}");
    for name in ["a b", "a'b", "a\"b"] {
        let place = Place::new();
        let done = run_in(&place, name, system).exits(2);
        is_broken(&place.trial("run"), &["cannot be started in", "TMPDIR"]);
        let name = system.split(':').next().unwrap_or_default();
        done.assert_says(&format!("{name} cannot be started in"));
        place.is_clean();
    }
}

#[test]
fn mosquitto_in_odd_folders() {
    works_or_is_refused("mosquitto");
}

#[test]
fn nats_in_odd_folders() {
    works_or_is_refused("nats:mqtt");
}

#[test]
fn what_reads_no_configuration_lives_anywhere() {
    let place = Place::new();
    run_in(&place, "a b \"c\"", "reference-broker");
    adds_up(&place.trial("run"));
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn rabbitmq_in_odd_folders() {
        works_or_is_refused("rabbitmq");
    }

    #[test]
    fn ejabberd_in_odd_folders() {
        works_or_is_refused("ejabberd");
    }

    #[test]
    fn artemis_in_odd_folders() {
        works_or_is_refused("artemis");
    }
}
