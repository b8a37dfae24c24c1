//! A hostile day: for a given time, with a given seed, pubgauge is killed, told to end, given mutated files, folders
//! full of links, texts that pages and shells obey, servers that misbehave, strangers at its sockets, closed terminals and low limits.
//! `make hostile SECONDS=3600 SEED=7` does so for an hour.
//!
//! Each time the program ends within its time with one of its own exit codes, does not panic, prints nothing that
//! a terminal obeys, and leaves no process and no folder behind; a run that was killed goes on and is whole; its memory
//! stays below 1 GiB.

use crate::common;
mod fsyncs;
mod links;
mod load_hosts;
mod peers;
mod texts;

use std::sync::atomic::Ordering;
use std::time::Duration;

use pubgauge_testing::hostile::{
    Attempt, Day, Dice, READING, ended_well, files_below, mutated, reads,
};

use common::*;

fn short_run(system: &str) -> Vec<&str> {
    let mut args = vec![
        "run",
        "--on",
        system,
        "--rate",
        "100/s",
        "--out",
        "run",
        "--repeats",
        "3",
    ];
    args.extend(["--warm-up", "50ms", "--duration", "150ms"]);
    args
}

/// Asserts that a run of [`short_run`] goes on and is then whole.
#[track_caller]
fn goes_on(place: &Place, system: &str) {
    // It may have ended before anything was in its folder.
    let begun = place.path_to("run").read_dir();
    let begun = begun.is_ok_and(|mut files| files.next().is_some());
    let resumed = begun.then(|| place.run(&["run", "--resume", "run"]));
    resumed.iter().for_each(ended_well);
    // It may have ended before it wrote how it was begun; then its command is repeated.
    let unknown = |done: &Done| done.err.contains("does not say how its run was begun");
    if resumed.as_ref().is_none_or(unknown) {
        ended_well(&place.run(&short_run(system)));
    }
    let results = place.results("run");
    assert_eq!(
        results["trials"].as_array().unwrap().len(),
        3,
        "three trials"
    );
    place.is_clean();
}

const BROKERS: [&str; 3] = ["reference-broker", "mosquitto", "simulated"];

fn killed(dice: &mut Dice) {
    let place = Place::new();
    let system = dice.one_of(&BROKERS);
    let run = place.start(&short_run(system));
    std::thread::sleep(Duration::from_millis(dice.throw() % 1500));
    // SAFETY: the process was started here and has not been waited for.
    unsafe { libc::kill(run.pid(), libc::SIGKILL) };
    drop(run);
    place.has_no_process_soon();
    goes_on(&place, system);
}

fn told_to_end(dice: &mut Dice) {
    let place = Place::new();
    let system = dice.one_of(&BROKERS);
    let run = place.start(&short_run(system));
    std::thread::sleep(Duration::from_millis(dice.throw() % 1500));
    let signal = dice.one_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
    // SAFETY: as above.
    unsafe { libc::kill(run.pid(), signal) };
    let done = run.ends_within(READING);
    // Before it has installed its handlers a signal ends it at once, with nothing begun.
    if done.code != -signal {
        ended_well(&done);
    }
    place.is_clean();
    goes_on(&place, system);
}

fn mutated_study(dice: &mut Dice) {
    let place = Place::new();
    let known = ["studies/first-look.toml", "studies/own-paper.toml"];
    let text = std::fs::read(repository(dice.one_of(&known))).unwrap();
    place.write("study.toml", mutated(&text, dice));
    reads(&place, &["plan", "study.toml"]);
}

fn mutated_system(dice: &mut Dice) {
    let place = Place::new();
    let known = ["mosquitto", "nats", "rabbitmq", "ejabberd", "artemis"];
    let name = dice.one_of(&known);
    let text = std::fs::read(repository(&format!("systems/{name}.toml"))).unwrap();
    std::fs::create_dir(place.path_to("own")).unwrap();
    place.write("own/mutated.toml", mutated(&text, dice));
    reads(
        &place,
        &["plan", "--systems", "own", "--on", name, "--rate", "1/s"],
    );
}

