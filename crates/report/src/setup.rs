//! How long connecting took and how members of groups shared, where the study is about them.

use pubgauge_figures::figure::figure;
use pubgauge_figures::group::extremes;
use pubgauge_figures::late::LateFigures;
use pubgauge_figures::slow::SlowFigures;
use pubgauge_figures::wills::WillFigures;
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::mean;

use crate::summary::Cell;

/// Seconds from which connecting, or the proof that all receive, is told.
const SLOW_S: f64 = 2.0;

/// Connections from which the memory that each takes of the system is told.
const MANY: u64 = 1000;

/// Slow subscribers that are named.
const MOST_SLOW_NAMED: usize = 3;

/// The share of a group's messages from which one of its members has got all but a few.
const NEARLY_ALL: f64 = 0.9;

/// The time that setting up a cell's trials took, means over its trials, in one sentence; `None` where nothing of it is
/// worth a line.
pub(crate) fn sentence(cell: &Cell<'_>) -> Option<String> {
    let of = |name: &str| {
        let values = cell.trials.iter().filter_map(|t| figure(t, None, name));
        mean(values)
    };
    let slow = |name: &str| of(name).filter(|seconds| *seconds >= SLOW_S);
    let mut said = Vec::new();
    if let Some(seconds) = slow("connect-time") {
        said.push(format!(
            "connecting and subscribing took {}",
            shown::seconds(seconds)
        ));
    }
    if let Some(seconds) = slow("ready-time") {
        said.push(format!(
            "{} passed from then until every subscriber received",
            shown::seconds(seconds)
        ));
    }
    let many = cell.trials.iter().any(|t| t.connections.made >= MANY);
    if let Some(bytes) = of("system-memory-per-connection").filter(|_| many) {
        said.push(format!(
            "{} of the system's memory for each connection",
            shown::bytes(bytes as u64)
        ));
    }
    if let Some(times) = of("connections-refused").filter(|times| *times > 0.0) {
        let tries = shown::number(times);
        said.push(format!("{tries} attempts to connect were turned away"));
    }
    (!said.is_empty()).then(|| format!("{}: {}", cell.label, said.join("; ")))
}

/// How long clients were without a connection that they had lost, means over a cell's trials; `None` where none was.
pub(crate) fn interruptions(cell: &Cell<'_>) -> Option<String> {
    let trials = || cell.trials.iter().filter(|t| !t.interruptions.is_empty());
    let each = trials().flat_map(|t| &t.interruptions);
    let lost = each.map(|one| one.lost).max()?;
    let of = |name: &str| mean(trials().filter_map(|t| figure(t, None, name)));
    let mut said = vec![match of("out-time") {
        Some(out) => format!("out for {}", shown::seconds(out)),
        None => "out until the end".to_owned(),
    }];
    let lost = shown::so_many(lost, "connection");
    said[0].push_str(&format!(" ({lost} lost)"));
    if let Some(due) = of("not-connected").filter(|due| *due > 0.0) {
        said.push(format!(
            "{} messages fell due meanwhile",
            shown::number(due)
        ));
    }
    said.push(match of("back-time") {
        Some(back) => format!("the last client back after {}", shown::seconds(back)),
        None => "not all clients came back".to_owned(),
    });
    Some(format!("{}: {}", cell.label, said.join(", ")))
}

