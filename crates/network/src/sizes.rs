//! Hosts of a given size: what all processes of a host get of the machine together.

use pubgauge_quantities::Share;

use crate::network::{Host, HostRole};

/// The hosts of one role.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizedHosts {
    /// The size of each of them.
    pub sizes: Vec<Share>,
}

impl SizedHosts {
    /// So many of one size.
    pub fn equal(hosts: u32, size: Share) -> SizedHosts {
        SizedHosts {
            sizes: vec![size; hosts as usize],
        }
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Whether one of them is limited.
    pub fn are_limited(&self) -> bool {
        self.sizes.iter().any(|size| !size.is_none())
    }

    /// How many there are of each size; neighbours of one size are counted together.
    pub fn by_size(&self) -> impl Iterator<Item = (usize, Share)> + '_ {
        let alike = self.sizes.chunk_by(|one, other| one == other);
        alike.map(|sizes| (sizes.len(), sizes[0]))
    }
}

/// Hosts with their sizes, on a network or on this machine's loopback.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSizes {
    /// Hosts that run brokers.
    pub broker: SizedHosts,
    /// Hosts that run publishers.
    pub publisher: SizedHosts,
    /// Hosts that run subscribers.
    pub subscriber: SizedHosts,
}

impl HostSizes {
    /// The hosts of a role.
    pub fn sizes_of(&self, role: HostRole) -> &SizedHosts {
        match role {
            HostRole::Broker => &self.broker,
            HostRole::Publisher => &self.publisher,
            HostRole::Subscriber => &self.subscriber,
        }
    }

    /// All hosts with their sizes: brokers, publishers, subscribers.
    pub fn hosts(&self) -> impl Iterator<Item = (Host, Share)> + '_ {
        HostRole::ALL.into_iter().flat_map(|role| {
            let sizes = (1..).zip(&self.sizes_of(role).sizes);
            sizes.map(move |(number, size)| (Host { role, number }, *size))
        })
    }

    /// Whether no host is limited.
    pub fn are_free(&self) -> bool {
        self.hosts().all(|(_, size)| size.is_none())
    }

    /// The share of all hosts that are limited together.
    pub fn sum(&self) -> Share {
        fn sum<T: std::iter::Sum<T>>(parts: impl Iterator<Item = Option<T>>) -> Option<T> {
            let mut parts = parts.flatten().peekable();
            parts.peek()?;
            Some(parts.sum())
        }
        Share {
            cores: sum(self.hosts().map(|(_, size)| size.cores)),
            memory_bytes: sum(self.hosts().map(|(_, size)| size.memory_bytes)),
        }
    }

    /// The hosts of each role and size in words, a line each: `2 publisher hosts of 0.3 cores each`.
    pub fn describe(&self) -> Vec<String> {
        let all = HostRole::ALL.into_iter().flat_map(|role| {
            let by_size = self.sizes_of(role).by_size();
            by_size.map(move |(hosts, size)| (role, hosts, size))
        });
        let words = |(role, hosts, size): (HostRole, usize, Share)| {
            let (plural, each) = match hosts {
                1 => ("host", ""),
                _ => ("hosts", " each"),
            };
            let size = match size.describe() {
                Some(size) => format!("of {size}{each}"),
                None => "of no given size".to_owned(),
            };
            format!("{hosts} {} {plural} {size}", role.name())
        };
        all.map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_size_are_added_up_and_told() {
        let of = |hosts, cores| {
            let memory_bytes = None;
            SizedHosts::equal(
                hosts,
                Share {
                    cores,
                    memory_bytes,
                },
            )
        };
        let mut sizes = HostSizes {
            broker: of(1, None),
            publisher: of(1, Some(0.5)),
            subscriber: of(3, Some(0.2)),
        };
        assert!((sizes.sum().cores.unwrap() - 1.1).abs() < 1e-9);
        assert_eq!(sizes.sum().memory_bytes, None);
        assert!(!sizes.are_free());
        assert_eq!(
            sizes.describe(),
            [
                "1 broker host of no given size",
                "1 publisher host of 0.5 cores",
                "3 subscriber hosts of 0.2 cores each"
            ]
        );
        let names: Vec<String> = sizes.hosts().map(|(host, _)| host.to_string()).collect();
        assert_eq!(names[1..3], ["publisher-1", "subscriber-1"]);
        for size in &mut sizes.subscriber.sizes {
            size.memory_bytes = Some(64 << 20);
        }
        assert_eq!(sizes.sum().memory_bytes, Some((3 * 64) << 20));
        assert!(sizes.describe()[2].ends_with("of 0.2 cores and 64 MiB of memory each"));
        sizes.subscriber.sizes[0].cores = Some(0.7);
        assert!((sizes.sum().cores.unwrap() - 1.6).abs() < 1e-9);
        assert_eq!(
            sizes.describe()[2..],
            [
                "1 subscriber host of 0.7 cores and 64 MiB of memory",
                "2 subscriber hosts of 0.2 cores and 64 MiB of memory each"
            ]
        );
        assert!(HostSizes::default().are_free() && HostSizes::default().sum().is_none());
    }
}
