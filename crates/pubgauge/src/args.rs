//! The command line, as the user types it.

mod advise;
mod calibrate;
mod find;
mod guard;
mod hosts;
mod report;
mod tools;
mod tune;
mod until;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use pubgauge_campaign::{ClientOptions, MOST_PROCESSES};
use pubgauge_command::exit::Ending;
use pubgauge_command::options::{LOGIN, Login, OUTPUT, Output};
use pubgauge_driver::is_host;
use pubgauge_results::store::RESULTS_FILE;
use pubgauge_search::Axis;
use pubgauge_study::BuiltIn;
use pubgauge_testbed::Catalog;

use crate::drivers;

pub use advise::AdviseArgs;
pub use calibrate::CalibrateArgs;
pub use find::FindArgs;
pub use guard::GuardArgs;
pub use hosts::{HostsArgs, WorkerArgs};
pub use report::ReportArgs;
pub use tools::{ConvertArgs, ServeVerb, TraceVerb};
pub use tune::TuneArgs;
pub use until::{RunVerb, UntilArgs};

/// Runs the same IoT workload over real publish/subscribe middleware and says which carries it,
/// with which settings, and how far it will go.
#[derive(Debug, Parser)]
#[command(name = "pubgauge", version, max_term_width = 80, after_help = EXAMPLES, disable_help_flag = true)]
pub struct Cli {
    /// Print help: the options of every day.
    #[arg(short, long, action = ArgAction::HelpShort, global = true, help_heading = OUTPUT)]
    help: Option<bool>,
    /// Print help with all options.
    #[arg(long, action = ArgAction::HelpLong, global = true, help_heading = OUTPUT)]
    help_all: Option<bool>,
    /// File with options that are not typed [default: that of PUBGAUGE_CONFIG, else pubgauge.toml in
    /// this folder]. Typed options come first, then
    /// variables (PUBGAUGE_RATE for --rate), then this file (docs/defaults.md).
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true, help_heading = OUTPUT)]
    pub config: Option<PathBuf>,
    /// The action.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  pubgauge run                           the first look, over all systems here
  pubgauge run --publishers 100 --rate 1/s-each --payload 64B --on mosquitto
  pubgauge run --rate max --qos 1 --mqtt 5 --on mosquitto,reference-broker
  pubgauge run --on mqtt://host:1883     a broker that is running already
  pubgauge find --on mosquitto,nats      how far each goes
  pubgauge advise --devices 5000 --every 30s --payload 120B    which to take
  pubgauge plan studies/first-look.toml  what would be done, starting nothing
  pubgauge report results/first-look     table and page of an earlier run
  pubgauge compare results/a results/b   better, worse, the same, or cannot tell

Exit codes: 0 fine, 1 a criterion of the study not met (compare: something is
worse), 2 the run is not valid (compare: cannot tell), 3 bad input.";

