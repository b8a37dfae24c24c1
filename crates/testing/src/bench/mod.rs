//! Parts that benches share. A bench measures our code and a peer in the same run, and what counts is
//! the ratio: on a busy machine the figures themselves scatter.
//!
//! - A bench reads its [`arguments`]: numbers ([`parse`], [`time`]), names of its parts
//!   ([`run_parts`]), or the role of a process that it has started itself.
//! - It runs [`Rounds`], each of which measures both sides, one right after the other.
//! - Most figures are messages per second of processor time: of a thread, of this process, of
//!   another one ([`cpu`]).
//! - What must not share a process with what is measured is started by [`process`]: a server, or
//!   the bench itself once more.
//! - [`pair`] is a whole bench of publisher and subscriber processes, over a driver or a plain
//!   program on the same library.
//!
//! Code that one bench alone measures, its timed loop above all, stands in that bench. Everything here
//! panics where something fails: there is no figure then.

use std::str::FromStr;
use std::time::{Duration, Instant};

use pubgauge_driver::{
    Change, Clock, Events, Fleet, Header, Kind, Mark, Nanos, header::HEADER_LEN,
};
use pubgauge_mqtt_codec::{Packet, Version};

pub mod cpu;
pub mod in_c;
pub mod pair;
pub mod process;

/// Bytes of a message's payload, header included, unless a bench says otherwise.
pub const PAYLOAD: usize = 64;

/// The mark in the headers of a bench's messages.
pub const MARK: Mark = Mark::from_seed(1);

/// Arguments of the bench, without the word that cargo adds.
pub fn arguments() -> Vec<String> {
    let all = std::env::args().skip(1);
    all.filter(|argument| argument != "--bench").collect()
}

/// An argument as a number.
pub fn parse<T: FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// How long each figure is measured: the first argument that is a number of seconds, else the
/// default.
pub fn time(default_s: f64) -> Duration {
    let given = arguments()
        .iter()
        .find_map(|argument| argument.parse().ok());
    Duration::from_secs_f64(given.unwrap_or(default_s))
}

/// Runs the parts that the arguments name, or all if they name none.
pub fn run_parts(parts: &[(&str, fn())]) {
    let arguments = arguments();
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let all = !parts.iter().any(|(name, _)| named(name));
    for (name, part) in parts {
        if all || named(name) {
            part();
        }
    }
}

/// Figures of the peer and of ours in each round, in this order.
pub struct Rounds<T>(Vec<[T; 2]>);

/// Ours divided by the peer's, over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    /// The median of the rounds' ratios.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl<T> Rounds<T> {
    /// Runs `round` so often, with its number from 0. It measures both sides, the peer's figures
    /// first in what it returns: drift of the machine then falls on both.
    pub fn run(count: usize, round: impl FnMut(usize) -> [T; 2]) -> Self {
        Rounds((0..count).map(round).collect())
    }

    /// The medians of a figure: the peer's, ours.
    pub fn medians(&self, figure: impl Fn(&T) -> f64) -> [f64; 2] {
        [0, 1].map(|side| {
            let of_side = self.0.iter().map(|round| figure(&round[side]));
            median(&of_side.collect::<Vec<_>>())
        })
    }

    /// The ratios of a figure within each round.
    pub fn ratio(&self, figure: impl Fn(&T) -> f64) -> Ratio {
        let rounds = self.0.iter();
        let ratios: Vec<f64> = rounds
            .map(|[peer, ours]| figure(ours) / figure(peer))
            .collect();
        Ratio {
            median: median(&ratios),
            min: quantile(&ratios, 0.0),
            max: quantile(&ratios, 1.0),
        }
    }
}

/// The median; of an even number of values the upper one.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a share `q` of all values lies, the largest for 1.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * q) as usize;
    sorted[at.min(sorted.len() - 1)]
}

/// An encoded header of the first stream.
#[inline]
pub fn header(intended: Nanos, sequence: u32) -> [u8; HEADER_LEN] {
    Header {
        kind: Kind::Measured,
        intended,
        lag: 0,
        stream: 0,
        sequence,
    }
    .encode(MARK)
}

pub fn mqtt_bytes(version: Version, packet: Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoded = packet.encode(version, &mut bytes);
    encoded.expect("a valid packet");
    bytes
}

/// Progress of the clients of a fleet.
#[derive(Default)]
pub struct Clients {
    /// How many have connected.
    pub connected: usize,
    /// How many subscriptions are established.
    pub subscribed: usize,
}

impl Clients {
    /// Takes what [`Events::changed`] is told. Panics if a client fails or its subscription is
    /// refused: what is measured after that is no figure.
    pub fn note(&mut self, change: Change) {
        match change {
            Change::Connected { .. } => self.connected += 1,
            Change::Subscribed => self.subscribed += 1,
            Change::Failed(failure) => panic!("a client failed: {}", failure.why),
            Change::SubscriptionRefused(why) => panic!("a subscription was refused: {why}"),
            _ => {}
        }
    }
}

/// Polls once, for at most `ns`; with 0 without waiting.
pub fn poll(fleet: &mut dyn Fleet, events: &mut dyn Events, ns: Nanos) {
    let until = if ns == 0 {
        0
    } else {
        Clock::Monotonic.now() + ns
    };
    fleet.poll(until, events).expect("the fleet polls");
}

/// Polls until the condition holds; gives up after two minutes.
pub fn poll_until<E: Events>(fleet: &mut dyn Fleet, events: &mut E, holds: impl Fn(&E) -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !holds(events) {
        assert!(Instant::now() < end, "waited in vain");
        poll(fleet, events, 50_000_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_ours_by_the_peers_in_one_round() {
        let figures = [[2.0, 1.0], [10.0, 30.0], [4.0, 4.0]];
        let rounds = Rounds::run(3, |round| figures[round]);
        assert_eq!(rounds.medians(|figure| *figure), [4.0, 4.0]);
        let Ratio { median, min, max } = rounds.ratio(|figure| *figure);
        assert_eq!([median, min, max], [1.0, 0.5, 3.0]);
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(
            [0.0, 0.99, 1.0].map(|q| quantile(&values, q)),
            [1.0, 4.0, 4.0]
        );
        assert_eq!(median(&[7.0]), 7.0);
    }
}
