//! The studies that a fleet becomes.

use std::fmt::Write as _;

use pubgauge_driver::{Reliability, Settings};
use pubgauge_quantities::shown::{self, decimals};

use crate::boxes::{AXIS, DEALT_EVENLY};
use crate::fleet::{ApplicationsFile, CommandsFile, DevicesFile, Fleet, Hears, OfflineFile};
use crate::stage::Stage;
use crate::variation::Variation;

/// Most devices with connections of their own: each is a descriptor of the client and one of the server.
const MOST_DEVICES: f64 = 15_000.0;
/// Fewer messages a second than this take too long to tell a percentile of: fleets are sped up to it.
const LEAST_PER_S: f64 = 50.0;
/// Longest absence that is measured as it is; longer ones are cut to this.
const LONGEST_ABSENCE_S: f64 = 5.0;
/// Longest return from an absence that is measured as it is; longer ones are cut to this.
const LONGEST_RETURN_S: f64 = 10.0;
/// Seconds of a measurement without absences.
const MEASURE_S: f64 = 15.0;
/// Seconds at least from the return of the last device to the end of the measurement.
const SETTLED_S: f64 = 4.0;
/// Seconds from the end of the measurement for which nobody would leave again.
const MARGIN_S: f64 = 1.0;
/// The time in which devices are back where the fleet does not say.
const BACK_S: f64 = 5.0;

/// Most devices whose answers one client awaits, each by a subscription of its own: NATS takes 655 of a client over MQTT.
const MOST_ANSWERS: u64 = 500;

/// The longest 99th percentile of latency where a kind of devices does not say.
const FRESH_WITHIN_NS: u64 = 100_000_000;

const SECOND: f64 = 1e9;

impl Fleet {
    /// The study of a step, as a file.
    pub fn study(&self, step: &Stage) -> String {
        let mut out = format!("name = {:?}\n", step.study_name(self));
        let systems: Vec<&str> = step
            .candidates
            .iter()
            .map(|of| of.system.as_str())
            .collect();
        let _ = writeln!(out, "systems = {systems:?}\nrepeats = {}\n", step.repeats);
        let _ = writeln!(out, "[client]\npacing-within = \"1ms\"\n");
        if let Some(machine) = self.file.must.machine {
            let _ = writeln!(out, "[testbed.limits]\ncores = {:?}", machine.cores);
            if let Some(memory) = machine.memory {
                let _ = writeln!(out, "memory = \"{}MiB\"", memory.0 >> 20);
            }
            out.push('\n');
        }
        if !step.brokers.is_empty() {
            let _ = writeln!(out, "[grid]\n{AXIS} = {:?}\n", step.brokers);
        }
        if step.changes.iter().all(|change| change.is_search()) {
            let _ = writeln!(
                out,
                "[search]\nbudget = \"{}s\"\nconfirm = \"20s\"\n",
                step.search_s
            );
        }
        for reliability in step.reliabilities() {
            self.write_settings(&mut out, reliability);
        }
        for &change in &step.changes {
            for reliability in step.reliabilities() {
                let of = step.candidates.iter().filter(|of| {
                    of.reliability == reliability && step.measures(&of.system, change)
                });
                let systems: Vec<&str> = of.map(|of| of.system.as_str()).collect();
                if !systems.is_empty() {
                    let absences = self.absences().filter(|_| step.has_absences(change));
                    self.write_workload(&mut out, (change, absences), reliability, &systems);
                }
            }
        }
        // Each kind has one: with a criterion for some flows pubgauge's default holds for none.
        for kind in &self.file.devices {
            let within = kind.fresh_within.map_or(FRESH_WITHIN_NS, |span| span.0);
            let _ = writeln!(
                out,
                "[[criterion]]\nfigure = \"latency.p99\"\nat-most = \"{}\"\nflow = {:?}\n",
                exact_time(within),
                kind.name
            );
        }
        out
    }

    /// The name of the workload of a changed fleet on systems that give its delivery by this reliability.
    pub(crate) fn workload_name(&self, change: Variation, reliability: Reliability) -> String {
        let name = change.workload();
        if reliability == self.reliabilities()[0] {
            name.to_owned()
        } else {
            format!("{name}-{}", spelling(reliability))
        }
    }

    fn write_settings(&self, out: &mut String, reliability: Reliability) {
        let _ = writeln!(out, "[[settings]]\nname = {:?}", spelling(reliability));
        out.push_str(&as_toml(&self.settings(reliability)));
        out.push('\n');
    }