/// Headings of the help.
const SYSTEMS: &str = "Systems";
const MEASUREMENT: &str = "Measurement";
const CLIENT: &str = "Client";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a study: a file, the daily flags, or (with neither) the built-in first look.
    Run(Box<RunVerb>),
    /// Find how far a system goes: the highest load that stays within the criteria, with the interval
    /// that the limit lies in.
    Find(Box<FindArgs>),
    /// Advise on a fleet of devices: which middleware, with which settings, with how much to spare, and why not the others.
    Advise(Box<AdviseArgs>),
    /// Guard a release: measure the old and the new one in turns, until it can be told whether anything is worse by
    /// more than a margin.
    Guard(Box<GuardArgs>),
    /// Tune a system for a workload: which of its settings and options serve it better than the default, and what that
    /// gives up.
    Tune(Box<TuneArgs>),
    /// Print what a run would do, how long it takes, and what cannot be had. Starts nothing.
    Plan(Box<PlanArgs>),
    /// List the known systems: found or not, version, and the command that installs each; or
    /// install them.
    Systems(SystemsArgs),
    /// Show on the running systems what their drivers and files claim: the conformance suite, and
    /// every cell of the matrix of capabilities.
    Check(CheckArgs),
    /// Rebuild the table and the page from the folder of a run, or of several.
    Report(ReportArgs),
    /// Compare two runs, or two systems or settings of one: better, worse, the same, or cannot
    /// tell, figure by figure.
    Compare(CompareArgs),
    /// Write the figures of a run for other programs: CSV, JSON, Parquet, OpenMetrics, JUnit, claims.
    Export(ExportArgs),
    /// Collect what brokers deliver into files: Parquet or NDJSON. A message is acknowledged once it is
    /// on disk. Runs pubgauge-collect, which is a package of its own.
    #[command(disable_help_flag = true)]
    Collect {
        /// Arguments of pubgauge-collect; `pubgauge collect --help` tells them.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        args: Vec<OsString>,
    },
    /// Measure this machine and this tool, and store the result for later runs.
    Calibrate(CalibrateArgs),
    /// Work with recorded traces.
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Print a JSON Schema.
    Schema {
        /// Of what.
        #[arg(value_enum)]
        of: SchemaOf,
        /// As for every verb; a schema is JSON in any case.
        #[command(flatten)]
        output: Output,
    },
    /// Print a script that completes this command line in a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all verbs into a folder.
    Man {
        /// The verb; the page of pubgauge itself if absent.
        verb: Vec<String>,
        /// Write all pages into this folder.
        #[arg(long, value_name = "DIR", conflicts_with = "verb")]
        out: Option<PathBuf>,
    },
    /// Work for a run that says over standard input what to do (used by `run` itself, here or on other hosts).
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Serve as a built-in system, in the foreground (used by `run` itself).
    #[command(subcommand, hide = true)]
    Serve(ServeVerb),
}

impl Verb {
    /// Whether it reads studies, which may name profiles of the user's own.
    pub fn reads_studies(&self) -> bool {
        matches!(
            self,
            Verb::Run(_) | Verb::Find(_) | Verb::Guard(_) | Verb::Tune(_) | Verb::Plan(_)
        )
    }
}

/// Files that have a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SchemaOf {
    /// Study files.
    Study,
    /// `results.json`, and what `run --json` and `report --json` print beside the answer.
    Results,
    /// The answer: `answer` in what `run --json` and `report --json` print.
    Answer,
    /// The output of `report --json` of several runs in the order of time.
    Trend,
    /// `index.json` beside several runs, and what `export --format claims` writes.
    Claims,
    /// Collect files, as `pubgauge-collect schema` does.
    Collect,
    /// Fleet files, as `pubgauge advise` reads them.
    Fleet,
    /// The output of `pubgauge advise --json`.
    Advice,
}

/// Options of a gate in CI.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = OUTPUT)]
pub struct GateArgs {
    /// Write the outcomes as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Annotations on standard error; `github` if GITHUB_ACTIONS is `true`, else `none`.
    #[arg(hide_short_help = true, long, value_name = "FORM", value_enum)]
    pub annotations: Option<Annotations>,
}

/// Forms of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Annotations {
    /// Workflow commands of GitHub Actions.
    Github,
    /// None.
    None,
}

