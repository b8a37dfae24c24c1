//! Commands and files of the documentation: what they ask for can be planned, and what the simulated system can do
//! is run.

use crate::common;

use std::collections::BTreeSet;

use common::*;
use pubgauge_testing::pages::{Command, Page, pages};

/// Options of `run` and `find` that `plan` does not have, and how many words follow.
const NOT_PLANNED: [(&str, usize); 13] = [
    ("--out", 1),
    ("--junit", 1),
    ("--annotations", 1),
    ("--listen", 1),
    ("--quiet", 0),
    ("-q", 0),
    ("--yes", 0),
    ("--axis", 1),
    ("--budget", 1),
    ("--confirm", 1),
    ("--width", 1),
    ("--until-decided", 0),
    ("--margin", 1),
];

/// Options of commands that are about an earlier run, other hosts, or files of a reader's own.
const OF_ELSEWHERE: [&str; 8] = [
    "--config",
    "--resume",
    "--load-host",
    "--hosts",
    "--at",
    "--systems",
    "--password-file",
    "--ca",
];

/// Keys with which a whole study begins.
fn is_study(text: &str) -> bool {
    text.starts_with("name = ") && text.contains("[[workload]]")
}

/// A place with the repository's studies, and the files that the page shows with their names.
fn place_of(page: &Page) -> Place {
    let place = Place::new();
    for folder in ["studies", "fleets"] {
        std::os::unix::fs::symlink(repository(folder), place.path_to(folder)).unwrap();
    }
    for block in page.blocks().iter().filter(|block| block.kind == "toml") {
        let name = block.above.rsplit('`').nth(1);
        if let Some(name) = name.filter(|name| name.ends_with(".toml") && !name.contains('/')) {
            place.write(name, block.lines.join("\n") + "\n");
        }
    }
    // A reader's own recording.
    place.write("readings.csv", "time,device,size\n1,a,50\n2,b,60\n");
    place
}

/// Whether this program was built with what the command measures.
fn is_built_for(command: &Command) -> bool {
    let names = |names: &[&str]| {
        let mut words = command.words.iter();
        words.any(|word| names.iter().any(|name| word.contains(name)))
    };
    let has_both = cfg!(all(feature = "cyclonedds", feature = "fastdds"));
    (cfg!(feature = "cyclonedds") || !names(&["cyclonedds"]))
        && (cfg!(feature = "fastdds") || !names(&["fastdds"]))
        // Studies over both libraries.
        && (has_both || !names(&["cluster-of-eight", "papers"]))
}

/// The arguments of a plan of what the command would measure; `None` where that takes what a test does not have.
fn plan_of(place: &Place, command: &Command) -> Option<Vec<String>> {
    let mut words = command.words.iter().skip(1);
    let verb = words.next()?;
    let is_of_elsewhere = |word: &String| OF_ELSEWHERE.contains(&&**word) || word.contains("://");
    if !["run", "find", "plan"].contains(&&**verb)
        || command.words.iter().any(is_of_elsewhere)
        || !is_built_for(command)
    {
        return None;
    }
    let mut args = vec!["plan".to_owned()];
    while let Some(word) = words.next() {
        if let Some((_, more)) = NOT_PLANNED.iter().find(|(name, _)| name == word) {
            words.by_ref().take(*more).for_each(drop);
        } else {
            args.push(word.clone());
        }
    }
    let studies = args.iter().filter(|word| word.ends_with(".toml"));
    studies
        .into_iter()
        .all(|study| place.path_to(study).exists())
        .then_some(args)
}

#[test]
fn what_the_documentation_measures_can_be_planned() {
    let mut planned = 0;
    for page in pages() {
        let place = place_of(&page);
        for command in page.commands("pubgauge") {
            let Some(args) = plan_of(&place, &command) else {
                continue;
            };
            let done = place.run(&args);
            // Not every machine has every system; the rest of the command has been read by then.
            if done.err.contains("is not on this machine") {
                continue;
            }
            assert_eq!(done.code, 0, "{}: {args:?}\n{}", command.place, done.err);
            planned += 1;
        }
        place.is_clean();
    }
    assert!(planned >= 28, "only {planned} commands were planned");
}

