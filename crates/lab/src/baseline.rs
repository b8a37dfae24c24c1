//! Measures the bare links: the upper bound of a system's figures on the network.
//!
//! Threads with sockets of the hosts send and receive as fast as the links let them, one kind of traffic after
//! another, over a network that carries nothing else.

mod round_trip;
mod throughput;

use std::io;
use std::time::Duration;

use pubgauge_network::{Baseline, Host, RoundTrip};

use crate::lab::{Lab, LabError, LabHost};

impl Lab {
    /// Measures the links between `from` and each of `to`, for `span` each: first round trips without other traffic,
    /// a thousand with each receiver or as many as `span` allows; then TCP, UDP, multicast. Takes somewhat more than
    /// four spans, and for each of the three the delays of the links, in which TCP opens its window.
    ///
    /// # Errors
    /// If the network has no such host, or sockets fail. A link that is cut is no error: nothing
    /// arrives.
    pub fn baseline(&self, from: Host, to: &[Host], span: Duration) -> Result<Baseline, LabError> {
        let round_trips = self.round_trips(from, to, span)?;
        let (sender, receivers) = self.sender_and_receivers(from, to)?;
        let delays = to.iter().map(|to| self.delays(from, *to)).max();
        let delays = delays.unwrap_or_default();
        let failed = |what: &'static str| LabError::io(format!("baseline from {from}: {what}"));
        Ok(Baseline {
            from,
            to: to.to_vec(),
            tcp: throughput::tcp(sender, &receivers, span, delays).map_err(failed("TCP"))?,
            udp: throughput::udp(sender, &receivers, span, delays).map_err(failed("UDP"))?,
            multicast: throughput::multicast(sender, &receivers, span, delays)
                .map_err(failed("multicast"))?,
            round_trips,
            shape_only: self.shape_only(),
        })
    }

    /// Measures round trips only, in `span` altogether.
    ///
    /// # Errors
    /// As [`Lab::baseline`].
    pub fn round_trips(
        &self,
        from: Host,
        to: &[Host],
        span: Duration,
    ) -> Result<Vec<RoundTrip>, LabError> {
        let (sender, receivers) = self.sender_and_receivers(from, to)?;
        let one = span / receivers.len().max(1) as u32;
        let trips = receivers.iter().map(|receiver| {
            let delays = self.delays(from, receiver.host());
            round_trip::measure(sender, receiver, one, delays)
        });
        let trips: io::Result<Vec<RoundTrip>> = trips.collect();
        trips.map_err(LabError::io(format!("round trips from {from}")))
    }

    /// The longest that a packet is under way from one host to another on an idle network.
    fn delays(&self, from: Host, to: Host) -> Duration {
        let links = [from, to].map(|host| self.network().link(host));
        let ns = links.iter().map(|link| link.delay_ns + link.jitter_ns);
        Duration::from_nanos(ns.sum())
    }

    fn sender_and_receivers(
        &self,
        from: Host,
        to: &[Host],
    ) -> Result<(&LabHost, Vec<&LabHost>), LabError> {
        let own = |host: Host| self.host(host).ok_or(LabError::NoHost(host));
        let receivers: Result<_, _> = to.iter().map(|host| own(*host)).collect();
        Ok((own(from)?, receivers?))
    }
}
