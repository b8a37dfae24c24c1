//! Links by `wirefilter`, where there is no netem: a `vde_switch` with an interface at each end, and the filter
//! between them.

use std::path::PathBuf;

use super::links::All;
use super::step::{Act, INTERFACE, PlanStep, Ready, StepNamespace};
use pubgauge_network::{Host, Link, Loss, Nanos, Network, Reordering};
use pubgauge_quantities::shown::decimals;

/// Nanoseconds in the unit of `wirefilter`'s delays.
pub(super) const MILLISECOND: Nanos = 1_000_000;

/// Starts the programs that connect hosts by `wirefilter`.
pub(super) fn starts(all: &All<'_>, network: &Network) -> Vec<PlanStep> {
    let wired = all.hosts.iter().zip(all.wired).filter(|(_, wired)| **wired);
    wired
        .flat_map(|(host, _)| {
            let folders = ["h", "s"].map(|end| all.names.sockets.join(format!("{host}.{end}")));
            let [near, far] = folders.clone();
            let port = host.to_string();
            [
                switch(StepNamespace::Host(*host), INTERFACE, near),
                switch(StepNamespace::Switch, &port, far),
                filter(*host, network.link(*host), folders),
            ]
        })
        .collect()
}

fn switch(place: StepNamespace, interface: &str, folder: PathBuf) -> PlanStep {
    let argv = [
        "vde_switch",
        "-s",
        &folder.to_string_lossy(),
        "-t",
        interface,
    ];
    PlanStep {
        place,
        act: Act::Start {
            argv: argv.map(str::to_owned).to_vec(),
            ready: Ready::Interface(interface.into(), folder.join("ctl")),
        },
    }
}

fn filter(host: Host, link: &Link, folders: [PathBuf; 2]) -> PlanStep {
    let ends = format!("{}:{}", folders[0].display(), folders[1].display());
    let mut argv = vec!["wirefilter".to_owned(), "-v".into(), ends];
    let mut option = |flag: &str, value: String| argv.extend([flag.to_owned(), value]);
    let [delay, jitter] = [link.delay_ns, link.jitter_ns].map(|span| span / MILLISECOND);
    match jitter {
        0 => option("-d", delay.to_string()),
        _ => option("-d", format!("{delay}+{jitter}U")),
    }
    if let Some(Loss::Gilbert {
        share,
        burst_packets,
    }) = link.loss
    {
        option("-l", percent(share));
        option("-L", burst_packets.to_string());
    }
    if link.duplicated > 0.0 {
        option("-D", percent(link.duplicated));
    }
    if link.reordering == Some(Reordering::Jitter) {
        argv.push("-N".into());
    }
    PlanStep {
        place: StepNamespace::Host(host),
        act: Act::Start {
            argv,
            ready: Ready::Ports(folders),
        },
    }
}

/// A share as a percentage, with six digits after the point.
pub(super) fn percent(share: f64) -> String {
    decimals(share * 100.0, 6)
}