#[test]
fn whole_studies_in_the_documentation_can_be_planned() {
    let mut planned = 0;
    for page in pages() {
        let place = place_of(&page);
        let blocks = page.blocks();
        let tomls = blocks.iter().filter(|block| block.kind == "toml");
        for block in tomls {
            let text = block.lines.join("\n") + "\n";
            if is_study(&text) {
                place.write("study.toml", &text);
                // Systems of the page's own are elsewhere; what is asked is the same of any.
                let on = ["plan", "study.toml", "--on", "mosquitto"];
                let done = place.run(&on);
                let at = format!("{}:{}", page.path, block.first_line);
                assert_eq!(done.code, 0, "{at}\n{}", done.err);
                planned += 1;
            }
        }
        place.is_clean();
    }
    assert!(planned >= 5, "only {planned} studies were planned");
}

/// The first study of a command of advice, as it explains it itself; `None` where that takes what a test does not have.
fn explained(place: &Place, command: &Command) -> Option<String> {
    let is_advice = command.words.get(1).is_some_and(|verb| verb == "advise");
    let fleets = command.words.iter().filter(|word| word.ends_with(".toml"));
    let has_fleets = || fleets.clone().all(|fleet| place.path_to(fleet).exists());
    if !is_advice || !is_built_for(command) || !has_fleets() {
        return None;
    }
    let mut args: Vec<String> = command.words[1..].to_vec();
    args.push("--explain".to_owned());
    let done = place.run(&args);
    // Not every machine has every system; the rest of the command has been read by then.
    if done.err.contains("is not on this machine") {
        return None;
    }
    assert_eq!(done.code, 0, "{}: {args:?}\n{}", command.place, done.err);
    Some(done.out)
}

#[test]
fn what_the_documentation_asks_advice_on_can_be_measured() {
    let (mut asked, mut planned) = (0, 0);
    for page in pages() {
        let place = place_of(&page);
        for command in page.commands("pubgauge") {
            let Some(out) = explained(&place, &command) else {
                continue;
            };
            asked += 1;
            let Some((_, study)) = out.split_once("# the study of the first step\n") else {
                continue;
            };
            place.write("first-step.toml", study);
            let done = place.run(&["plan", "first-step.toml"]);
            assert_eq!(done.code, 0, "{}\n{}", command.place, done.err);
            planned += 1;
        }
        place.is_clean();
    }
    assert!(asked >= 12, "only {asked} commands were explained");
    assert!(planned >= 8, "only {planned} studies were planned");
}

/// Tests that take long.
mod long {
    use super::*;

    /// Commands that describe their workload by flags are run, for a moment, on the simulated system, where it can do
    /// what they ask for.
    #[test]
    fn commands_of_flags_run_on_the_simulated_system() {
        let mut ran = BTreeSet::new();
        for command in pages().iter().flat_map(|page| page.commands("pubgauge")) {
            let place = Place::new();
            let Some(mut args) = plan_of(&place, &command) else {
                continue;
            };
            if command.words[1] != "run" {
                continue;
            }
            match args.iter().position(|word| word == "--on") {
                Some(at) => args[at + 1] = "simulated".to_owned(),
                None => continue,
            }
            for change in ["phases.measure=300ms", "phases.warm-up=0s", "repeats=1"] {
                args.extend(["--set".to_owned(), change.to_owned()]);
            }
            if place.run(&args).code != 0 || !ran.insert(args.join(" ")) {
                continue;
            }
            args[0] = "run".to_owned();
            args.extend(["--out".to_owned(), "run".to_owned()]);
            let done = place.run(&args);
            // 2: a machine that is busy with other tests, or too short for what is asked.
            let ended = [0, 2].contains(&done.code);
            assert!(ended, "{}: {args:?}\n{}", command.place, done.err);
            assert!(place.path_to("run/report.html").exists(), "{args:?}");
            place.is_clean();
        }
        assert!(ran.len() >= 8, "only {} commands ran: {ran:?}", ran.len());
    }
}