/// Which systems, which study, which changes to it.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct Selection {
    /// Study file (TOML), `-` for standard input, or a folder: all studies in it, one after the other; or the name of
    /// a study that comes with pubgauge, such as first-look or papers/kang2020. Without one: the daily flags, or the
    /// first look.
    pub study: Option<PathBuf>,
    /// Systems to measure, by name (`pubgauge systems` lists them) or by address, for example
    /// mqtt://host:1883 or mqtts://user@host; several brokers of one system joined by `+`.
    #[arg(help_heading = SYSTEMS, long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Named settings, each run in turn: latency, throughput, durable, constrained,
    /// tuned, default (docs/profiles.md).
    #[arg(help_heading = SYSTEMS, long, value_name = "PROFILE,...", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Change one value of the study, for example --set settings.in-flight=100.
    #[arg(help_heading = MEASUREMENT, long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// A criterion that must be met, for example 'p99 < 10ms' or 'lost = 0'; repeat it for more. They are what
    /// "yes" means in the answer, a limit of a search ends at them, and the exit code is 1 if one is not met.
    #[arg(help_heading = MEASUREMENT, long, value_name = "CRITERION")]
    pub require: Vec<String>,
    /// Measure only the cells that these claims of the study are judged by, for example K14,K15.
    #[arg(help_heading = MEASUREMENT, hide_short_help = true, long, value_name = "CLAIM,...", value_delimiter = ',')]
    pub claim: Vec<String>,
    /// Run a size of the study that it has under this name, for example smoke; full is the study as
    /// written.
    #[arg(help_heading = MEASUREMENT, hide_short_help = true, long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Run every cell so many times [default: 1, or as the study says].
    #[arg(help_heading = MEASUREMENT, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: Option<u32>,
    /// Start so many brokers of each system side by side, 1 to 64; each topic lives on one of them. Several numbers are
    /// measured each.
    #[arg(help_heading = SYSTEMS, hide_short_help = true, long, value_name = "N,...", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub brokers: Vec<u32>,
    /// Scheduled messages that fall due within this span leave in one wake-up, for example 1ms (up
    /// to 100ms): fast traffic takes less of a core. None leaves early. Default: each at its own time.
    #[arg(help_heading = CLIENT, hide_short_help = true, long, value_name = "TIME")]
    pub pacing_within: Option<String>,
    /// Count system calls of client and system. That slows every system call of this machine a little:
    /// rates and times of such trials are not compared with those of others. Takes root.
    #[arg(help_heading = CLIENT, hide_short_help = true, long)]
    pub count_system_calls: bool,
    /// Count what crosses a network interface: lo, or NAMESPACE/INTERFACE with a network namespace as
    /// `ip netns` names it. Each trial takes 1 s longer.
    #[arg(help_heading = CLIENT, hide_short_help = true, long, value_name = "INTERFACE")]
    pub count_interface: Option<String>,
    /// Measure in rounds until the 95 % interval of each change, of the first cell against all others
    /// (two systems, two settings), is no wider than plus or minus this, for example 3%; 100 rounds
    /// or 30min at most (docs/compare.md).
    #[arg(help_heading = MEASUREMENT, hide_short_help = true, long, value_name = "PERCENT", conflicts_with = "repeats")]
    pub precision: Option<String>,
    /// More folders with system files.
    #[arg(help_heading = SYSTEMS,
        long,
        value_name = "DIR",
        env = "PUBGAUGE_SYSTEMS",
        value_delimiter = ':'
    )]
    pub systems: Vec<PathBuf>,
    /// A workload in a few flags instead of a file.
    #[command(flatten)]
    pub daily: Daily,
    /// The load that `pubgauge find` varies.
    #[arg(skip)]
    pub find: Option<Axis>,
    /// Workers are on other hosts.
    #[arg(skip)]
    pub elsewhere: bool,
}

impl Selection {
    /// Takes what is typed for what it means: an address, or the name of a system, in place of a study file is a system,
    /// `HOST:PORT` of a protocol's own port is an address, and `first-look` is the built-in study.
    ///
    /// # Errors
    /// An address of a port that tells no protocol; system files that are wrong.
    pub fn resolve_words(&mut self) -> Result<(), Ending> {
        if let Some(study) = self.study.take_if(|study| !names_studies(study)) {
            match study.to_str() {
                Some(address) if address.contains("://") => self.on.push(address.to_owned()),
                Some("first-look") => {}
                Some(name) if BuiltIn::named(name).is_some() => self.study = Some(study),
                Some(name) if catalog(&self.systems)?.get(name).is_ok() => {
                    self.on.push(name.to_owned())
                }
                Some(name) if is_server(name) => self.on.push(name.to_owned()),
                _ => self.study = Some(study),
            }
        }
        for system in &mut self.on {
            if let Some((host, port)) = system.rsplit_once(':')
                && is_host(system)
                && system.parse::<Ipv6Addr>().is_err()
                && let Ok(port) = port.parse::<u16>()
            {
                let mut schemes = drivers::all().schemes();
                let Some((_, scheme)) = schemes.find(|(_, known)| known.usual_port == Some(port))
                else {
                    return Err(Ending::bad_input(format!(
                        "--on {system}: port {port} is no protocol's own\n  hint: {}",
                        pubgauge_testbed::with_scheme(system, drivers::all())
                    )));
                };
                *system = format!("{}://{host}:{port}", scheme.name);
            }
        }
        Ok(())
    }

