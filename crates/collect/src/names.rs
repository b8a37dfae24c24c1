//! The addresses that brokers' names stand for, looked up again and again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use pubgauge_driver::DriverError;
use pubgauge_net::endpoint::Endpoint;
pub use pubgauge_net::lookups::LookUp;

use pubgauge_net::waker::Waker;

/// By the name services of this host. All addresses of one family: those of IPv4 if there are any, since a host that
/// has both would be two brokers else.
pub fn system() -> LookUp {
    Arc::new(|endpoint| {
        let found = endpoint.look_up()?;
        Ok(one_family(found))
    })
}

fn one_family(mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if found.iter().any(SocketAddr::is_ipv4) {
        found.retain(SocketAddr::is_ipv4);
    }
    found.sort();
    found.dedup();
    found
}

/// The outcome of a look-up: the endpoint's number, and its addresses or why there are none.
pub type LookedUp = (usize, Result<Vec<SocketAddr>, DriverError>);

/// The thread that looks names up. It ends when this is dropped.
pub struct Names {
    found: Receiver<LookedUp>,
    _stop: Sender<()>,
}

impl Names {
    /// Looks all names up now and at every interval.
    pub fn begin(
        endpoints: Vec<Endpoint>,
        every: Duration,
        look_up: LookUp,
        waker: Waker,
    ) -> Names {
        let (tell, found) = channel();
        let (stop, stopped) = channel::<()>();
        thread::spawn(move || {
            loop {
                for (nth, endpoint) in endpoints.iter().enumerate() {
                    if tell.send((nth, look_up(endpoint))).is_err() {
                        return;
                    }
                    waker.wake();
                }
                if stopped.recv_timeout(every) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        Names { found, _stop: stop }
    }

    /// Addresses that were found since.
    pub fn take_found(&self) -> Option<LookedUp> {
        self.found.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_one_family_and_each_is_there_once() {
        let of = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.parse().unwrap())
                .collect::<Vec<SocketAddr>>()
        };
        let found = one_family(of(&["[::1]:1", "10.0.0.2:1", "10.0.0.1:1", "10.0.0.2:1"]));
        assert_eq!(found, of(&["10.0.0.1:1", "10.0.0.2:1"]));
        assert_eq!(
            one_family(of(&["[::2]:1", "[::1]:1"])),
            of(&["[::1]:1", "[::2]:1"])
        );
    }
}