fn mutated_trace(dice: &mut Dice) {
    let place = Place::new();
    let mut text = String::from("time,device,topic,size\n");
    for n in 0..50 {
        text += &format!(
            "2023-06-13T03:11:{n:02}Z,d{},site/{n}/power,{}\n",
            n % 7,
            16 + n
        );
    }
    place.write("trace.csv", mutated(text.as_bytes(), dice));
    reads(&place, &["trace", "show", "trace.csv"]);
}

fn mutated_results(dice: &mut Dice) {
    let place = Place::new();
    place.run(&short_run("simulated"));
    let files = files_below(&place.path_to("run"));
    let file = &files[dice.below(files.len())];
    let text = std::fs::read(file).unwrap();
    std::fs::write(file, mutated(&text, dice)).unwrap();
    reads(&place, &["report", "run"]);
    reads(&place, &["compare", "run", "run"]);
    reads(
        &place,
        &["export", "run", "--format", "csv", "--out", "out"],
    );
    reads(&place, &["run", "--resume", "run"]);
}

fn closed_terminals(dice: &mut Dice) {
    let place = Place::new();
    let system = dice.one_of(&BROKERS);
    let mut command = place.command(&short_run(system));
    command.stdout(closed_terminal()).stderr(closed_terminal());
    let code = command.status().unwrap().code();
    assert!(code.is_some_and(|code| (0..=3).contains(&code)), "{code:?}");
    goes_on(&place, system);
}

fn limited(dice: &mut Dice) {
    let place = Place::new();
    let system = dice.one_of(&BROKERS);
    let limit = match dice.below(2) {
        0 => format!("-f {}", dice.below(64)),
        _ => format!("-n {}", 16 + dice.below(200)),
    };
    let done = place.finish(place.command_after(&format!("ulimit {limit}"), &short_run(system)));
    assert!((0..=3).contains(&done.code), "ulimit {limit}: {done:?}");
    assert!(
        !done.err.contains("panicked at"),
        "ulimit {limit}: {done:?}"
    );
    place.is_clean();
}

/// The kinds in their turns: those that take milliseconds come more often.
const TURNS: [(&str, Attempt); 31] = [
    KILLED, STUDIES, TRACES, SERVERS, SYSTEMS, RESULTS, STUDIES, TRACES, STRANGERS, SYSTEMS, TOLD,
    STUDIES, TRACES, SERVERS, SYSTEMS, RESULTS, STUDIES, TRACES, FSYNCS, SYSTEMS, TERMINALS,
    STUDIES, TRACES, SERVERS, SYSTEMS, LIMITS, STRANGERS, LINKS, TEXTS, COMMANDS, TEXTS,
];
const SERVERS: (&str, Attempt) = ("servers", peers::server_misbehaves);
const STRANGERS: (&str, Attempt) = ("strangers", peers::strangers);
const FSYNCS: (&str, Attempt) = ("killed at an fsync", fsyncs::killed_at_some);
const KILLED: (&str, Attempt) = ("killed", killed);
const TOLD: (&str, Attempt) = ("told to end", told_to_end);
const STUDIES: (&str, Attempt) = ("studies", mutated_study);
const SYSTEMS: (&str, Attempt) = ("system files", mutated_system);
const TRACES: (&str, Attempt) = ("traces", mutated_trace);
const RESULTS: (&str, Attempt) = ("results", mutated_results);
const TERMINALS: (&str, Attempt) = ("closed terminals", closed_terminals);
const LINKS: (&str, Attempt) = ("links", links::links);
const TEXTS: (&str, Attempt) = ("texts", texts::in_results);
const COMMANDS: (&str, Attempt) = ("commands", texts::in_system_files);
const LIMITS: (&str, Attempt) = ("limits", limited);

#[test]
fn a_hostile_day() {
    let day = Day::spend(&TURNS, 1.0);
    peers::end_servers();
    // One run may be over before a stranger has found it.
    let thrown = peers::THROWN.load(Ordering::Relaxed);
    eprintln!("pieces of strangers taken: {thrown}");
    assert!(day.is_one_case() || thrown > 0, "no stranger was heard");
    day.was_survived();
}
