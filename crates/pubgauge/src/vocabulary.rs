//! Words that users of other tools type, and what says the same here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words of other tools that mean one thing.
struct Word {
    /// As they are typed there: options with their hyphens, verbs without.
    typed: &'static [&'static str],
    /// The way to say it here, as a clause.
    here: &'static str,
    /// A whole command that runs.
    example: &'static str,
}

const RATE: &str = "pubgauge run --on mosquitto --publishers 10 --rate 100/s-each";
const ADDRESS: &str = "pubgauge run --on mqtt://localhost:1883 --rate 1k/s";
const COUNTS: &str = "pubgauge run --on mosquitto --publishers 100 --subscribers 10 --rate 1k/s";
const DURATION: &str = "pubgauge run --on mosquitto --rate 1k/s --duration 10s";
const USER: &str = "PUBGAUGE_PASSWORD=... pubgauge run --on mqtt://alice@localhost --rate 1k/s";
const TLS: &str = "pubgauge run --on mqtts://localhost:8883 --ca ca.pem --rate 1k/s";

/// One entry for each meaning. `-h`, `-V`, `-q` and `-v` are options here, too.
const WORDS: &[Word] = &[
    Word {
        typed: &[
            "pub",
            "publish",
            "sub",
            "subscribe",
            "bench",
            "benchmark",
            "attack",
            "start",
            "test",
            "load",
            "conn",
            "simulate",
            "perf",
            "measure",
        ],
        here: "`run` publishes and subscribes at once, and measures",
        example: "pubgauge run --on mosquitto --publishers 10 --rate 1k/s",
    },
    Word {
        typed: &["list", "ls", "brokers", "drivers"],
        here: "`systems` lists what can be measured",
        example: "pubgauge systems",
    },
    Word {
        typed: &["recommend", "choose", "size", "sizing", "estimate"],
        here: "`advise` measures which system carries a fleet of devices",
        example: "pubgauge advise --devices 5000 --every 30s --payload 120B",
    },
    Word {
        typed: &["doctor", "env", "info"],
        here: "`systems` says what is found here, `calibrate` measures this machine",
        example: "pubgauge systems",
    },
    Word {
        typed: &["version"],
        here: "the version is an option",
        example: "pubgauge --version",
    },
    Word {
        typed: &["install", "setup"],
        here: "`systems --install` installs what is measured",
        example: "pubgauge systems --install mosquitto",
    },
    Word {
        typed: &["diff", "regression"],
        here: "`compare` compares two runs",
        example: "pubgauge compare before after --margin 5%",
    },
    Word {
        typed: &["show", "view", "html", "summary", "results"],
        here: "`report` shows the answer of a run and makes its page",
        example: "pubgauge report results/first-look",
    },
    Word {
        typed: &["search", "max", "capacity", "limit", "ramp", "stress"],
        here: "`find` searches for the highest load that is carried",
        example: "pubgauge find --on mosquitto",
    },
    Word {
        typed: &["validate", "lint", "dry-run"],
        here: "`plan` reads a study and says what it would do; it starts nothing",
        example: "pubgauge plan study.toml",
    },
    Word {
        typed: &["--dry-run"],
        here: "`plan` says what a run would do; it starts nothing",
        example: "pubgauge plan --on mosquitto --rate 1k/s",
    },
    Word {
        typed: &["ingest", "record", "sink", "dump"],
        here: "`collect` stores what brokers deliver",
        example: "pubgauge collect --on mqtt://localhost --topic sensors/# --to data",
    },
    Word {
        typed: &[
            "--host",
            "--port",
            "-H",
            "-p",
            "--url",
            "--uri",
            "--broker",
            "--server",
            "--address",
            "--endpoint",
            "-b",
            "-a",
            "--target",
        ],
        here: "a server that runs is given as an address to `--on`",
        example: ADDRESS,
    },
    Word {
        typed: &[
            "--system",
            "--systems-under-test",
            "--middleware",
            "--driver",
            "--drivers",
        ],
        here: "systems are given to `--on`, by name or address",
        example: COUNTS,
    },
    Word {
        typed: &[
            "--producers",
            "--publisher",
            "--pubs",
            "--pub-clients",
            "--publisher-count",
            "-x",
            "--senders",
            "--devices",
            "--sensors",
        ],
        here: "publishing devices are `--publishers`",
        example: COUNTS,
    },
    Word {
        typed: &[
            "--consumers",
            "--subscriber",
            "--subs",
            "--sub-clients",
            "--subscriber-count",
            "-y",
            "--receivers",
        ],
        here: "subscribing devices are `--subscribers`",
        example: COUNTS,
    },
    Word {
        typed: &[
            "--clients",
            "--connections",
            "-c",
            "--num-clients",
            "--vus",
            "--users",
            "--concurrency",
            "--workers",
            "--threads",
            "-C",
        ],
        here: "devices are `--publishers` and `--subscribers`, each with a connection of its own; pubgauge chooses its own threads",
        example: COUNTS,
    },
    Word {
        typed: &[
            "--messages",
            "--count",
            "-n",
            "--num-messages",
            "--message-count",
            "--iterations",
            "--requests",
            "--limit",
        ],
        here: "a measurement has a length instead of a number of messages, so that slow systems are measured for as long as fast ones",
        example: DURATION,
    },
    Word {
        typed: &[
            "--time",
            "--run-time",
            "-z",
            "-d",
            "--test-duration",
            "--seconds",
        ],
        here: "the length of the measurement is `--duration`",
        example: DURATION,
    },
    Word {
        typed: &["--warmup", "--ramp-up", "--rampup", "--warm-up-time"],
        here: "traffic before the measurement is `--warm-up`",
        example: "pubgauge run --on mosquitto --rate 1k/s --warm-up 2s",
    },
    Word {
        typed: &[
            "--size",
            "-s",
            "--message-size",
            "--payload-size",
            "--msg-size",
            "--bytes",
            "--message",
        ],
        here: "the size of a message is `--payload`",
        example: "pubgauge run --on mosquitto --rate 1k/s --payload 1KiB",
    },
    Word {
        typed: &[
            "--topic",
            "-t",
            "--queue",
            "--topic-name",
            "--stream",
            "--exchange",
            "--subject",
        ],
        here: "`--topics` says how many topics there are; their names are `topic` of a flow in a study",
        example: "pubgauge run --on mosquitto --topics 10 --rate 1k/s",
    },
    Word {
        typed: &[
            "-r",
            "-I",
            "--interval",
            "--interval-of-msg",
            "--rps",
            "--throughput",
            "--qps",
            "--msgs-per-sec",
            "--publish-rate",
        ],
        here: "how often messages are sent is `--rate`: in all (`1k/s`), of each publisher (`10/s-each`), or `max`",
        example: RATE,
    },
    Word {
        typed: &["--qos-level", "-Q", "--reliability", "--acks"],
        here: "MQTT's quality of service is `--qos`; what it is elsewhere is `reliability` in a study's settings",
        example: "pubgauge run --on mosquitto --rate 1k/s --qos 1",
    },
    Word {
        typed: &[
            "--username",
            "--user",
            "-u",
            "-U",
            "--password",
            "-P",
            "--pw",
            "--auth",
        ],
        here: "a server is named by its address, of which the user is a part; the password is read from PUBGAUGE_PASSWORD or `--password-file`, never from the command line, which others can see (a user for each client is `identities` of a flow)",
        example: USER,
    },
    Word {
        typed: &[
            "--client-id",
            "--clientid",
            "--client-prefix",
            "--client-id-prefix",
            "--prefix",
            "--id-prefix",
        ],
        here: "who clients are is `identities` of a flow: identifiers, users and passwords, each its own",
        example: "pubgauge run --on mqtt://localhost --rate 1k/s --set 'workload.flow.identities.publishers.client-id=meter-{n}'",
    },
    Word {
        typed: &[
            "--tls", "--ssl", "--cafile", "--capath", "--cacert", "--tls-ca", "--secure",
        ],
        here: "an address says whether it is TLS (`mqtts://`); authorities are given with `--ca`",
        example: TLS,
    },
    Word {
        typed: &["--certfile", "--keyfile", "--tls-cert", "--tls-key"],
        here: "a client certificate is `--cert` with `--key`",
        example: "pubgauge run --on mqtts://localhost --ca ca.pem --cert me.pem --key me.key --rate 1k/s",
    },
    Word {
        typed: &["--retain", "--retained"],
        here: "that late subscribers get the last value of each topic is a setting",
        example: "pubgauge run --on mosquitto --rate 1k/s --set settings.last-value=true",
    },
    Word {
        typed: &["--keepalive", "-k", "--keep-alive"],
        here: "keep-alive is a setting",
        example: "pubgauge run --on mosquitto --rate 1k/s --set settings.keep-alive-s=30",
    },
    Word {
        typed: &[
            "--inflight",
            "--max-inflight",
            "--in-flight",
            "-i",
            "--window",
        ],
        here: "unacknowledged messages of a publisher are a setting",
        example: "pubgauge run --on mosquitto --qos 1 --rate max --set settings.in-flight=100",
    },
    Word {
        typed: &[
            "--threshold",
            "--assert",
            "--slo",
            "--fail-if",
            "--criteria",
            "--criterion",
        ],
        here: "criteria stand in a study, or in `--require`",
        example: "pubgauge run --on mosquitto --rate 1k/s --require 'p99 <= 10ms'",
    },
    Word {
        typed: &["--runs", "--iterations-per-cell", "--trials", "--repeat"],
        here: "repeats of each cell are `--repeats`",
        example: "pubgauge run --on mosquitto --rate 1k/s --repeats 5",
    },
    Word {
        typed: &[
            "--output",
            "-o",
            "--outdir",
            "--report",
            "--out-dir",
            "--results",
        ],
        here: "the folder of the results is `--out`",
        example: "pubgauge run --on mosquitto --rate 1k/s --out results/one",
    },
    Word {
        typed: &["--csv", "--format", "--prometheus"],
        here: "`export` writes the figures of a run for other programs",
        example: "pubgauge export results/one --format csv",
    },
    Word {
        typed: &["--metrics-port", "--metrics", "--prometheus-port"],
        here: "live figures of a run are answered where `--listen` says",
        example: "pubgauge run --on mosquitto --rate 1k/s --listen 9100",
    },
    Word {
        typed: &[
            "-f",
            "--file",
            "--scenario",
            "--study",
            "--workload",
            "--workloads",
            "--script",
        ],
        here: "a study, which has the workload, is named without an option",
        example: "pubgauge run study.toml",
    },
    Word {
        typed: &[
            "--protocol",
            "--version-mqtt",
            "--mqtt-version",
            "--protocol-version",
        ],
        here: "MQTT's version is `--mqtt`; other protocols are the systems' own (`--on nats,rabbitmq`)",
        example: "pubgauge run --on mosquitto --rate 1k/s --mqtt 5",
    },
];