    fn write_workload(
        &self,
        out: &mut String,
        (change, absences): (Variation, Option<Absences>),
        reliability: Reliability,
        systems: &[&str],
    ) {
        let settings = spelling(reliability);
        let _ = writeln!(
            out,
            "[[workload]]\nname = {:?}\nsystems = {systems:?}\nsettings = [{settings:?}]",
            self.workload_name(change, reliability)
        );
        let _ = writeln!(out, "phases = {{ {} }}\n", phases(change, absences));
        for kind in &self.file.devices {
            self.write_devices(out, kind, change, absences);
        }
        for application in &self.file.applications {
            self.write_application(out, application);
        }
    }

    /// The times of a measurement in which all kinds that leave do so once; `None` if none does.
    fn absences(&self) -> Option<Absences> {
        let kinds = self.file.devices.iter();
        let each: Vec<[f64; 2]> = kinds.filter_map(|kind| kind.offline).map(absence).collect();
        let longest = |nth: usize| each.iter().map(|times| times[nth]).fold(0.0, f64::max);
        let shortest_s = each.iter().map(|times| times[0]).reduce(f64::min)?;
        // Who was away for the shortest time would leave again first.
        let online_s = longest(1) + SETTLED_S + MARGIN_S + longest(0) - shortest_s;
        Some(Absences {
            online_s,
            measure_s: 2.0 * online_s + shortest_s - MARGIN_S,
        })
    }

    fn write_devices(
        &self,
        out: &mut String,
        kind: &DevicesFile,
        change: Variation,
        absences: Option<Absences>,
    ) {
        let count = self.devices(kind, change);
        let _ = writeln!(out, "[[workload.flow]]\nname = {:?}", kind.name);
        let _ = writeln!(
            out,
            "publishers = {count}\npublish-as = \"{}-devices\"",
            kind.name
        );
        let _ = writeln!(out, "topic = \"{}/{{device}}/value\"", kind.name);
        let _ = writeln!(out, "dimensions = {{ device = {count} }}");
        match self.first_hearing(kind) {
            Some(app) => {
                let _ = writeln!(out, "subscribers = {}", app.count);
                if let Some(filter) = filter(kind, app.hears) {
                    let _ = writeln!(out, "subscribe = {filter:?}");
                }
            }
            None => out.push_str("subscribers = 0\n"),
        }
        let is_sought = change.is_search() && kind.name == self.busiest().name;
        let rate = self.sent_per_s(kind, change);
        if is_sought {
            out.push_str("rate = \"find\"\n");
        } else {
            let _ = writeln!(out, "rate = \"{}/s\"", decimals(rate, 6));
        }
        let _ = writeln!(
            out,
            "payload = \"{}B\"",
            self.payload(kind.payload.0, change)
        );
        if let (Some(offline), Some(Absences { online_s, .. })) = (kind.offline, absences) {
            let [away, back] = absence(offline);
            let _ = writeln!(
                out,
                "presence = {{ of = \"publishers\", online = \"{online_s}s\", offline = \"{away}s\", \
                 back-within = \"{back}s\" }}"
            );
        }
        out.push('\n');
        self.write_commands(out, kind, change, count);
    }

    fn write_commands(&self, out: &mut String, kind: &DevicesFile, change: Variation, count: u64) {
        let Some(commands) = kind.commands else {
            return;
        };
        let per_s = self.commands_per_s(commands, change);
        let size = commands.payload.map_or(64, |size| size.0);
        let _ = writeln!(out, "[[workload.flow]]\nname = \"{}-commands\"", kind.name);
        let _ = writeln!(
            out,
            "publishers = {}\nsubscribers = {count}\ntopics = {count}",
            count.div_ceil(if commands.answered {
                MOST_ANSWERS
            } else {
                count
            })
        );
        let _ = writeln!(out, "subscribe-as = \"{}-devices\"", kind.name);
        let _ = writeln!(out, "rate = \"{}/s\"", decimals(per_s, 6));
        let _ = writeln!(out, "payload = \"{}B\"", self.payload(size, change));
        if commands.answered && !matches!(change, Variation::Boxes(_)) {
            out.push_str("exchange = \"ping-pong\"\n");
        }
        out.push('\n');
        if commands.answered && matches!(change, Variation::Boxes(_)) {
            self.write_answers(out, kind, change, per_s);
        }
    }

