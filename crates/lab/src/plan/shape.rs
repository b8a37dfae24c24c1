//! The backend of each property of a link, and the queues of `tc`.

use std::fmt;

use super::error::{PlanError, Unavailable};
use super::links::{All, run};
use super::step::{INTERFACE, PlanStep, StepNamespace};
use super::wires::{MILLISECOND, percent};
use crate::backends::{Backends, Works, hint};
use pubgauge_network::{HostRole, Link, Loss, Nanos, Network, Reordering};

/// A token bucket: the parameters of `tbf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Bits per second.
    pub rate_bits_per_s: u64,
    /// Bytes that may be sent faster than the rate, to make up for a sender that was late.
    pub burst_bytes: u64,
    /// How fast these are sent, bits per second.
    pub peak_bits_per_s: u64,
    /// Bytes that may be sent at once.
    pub peak_bytes: u64,
    /// Bytes that may wait.
    pub limit_bytes: u64,
}

/// Ethernet frame of the largest packet, without preamble and checksum.
const FRAME: u64 = 1514;
/// How long the sender may be delayed (another process has the processor, a timer is late) without loss of
/// rate.
const BURST_NS: Nanos = 2_000_000;
/// Delayed packets are sent faster than the rate by a tenth. So are those that find the link idle, because a bucket fills then,
/// too: without this limit 2 ms of the rate would pass at once, and a message of 16 KiB over a link of 95 Mbit/s would take
/// 0.16 ms, not 1.4 (measured).
const PEAK_TENTHS: u64 = 11;
/// How late a timer may be without loss of that. So much is sent at once.
const PEAK_NS: Nanos = 50_000;
/// The smallest number of frames in a bucket: one is sent while another arrives.
const BURST_FRAMES: u64 = 2;

impl Bucket {
    /// The bucket of a rate with a queue of this length: 2 ms of the rate, sent at 1.1 times the rate, 50 us of it at
    /// once, each at least two frames; the queue has room for at least one frame.
    pub fn for_rate(rate_bits_per_s: u64, queue_ns: Nanos) -> Bucket {
        let bytes = |span: Nanos| {
            let all = u128::from(rate_bits_per_s) * u128::from(span) / 8_000_000_000;
            all as u64
        };
        Bucket {
            rate_bits_per_s,
            burst_bytes: bytes(BURST_NS).max(BURST_FRAMES * FRAME),
            peak_bits_per_s: rate_bits_per_s / 10 * PEAK_TENTHS,
            peak_bytes: bytes(PEAK_NS).max(BURST_FRAMES * FRAME),
            limit_bytes: bytes(queue_ns).max(FRAME),
        }
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, burst, limit) = (self.rate_bits_per_s, self.burst_bytes, self.limit_bytes);
        // `b` is bytes to tc.
        let (peak, at_once) = (self.peak_bits_per_s, self.peak_bytes);
        write!(
            f,
            "tbf rate {rate}bit burst {burst}b limit {limit}b peakrate {peak}bit mtu {at_once}b"
        )
    }
}

/// How delays and the like are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    Netem,
    Wirefilter,
}

impl Means {
    /// Chooses the means; checks that there is everything that the network needs.
    pub fn choose(network: &Network, backends: &Backends) -> Result<Means, PlanError> {
        network.check().map_err(PlanError::Network)?;
        let means = if backends.netem.is_ok() {
            Means::Netem
        } else {
            Means::Wirefilter
        };
        let mut refusals = Vec::new();
        for (found, name, hint) in [
            (&backends.ip, "`ip` with bridges and veth", hint::IP),
            (&backends.nft, "`nft` on bridged packets", hint::NFT),
        ] {
            refusals.extend(refused(found, "a network", name, hint));
        }
        for role in HostRole::ALL
            .into_iter()
            .filter(|role| network.hosts_of(*role).hosts > 0)
        {
            means.check(role, &network.hosts_of(role).link, backends, &mut refusals);
        }
        if refusals.is_empty() {
            Ok(means)
        } else {
            Err(PlanError::Refused(refusals))
        }
    }

    /// Whether `wirefilter` connects a host with this link.
    pub fn by_wirefilter(self, link: &Link) -> bool {
        self == Means::Wirefilter && link.delays()
    }

    fn check(
        self,
        role: HostRole,
        link: &Link,
        backends: &Backends,
        refusals: &mut Vec<Unavailable>,
    ) {
        let of = |what: &str| format!("{what} of links of {} hosts", role.name());
        if link.rate_bits_per_s.is_some() {
            refusals.extend(refused(
                &backends.tbf,
                &of("a rate"),
                "`tc` with tbf",
                hint::TBF,
            ));
        }
        if !self.by_wirefilter(link) {
            return;
        }
        let wanted = wanted(link).join(", ");
        if let Err(why) = &backends.wirefilter {
            let netem = backends.netem.as_ref().err();
            let netem = netem.map_or(String::new(), ToString::to_string);
            refusals.push(Unavailable {
                wanted: of(&wanted),
                missing: format!("neither netem ({netem}) nor wirefilter ({why})"),
                hint: format!(
                    "{}; or, for the shape only, {}",
                    hint::NETEM,
                    hint::WIREFILTER
                ),
            });
            return;
        }
        for (wanted, why) in beyond_wirefilter(link) {
            refusals.push(Unavailable {
                wanted: of(wanted),
                missing: format!("wirefilter {why}, and there is no netem"),
                hint: hint::NETEM.into(),
            });
        }
    }
}

