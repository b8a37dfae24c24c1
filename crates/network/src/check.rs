//! The errors of a network, field by field.

use std::fmt;

use pubgauge_quantities::shown::{bit_rate, span};

use crate::network::{HostRole, Hosts, Link, Loss, Nanos, Network, Reordering};

/// The largest number of hosts of a network: each is given the addresses of all others, and all are on one
/// switch.
pub const MOST_HOSTS: u32 = 250;
/// Slowest rate, in bits per second: a frame takes 0.19 s.
pub const SLOWEST: u64 = 64_000;
/// Fastest rate, in bits per second.
pub const FASTEST: u64 = 10_000_000_000;
/// Longest delay, in nanoseconds.
pub const LONGEST_DELAY_NS: Nanos = 10_000_000_000;
/// Longest jitter: netem cuts what is beyond 2^31 ns without a word.
pub const LONGEST_JITTER_NS: Nanos = 2_000_000_000;
/// Shortest queue, in nanoseconds.
pub const SHORTEST_QUEUE_NS: Nanos = 1_000_000;
/// Smallest share of lost packets; `nft` draws from a million numbers.
pub const SMALLEST_LOSS: f64 = 1e-6;

/// A field of a network that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblem {
    /// Where, in the words of a study: `publisher.loss`; empty for the network as a whole.
    pub path: String,
    /// The error, and what was expected.
    pub message: String,
    /// The text to write instead, if that is clear.
    pub hint: Option<String>,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Network {
    /// Checks all fields.
    ///
    /// # Errors
    /// Each wrong field with its path; never an empty list.
    pub fn check(&self) -> Result<(), Vec<FieldProblem>> {
        let mut problems = Problems::default();
        self.check_hosts(&mut problems);
        for role in HostRole::ALL {
            let Hosts { link, .. } = self.hosts_of(role);
            problems.role = role.name();
            link.check_rate(&mut problems);
            link.check_delay(&mut problems);
            link.check_chances(&mut problems);
        }
        if problems.found.is_empty() {
            Ok(())
        } else {
            Err(problems.found)
        }
    }

    fn check_hosts(&self, problems: &mut Problems) {
        let counts = HostRole::ALL.map(|role| u64::from(self.hosts_of(role).hosts));
        let all: u64 = counts.iter().sum();
        let told = "broker.hosts + publisher.hosts + subscriber.hosts";
        if all < 2 {
            let hint = "a network has two hosts at least, such as publisher.hosts = 1, subscriber.hosts = 1";
            problems.add("", format!("{told} is {all}"), Some(hint.into()));
        }
        if all > u64::from(MOST_HOSTS) {
            let most = format!("{told} is {all}, more than {MOST_HOSTS}");
            problems.add("", most, None);
        }
    }
}

impl Link {
    fn check_rate(&self, at: &mut Problems) {
        if let Some(bits) = self.rate_bits_per_s
            && !(SLOWEST..=FASTEST).contains(&bits)
        {
            let [slowest, fastest] = [SLOWEST, FASTEST].map(bit_rate);
            let message = format!("{bits} bit/s is not within {slowest} and {fastest}");
            at.add("rate", message, None);
        }
        if !(SHORTEST_QUEUE_NS..=LONGEST_DELAY_NS).contains(&self.queue_ns) {
            let [queue, shortest, longest] =
                [self.queue_ns, SHORTEST_QUEUE_NS, LONGEST_DELAY_NS].map(span);
            let message = format!("{queue} is not within {shortest} and {longest}");
            at.add("queue", message, None);
        }
    }

    fn check_delay(&self, at: &mut Problems) {
        if self.delay_ns > LONGEST_DELAY_NS {
            let [delay, longest] = [self.delay_ns, LONGEST_DELAY_NS].map(span);
            at.add("delay", format!("{delay} is more than {longest}"), None);
        }
        if self.jitter_ns > self.delay_ns {
            let [jitter, delay] = [self.jitter_ns, self.delay_ns].map(span);
            let message = format!(
                "{jitter} is more than the delay, {delay}: a packet would come before it was sent"
            );
            let hint = "lower `jitter`, or give a longer `delay`";
            at.add("jitter", message, Some(hint.into()));
        } else if self.jitter_ns > LONGEST_JITTER_NS {
            let [jitter, longest] = [self.jitter_ns, LONGEST_JITTER_NS].map(span);
            at.add("jitter", format!("{jitter} is more than {longest}"), None);
        }
        match self.reordering {
            Some(Reordering::Jitter) if self.jitter_ns == 0 => {
                let hint = Some("give `jitter`".into());
                at.add("reordering", "there is no jitter".into(), hint);
            }
            Some(Reordering::Share { .. }) if self.delay_ns == 0 => {
                let hint = Some("give `delay`".into());
                let message = "without delay no packet overtakes another";
                at.add("reordering", message.into(), hint);
            }
            _ => {}
        }
    }

