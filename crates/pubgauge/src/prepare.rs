//! From the command line to a plan over real systems, starting nothing.

use std::path::{Path, PathBuf};

use pubgauge_campaign::{Given, Prepared, SystemsHere};
use pubgauge_command::exit::Ending;
use pubgauge_study::{BuiltIn, DailyFlags, KnownSystems, PlanOptions, Study};
use pubgauge_testbed::{Catalog, Testbed};
use serde::de::DeserializeOwned;

use crate::args::{Daily, Selection};
use crate::ending;
use crate::invocation::{Invocation, repeat};

/// Reads the study, plans it, and asks every driver what each setting becomes.
pub fn prepare(selection: &Selection, testbed: &Testbed) -> Result<Prepared, Ending> {
    let catalog = Catalog::load(&selection.systems).map_err(Ending::bad_input)?;
    let here = SystemsHere {
        catalog: &catalog,
        testbed,
    };
    let mut given = study(selection)?;
    given.claims.clone_from(&selection.claim);
    let study = &mut given.study;
    if let Some(scale) = &selection.scale {
        study.apply_scale(scale).map_err(Ending::bad_input)?;
    }
    study
        .apply_profiles(&selection.profile)
        .map_err(Ending::bad_input)?;
    for set in &selection.set {
        study.apply_set(set).map_err(Ending::bad_input)?;
    }
    for criterion in &selection.require {
        study.require(criterion).map_err(Ending::bad_input)?;
    }
    let brokers: Vec<String> = selection.brokers.iter().map(u32::to_string).collect();
    // Several are an axis of the grid.
    let (brokers_at, brokers) = match &brokers[..] {
        [] => ("", None),
        [one] => ("topology.brokers", Some(one.clone())),
        several => ("grid.brokers", Some(format!("[{}]", several.join(", ")))),
    };
    let calls = selection.count_system_calls.then(|| "true".to_owned());
    for (flag, path, value) in [
        ("--brokers", brokers_at, &brokers),
        (
            "--pacing-within",
            "client.pacing-within",
            &selection.pacing_within,
        ),
        ("--count-system-calls", "testbed.count-system-calls", &calls),
        (
            "--count-interface",
            "testbed.count-interface",
            &selection.count_interface,
        ),
        ("--precision", "compare.precision", &selection.precision),
    ] {
        if let Some(value) = value {
            let applied = study.apply_flag(flag, path, value);
            applied.map_err(Ending::bad_input)?;
        }
    }
    if let Some(axis) = selection.find {
        study.search_for(axis).map_err(Ending::bad_input)?;
    }
    let options = PlanOptions {
        known: here.known(),
        on: pubgauge_testbed::join_addresses(&selection.on),
        repeats: selection.repeats,
    };
    pubgauge_campaign::prepare(given, options, &here, selection.elsewhere).map_err(ending)
}

/// Prepares a resumed run: its study, and the systems that were found when it began. Their files come from the
/// folders `systems` of this command line.
pub fn prepare_again(
    begun: &Invocation,
    systems: &[PathBuf],
    testbed: &Testbed,
) -> Result<Prepared, Ending> {
    let catalog = Catalog::load(systems).map_err(Ending::bad_input)?;
    let here = SystemsHere {
        catalog: &catalog,
        testbed,
    };
    let mut study = Study::parse("the study of the run", &begun.study, &begun.folder)
        .map_err(Ending::bad_input)?;
    if let Some(scale) = &begun.scale {
        study.apply_scale(scale).map_err(Ending::bad_input)?;
    }
    if study.reads_files() {
        return Err(repeat(
            "the study in the folder of the run reads recorded traces or identities of clients, and what is read on this machine is said on this command line alone",
        ));
    }
    let options = PlanOptions {
        known: KnownSystems {
            found: begun.found.plain.clone(),
            found_variants: begun.found.variants.clone(),
            first_look: begun.found.first_look.clone(),
            ..here.known()
        },
        on: pubgauge_testbed::join_addresses(&begun.on),
        repeats: begun.repeats,
    };
    let given = Given {
        study,
        text: begun.study.clone(),
        folder: begun.folder.clone(),
        claims: begun.claims.clone(),
    };
    let elsewhere = begun.hosts.is_some();
    pubgauge_campaign::prepare(given, options, &here, elsewhere).map_err(ending)
}

/// The study, its text, and the folder that its relative paths start from.
fn study(selection: &Selection) -> Result<Given, Ending> {
    let flags = daily(&selection.daily)?;
    if let Some(path) = &selection.study {
        if !flags.is_empty() {
            return Err(Ending::bad_input(format!(
                "{} is given together with flags that describe a workload\n  hint: change values of a study with --set, for example --set phases.measure=30s",
                path.display()
            )));
        }
        return named_study(path);
    }
    if flags.is_empty() && selection.find.is_none() {
        return built_in(BuiltIn::first_look());
    }
    let study = flags.study().map_err(Ending::bad_input)?;
    Ok(Given {
        study,
        text: String::new(),
        folder: PathBuf::new(),
        claims: Vec::new(),
    })
}