    /// Answers as messages of their own: one who asks on several brokers cannot wait on all of them.
    fn write_answers(&self, out: &mut String, kind: &DevicesFile, change: Variation, per_s: f64) {
        let count = self.devices(kind, change);
        let size = kind.commands.and_then(|commands| commands.payload);
        let size = self.payload(size.map_or(64, |size| size.0), change);
        let name = format!("{}-answers", kind.name);
        let _ = writeln!(
            out,
            "[[workload.flow]]\nname = {name:?}\npublishers = {count}\npublish-as = \"{}-devices\"\n\
             topic = \"{name}/{{device}}\"\ndimensions = {{ device = {count} }}\nsubscribers = 1\n\
             subscribe = \"{name}/#\"\nrate = \"{}/s\"\npayload = \"{size}B\"\n",
            kind.name,
            decimals(per_s, 6)
        );
    }

    fn commands_per_s(&self, commands: CommandsFile, change: Variation) -> f64 {
        SECOND / commands.every.0 as f64 * self.speed_up() * factor_of_rate(change)
    }

    /// Messages a second of all but the kind that sends the most, commands and answers included.
    pub(crate) fn others_per_s(&self, change: Variation) -> f64 {
        let kinds = self.file.devices.iter();
        let others = kinds.filter(|kind| kind.name != self.busiest().name);
        let sent: f64 = others.map(|kind| self.sent_per_s(kind, change)).sum();
        let commands = self.file.devices.iter().filter_map(|kind| kind.commands);
        let commands = commands.map(|commands| {
            let ways = if commands.answered { 2.0 } else { 1.0 };
            ways * self.commands_per_s(commands, change)
        });
        sent + commands.sum::<f64>()
    }

    /// Applications that share, and all but the first kind that hear all of some devices, only subscribe.
    fn write_application(&self, out: &mut String, application: &ApplicationsFile) {
        for kind in &self.file.devices {
            let is_first = self
                .first_hearing(kind)
                .is_some_and(|app| app.name == application.name);
            if is_first || !Fleet::hears(application, kind) {
                continue;
            }
            let filter = filter(kind, application.hears).unwrap_or_else(|| {
                // Of several kinds of applications with single topics each hears all that the first one does.
                format!("{}/+/value", kind.name)
            });
            let filter = if application.share {
                format!("$share/{}/{filter}", application.name)
            } else {
                filter
            };
            let _ = writeln!(
                out,
                "[[workload.flow]]\nname = \"{}-{}\"\npublishers = 0\nsubscribers = {}\nsubscribe = {filter:?}\n",
                application.name, kind.name, application.count
            );
        }
    }

    /// The first kind of applications each of which hears all of these devices.
    fn first_hearing(&self, kind: &DevicesFile) -> Option<&ApplicationsFile> {
        let mut applications = self.file.applications.iter();
        applications.find(|app| !app.share && Fleet::hears(app, kind))
    }

    /// Devices of a kind that a changed fleet has.
    pub(crate) fn devices(&self, kind: &DevicesFile, change: Variation) -> u64 {
        let times = match change {
            Variation::Devices(times) => times,
            Variation::Headroom(times) | Variation::Boxes(times)
                if self.grows_by_devices(times) =>
            {
                times
            }
            _ => 1.0,
        };
        let devices = (f64::from(kind.count) * times).ceil() as u64;
        match change {
            Variation::Boxes(_) => devices.next_multiple_of(DEALT_EVENLY),
            _ => devices,
        }
    }

    /// Whether so many times the fleet has more devices; else its devices send more often.
    pub(crate) fn grows_by_devices(&self, times: f64) -> bool {
        let all: u32 = self.file.devices.iter().map(|kind| kind.count).sum();
        f64::from(all) * times <= MOST_DEVICES
    }

    /// Messages a second of a kind in a changed fleet.
    fn sent_per_s(&self, kind: &DevicesFile, change: Variation) -> f64 {
        let rate = Fleet::rate(kind) * self.speed_up();
        let devices = self.devices(kind, change) as f64 / f64::from(kind.count);
        match change {
            Variation::Headroom(times) | Variation::Boxes(times) => rate * times,
            change => rate * devices * factor_of_rate(change),
        }
    }

    /// Messages a second of the kind that sends the most, as the fleet is measured.
    pub(crate) fn busiest_per_s(&self) -> f64 {
        self.sent_per_s(self.busiest(), Variation::None)
    }

    fn payload(&self, bytes: u64, change: Variation) -> u64 {
        match change {
            Variation::Payload(times) => (bytes as f64 * times) as u64,
            _ => bytes,
        }
    }

