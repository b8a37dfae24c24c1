//! A hostile day: kinds of trials, one after the other, each with dice of its own, so that one case can be repeated alone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::program::{Done, Place, most_memory};

/// Time for all, where `PUBGAUGE_HOSTILE_SECONDS` names none.
const SECONDS: u64 = 60;
/// Largest resident memory of a program and of what it starts, bytes. RabbitMQ takes some 150 MB.
const MOST_MEMORY: u64 = 1 << 30;
/// How long reading a file of some kilobytes may take, on a machine that is busy with other things.
pub const READING: Duration = Duration::from_secs(30);

/// SplitMix64: the same numbers for the same seed, on every machine.
pub struct Dice(u64);

impl Dice {
    /// Dice that throw the numbers of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.throw() % end as u64) as usize
    }

    /// One entry of a list that has some.
    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Texts that parsers are known to stumble over.
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
pub fn mutated(text: &[u8], dice: &mut Dice) -> Vec<u8> {
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

/// Asserts that a program ended by itself and in words.
#[track_caller]
pub fn ended_well(done: &Done) {
    assert!((0..=3).contains(&done.code), "{done:?}");
    assert!(!done.err.contains("panicked at"), "{done:?}");
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(
        !done.out.contains(obeyed) && !done.err.contains(obeyed),
        "{done:?}"
    );
}

/// Runs the program to its end, which comes soon and in words, and leaves nothing behind.
///
/// # Panics
/// If it does not.
#[track_caller]
pub fn reads(place: &Place, args: &[&str]) {
    ended_well(&place.start(args).ends_within(READING));
    place.is_clean();
}

/// All files below a folder, in the order of their names.
///
/// # Panics
/// If a folder cannot be read.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
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

/// Copies a folder with all that is below it.
///
/// # Panics
/// If it cannot be copied.
pub fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copied(&from, &to)
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// How a kind of trial is tried once.
pub type Attempt = fn(&mut Dice);

/// The outcome of a day.
pub struct Day {
    seed: u64,
    only: Option<u64>,
    /// How often each kind was tried, and survived.
    counts: BTreeMap<&'static str, [u64; 2]>,
    failures: Vec<String>,
}

impl Day {
    /// Tries all kinds in their turns, each turn once at the least, for `share` of `PUBGAUGE_HOSTILE_SECONDS` (60 if it
    /// is not set), with `PUBGAUGE_HOSTILE_SEED` (the date's if it is not set). `PUBGAUGE_HOSTILE_CASE` names one case
    /// alone, as a failure tells it.
    ///
    /// # Panics
    /// If one of these variables is no number.
    pub fn spend(turns: &[(&'static str, Attempt)], share: f64) -> Day {
        let today = SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .as_secs()
            / 86_400;
        let seconds = number_in("PUBGAUGE_HOSTILE_SECONDS").unwrap_or(SECONDS);
        let end = Instant::now() + Duration::from_secs(seconds).mul_f64(share);
        let mut day = Day {
            seed: number_in("PUBGAUGE_HOSTILE_SEED").unwrap_or(today),
            only: number_in("PUBGAUGE_HOSTILE_CASE"),
            counts: BTreeMap::new(),
            failures: Vec::new(),
        };
        for case in day.only.unwrap_or(0).. {
            let (kind, attempt) = turns[(case % turns.len() as u64) as usize];
            day.try_case(case, kind, attempt);
            let all = case + 1 >= turns.len() as u64;
            if day.only.is_some() || all && Instant::now() >= end {
                break;
            }
        }
        day
    }

    fn try_case(&mut self, case: u64, kind: &'static str, attempt: Attempt) {
        let seed = self.seed;
        let mut dice = Dice(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let survived = catch_unwind(AssertUnwindSafe(|| {
            attempt(&mut dice);
            let most = most_memory();
            assert!(most < MOST_MEMORY, "{most} bytes of memory");
        }))
        .is_ok();
        let [tried, survivals] = self.counts.entry(kind).or_default();
        *tried += 1;
        *survivals += u64::from(survived);
        if !survived {
            self.failures.push(format!(
                "{kind}: PUBGAUGE_HOSTILE_SEED={seed} PUBGAUGE_HOSTILE_CASE={case}"
            ));
        }
    }

    /// Whether one case was tried alone.
    pub fn is_one_case(&self) -> bool {
        self.only.is_some()
    }

    /// Tells what was tried, and asserts that all of it was survived.
    ///
    /// # Panics
    /// If it was not.
    pub fn was_survived(&self) {
        eprintln!(
            "seed {}\n{:<18}{:>8}{:>10}",
            self.seed, "", "tried", "survived"
        );
        for (kind, [tried, survived]) in &self.counts {
            eprintln!("{kind:<18}{tried:>8}{survived:>10}");
        }
        assert!(
            self.failures.is_empty(),
            "not survived:\n{}",
            self.failures.join("\n")
        );
    }
}

fn number_in(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}
