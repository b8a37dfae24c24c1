//! The networks that trials ran on: a drawing, baselines of their links, and the trials' traffic.

use maud::{Markup, html};
use pubgauge_figures::Results;
use pubgauge_figures::network::{HostTraffic, NetworkInfo};
use pubgauge_network::{Host, HostRole, Link, Network, Throughput};
use pubgauge_quantities::shown;

use super::html::{row, system_of, table, text};
use super::per_trial::{or_none, time};
use crate::network;

/// The largest number of hosts of a role that are drawn; the last place gives the number of others.
const DRAWN: usize = 8;

/// The section of all networks.
pub(super) fn section(results: &Results) -> Markup {
    let several = results.networks.len() > 1;
    html! {
        @if !results.networks.is_empty() {
            section id="network" {
                h2 { "Network" }
                @for (number, info) in (0..).zip(&results.networks) {
                    @if several { h3 { "Network " (number + 1) } }
                    (drawing(&info.network))
                    pre tabindex="0" { (info.network.describe()) }
                    @for words in network::raw(info).into_iter().chain(network::doubt(info)) {
                        p { (words) }
                    }
                    (bare(info))
                    (crossed(results, number))
                }
            }
        }
    }
}

/// Where the drawing has what, in pixels.
struct Layout {
    /// The largest number of hosts on one side.
    most: usize,
    /// Below the brokers.
    top: f64,
    height: f64,
    /// The middle of the switch.
    middle: f64,
}

impl Layout {
    fn for_network(network: &Network) -> Layout {
        let drawn = |role| hosts(network, role).len().min(DRAWN);
        let most = drawn(HostRole::Publisher)
            .max(drawn(HostRole::Subscriber))
            .max(1);
        let top = if drawn(HostRole::Broker) > 0 {
            70.0
        } else {
            20.0
        };
        let height = top + 34.0 * most as f64 + 10.0;
        Layout {
            most,
            top,
            height,
            middle: (top + height - 10.0) / 2.0,
        }
    }

    /// The upper left corner of a host, the one of this number of those drawn on its side.
    fn corner(&self, role: HostRole, at: usize, drawn: usize) -> (f64, f64) {
        let (at, drawn) = (at as f64, drawn as f64);
        let y = self.top + 34.0 * (self.most as f64 - drawn) / 2.0 + 34.0 * at;
        match role {
            HostRole::Broker => (320.0 - 75.0 * drawn + 150.0 * at, 5.0),
            HostRole::Publisher => (10.0, y),
            HostRole::Subscriber => (490.0, y),
        }
    }

    /// Both ends of the link between the host in that corner and the switch.
    fn link(&self, role: HostRole, (x, y): (f64, f64)) -> [(f64, f64); 2] {
        match role {
            HostRole::Broker => [(x + 70.0, y + 26.0), (320.0, self.middle - 15.0)],
            HostRole::Publisher => [(x + 140.0, y + 13.0), (270.0, self.middle)],
            HostRole::Subscriber => [(x, y + 13.0), (370.0, self.middle)],
        }
    }
}

fn hosts(network: &Network, role: HostRole) -> Vec<Host> {
    network.hosts().filter(|h| h.role == role).collect()
}

/// Hosts around the switch, as a drawing with a text label.
fn drawing(network: &Network) -> Markup {
    let layout = Layout::for_network(network);
    let Layout { height, middle, .. } = layout;
    html! {
        svg class="network" viewBox={ "0 0 640 " (height) } width="640" height=(height) role="img"
            aria-label=(network.describe().trim()) font-size="12" fill="currentColor" stroke="none" {
            rect x="270" y=(middle - 15.0) width="100" height="30" rx="4" fill="none" stroke="currentColor" {}
            text x="320" y=(middle + 4.0) text-anchor="middle" { "switch" }
            @for role in [HostRole::Publisher, HostRole::Subscriber, HostRole::Broker] {
                (draw_hosts(&layout, network, role))
            }
        }
    }
}

