//! An emulated network, as it is written.

use pubgauge_network::{
    HostSizes, Hosts, Link, Loss, Network, Reordering, SizedHosts, USUAL_QUEUE_NS,
};
use pubgauge_quantities::{BitRate, Percent, Share, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A network of hosts around one switch, made on this machine: brokers, publishing devices and the others
/// each on hosts of their own. It takes root, or a user namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkFile {
    /// Hosts of brokers, which are dealt out to them in turn.
    pub broker: Option<HostsFile>,
    /// Hosts of publishing devices, which are dealt out to them evenly.
    pub publisher: Option<HostsFile>,
    /// Hosts of the other devices, which are dealt out to them evenly.
    pub subscriber: Option<HostsFile>,
}

/// The hosts of a role, and the link of each to the switch, the same in both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostsFile {
    /// How many, 1 to 250 over all roles; 1 if absent.
    #[schemars(range(min = 1, max = 250))]
    pub hosts: Option<u32>,
    /// Processors' worth of time that all processes of each host get together, such as 0.5 or 2; 0.1 and more. All
    /// there is if absent.
    pub cores: Option<CoresFile>,
    /// Memory that all processes of each host get together, such as "512MiB": whole MiB, 4 and more. All there is if
    /// absent.
    pub memory: Option<Size>,
    /// Rate of Ethernet frames, such as "95Mbit/s": 64kbit/s to 10Gbit/s; as fast as the machine if absent.
    pub rate: Option<BitRate>,
    /// Queue of a link with a rate, beyond which packets are dropped, as the time that it takes to
    /// send: 1ms to 10s; 50ms if absent.
    pub queue: Option<Span>,
    /// Delay, up to 10s; none if absent.
    pub delay: Option<Span>,
    /// Each packet's delay lies within this of `delay`, at most `delay`; none if absent.
    pub jitter: Option<Span>,
    /// Share of packets that are lost; none if absent.
    pub loss: Option<Percent>,
    /// Packets are lost in bursts of this mean length, by a chain of two states (Gilbert 1960); each by
    /// itself if absent.
    pub loss_burst: Option<f64>,
    /// Share of packets that come twice; none if absent.
    pub duplicated: Option<Percent>,
    /// Share of packets that are not delayed, and so overtake others; none if absent.
    pub reordered: Option<Percent>,
    /// Packets overtake others that jitter delays longer; false if absent.
    pub reordered_by_jitter: Option<bool>,
}

/// Processors' worth of time of each host of a role.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CoresFile {
    /// One number for all.
    Same(f64),
    /// One number for each host.
    Each(Vec<f64>),
}

impl CoresFile {
    /// The numbers, as they are written.
    pub(crate) fn as_slice(&self) -> &[f64] {
        match self {
            CoresFile::Same(cores) => std::slice::from_ref(cores),
            CoresFile::Each(all) => all,
        }
    }
}

/// Hosts on this machine, without links between them: all processes of a host, workers and brokers, get a share of the
/// machine together. Each host has worker processes of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LocalHostsFile {
    /// Hosts of brokers, which are dealt out to them in turn.
    pub broker: Option<LocalFile>,
    /// Hosts of publishing devices, which are dealt out to them evenly.
    pub publisher: Option<LocalFile>,
    /// Hosts of the other devices, which are dealt out to them evenly.
    pub subscriber: Option<LocalFile>,
}

/// The hosts of a role on this machine; one of no given size if absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LocalFile {
    /// How many, 1 to 250 over all roles; 1 if absent.
    #[schemars(range(min = 1, max = 250))]
    pub hosts: Option<u32>,
    /// Processors' worth of time that all processes of each host get together, such as 0.5 or 2; 0.1 and more. All
    /// there is if absent.
    pub cores: Option<CoresFile>,
    /// Memory that all processes of each host get together, such as "512MiB": whole MiB, 4 and more. All there is if
    /// absent.
    pub memory: Option<Size>,
}

impl LocalHostsFile {
    /// The hosts that it describes, not checked.
    pub fn sizes(&self) -> HostSizes {
        let of = |file: &Option<LocalFile>| {
            let file = file.clone().unwrap_or_default();
            sized(file.hosts.unwrap_or(1), file.cores.as_ref(), file.memory)
        };
        HostSizes {
            broker: of(&self.broker),
            publisher: of(&self.publisher),
            subscriber: of(&self.subscriber),
        }
    }
}

fn sized(hosts: u32, cores: Option<&CoresFile>, memory: Option<Size>) -> SizedHosts {
    let size = |host: usize| Share {
        cores: cores.and_then(|cores| match cores {
            CoresFile::Same(cores) => Some(*cores),
            CoresFile::Each(all) => all.get(host).copied(),
        }),
        memory_bytes: memory.map(|memory| memory.0),
    };
    SizedHosts {
        sizes: (0..hosts as usize).map(size).collect(),
    }
}

impl NetworkFile {
    /// Its hosts with their sizes, not checked.
    pub fn sizes(&self) -> HostSizes {
        let of = |file: &Option<HostsFile>| {
            let sized =
                |file: &HostsFile| sized(file.hosts.unwrap_or(1), file.cores.as_ref(), file.memory);
            file.as_ref().map(sized).unwrap_or_default()
        };
        HostSizes {
            broker: of(&self.broker),
            publisher: of(&self.publisher),
            subscriber: of(&self.subscriber),
        }
    }

    /// The network that it describes, not checked.
    pub fn network(&self) -> Network {
        let hosts = |file: &Option<HostsFile>| file.as_ref().map(HostsFile::hosts);
        Network {
            broker: hosts(&self.broker).unwrap_or_default(),
            publisher: hosts(&self.publisher).unwrap_or_default(),
            subscriber: hosts(&self.subscriber).unwrap_or_default(),
        }
    }
}

impl HostsFile {
    fn hosts(&self) -> Hosts {
        let ns = |span: Option<Span>| span.map_or(0, |span| span.0);
        let share = |percent: Option<Percent>| percent.map(|percent| percent.0);
        Hosts {
            hosts: self.hosts.unwrap_or(1),
            link: Link {
                rate_bits_per_s: self.rate.map(|rate| rate.0),
                queue_ns: self.queue.map_or(USUAL_QUEUE_NS, |span| span.0),
                delay_ns: ns(self.delay),
                jitter_ns: ns(self.jitter),
                loss: share(self.loss).map(|share| match self.loss_burst {
                    Some(burst_packets) => Loss::Gilbert {
                        share,
                        burst_packets,
                    },
                    None => Loss::Independent { share },
                }),
                duplicated: share(self.duplicated).unwrap_or(0.0),
                reordering: match (self.reordered, self.reordered_by_jitter) {
                    (Some(share), _) => Some(Reordering::Share { share: share.0 }),
                    (None, Some(true)) => Some(Reordering::Jitter),
                    _ => None,
                },
                ..Link::default()
            },
        }
    }
}
