//! Throughput of the links.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pubgauge_network::{DATAGRAM_BYTES, Throughput};

use crate::lab::LabHost;

/// Time of traffic before counting begins: a quarter of the span, at least this. Meanwhile buckets and queues
/// fill. What comes over links with a delay is waited for besides.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long a socket waits before its thread checks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long a connection may take, beside the delays of its packets.
const CONNECT: Duration = Duration::from_secs(5);
/// Round trips in which TCP opens its window, from 10 segments to 14 MB by doubling.
const ROUNDS: u32 = 10;
/// The longest that counting waits for that.
const OPENED: Duration = Duration::from_secs(60);

/// The multicast group for the measurement, in the range for use within one organisation (RFC
/// 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 77);

/// Counts of received bytes, and the flag that ends the threads.
struct Account {
    received: Vec<AtomicU64>,
    over: AtomicBool,
}

impl Account {
    fn new(receivers: usize) -> Account {
        Account {
            received: (0..receivers).map(|_| AtomicU64::new(0)).collect(),
            over: AtomicBool::new(false),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn add(&self, receiver: usize, bytes: usize) {
        self.received[receiver].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn read(&self) -> Vec<u64> {
        let counts = self.received.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Waits, counts for the span, and ends the threads. `coming`: until the traffic is there.
    fn count(&self, span: Duration, coming: Duration) -> Throughput {
        std::thread::sleep(WARM_UP.max(span / 4) + coming);
        let (begin, before) = (Instant::now(), self.read());
        std::thread::sleep(span);
        let (elapsed, after) = (begin.elapsed(), self.read());
        self.over.store(true, Ordering::Relaxed);
        Throughput {
            span_ns: elapsed.as_nanos() as u64,
            received_bytes: after
                .iter()
                .zip(before)
                .map(|(now, then)| now - then)
                .collect(),
        }
    }
}

/// One stream to each receiver.
pub(super) fn tcp(
    sender: &LabHost,
    receivers: &[&LabHost],
    span: Duration,
    delays: Duration,
) -> io::Result<Throughput> {
    let account = Account::new(receivers.len());
    let mut pairs = Vec::new();
    for (index, receiver) in receivers.iter().enumerate() {
        match connected(sender, receiver, CONNECT + delays * 4) {
            Ok(pair) => pairs.push((index, pair)),
            // Over a link that is cut nothing arrives.
            Err(error) if waited(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let account = &account;
    std::thread::scope(|scope| {
        for (index, (ours, theirs)) in &pairs {
            scope.spawn(move || send(ours, account));
            scope.spawn(move || receive(theirs, *index, account));
        }
        Ok(account.count(span, (delays * 2 * ROUNDS).min(OPENED)))
    })
}

fn connected(
    sender: &LabHost,
    receiver: &LabHost,
    within: Duration,
) -> io::Result<(TcpStream, TcpStream)> {
    let at = (receiver.address(), 0);
    let listener = receiver.namespace().run(|| TcpListener::bind(at))?;
    let address = listener.local_addr()?;
    let ours = sender
        .namespace()
        .run(|| TcpStream::connect_timeout(&address, within))?;
    // The kernel has completed the connection already.
    let (theirs, _) = listener.accept()?;
    ours.set_write_timeout(Some(LOOK))?;
    theirs.set_read_timeout(Some(LOOK))?;
    Ok((ours, theirs))
}

fn send(mut stream: &TcpStream, account: &Account) {
    let block = [0x55; 64 << 10];
    while !account.is_over() {
        match stream.write(&block) {
            Ok(_) => {}
            Err(error) if waited(&error) => {}
            Err(_) => return,
        }
    }
}

fn receive(mut stream: &TcpStream, index: usize, account: &Account) {
    let mut block = vec![0; 256 << 10];
    while !account.is_over() {
        match stream.read(&mut block) {
            Ok(0) => return,
            Ok(bytes) => account.add(index, bytes),
            Err(error) if waited(&error) => {}
            Err(_) => return,
        }
    }
}

/// Datagrams to the receivers in turn.
pub(super) fn udp(
    sender: &LabHost,
    receivers: &[&LabHost],
    span: Duration,
    delays: Duration,
) -> io::Result<Throughput> {
    let sockets: io::Result<Vec<UdpSocket>> = receivers.iter().map(|host| host.udp()).collect();
    let sockets = sockets?;
    let targets: io::Result<Vec<SocketAddr>> = sockets.iter().map(UdpSocket::local_addr).collect();
    datagrams(sender, &targets?, &sockets, span, delays)
}

/// Datagrams to a group that all receivers are in.
pub(super) fn multicast(
    sender: &LabHost,
    receivers: &[&LabHost],
    span: Duration,
    delays: Duration,
) -> io::Result<Throughput> {
    let mut sockets = Vec::new();
    let mut port = 0;
    for receiver in receivers {
        // The first receiver's port is free on the others: each host has its own port range.
        let socket = receiver.namespace().run(|| {
            let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
            socket.join_multicast_v4(&GROUP, &receiver.address())?;
            Ok(socket)
        })?;
        port = socket.local_addr()?.port();
        sockets.push(socket);
    }
    datagrams(
        sender,
        &[SocketAddrV4::new(GROUP, port).into()],
        &sockets,
        span,
        delays,
    )
}

fn datagrams(
    sender: &LabHost,
    targets: &[SocketAddr],
    sockets: &[UdpSocket],
    span: Duration,
    delays: Duration,
) -> io::Result<Throughput> {
    let socket = sender.udp()?;
    socket.set_multicast_ttl_v4(1)?;
    socket.set_write_timeout(Some(LOOK))?;
    for receiver in sockets {
        receiver.set_read_timeout(Some(LOOK))?;
    }
    let account = Account::new(sockets.len());
    let (account, socket) = (&account, &socket);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let datagram = [0x55; DATAGRAM_BYTES];
            for target in targets.iter().cycle() {
                if account.is_over() {
                    break;
                }
                // A full queue or a timeout: a datagram that is not sent does not arrive, and only
                // arrivals count.
                let _ = socket.send_to(&datagram, target);
            }
        });
        for (index, receiver) in sockets.iter().enumerate() {
            scope.spawn(move || {
                let mut datagram = [0; DATAGRAM_BYTES];
                while !account.is_over() {
                    if let Ok(bytes) = receiver.recv(&mut datagram) {
                        account.add(index, bytes);
                    }
                }
            });
        }
        Ok(account.count(span, delays))
    })
}

/// Whether an error is a timeout.
pub(super) fn waited(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