/// The way to say here what a word of another tool says, with a whole example; `None` where no such word is why the
/// command line could not be read.
pub fn explain(error: &clap::Error) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return None,
    };
    let Some(ContextValue::String(typed)) = error.get(kind) else {
        return None;
    };
    let name = typed.split(['=', ' ']).next()?;
    let word = WORDS.iter().find(|word| word.typed.contains(&name))?;
    Some(format!(
        "error: pubgauge has no `{name}`: {}\n\n  example: {}\n\nFor more information, try '--help'.\n",
        word.here, word.example
    ))
}

/// The word for `-h HOST` of other tools, where `-h` alone asks for help.
pub fn explain_host(arguments: &[OsString]) -> Option<String> {
    let mut pairs = arguments.windows(2);
    let is_host =
        |pair: &[OsString]| pair[0] == "-h" && !pair[1].to_string_lossy().starts_with('-');
    let is_of_verb = arguments.get(1).is_some_and(|verb| verb != "-h");
    (is_of_verb && pairs.any(is_host)).then(|| {
        format!(
            "error: `-h` is help: a server that runs is given as an address to `--on`\n\n  example: {ADDRESS}\n\n\
             For more information, try '--help'.\n"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn arguments(example: &str) -> Vec<String> {
        // A variable before the command, and quotes as a shell reads them.
        let command = example.split_once("pubgauge ").expect("a command").1;
        let mut parts = vec!["pubgauge".to_owned()];
        for (number, part) in command.split('\'').enumerate() {
            match number % 2 {
                0 => parts.extend(part.split_whitespace().map(str::to_owned)),
                _ => parts.push(part.to_owned()),
            }
        }
        parts
    }

    #[test]
    fn every_example_is_read() {
        for word in WORDS {
            let read = Cli::try_parse_from(arguments(word.example));
            let is_read = match &read {
                Ok(_) => true,
                Err(error) => error.kind() == ErrorKind::DisplayVersion,
            };
            assert!(is_read, "{}: {:?}", word.example, read.err());
        }
    }

    #[test]
    fn no_word_has_two_meanings_or_is_one_of_our_own() {
        let mut known = BTreeSet::new();
        for word in WORDS.iter().flat_map(|word| word.typed) {
            assert!(known.insert(word), "{word} twice");
            let line: &[&str] = if word.starts_with('-') {
                &["pubgauge", "run", word]
            } else {
                &["pubgauge", word]
            };
            let error = Cli::try_parse_from(line).expect_err(word);
            let explained = explain(&error).unwrap_or_else(|| panic!("{word}: {error}"));
            assert!(explained.contains(&format!("no `{word}`")), "{explained}");
        }
    }
}
