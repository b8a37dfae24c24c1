//! A hostile day: for a given time, with a given seed, pubgauge is killed, told to end, given mutated files, folders
//! full of links, texts that pages and shells obey, servers that misbehave, brokers and data folders of a collector that somebody has changed, strangers at its sockets, closed terminals and low limits.
//! `make hostile SECONDS=3600 SEED=7` does so for an hour.
//!
//! What must hold each time: it ends within its time with one of its own exit codes, does not panic, prints nothing that
//! a terminal obeys, and leaves no process and no folder behind; a run that was killed goes on and is whole; its memory
//! stays below [`MOST_MEMORY`].

use crate::common;
mod data;
mod fsyncs;
mod links;
mod load_hosts;
mod peers;
mod texts;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use common::*;

/// Time for all, where `PUBGAUGE_HOSTILE_SECONDS` names none.
const SECONDS: u64 = 60;
/// Largest resident memory of pubgauge and of what it starts, bytes. RabbitMQ takes some 150 MB.
const MOST_MEMORY: u64 = 1 << 30;
/// How long reading a file of some kilobytes may take, on a machine that is busy with other things.
const READING: Duration = Duration::from_secs(30);

/// SplitMix64: the same numbers for the same seed, on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// What parsers are known to stumble over.
const PIECES: [&[u8]; 20] = [
    b"\0",
    b"\x1b]0;x\x07",
    b"\xff\xfe",
    b"\xc2",
    b"99999999999999999999",
    b"-1",
    b"1e309",
    b"nan",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"{",
    b"]",
    b"\"",
    b"'''",
    b"\n",
    b"\r",
    b"#",
    b",",
    b"=",
    b"..",
    b"{dir}{",
];

/// One to four changes: bytes turned, cut out, repeated, put in.
fn mutated(text: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(40)).min(bytes.len());
        match dice.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, dice.one_of(&PIECES).iter().copied())),
        }
    }
    bytes
}

/// Asserts that pubgauge ended by itself and in words.
#[track_caller]
fn ended_well(done: &Done) {
    assert!((0..=3).contains(&done.code), "{done:?}");
    assert!(!done.err.contains("panicked at"), "{done:?}");
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(
        !done.out.contains(obeyed) && !done.err.contains(obeyed),
        "{done:?}"
    );
}

#[track_caller]
fn reads(place: &Place, args: &[&str]) {
    ended_well(&place.start(args).ends_within(READING));
    place.is_clean();
}

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
    let begun = place.at("run").read_dir();
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
    std::thread::sleep(Duration::from_millis(dice.next() % 1500));
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
    std::thread::sleep(Duration::from_millis(dice.next() % 1500));
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
    std::fs::create_dir(place.at("own")).unwrap();
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

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()))
        } else {
            found.push(entry.path())
        }
    }
    found.sort();
    found
}

fn mutated_results(dice: &mut Dice) {
    let place = Place::new();
    place.run(&short_run("simulated"));
    let files = files_below(&place.at("run"));
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
    let done = place.finish(place.after(&format!("ulimit {limit}"), &short_run(system)));
    assert!((0..=3).contains(&done.code), "ulimit {limit}: {done:?}");
    assert!(
        !done.err.contains("panicked at"),
        "ulimit {limit}: {done:?}"
    );
    place.is_clean();
}

/// How a kind is tried once.
type Trial = fn(&mut Dice);

/// The kinds in their turns: those that take milliseconds come more often.
const TURNS: [(&str, Trial); 35] = [
    KILLED, STUDIES, TRACES, SERVERS, SYSTEMS, RESULTS, STUDIES, TRACES, STRANGERS, SYSTEMS, TOLD,
    STUDIES, TRACES, SERVERS, SYSTEMS, RESULTS, STUDIES, TRACES, FSYNCS, SYSTEMS, TERMINALS,
    STUDIES, TRACES, SERVERS, SYSTEMS, LIMITS, STRANGERS, LINKS, TEXTS, COMMANDS, TEXTS, DATA,
    BROKERS_OF, DATA, BROKERS_OF,
];
const SERVERS: (&str, Trial) = ("servers", peers::server_misbehaves);
const STRANGERS: (&str, Trial) = ("strangers", peers::strangers);
const FSYNCS: (&str, Trial) = ("killed at an fsync", fsyncs::killed_at_some);
const KILLED: (&str, Trial) = ("killed", killed);
const TOLD: (&str, Trial) = ("told to end", told_to_end);
const STUDIES: (&str, Trial) = ("studies", mutated_study);
const SYSTEMS: (&str, Trial) = ("system files", mutated_system);
const TRACES: (&str, Trial) = ("traces", mutated_trace);
const RESULTS: (&str, Trial) = ("results", mutated_results);
const TERMINALS: (&str, Trial) = ("closed terminals", closed_terminals);
const LINKS: (&str, Trial) = ("links", links::links);
const TEXTS: (&str, Trial) = ("texts", texts::in_results);
const COMMANDS: (&str, Trial) = ("commands", texts::in_system_files);
const DATA: (&str, Trial) = ("data folders", data::changed);
const BROKERS_OF: (&str, Trial) = ("collected brokers", peers::broker_misbehaves);
const LIMITS: (&str, Trial) = ("limits", limited);

fn of_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

#[test]
fn a_hostile_day() {
    let today = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        / 86_400;
    let seed = of_environment("PUBGAUGE_HOSTILE_SEED").unwrap_or(today);
    let seconds = of_environment("PUBGAUGE_HOSTILE_SECONDS").unwrap_or(SECONDS);
    // One case alone, as a failure names it.
    let only = of_environment("PUBGAUGE_HOSTILE_CASE");
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut counts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in only.unwrap_or(0).. {
        let (kind, once) = TURNS[(case % TURNS.len() as u64) as usize];
        let mut dice = Dice(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let survived = catch_unwind(AssertUnwindSafe(|| {
            once(&mut dice);
            let most = most_memory();
            assert!(most < MOST_MEMORY, "{most} bytes of memory");
        }))
        .is_ok();
        let [tried, survivals] = counts.entry(kind).or_default();
        *tried += 1;
        *survivals += u64::from(survived);
        if !survived {
            failures.push(format!(
                "{kind}: PUBGAUGE_HOSTILE_SEED={seed} PUBGAUGE_HOSTILE_CASE={case}"
            ));
        }
        // Every turn comes once at least.
        let all = case + 1 >= TURNS.len() as u64;
        if only.is_some() || all && Instant::now() >= end {
            break;
        }
    }
    peers::end_servers();
    eprintln!("seed {seed}\n{:<18}{:>8}{:>10}", "", "tried", "survived");
    for (kind, [tried, survived]) in counts {
        eprintln!("{kind:<18}{tried:>8}{survived:>10}");
    }
    // One run may be over before a stranger has found it.
    let thrown = peers::THROWN.load(Ordering::Relaxed);
    eprintln!("pieces of strangers taken: {thrown}");
    assert!(only.is_some() || thrown > 0, "no stranger was heard");
    assert!(
        failures.is_empty(),
        "not survived:\n{}",
        failures.join("\n")
    );
}
