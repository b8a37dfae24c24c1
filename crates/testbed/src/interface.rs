//! Bytes and packets that cross a network interface, by its own counters, headers included.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::namespace::Namespace;

/// Reads the counters of one interface.
pub struct InterfaceCounter {
    name: String,
    /// `/proc/net/dev` of the interface's namespace; the open file keeps showing that namespace.
    file: File,
}

/// Bytes and packets that have crossed an interface since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossed {
    /// Bytes with the headers that the interface counts: of IP, TCP and UDP; on Ethernet and veth its 14 as well.
    pub bytes: u64,
    /// Packets as the interface takes them: up to 64 KiB each, before a network card splits them.
    pub packets: u64,
}

/// Bytes and packets that have crossed an interface in each direction since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    pub received: Crossed,
    /// Its sent traffic: a multicast packet counts once, whatever the number of receivers.
    pub sent: Crossed,
}

impl std::ops::Sub for Directions {
    type Output = Directions;

    fn sub(self, before: Directions) -> Directions {
        Directions {
            received: self.received - before.received,
            sent: self.sent - before.sent,
        }
    }
}

impl std::ops::Sub for Crossed {
    type Output = Crossed;

    fn sub(self, before: Crossed) -> Crossed {
        Crossed {
            bytes: self.bytes.saturating_sub(before.bytes),
            packets: self.packets.saturating_sub(before.packets),
        }
    }
}

impl InterfaceCounter {
    /// The counters of the interface `name` in a network namespace, named as `ip netns` names it or by the path of
    /// its file; in the caller's namespace if absent.
    ///
    /// # Errors
    /// There is no such namespace, this program may not enter it, or there is no such interface in it.
    pub fn open(name: &str, namespace: Option<&str>) -> io::Result<InterfaceCounter> {
        let counters = || File::open("/proc/thread-self/net/dev");
        let file = match namespace {
            None => counters(),
            Some(namespace) => Namespace::open(namespace).and_then(|own| own.run(counters)),
        };
        let place = namespace.map_or(String::new(), |n| format!(" of network namespace `{n}`"));
        let told = |what: String, error: io::Error| {
            io::Error::new(error.kind(), format!("{what}: {error}"))
        };
        let file = file.map_err(|error| {
            let what = format!("the counters of the interfaces{place} cannot be read");
            told(what, error)
        })?;
        let counter = InterfaceCounter {
            name: name.to_owned(),
            file,
        };
        match counter.read() {
            Ok(_) => Ok(counter),
            Err(error) => Err(told(format!("interface `{name}`{place}"), error)),
        }
    }

    /// Its traffic so far, both directions together. For the loopback interface only what was sent, since
    /// the same packets are received.
    ///
    /// # Errors
    /// The kernel does not tell, or the interface is gone.
    pub fn read(&self) -> io::Result<Crossed> {
        let Directions { received, sent } = self.read_ways()?;
        let both = u64::from(self.name != "lo");
        Ok(Crossed {
            bytes: sent.bytes + both * received.bytes,
            packets: sent.packets + both * received.packets,
        })
    }

    /// Its received and sent traffic so far.
    ///
    /// # Errors
    /// As [`InterfaceCounter::read`].
    pub fn read_ways(&self) -> io::Result<Directions> {
        let mut text = Vec::new();
        let mut piece = [0; 16 << 10];
        loop {
            match self.file.read_at(&mut piece, text.len() as u64)? {
                0 => break,
                n => text.extend_from_slice(&piece[..n]),
            }
        }
        let none = || io::Error::new(io::ErrorKind::NotFound, "there is no such interface");
        counters(&String::from_utf8_lossy(&text), &self.name).ok_or_else(none)
    }
}

/// The counters of an interface in the text of `/proc/net/dev`.
fn counters(text: &str, name: &str) -> Option<Directions> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines
        .into_iter()
        .find(|(interface, _)| interface.trim() == name)?;
    let numbers: Vec<u64> = numbers
        .split_whitespace()
        .map_while(|number| number.parse().ok())
        .collect();
    // 8 numbers of what came, 8 of what was sent, bytes and packets first.
    let crossed = |at: usize| {
        let [bytes, packets] = *numbers.get(at..at + 2)? else {
            return None;
        };
        Some(Crossed { bytes, packets })
    };
    Some(Directions {
        received: crossed(0)?,
        sent: crossed(8)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_read() {
        let text = "Inter-|   Receive                        |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n    \
            lo: 300 3 0 0 0 0 0 0 300 3 0 0 0 0 0 0\n  \
            eth0:1000 10 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n";
        let ways = |[came, sent]: [[u64; 2]; 2]| {
            let crossed = |[bytes, packets]: [u64; 2]| Crossed { bytes, packets };
            Some(Directions {
                received: crossed(came),
                sent: crossed(sent),
            })
        };
        assert_eq!(counters(text, "lo"), ways([[300, 3], [300, 3]]));
        assert_eq!(counters(text, "eth0"), ways([[1000, 10], [20, 2]]));
        assert_eq!(counters(text, "eth"), None);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = InterfaceCounter::open("none7", None).err().unwrap();
        assert!(
            error.to_string().contains("`none7`: there is no such"),
            "{error}"
        );
        let error = InterfaceCounter::open("lo", Some("nowhere7"))
            .err()
            .unwrap();
        assert!(error.to_string().contains("`nowhere7`"), "{error}");
    }
}