/// The hosts of one role, each with its link; the first link with what it was given.
fn draw_hosts(layout: &Layout, network: &Network, role: HostRole) -> Markup {
    let hosts = hosts(network, role);
    let drawn = hosts.len().min(DRAWN);
    html! {
        @for (at, host) in hosts.iter().take(drawn).enumerate() {
            @let (x, y) = layout.corner(role, at, drawn);
            @let [from, to] = layout.link(role, (x, y));
            rect x=(x) y=(y) width="140" height="26" rx="4" fill="none" stroke="currentColor" {}
            text x=(x + 70.0) y=(y + 17.0) text-anchor="middle" {
                @match hosts.len() - at {
                    left if at + 1 == DRAWN && left > 1 => { (left) " more" }
                    _ => (host.to_string()),
                }
            }
            line x1=(from.0) y1=(from.1) x2=(to.0) y2=(to.1) stroke="currentColor" stroke-opacity="0.5" {}
            @if at == 0 {
                text x=((from.0 + to.0) / 2.0) y=((from.1 + to.1) / 2.0 - 4.0) text-anchor="middle" opacity="0.8" {
                    (describe_link(&network.hosts_of(role).link))
                }
            }
        }
    }
}

/// The rate and the delay of a link.
fn describe_link(link: &Link) -> String {
    let rate = link.rate_bits_per_s.map(shown::bit_rate);
    let delay = (link.delay_ns > 0).then(|| shown::span(link.delay_ns));
    rate.into_iter().chain(delay).collect::<Vec<_>>().join(" ")
}

/// Measurements of the bare links to each receiver.
fn bare(info: &NetworkInfo) -> Markup {
    let Some(baseline) = &info.baseline else {
        return html! {};
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
    let entries = |at: usize| {
        let share = |measured: &Throughput| {
            let bytes = measured.received_bytes.get(at).copied().unwrap_or(0);
            let bits = bytes as f64 * 8e9 / measured.span_ns.max(1) as f64;
            format!("{} Mbit/s", shown::digits(bits / 1e6))
        };
        let trip = baseline.round_trips.get(at);
        // Without an answer both percentiles are 0.
        let answered = trip.filter(|trip| trip.answered > 0);
        [
            share(&baseline.tcp),
            share(&baseline.udp),
            share(&baseline.multicast),
            time(answered.map(|trip| trip.p50_ns)),
            time(answered.map(|trip| trip.p99_ns)),
            or_none(trip, |trip| trip.lost.to_string()),
        ]
    };
    let rows = html! {
        @for (at, host) in baseline.to.iter().enumerate() {
            (row(text(host.to_string()), heads.into_iter().skip(1).zip(entries(at).map(text))))
        }
    };
    table("limits fold", "Bare links", heads, rows)
}

/// The traffic on the links in each trial.
fn crossed(results: &Results, number: u32) -> Markup {
    let heads = [
        "trial",
        "host",
        "sent",
        "packets",
        "received",
        "packets received",
    ];
    let trials = results.trials.iter();
    let on = trials.filter_map(|trial| Some((trial, trial.network.as_ref()?)));
    let entries = |host: &HostTraffic| {
        [
            host.host.clone(),
            shown::bytes(host.sent_bytes),
            shown::count(host.sent_packets),
            shown::bytes(host.received_bytes),
            shown::count(host.received_packets),
        ]
    };
    let rows = html! {
        @for (trial, on) in on.filter(|(_, on)| on.network == number) {
            @for host in &on.hosts {
                @let name = format!("{} {}", trial.id, system_of(trial));
                (row(text(name), heads.into_iter().skip(1).zip(entries(host).map(text))))
            }
        }
    };
    html! {
        details {
            summary { "What crossed each link during the measurements" }
            (table("limits fold", "Counters of links", heads, rows))
        }
    }
}