/// A study that comes with pubgauge.
fn built_in(built_in: BuiltIn) -> Result<Given, Ending> {
    Ok(Given {
        study: built_in.study().map_err(Ending::bad_input)?,
        text: built_in.text.to_owned(),
        folder: PathBuf::new(),
        claims: Vec::new(),
    })
}

/// The study of this name: a file, `-` for standard input, or else one that comes with pubgauge.
fn named_study(name: &Path) -> Result<Given, Ending> {
    let word = name.to_str().filter(|_| !name.is_file());
    if let Some(study) = word.and_then(BuiltIn::named) {
        return built_in(study);
    }
    // The value of an option of another tool: `-q 1`.
    if word.is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())) {
        return Err(Ending::bad_input(format!(
            "`{}` is no study, and no option takes it\n  hint: MQTT's quality of service is --qos (-q is --quiet): pubgauge run --on mosquitto --qos 1 \
             --rate 1k/s",
            name.display()
        )));
    }
    let (study, text) = Study::open_with_text(name).map_err(Ending::bad_input)?;
    Ok(Given {
        study,
        text,
        folder: name.parent().unwrap_or(Path::new("")).to_owned(),
        claims: Vec::new(),
    })
}

fn daily(flags: &Daily) -> Result<DailyFlags, Ending> {
    Ok(DailyFlags {
        publishers: flags.publishers.clone(),
        subscribers: flags.subscribers.clone(),
        topics: flags.topics.clone(),
        payload: quantities("--payload", &flags.payload)?,
        rate: quantities(
            "--rate",
            &flags
                .rate
                .iter()
                .map(|rate| plain_rate(rate))
                .collect::<Vec<_>>(),
        )?,
        duration: quantity("--duration", &flags.duration.as_deref().map(plain_span))?,
        warm_up: quantity("--warm-up", &flags.warm_up.as_deref().map(plain_span))?,
        qos: flags.qos.clone(),
        mqtt: flags.mqtt.clone(),
    })
}

/// A rate without the noun that other tools have in it: `1000msg/s` is `1000/s`.
fn plain_rate(text: &str) -> String {
    let Some((amount, per)) = text.split_once('/') else {
        return text.to_owned();
    };
    let nouns = ["messages", "message", "msgs", "msg"];
    let amount = amount.trim_end();
    let amount = nouns
        .iter()
        .find_map(|noun| amount.strip_suffix(noun))
        .unwrap_or(amount);
    format!("{}/{per}", amount.trim_end())
}

/// A span as other tools write it, `1m30s` or `2m`, in seconds; any other text as it is.
fn plain_span(text: &str) -> String {
    let parts = text.split_inclusive(|c: char| c.is_ascii_alphabetic());
    let seconds = parts.map(|part| {
        let unit = part.len().checked_sub(1)?;
        let (number, unit) = part.split_at_checked(unit)?;
        let size = match unit {
            "h" => 3_600,
            "m" => 60,
            "s" => 1,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(size)
    });
    match seconds.sum::<Option<u64>>() {
        Some(seconds) if text.contains('m') => format!("{seconds}s"),
        _ => text.to_owned(),
    }
}

/// Quantities with their units.
fn quantities<T: DeserializeOwned>(flag: &str, texts: &[String]) -> Result<Vec<T>, Ending> {
    let each = texts.iter().map(|text| quantity(flag, &Some(text.clone())));
    let all: Result<Vec<Option<T>>, Ending> = each.collect();
    Ok(all?.into_iter().flatten().collect())
}

/// A quantity with its unit, in the words of study files.
pub fn quantity<T: DeserializeOwned>(
    flag: &str,
    text: &Option<String>,
) -> Result<Option<T>, Ending> {
    let Some(text) = text else { return Ok(None) };
    serde_json::from_value(serde_json::Value::String(text.clone()))
        .map(Some)
        .map_err(|e| Ending::bad_input(format!("{flag} {text}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_rates_of_other_tools_are_read() {
        for (typed, meant) in [
            ("1m30s", "90s"),
            ("2m", "120s"),
            ("1h5m", "3900s"),
            // These are the words of studies, or wrong in any words.
            ("100ms", "100ms"),
            ("1min", "1min"),
            ("10s", "10s"),
            ("m", "m"),
            ("1x2m", "1x2m"),
            ("99999999999999999999m", "99999999999999999999m"),
            ("", ""),
        ] {
            assert_eq!(plain_span(typed), meant);
        }
        for (typed, meant) in [
            ("1000msg/s", "1000/s"),
            ("5 msgs/s", "5/s"),
            ("10k/s", "10k/s"),
            ("1/s-each", "1/s-each"),
            ("max", "max"),
        ] {
            assert_eq!(plain_rate(typed), meant);
        }
    }
}