    /// Whether nothing at all is selected.
    pub fn is_empty(&self) -> bool {
        self.is_first_look() && self.repeats.is_none()
    }

    /// Whether nothing is selected but systems, and where their files are.
    pub fn is_empty_but_for_systems(&self) -> bool {
        let without = Selection {
            on: Vec::new(),
            ..self.clone()
        };
        without.is_empty()
    }

    /// Whether the built-in first look is asked for, as it is.
    pub fn is_first_look(&self) -> bool {
        let but_for_repeats_and_place = Selection {
            repeats: None,
            systems: Vec::new(),
            elsewhere: false,
            ..self.clone()
        };
        but_for_repeats_and_place == Selection::default()
    }
}

/// Whether a word in place of a study is a server beyond doubt: a file may have a point in its name.
fn is_server(word: &str) -> bool {
    let is_literal = word.parse::<IpAddr>().is_ok();
    is_host(word) && (word == "localhost" || is_literal || word.contains(':'))
}

/// Whether there is a file or a folder of this name that is no run: results of the first look stand in `first-look`.
fn names_studies(path: &Path) -> bool {
    path.exists() && !path.join(RESULTS_FILE).exists()
}

fn catalog(folders: &[PathBuf]) -> Result<Catalog, Ending> {
    Catalog::load(folders).map_err(Ending::bad_input)
}

/// The daily flags.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Workload, instead of a study file")]
pub struct Daily {
    /// Publishing devices; 0 is allowed. Several values, here and below, are measured each with each of the others
    /// [default: 1].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub publishers: Vec<u32>,
    /// Subscribing devices; 0 is allowed [default: 1].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub subscribers: Vec<u32>,
    /// Topics [default: 1].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub topics: Vec<u32>,
    /// Payload size, header included, for example 1KiB, 2MB [default: 64B].
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',')]
    pub payload: Vec<String>,
    /// Message rate: 10k/s in all, 1/s-each for each publisher, or max (flat out) [default: 1k/s].
    #[arg(long, value_name = "RATE,...", value_delimiter = ',')]
    pub rate: Vec<String>,
    /// Length of the measurement, for example 1min [default: 10s].
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Traffic before the measurement [default: 2s].
    #[arg(long, value_name = "TIME")]
    pub warm_up: Option<String>,
    /// MQTT quality of service: 0 at most once, 1 at least once, 2 exactly once [default: the system's].
    #[arg(long, value_name = "0|1|2,...", value_delimiter = ',')]
    pub qos: Vec<u8>,
    /// MQTT version [default: 5 where the system has it].
    #[arg(long, value_name = "3.1.1|5,...", value_delimiter = ',')]
    pub mqtt: Vec<String>,
}

/// `pubgauge run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Study and systems.
    #[command(flatten)]
    pub selection: Selection,
    /// Folder for the results; default: results/STUDY-TIME. Of a folder of studies, each has a folder of
    /// its own in it.
    #[arg(help_heading = MEASUREMENT, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a run that was cut off, as it was begun: study, systems and flags are in its
    /// folder.
    #[arg(help_heading = MEASUREMENT, long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// While it runs, answer http://ADDR/metrics with live figures (OpenMetrics). A port, or
    /// HOST:PORT; without a host only this machine can ask.
    #[arg(help_heading = OUTPUT, hide_short_help = true, long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Whether cells are measured again.
    /// Of `pubgauge run` alone: a search has a budget of its own.
    #[arg(skip)]
    pub until: UntilArgs,
    /// How external systems are logged in to.
    #[command(flatten)]
    pub login: Login,
    /// An address of the study that the password or the key may go to. Without it they go to no address that --on does
    /// not name.
    #[arg(hide_short_help = true,
        long,
        value_name = "ADDRESS",
        help_heading = LOGIN
    )]
    pub login_at: Vec<String>,
    /// Do not ask before a search loads a system at an address until it gives way.
    #[arg(long, help_heading = LOGIN)]
    pub yes: bool,
    /// How the client works.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Where the workers are.
    #[command(flatten)]
    pub hosts: HostsArgs,
    /// Options of a gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// Show the figures behind the answer as well: the table of all rows, and every reason of a verdict.
    #[arg(short, long)]
    pub verbose: bool,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

