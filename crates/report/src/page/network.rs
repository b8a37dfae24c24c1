//! The networks that trials ran on: a drawing, baselines of their links, and the trials' traffic.

use std::fmt::Write as _;

use pubgauge_network::{Host, Network, Role, rate, span};
use pubgauge_results::Results;
use pubgauge_results::network::NetworkInfo;

use super::html::{END_TABLE, begin_table, escape, row, system_of};
use super::per_trial::time;
use crate::{network, units};

/// The largest number of hosts of a role that are drawn; the last place gives the number of others.
const DRAWN: usize = 8;

/// Writes the section of all networks.
pub(super) fn section(out: &mut String, results: &Results) {
    if results.networks.is_empty() {
        return;
    }
    out.push_str("<section id=\"network\"><h2>Network</h2>\n");
    for (number, info) in (0..).zip(&results.networks) {
        if results.networks.len() > 1 {
            let _ = writeln!(out, "<h3>Network {}</h3>", number + 1);
        }
        drawing(out, &info.network);
        let _ = writeln!(
            out,
            "<pre tabindex=\"0\">{}</pre>",
            escape(&info.network.describe())
        );
        for words in network::raw(info).into_iter().chain(network::doubt(info)) {
            let _ = writeln!(out, "<p>{}</p>", escape(&words));
        }
        bare(out, info);
        crossed(out, results, number);
    }
    out.push_str("</section>\n");
}

/// Hosts around the switch, as a drawing with a text label.
fn drawing(out: &mut String, network: &Network) {
    let of = |role: Role| -> Vec<Host> { network.hosts().filter(|h| h.role == role).collect() };
    let sides = [
        (Role::Publisher, 10.0, 230.0),
        (Role::Subscriber, 490.0, 410.0),
        (Role::Broker, 250.0, 320.0),
    ];
    let most = sides[..2]
        .iter()
        .map(|side| of(side.0).len().min(DRAWN))
        .max()
        .unwrap_or(1)
        .max(1);
    let brokers = of(Role::Broker).len().min(DRAWN);
    let top = if brokers > 0 { 70.0 } else { 20.0 };
    let height = top + 34.0 * most as f64 + 10.0;
    let middle = (top + height - 10.0) / 2.0;
    let _ = write!(
        out,
        "<svg class=\"network\" viewBox=\"0 0 640 {height}\" width=\"640\" height=\"{height}\" role=\"img\" \
         aria-label=\"{}\" font-size=\"12\" fill=\"currentColor\" stroke=\"none\">\n\
         <rect x=\"270\" y=\"{}\" width=\"100\" height=\"30\" rx=\"4\" fill=\"none\" stroke=\"currentColor\"/>\
         <text x=\"320\" y=\"{}\" text-anchor=\"middle\">switch</text>\n",
        escape(network.describe().trim()),
        middle - 15.0,
        middle + 4.0,
    );
    for (role, x, joint) in sides {
        let hosts = of(role);
        let drawn = hosts.len().min(DRAWN);
        for (at, host) in hosts.iter().take(drawn).enumerate() {
            let left = hosts.len() - at;
            let name = if at + 1 == DRAWN && left > 1 {
                format!("{left} more")
            } else {
                host.to_string()
            };
            let (x, y) = match role {
                Role::Broker => (320.0 - 75.0 * drawn as f64 + 150.0 * at as f64, 5.0),
                _ => (
                    x,
                    top + 34.0 * (most - drawn) as f64 / 2.0 + 34.0 * at as f64,
                ),
            };
            let (from, to) = match role {
                Role::Broker => ((x + 70.0, y + 26.0), (320.0, middle - 15.0)),
                Role::Publisher => ((x + 140.0, y + 13.0), (joint + 40.0, middle)),
                Role::Subscriber => ((x, y + 13.0), (joint - 40.0, middle)),
            };
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"140\" height=\"26\" rx=\"4\" fill=\"none\" stroke=\"currentColor\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
                 <line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"currentColor\" stroke-opacity=\"0.5\"/>",
                x + 70.0,
                y + 17.0,
                escape(&name),
                from.0,
                from.1,
                to.0,
                to.1,
            );
            if at == 0 {
                let link = &network.of(role).link;
                let mut words = link.rate_bits_per_s.map(rate).unwrap_or_default();
                if link.delay_ns > 0 {
                    let _ = write!(words, " {}", span(link.delay_ns));
                }
                let _ = writeln!(
                    out,
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" opacity=\"0.8\">{}</text>",
                    (from.0 + to.0) / 2.0,
                    (from.1 + to.1) / 2.0 - 4.0,
                    escape(words.trim()),
                );
            }
        }
    }
    out.push_str("</svg>\n");
}

/// Measurements of the bare links to each receiver.
fn bare(out: &mut String, info: &NetworkInfo) {
    let Some(baseline) = &info.baseline else {
        return;
    };
    let heads = [
        "to",
        "TCP",
        "UDP",
        "multicast",
        "round trip p50",
        "p99",
        "lost",
    ];
    let label = "Bare links";
    begin_table(out, "limits fold", label, heads.map(|head| (head, "")));
    for (at, host) in baseline.to.iter().enumerate() {
        let share = |measured: &pubgauge_network::Throughput| {
            let bytes = measured.received_bytes.get(at).copied().unwrap_or(0);
            let bits = bytes as f64 * 8e9 / measured.span_ns.max(1) as f64;
            format!("{} Mbit/s", units::digits(bits / 1e6))
        };
        let trip = baseline.round_trips.get(at);
        let cells = [
            share(&baseline.tcp),
            share(&baseline.udp),
            share(&baseline.multicast),
            time(trip.map(|trip| trip.p50_ns)),
            time(trip.map(|trip| trip.p99_ns)),
            trip.map_or("–".into(), |trip| trip.lost.to_string()),
        ];
        let named = heads[1..].iter().copied().zip(cells);
        row(out, &host.to_string(), named);
    }
    out.push_str(END_TABLE);
}

/// The traffic on the links in each trial.
fn crossed(out: &mut String, results: &Results, number: u32) {
    let heads = [
        "trial",
        "host",
        "sent",
        "packets",
        "received",
        "packets received",
    ];
    out.push_str("<details><summary>What crossed each link during the measurements</summary>\n");
    begin_table(
        out,
        "limits fold",
        "Counters of links",
        heads.map(|head| (head, "")),
    );
    for trial in &results.trials {
        let Some(on) = trial.network.as_ref().filter(|on| on.network == number) else {
            continue;
        };
        for host in &on.hosts {
            let cells = [
                escape(&host.host),
                units::bytes(host.sent_bytes),
                units::count(host.sent_packets),
                units::bytes(host.received_bytes),
                units::count(host.received_packets),
            ];
            let name = escape(&format!("{} {}", trial.id, system_of(trial)));
            row(out, &name, heads[1..].iter().copied().zip(cells));
        }
    }
    out.push_str(END_TABLE);
    out.push_str("</details>\n");
}