fn refused(found: &Works, wanted: &str, name: &str, hint: &str) -> Option<Unavailable> {
    let why = found.as_ref().err()?;
    Some(Unavailable {
        wanted: wanted.into(),
        missing: format!("there is no {name} ({why})"),
        hint: hint.into(),
    })
}

/// The properties of a link that need `netem` or `wirefilter`.
fn wanted(link: &Link) -> Vec<&'static str> {
    let gilbert = matches!(link.loss, Some(Loss::Gilbert { .. }));
    [
        (link.delay_ns > 0, "delay"),
        (link.jitter_ns > 0, "jitter"),
        (gilbert, "loss in bursts"),
        (link.duplicated > 0.0, "duplicates"),
        (link.reordering.is_some(), "reordering"),
    ]
    .into_iter()
    .filter_map(|(asked, name)| asked.then_some(name))
    .collect()
}

/// The properties of a link that `wirefilter` cannot make, and why.
fn beyond_wirefilter(link: &Link) -> Vec<(&'static str, &'static str)> {
    let whole = |span: Nanos| span.is_multiple_of(MILLISECOND);
    let share = matches!(link.reordering, Some(Reordering::Share { .. }));
    [
        (
            !whole(link.delay_ns),
            "delay",
            "delays by whole milliseconds",
        ),
        (
            !whole(link.jitter_ns),
            "jitter",
            "has jitter of whole milliseconds",
        ),
        (share, "reordering of a share", "reorders by jitter alone"),
    ]
    .into_iter()
    .filter_map(|(asked, name, why)| asked.then_some((name, why)))
    .collect()
}

/// The queues at both ends of each link.
pub(super) fn queues(all: &All<'_>, network: &Network, means: &Means) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    let mut ports = String::new();
    for host in all.hosts {
        let link = network.link(*host);
        let near = queue(INTERFACE, link, means);
        if !near.is_empty() {
            steps.push(run(
                StepNamespace::Host(*host),
                &["tc", "-batch", "-"],
                near,
            ));
        }
        ports += &queue(&host.to_string(), link, means);
    }
    if !ports.is_empty() {
        steps.push(run(StepNamespace::Switch, &["tc", "-batch", "-"], ports));
    }
    steps
}

/// The queue of one end of a link.
fn queue(interface: &str, link: &Link, means: &Means) -> String {
    let bucket = link
        .rate_bits_per_s
        .map(|rate| Bucket::for_rate(rate, link.queue_ns));
    let emulated = *means == Means::Netem && link.delays();
    let add = format!("qdisc add dev {interface}");
    match (emulated, bucket) {
        (false, None) => String::new(),
        (false, Some(bucket)) => format!("{add} root {bucket}\n"),
        (true, None) => format!("{add} root {}\n", netem(link)),
        // The delay before the rate: the rate's queue is the inner one.
        (true, Some(bucket)) => format!(
            "{add} root handle 1: {}\n{add} parent 1:1 handle 10: {bucket}\n",
            netem(link)
        ),
    }
}

/// The parameters of `netem` (tc-netem(8)).
fn netem(link: &Link) -> String {
    let mut words = format!("netem limit {}", waiting(link));
    if link.delay_ns > 0 {
        words += &format!(" delay {}", microseconds(link.delay_ns));
        if link.jitter_ns > 0 {
            words += &format!(" {}", microseconds(link.jitter_ns));
        }
    }
    if let Some(Loss::Gilbert {
        share,
        burst_packets,
    }) = link.loss
    {
        let [begin, end] = Loss::chances(share, burst_packets).map(percent);
        words += &format!(" loss gemodel {begin}% {end}%");
    }
    if link.duplicated > 0.0 {
        words += &format!(" duplicate {}%", percent(link.duplicated));
    }
    if let Some(Reordering::Share { share }) = link.reordering {
        words += &format!(" reorder {}%", percent(share));
    }
    // With a rate, netem sends no packet that it delays before an earlier one.
    if link.jitter_ns > 0 && link.reordering != Some(Reordering::Jitter) {
        words += " rate 100gbit";
    }
    words
}

/// Not all releases of `tc` accept nanoseconds.
fn microseconds(span: Nanos) -> String {
    format!("{}us", span as f64 / 1e3)
}

/// Packets that may be under way on a link or wait before it, as netem holds both: smallest frames at its rate, 1000 to a
/// million.
fn waiting(link: &Link) -> u64 {
    const SMALLEST_FRAME: u128 = 60;
    let rate = link.rate_bits_per_s.unwrap_or(pubgauge_network::FASTEST);
    let queue = link.rate_bits_per_s.map_or(0, |_| link.queue_ns);
    let span = u128::from(link.delay_ns) + u128::from(link.jitter_ns) + u128::from(queue);
    let packets = u128::from(rate) * span / 8_000_000_000 / SMALLEST_FRAME;
    packets.clamp(1000, 1_000_000) as u64
}