/// How the client works.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = CLIENT)]
pub struct ClientArgs {
    /// Worker threads for the publishing devices of each broker.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub publisher_workers: u32,
    /// Worker threads for the other devices of each broker.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub subscriber_workers: u32,
    /// Run the publishing devices of each broker in so many processes and its others in as many, each with
    /// one worker.
    /// Without it all are threads of one process, unless that may not open enough files.
    #[arg(hide_short_help = true, long, value_name = "N", conflicts_with_all = ["publisher_workers", "subscriber_workers"],
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PROCESSES)))]
    pub processes: Option<u32>,
    /// Real-time priority (SCHED_FIFO) for the workers, 1 to 99; needs root or CAP_SYS_NICE.
    #[arg(hide_short_help = true, long, value_name = "PRIORITY", num_args = 0..=1, default_missing_value = "10",
          value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,
    /// Processors for the workers, in turn.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "CPU,...",
        value_delimiter = ','
    )]
    pub pin: Vec<usize>,
}

impl ClientArgs {
    /// The options as plain data.
    pub fn options(&self) -> ClientOptions {
        ClientOptions {
            publisher_workers: self.publisher_workers,
            subscriber_workers: self.subscriber_workers,
            processes: self.processes,
            realtime: self.realtime,
            pin: self.pin.clone(),
        }
    }
}

const PLAN_EXAMPLES: &str = "\
Examples:
  pubgauge plan studies/first-look.toml
  pubgauge plan --rate 10k/s --qos 1 --on mosquitto,rabbitmq:mqtt -v";

/// `pubgauge plan`.
#[derive(Debug, Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct PlanArgs {
    /// Study and systems.
    #[command(flatten)]
    pub selection: Selection,
    /// Show all of it: every trial in its order, what each setting becomes on each system.
    #[arg(short, long)]
    pub verbose: bool,
    /// How external systems are logged in to.
    #[command(flatten)]
    pub login: Login,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

const SYSTEMS_EXAMPLES: &str = "\
Examples:
  pubgauge systems                     known, found, how to install each
  pubgauge systems --install artemis   shows what it will do, and asks
  pubgauge systems --matrix --on mosquitto,rabbitmq:mqtt";

/// `pubgauge systems`.
#[derive(Debug, Args)]
#[command(after_help = SYSTEMS_EXAMPLES)]
pub struct SystemsArgs {
    /// Show what each system can do: a row for each capability, a column for each system in each
    /// variant. With one or two systems, what each cell is in the system's own terms.
    #[arg(long, conflicts_with = "install")]
    pub matrix: bool,
    /// Only these systems, by name or NAME:VARIANT.
    #[arg(
        long,
        value_name = "SYSTEM,...",
        value_delimiter = ',',
        requires = "matrix"
    )]
    pub on: Vec<String>,
    /// Install these systems, or `all` that can be installed: shows what will be done, and asks
    /// first. Java servers are fetched with Maven into the cache (PUBGAUGE_CACHE, else
    /// ~/.cache/pubgauge).
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub install: Vec<String>,
    /// Do not ask before installing.
    #[arg(short, long, requires = "install")]
    pub yes: bool,
    /// More folders with system files.
    #[arg(
        long,
        value_name = "DIR",
        env = "PUBGAUGE_SYSTEMS",
        value_delimiter = ':'
    )]
    pub systems: Vec<PathBuf>,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  pubgauge check                       all that are found, in every variant
  pubgauge check --on rabbitmq,ejabberd:mqtt -v";

/// `pubgauge check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Systems, by name, or NAME:VARIANT; all that are found, in every variant, if absent.
    #[arg(long, value_name = "SYSTEM,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Leave the conformance suite out.
    #[arg(long)]
    pub capabilities_only: bool,
    /// Show what was found of every claim, not only what is broken.
    #[arg(short, long)]
    pub verbose: bool,
    /// More folders with system files.
    #[arg(
        long,
        value_name = "DIR",
        env = "PUBGAUGE_SYSTEMS",
        value_delimiter = ':'
    )]
    pub systems: Vec<PathBuf>,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  pubgauge compare results/before results/after --margin 5%
  pubgauge compare results/a --systems mosquitto,nats --figure latency.p99";