    /// How many times as often as in the fleet messages are sent, because so few tell nothing within minutes.
    pub(crate) fn speed_up(&self) -> f64 {
        let all: f64 = self.file.devices.iter().map(Fleet::rate).sum();
        (LEAST_PER_S / all).max(1.0)
    }

    /// In which ways what is measured differs from the fleet, in sentences.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let times = self.speed_up();
        if times > 1.0 {
            let all: f64 = self.file.devices.iter().map(Fleet::rate).sum();
            remarks.push(format!(
                "the fleet sends {}, too few to tell a percentile of within minutes: it is measured with {} times as many",
                shown::rate(all),
                shown::brief(times)
            ));
        }
        if !self.grows_by_devices(self.headroom()) {
            remarks.push(format!(
                "{} times the devices are more connections than a process here can have: the same devices send {} times as often",
                self.headroom(),
                self.headroom()
            ));
        }
        if self.headroom() > 1.0 && self.absences().is_some() {
            remarks.push(format!(
                "{} times the fleet is measured with its absence once, and again with nobody away",
                self.headroom()
            ));
        }
        for kind in &self.file.devices {
            let Some(offline) = kind.offline else {
                continue;
            };
            let [away, back] = absence(offline);
            if away < seconds(offline.away) {
                let waiting = if kind.commands.is_some() {
                    "; commands that wait for longer were not measured"
                } else {
                    ""
                };
                remarks.push(format!(
                    "{}: an absence of {} is measured as one of {away} s{waiting}",
                    kind.name, offline.away
                ));
            }
            if offline
                .back_within
                .is_some_and(|within| back < seconds(within))
            {
                remarks.push(format!(
                    "{}: all come back within {back} s, which is harder than what is asked for",
                    kind.name
                ));
            }
        }
        remarks
    }
}

/// The times of a measurement in which devices leave and come back once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Absences {
    /// Seconds from the beginning for which all are there, and seconds from a return to the next absence, which the
    /// measurement does not reach.
    online_s: f64,
    /// Seconds of the measurement.
    measure_s: f64,
}

fn phases(change: Variation, absences: Option<Absences>) -> String {
    let ready = "ready-within = \"2min\", drain-within = \"30s\"";
    if change.is_search() {
        return format!("{ready}, measure = \"5s\", warm-up = \"1s\"");
    }
    let measure_s = absences.map_or(MEASURE_S, |absences| absences.measure_s.max(MEASURE_S));
    format!("{ready}, measure = \"{measure_s}s\"")
}

/// How many times as often messages come.
fn factor_of_rate(change: Variation) -> f64 {
    match change {
        Variation::Headroom(times) | Variation::Boxes(times) | Variation::Rate(times) => times,
        _ => 1.0,
    }
}

/// Seconds of an absence and of the return from it, as they are measured.
fn absence(offline: OfflineFile) -> [f64; 2] {
    let back = offline.back_within.map_or(BACK_S, seconds);
    [
        seconds(offline.away).min(LONGEST_ABSENCE_S),
        back.min(LONGEST_RETURN_S),
    ]
}

fn seconds(span: pubgauge_quantities::Span) -> f64 {
    span.0 as f64 / SECOND
}

/// The filter of an application; `None`: the topics are dealt out.
fn filter(kind: &DevicesFile, hears: Hears) -> Option<String> {
    match hears {
        Hears::Exact => None,
        Hears::Below => Some(format!("{}/#", kind.name)),
        Hears::ByLevel => Some(format!("{}/+/value", kind.name)),
    }
}

/// The name of a variant of the settings.
pub(crate) fn spelling(reliability: Reliability) -> String {
    pubgauge_driver::spelt(&Some(reliability)).unwrap_or_default()
}

/// Settings as keys of a study file: plain values alone.
pub(crate) fn as_toml(settings: &Settings) -> String {
    let lines = Settings::NAMES.iter().filter_map(|name| {
        let value = settings.value_of(name);
        match value.as_str() {
            "default" => None,
            "true" | "false" => Some(format!("{name} = {value}\n")),
            _ => Some(format!("{name} = {value:?}\n")),
        }
    });
    lines.collect()
}

/// A time as a study has it, in the largest unit that leaves no fraction: `100ms`.
fn exact_time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(size, _)| ns.is_multiple_of(*size));
    let (size, unit) = whole.unwrap_or((1, "ns"));
    format!("{}{unit}", ns / size)
}
