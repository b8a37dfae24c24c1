//! Round trips, one datagram at a time.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::throughput::waited;
use crate::lab::LabHost;
use pubgauge_network::{Nanos, RoundTrip};

/// The largest number of round trips.
const MOST: usize = 1000;
/// Round trips before those that are counted, to wake up processors; fewer if they take half of the span.
const WARM_UP: u64 = 5;
/// Payload of a datagram, in bytes.
const PAYLOAD: usize = 64;

/// Measures for `span`, over links whose delays come to `delays` one way.
pub(super) fn measure(
    sender: &LabHost,
    receiver: &LabHost,
    span: Duration,
    delays: Duration,
) -> io::Result<RoundTrip> {
    let (here, there) = (sender.udp()?, receiver.udp()?);
    here.connect(there.local_addr()?)?;
    here.set_read_timeout(Some(delays * 4 + Duration::from_secs(1)))?;
    there.set_read_timeout(Some(Duration::from_millis(50)))?;
    let over = AtomicBool::new(false);
    let (times, lost) = std::thread::scope(|scope| {
        scope.spawn(|| echo(&there, &over));
        let exchanged = exchange(&here, span);
        over.store(true, Ordering::Relaxed);
        exchanged
    })?;
    Ok(RoundTrip {
        to: receiver.host(),
        answered: times.len() as u64,
        lost,
        p50_ns: percentile(&times, 50),
        p99_ns: percentile(&times, 99),
    })
}

fn echo(socket: &UdpSocket, over: &AtomicBool) {
    let mut datagram = [0; PAYLOAD];
    while !over.load(Ordering::Relaxed) {
        if let Ok((bytes, from)) = socket.recv_from(&mut datagram) {
            // A datagram that is not sent counts as lost.
            let _ = socket.send_to(&datagram[..bytes], from);
        }
    }
}

/// The times of all round trips, in ascending order, and how many were lost.
fn exchange(socket: &UdpSocket, span: Duration) -> io::Result<(Vec<Nanos>, u64)> {
    let (mut times, mut lost) = (Vec::with_capacity(MOST), 0);
    let begin = Instant::now();
    for number in 0u64.. {
        let any = !times.is_empty() || lost > 0;
        if times.len() == MOST || any && begin.elapsed() >= span {
            break;
        }
        let warming = number < WARM_UP && begin.elapsed() < span / 2;
        let mut datagram = [0; PAYLOAD];
        datagram[..8].copy_from_slice(&number.to_le_bytes());
        let sent = Instant::now();
        socket.send(&datagram)?;
        let answered = answer(socket, number)?;
        let took = sent.elapsed().as_nanos() as Nanos;
        match (warming, answered) {
            (true, _) => {}
            (false, true) => times.push(took),
            (false, false) => lost += 1,
        }
    }
    times.sort_unstable();
    Ok((times, lost))
}

/// Waits for the answer to a datagram; ignores late and repeated ones.
fn answer(socket: &UdpSocket, number: u64) -> io::Result<bool> {
    let mut datagram = [0; PAYLOAD];
    loop {
        match socket.recv(&mut datagram) {
            Ok(_) if datagram[..8] == number.to_le_bytes() => return Ok(true),
            Ok(_) => {}
            Err(error) if waited(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Percentile by nearest rank of values in ascending order; 0 if there are none.
fn percentile(values: &[Nanos], percent: usize) -> Nanos {
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let values: Vec<Nanos> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&values[..1], 99), 1);
        assert_eq!(percentile(&[], 50), 0);
    }
}