/// The fate of the messages to slow subscribers, means over a cell's trials, and who of them fell behind; `None` where
/// none is slow.
pub(crate) fn slow_subscribers(cell: &Cell<'_>) -> Option<String> {
    let all = || cell.trials.iter().filter_map(|t| t.slow.as_ref());
    let first = all().next()?;
    let of = |value: fn(&SlowFigures) -> u64| mean(all().map(|slow| value(slow) as f64));
    let some = |value| of(value).filter(|count| *count > 0.0).map(shown::number);
    let mut said = vec![format!(
        "{} of {} slow subscribers fell behind: {} of {} messages due to them were taken",
        shown::number(of(|slow| slow.fell_behind)?),
        first.subscribers,
        shown::number(of(|slow| slow.taken)?),
        shown::number(of(|slow| slow.expected)?),
    )];
    said.extend(some(|slow| slow.behind).map(|n| format!("{n} had been kept and came afterwards")));
    said.extend(some(|slow| slow.lost).map(|n| format!("{n} never came")));
    said.extend(some(|slow| slow.under_way).map(|n| format!("{n} were still coming at the end")));
    let ended = of(|slow| slow.disconnects).filter(|count| *count > 0.0);
    said.extend(ended.map(|n| match n {
        1.0 => "1 connection was ended".to_owned(),
        n => format!("{} connections were ended", shown::number(n)),
    }));
    let named = first.of.iter().take(MOST_SLOW_NAMED).map(|one| {
        let disconnected = if one.disconnects > 0 {
            ", disconnected"
        } else {
            ""
        };
        let lost = match one.lost {
            Some(lost) => format!("{} lost", shown::count(lost)),
            None => "an unknown number lost".to_owned(),
        };
        format!(
            "{} ({} taken, {} kept, {lost}{disconnected})",
            one.party,
            shown::count(one.taken),
            shown::count(one.behind)
        )
    });
    let mut named: Vec<String> = named.collect();
    let more = first.fell_behind - named.len() as u64;
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let mut sentence = format!("{}: {}", cell.label, said.join(", "));
    if !named.is_empty() {
        sentence.push_str(&format!("; {}", named.join(", ")));
    }
    Some(sentence)
}

/// The deliveries to late subscribers, means over a cell's trials; `None` where none is late.
pub(crate) fn late_subscribers(cell: &Cell<'_>) -> Option<String> {
    let all = || cell.trials.iter().filter_map(|t| t.late.as_ref());
    let first = all().next()?;
    let of = |value: fn(&LateFigures) -> Option<u64>| {
        mean(all().filter_map(|late| value(late).map(|count| count as f64)))
    };
    let some = |value| of(value).filter(|count| *count > 0.0).map(shown::number);
    let longest = |name: &str| {
        let each = cell.trials.iter().filter_map(|t| figure(t, None, name));
        each.fold(None, |most: Option<f64>, ns| {
            Some(most.map_or(ns, |most| most.max(ns)))
        })
    };
    let within = |name: &str| {
        longest(name).map_or_else(String::new, |ns| format!(" within {}", shown::time(ns)))
    };
    let mut said = vec![format!(
        "{} of {} late subscribers subscribed{}",
        shown::number(of(|late| Some(late.subscribed))?),
        first.subscribers,
        within("late-time-to-subscribe.max"),
    )];
    if let Some(due) = of(|late| late.last_values_due) {
        said.push(format!(
            "{} of {} last values came{}",
            shown::number(of(|late| Some(late.last_values))?),
            shown::number(due),
            within("late-time-to-last-values.max"),
        ));
    } else if let Some(values) = some(|late| Some(late.last_values)) {
        said.push(format!("{values} last values came"));
    }
    if let Some(backlog) = some(|late| Some(late.backlog)) {
        let within = within("late-time-to-backlog.max");
        said.push(format!("{backlog} messages from before came{within}"));
    }
    said.push(format!(
        "{} messages from after that came",
        shown::number(of(|late| Some(late.live))?)
    ));
    said.push(match of(|late| Some(late.lost))? {
        0.0 => "none of these was lost".to_owned(),
        lost => format!("{} of these were lost", shown::number(lost)),
    });
    said.extend(
        some(|late| Some(late.open_paths))
            .map(|n| format!("on {n} paths it is not known whether the last ones came")),
    );
    Some(format!("{}: {}", cell.label, said.join(", ")))
}

/// The fate of clients that came and went, means over a cell's trials; `None` where none did.
pub(crate) fn comings_and_goings(cell: &Cell<'_>) -> Option<String> {
    let of = |name: &str| {
        let values = cell.trials.iter().filter_map(|t| figure(t, None, name));
        mean(values)
    };
    let left = of("clients-left")?;
    let count = |name: &str| of(name).filter(|count| *count > 0.0).map(shown::number);
    let time = |name: &str| of(name).map(shown::time);
    let mut said = vec![format!(
        "clients left {} times, and were back {} times",
        shown::number(left),
        shown::number(of("clients-returned")?)
    )];
    if let (Some(usual), Some(most)) =
        (time("time-to-reconnect.p50"), time("time-to-reconnect.max"))
    {
        said.push(format!(
            "connected again within {usual} (median), {most} at most"
        ));
    }
    if let (Some(messages), Some(most)) = (count("backlog"), time("backlog-time.max")) {
        said.push(format!(
            "{messages} messages came that were due before, the last of them {most} after its subscriber was back"
        ));
    }
    if let Some(messages) = count("missed") {
        said.push(format!("{messages} deliveries were missed by who was away"));
    }
    if let Some(messages) = count("away") {
        said.push(format!(
            "{messages} messages fell due while their publisher was away"
        ));
    }
    Some(format!("{}: {}", cell.label, said.join("; ")))
}