    fn check_chances(&self, at: &mut Problems) {
        let inside = |share: f64| share > 0.0 && share < 1.0;
        if !(0.0..1.0).contains(&self.duplicated) {
            let message = format!("{} is not a share from 0 to less than 1", self.duplicated);
            at.add("duplicated", message, percent_hint(self.duplicated));
        }
        if let Some(Reordering::Share { share }) = self.reordering
            && !inside(share)
        {
            let message = format!("{share} is not a share above 0 and below 1");
            at.add("reordering", message, percent_hint(share));
        }
        match self.loss {
            Some(Loss::Independent { share }) if !(SMALLEST_LOSS..=1.0).contains(&share) => {
                let message = format!("{share} is not a share from {SMALLEST_LOSS} to 1");
                at.add("loss", message, percent_hint(share));
            }
            Some(Loss::Gilbert { share, .. }) if !inside(share) => {
                let message = format!("{share} is not a share above 0 and below 1");
                at.add("loss", message, percent_hint(share));
            }
            Some(Loss::Gilbert {
                share,
                burst_packets,
            }) => check_burst(share, burst_packets, at),
            _ => {}
        }
    }
}

fn check_burst(share: f64, burst_packets: f64, at: &mut Problems) {
    let shortest = (share / (1.0 - share)).max(1.0);
    if !burst_packets.is_finite() || burst_packets < shortest {
        let message = format!(
            "{burst_packets} is less than {shortest}, the shortest bursts in which {share} can be lost"
        );
        at.add("loss", message, None);
    }
}

/// A hint: 5 for a share may mean 5 %.
fn percent_hint(share: f64) -> Option<String> {
    (share > 1.0 && share <= 100.0).then(|| format!("{share} % is {}", share / 100.0))
}

#[derive(Default)]
struct Problems {
    found: Vec<FieldProblem>,
    /// The role whose link is being checked; empty for the network as a whole.
    role: &'static str,
}

impl Problems {
    /// Adds one in a field of the role's link; `field` is empty for the network as a whole.
    fn add(&mut self, field: &str, message: String, hint: Option<String>) {
        let path = match self.role {
            "" => field.to_owned(),
            role => format!("{role}.{field}"),
        };
        self.found.push(FieldProblem {
            path,
            message,
            hint,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::LinkState;

    fn two() -> Network {
        let hosts = Hosts {
            hosts: 1,
            link: Link::default(),
        };
        Network {
            publisher: hosts.clone(),
            subscriber: hosts,
            ..Network::default()
        }
    }

    /// The paths of what is wrong with the subscribers' link.
    fn wrong(link: Link) -> Vec<String> {
        let mut network = two();
        network.subscriber.link = link;
        let problems = network.check().err().unwrap_or_default();
        problems.into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn jitter_beyond_what_netem_can_is_refused() {
        let link = |jitter_ns| Link {
            delay_ns: 9_000_000_000,
            jitter_ns,
            ..Link::default()
        };
        assert_eq!(wrong(link(2_000_000_001)), ["subscriber.jitter"]);
        assert!(wrong(link(2_000_000_000)).is_empty());
    }

    #[test]
    fn what_is_right_passes() {
        assert_eq!(two().check(), Ok(()));
        let link = Link {
            rate_bits_per_s: Some(95_000_000),
            delay_ns: 20_000_000,
            jitter_ns: 20_000_000,
            loss: Some(Loss::Gilbert {
                share: 0.5,
                burst_packets: 1.0,
            }),
            duplicated: 0.999,
            reordering: Some(Reordering::Jitter),
            state: LinkState::Cut,
            ..Link::default()
        };
        assert_eq!(wrong(link), [""; 0]);
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let link = Link {
            rate_bits_per_s: Some(95),
            queue_ns: 10,
            delay_ns: 11_000_000_000,
            jitter_ns: 12_000_000_000,
            loss: Some(Loss::Independent { share: 0.0 }),
            duplicated: 1.0,
            reordering: Some(Reordering::Share { share: f64::NAN }),
            state: LinkState::Up,
        };
        let all = [
            "rate",
            "queue",
            "delay",
            "jitter",
            "duplicated",
            "reordering",
            "loss",
        ];
        assert_eq!(wrong(link), all.map(|field| format!("subscriber.{field}")));
        for (share, burst_packets, field) in [
            (0.9, 8.9, "loss"),
            (0.1, 0.5, "loss"),
            (0.1, f64::NAN, "loss"),
            (1.0, 5.0, "loss"),
        ] {
            let loss = Some(Loss::Gilbert {
                share,
                burst_packets,
            });
            let link = Link {
                loss,
                ..Link::default()
            };
            assert_eq!(wrong(link), [format!("subscriber.{field}")]);
        }
        for reordering in [Reordering::Jitter, Reordering::Share { share: 0.1 }] {
            let link = Link {
                reordering: Some(reordering),
                ..Link::default()
            };
            assert_eq!(wrong(link), ["subscriber.reordering"]);
        }
    }

    #[test]
    fn a_network_has_two_hosts_at_least_and_a_bound() {
        let mut network = two();
        network.publisher.hosts = 0;
        assert_eq!(network.check().unwrap_err()[0].path, "");
        network.publisher.hosts = MOST_HOSTS - 1;
        assert_eq!(network.check(), Ok(()));
        network.broker.hosts = u32::MAX;
        assert_eq!(network.check().unwrap_err().len(), 1);
    }

    #[test]
    fn a_percentage_is_recognised() {
        let mut network = two();
        network.publisher.link.loss = Some(Loss::Independent { share: 5.0 });
        let problem = &network.check().unwrap_err()[0];
        let expected = "publisher.loss: 5 is not a share from 0.000001 to 1\n  hint: 5 % is 0.05";
        assert_eq!(problem.to_string(), expected);
    }
}