/// `pubgauge compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub struct CompareArgs {
    /// Folder of a run: A, which is compared with.
    pub a: PathBuf,
    /// Folder of another run: B. Without it, two systems or settings of A are compared.
    pub b: Option<PathBuf>,
    /// The system of A and that of B; one for both, if only one is named.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub systems: Vec<String>,
    /// The variant of the settings of A and that of B; one for both, if only one is named.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub settings: Vec<String>,
    /// Only this workload.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Only these figures, such as latency.p99 or system-memory. Fewer figures have narrower
    /// intervals.
    #[arg(long, value_name = "FIGURE,...", value_delimiter = ',')]
    pub figure: Vec<String>,
    /// Change up to which two figures are the same.
    #[arg(long, value_name = "PERCENT", default_value = "5%")]
    pub margin: String,
    /// Options of a gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  pubgauge export results/a --format parquet
  pubgauge export results/a --table trials --out -
  pubgauge export results/a --format junit --out -";

/// `pubgauge export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ExportArgs {
    /// Folder of a run; with --format claims also one with a run in each folder in it.
    pub dir: PathBuf,
    /// The form.
    #[arg(long, value_name = "FORM", value_enum, default_value = "csv")]
    pub format: ExportFormat,
    /// Only these tables: trials, flows, windows, series, percentiles, searches.
    #[arg(long, value_name = "TABLE,...", value_delimiter = ',',
          value_parser = pubgauge_export::tables::NAMES)]
    pub table: Vec<String>,
    /// Also columns without a value in any row, so that the tables of all runs have the same ones.
    #[arg(long)]
    pub all_columns: bool,
    /// Folder for the files; `export` in that of the run if absent. `-` writes one table,
    /// OpenMetrics, JUnit XML, Markdown or claims to standard output.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Options of output.
    #[command(flatten)]
    pub output: Output,
}

/// Forms of export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A file for each table, with a head line.
    Csv,
    /// A file for each table, a list of objects.
    Json,
    /// A file for each table.
    Parquet,
    /// One text with the figures of each trial, for Prometheus and its kin.
    Openmetrics,
    /// Criteria and trials as the test cases of JUnit XML.
    Junit,
    /// The answer as a table in Markdown, for the summary of a step in CI: `answer.md`.
    Markdown,
    /// Figures of the action github-action-benchmark: `benchmark-smaller.json`, `benchmark-bigger.json`.
    GithubBenchmark,
    /// Outcomes of the claims, with both figures: `claims.json`.
    Claims,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_for_what_they_mean() {
        let resolved = |study: Option<&str>, on: &[&str]| {
            let mut selection = Selection {
                study: study.map(PathBuf::from),
                on: on.iter().map(|&system| system.to_owned()).collect(),
                ..Selection::default()
            };
            let resolved = selection.resolve_words();
            resolved.map(|()| (selection.study, selection.on.join(",")))
        };
        for (study, on, meant) in [
            (None, "localhost:1883", "mqtt://localhost:1883"),
            (None, "localhost:8883", "mqtts://localhost:8883"),
            (None, "10.0.0.1:5672", "amqp://10.0.0.1:5672"),
            (None, "[::1]:4222", "nats://[::1]:4222"),
            // Variants and addresses stay as they are.
            (None, "rabbitmq:mqtt", "rabbitmq:mqtt"),
            (None, "mqtt://localhost:1999", "mqtt://localhost:1999"),
            (Some("mqtt://localhost"), "nats", "nats,mqtt://localhost"),
            (Some("mosquitto"), "nats", "nats,mosquitto"),
            (Some("first-look"), "nats", "nats"),
        ] {
            let (file, systems) =
                resolved(study, &[on]).unwrap_or_else(|e| panic!("{}", e.message));
            assert_eq!((file, &*systems), (None, meant));
        }
        let wrong = resolved(None, &["localhost:1999"]).expect_err("no protocol's own");
        assert!(
            wrong.message.contains("mqtt://localhost:1999"),
            "{}",
            wrong.message
        );
        // A name that means nothing is a file that is missed later.
        let (file, systems) = resolved(Some("gate"), &[]).expect("as it is");
        assert_eq!((file, &*systems), (Some(PathBuf::from("gate")), ""));
    }
}