/// The wills of devices that came and went, means over a cell's trials; `None` where none has one.
pub(crate) fn wills(cell: &Cell<'_>) -> Option<String> {
    let all = || cell.trials.iter().filter_map(|t| t.wills.as_ref());
    all().next()?;
    let of = |value: fn(&WillFigures) -> u64| mean(all().map(|wills| value(wills) as f64));
    let some = |value| of(value).filter(|count| *count > 0.0).map(shown::number);
    let time = |name: &str| {
        let each = cell.trials.iter().filter_map(|t| figure(t, None, name));
        mean(each).map(shown::time)
    };
    let mut said = Vec::new();
    if of(|wills| wills.cut)? > 0.0 {
        said.push(format!(
            "of {} wills that were due for connections that were cut, {} came",
            shown::number(of(|wills| wills.due)?),
            shown::number(of(|wills| wills.published)?),
        ));
    }
    let times = ["p50", "p99", "max"].map(|of| time(&format!("will-time.{of}")));
    said.extend(match times {
        [Some(p50), Some(p99), _] => Some(format!("within {p50} (median), {p99} (p99)")),
        [Some(p50), None, Some(most)] => Some(format!("within {p50} (median), {most} at most")),
        _ => None,
    });
    let further = [
        (
            some(WillFigures::deliveries_missing),
            "of their deliveries did not come",
        ),
        (
            some(|wills| wills.duplicated),
            "deliveries of wills were repeated",
        ),
        (
            some(|wills| wills.averted),
            "devices were back before their will was due",
        ),
        (
            some(|wills| wills.undecided),
            "cuts were too near to the end of a delay, or of the trial, to tell",
        ),
        (some(|wills| wills.needless), "wills came that were not due"),
        (
            some(|wills| wills.after_loss),
            "wills came for connections that were lost",
        ),
    ];
    said.extend(
        further
            .into_iter()
            .filter_map(|(count, what)| Some(format!("{} {what}", count?))),
    );
    let in_order = of(|wills| wills.in_order)?;
    if in_order > 0.0 {
        said.push(match of(|wills| wills.after_disconnect)? {
            0.0 => format!(
                "none came for {} connections that ended in order",
                shown::number(in_order)
            ),
            came => format!(
                "{} came for {} connections that ended in order",
                shown::number(came),
                shown::number(in_order)
            ),
        });
    }
    if said.is_empty() {
        said.push("no connection of a device with a will ended".into());
    }
    Some(format!("{}: {}", cell.label, said.join("; ")))
}

/// How the members of a cell's groups shared its messages, over all its trials; `None` without groups.
pub(crate) fn groups(cell: &Cell<'_>) -> Option<String> {
    let groups = || cell.trials.iter().flat_map(|trial| &trial.groups);
    let shared = groups().filter(|group| group.deliveries.len() > 1);
    let each = shared.filter_map(|group| {
        let (low, high) = extremes(std::slice::from_ref(group))?;
        Some((group.deliveries.len(), low, high))
    });
    let each: Vec<(usize, f64, f64)> = each.collect();
    let low = each.iter().map(|(_, low, _)| *low).reduce(f64::min)?;
    let (members, _, high) = each.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let shares = if *high > NEARLY_ALL {
        let all = if *high < 1.0 {
            shown::share(*high)
        } else {
            "all".to_owned()
        };
        format!(
            "one of {members} members of a group got {all} of its messages: it is hardly shared"
        )
    } else {
        format!(
            "members of a group got {} to {} of its messages",
            shown::share(low),
            shown::share(*high)
        )
    };
    Some(format!("{}: {shares}", cell.label))
}
