//! A throttle between MQTT clients and a real server: what is planted in a connection is a known rate, a known delay,
//! a known loss, and a known fault.
//!
//! Rates, losses and faults are of PUBLISH packets of MQTT 3.1.1 and 5 without TLS. All throttled clients share the rate
//! of a direction, first come, first served; within a connection and direction the order is kept, but for what a fault
//! holds back. A loss or a fault must not hit a topic alias that is used later.
//!
//! Nothing passes early, by `CLOCK_MONOTONIC`. Threads that get no processor in time pass late what is due, and catch
//! up at once; the record of every PUBLISH packet shows it ([`Throttle::record`]).

mod lane;

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use pubgauge_driver::{Nanos, clock::monotonic_now};
use pubgauge_mqtt_codec::{MAX_PACKET_LEN, Packet, Version, decode, packet_len};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use lane::{Lane, LaneClient, Waiting};
pub use lane::{LaneMessage, MessageFault, Passage, Rules};
pub use pubgauge_mqtt_codec::QoS;

/// The kernel's buffer of what clients sent and the throttle has not read, in bytes. TCP over the loopback, whose
/// segments have up to 64 KiB, stalls below 16 KiB.
const RECEIVE_BUFFER: usize = 32 << 10;

/// A real-time priority, from 1 to 99, that is enough to be on time on a busy machine.
const PRIORITY: u8 = 10;

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// A running throttle. Dropping it ends its connections and its threads.
pub struct Throttle {
    address: SocketAddr,
    shared: Arc<SharedLanes>,
    acceptor: Option<JoinHandle<()>>,
}

impl Throttle {
    /// Listens on a free port of 127.0.0.1, for clients of this server. Its threads have a real-time priority where
    /// that is allowed.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn start(server: SocketAddr, to_server: Rules, to_client: Rules) -> Throttle {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        // Connections inherit it.
        set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER).expect("a socket");
        let shared = Arc::new(SharedLanes {
            server,
            lanes: [to_server, to_client].map(Lane::new),
            connections: Mutex::default(),
            most: AtomicUsize::new(usize::MAX),
            ended: Mutex::new(false),
            wake: Condvar::new(),
        });
        let accepting = shared.clone();
        let acceptor = std::thread::spawn(move || {
            // The threads of the connections inherit both.
            pubgauge_testbed::set_timer_slack(1).expect("a thread may set its timer slack");
            let _ = pubgauge_testbed::set_realtime(PRIORITY);
            accepting.accept(&listener);
        });
        Throttle {
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the rules for what is read from then on.
    pub fn change(&self, direction: Direction, edit: impl FnOnce(&mut Rules)) {
        self.shared.lane(direction).change(edit);
    }

    /// From then on it closes every connection beyond so many, as it comes.
    pub fn takes_at_most(&self, connections: usize) {
        self.shared.most.store(connections, Ordering::Relaxed);
    }

    /// Every PUBLISH packet that has come so far, in the order of coming.
    pub fn record(&self, direction: Direction) -> Vec<Passage> {
        self.shared.lane(direction).record()
    }

    /// Ends the connections of the clients whose identifier begins so, and returns how many they were.
    pub fn cut(&self, clients: &str) -> usize {
        self.shared.cut(clients)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        *self.shared.ended.lock().unwrap() = true;
        self.shared.wake.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        let ended = self.acceptor.take().expect("it runs").join();
        let fine = ended.is_ok() || std::thread::panicking();
        assert!(fine, "a thread of the throttle panicked");
    }
}

/// Packets of a rate whose intervals are shorter are read and pass this far apart, several at once: a thread that wakes
/// for each, before all others, would leave clients and server no processor. So exact are waits with a bound, too.
const GRAIN_NS: Nanos = 500_000;

/// State that the threads of a throttle share.
struct SharedLanes {
    server: SocketAddr,
    lanes: [Lane; 2],
    /// Open connections, in the order of connecting.
    connections: Mutex<BTreeMap<usize, Connection>>,
    /// So many at most.
    most: AtomicUsize,
    ended: Mutex<bool>,
    /// Notified when `ended` becomes true.
    wake: Condvar,
}

struct Connection {
    /// Empty until its CONNECT has come.
    client_id: String,
    /// The client's, the server's.
    sockets: [TcpStream; 2],
}

impl SharedLanes {
    fn lane(&self, direction: Direction) -> &Lane {
        &self.lanes[direction as usize]
    }

    /// Serves connections until the end, and ends them then.
    fn accept(&self, listener: &TcpListener) {
        std::thread::scope(|scope| {
            for (order, client) in listener.incoming().enumerate() {
                if *self.ended.lock().unwrap() {
                    break;
                }
                // A client whose server is not there finds its connection closed, as one too many does.
                let open = self.connections.lock().unwrap().len();
                if open < self.most.load(Ordering::Relaxed)
                    && let Ok(client) = client
                    && let Ok(server) = TcpStream::connect(self.server)
                {
                    let sockets = [client, server];
                    let again = |socket: &TcpStream| socket.try_clone().expect("a descriptor");
                    let connection = Connection {
                        client_id: String::new(),
                        sockets: sockets.each_ref().map(again),
                    };
                    self.connections.lock().unwrap().insert(order, connection);
                    scope.spawn(move || self.serve(order, &sockets));
                }
            }
            self.cut("");
        });
    }

    fn cut(&self, clients: &str) -> usize {
        let mut connections = self.connections.lock().unwrap();
        let before = connections.len();
        connections.retain(|_, connection| {
            let chosen = connection.client_id.starts_with(clients);
            for socket in connection.sockets.iter().filter(|_| chosen) {
                // It fails if the other side has ended it.
                let _ = socket.shutdown(Shutdown::Both);
            }
            !chosen
        });
        before - connections.len()
    }

    /// Relays between the two ends of a connection until both have ended.
    fn serve(&self, order: usize, sockets: &[TcpStream; 2]) {
        let [client, server] = sockets;
        for socket in sockets {
            let _ = socket.set_nodelay(true);
        }
        let [mut sent, answered] = [client, server].map(|stream| Packets {
            stream,
            read: Vec::new(),
        });
        // A server says nothing before its client does.
        if let Some(who) = sent.client() {
            if let Some(this) = self.connections.lock().unwrap().get_mut(&order) {
                this.client_id.clone_from(&who.id);
            }
            std::thread::scope(|scope| {
                scope.spawn(|| self.relay(Direction::ToClient, &who, answered, client));
                self.relay(Direction::ToServer, &who, sent, server);
            });
        }
        self.connections.lock().unwrap().remove(&order);
    }

    /// Relays packets in one direction until either side ends. What one read brings goes on together.
    fn relay(&self, direction: Direction, who: &LaneClient, mut from: Packets<'_>, to: &TcpStream) {
        let lane = self.lane(direction);
        let (queue, waiting) = channel();
        let source = from.stream;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                self.pass(lane, &waiting, to);
                // They fail if the other side has ended.
                let _ = to.shutdown(Shutdown::Write);
                let _ = source.shutdown(Shutdown::Read);
            });
            let mut admitted = Vec::new();
            let mut read_again = 0;
            loop {
                // Packets of a limited rate wait in any case: reading several at once delays none of them.
                let may_wait = lane.is_paced() && !from.has_packet();
                if may_wait && !self.sleep_until(read_again) {
                    break;
                }
                let Some(packet) = from.next() else {
                    break;
                };
                let now = monotonic_now();
                read_again = now + GRAIN_NS;
                let mut read_on = now;
                match lane.admit(who, packet, now) {
                    Some((held, _)) if held.is_held => {
                        let queue = queue.clone();
                        // Messages that come meanwhile overtake it.
                        scope.spawn(move || {
                            self.sleep_until(held.due_ns) && queue.send(vec![held]).is_ok()
                        });
                    }
                    Some((waiting, then)) => {
                        admitted.push(waiting);
                        read_on = then;
                    }
                    None => {}
                }
                let reads_later = read_on > now + GRAIN_NS;
                if !reads_later && from.has_packet() {
                    continue;
                }
                if queue.send(std::mem::take(&mut admitted)).is_err()
                    || reads_later && !self.sleep_until(read_on)
                {
                    break;
                }
            }
            drop(queue);
        });
    }

    /// Writes packets when they are due, those that are due together at once.
    fn pass(&self, lane: &Lane, waiting: &Receiver<Vec<Waiting>>, mut to: &TcpStream) {
        let mut pending = VecDeque::new();
        let mut not_before = 0;
        while let Some(next) = self.first(&mut pending, waiting)
            && self.sleep_until(next.max(not_before))
        {
            let now = monotonic_now();
            pending.extend(waiting.try_iter().flatten());
            let later = pending.iter().position(|packet| packet.due_ns > now);
            let due: Vec<Waiting> = pending.drain(..later.unwrap_or(pending.len())).collect();
            let bytes = due.iter().map(|packet| &*packet.bytes);
            let bytes = bytes.collect::<Vec<_>>().concat();
            if to.write_all(&bytes).is_err() {
                return;
            }
            lane.passed(&due, now);
            if lane.is_paced() {
                not_before = now + GRAIN_NS;
            }
        }
    }

    /// When the first of those that wait is due; waits until there is one. `None` if there will be none.
    fn first(
        &self,
        pending: &mut VecDeque<Waiting>,
        waiting: &Receiver<Vec<Waiting>>,
    ) -> Option<Nanos> {
        while pending.is_empty() {
            pending.extend(waiting.recv().ok()?);
        }
        Some(pending[0].due_ns)
    }

    /// Waits for this moment; false if the throttle ends before.
    fn sleep_until(&self, at: Nanos) -> bool {
        let span = Duration::from_nanos(at.saturating_sub(monotonic_now()));
        let ended = self.ended.lock().unwrap();
        let woken = self.wake.wait_timeout_while(ended, span, |ended| !*ended);
        !*woken.unwrap().0
    }
}

/// The packets of a stream.
struct Packets<'a> {
    stream: &'a TcpStream,
    /// Bytes that were read and not taken.
    read: Vec<u8>,
}

impl Packets<'_> {
    /// Waits for the CONNECT that begins the stream, and says whose it is; `None` if the stream ends before.
    fn client(&mut self) -> Option<LaneClient> {
        self.await_packet()?;
        match decode(&self.read, Version::V5, MAX_PACKET_LEN) {
            Ok(Some((Packet::Connect(connect), _))) => Some(LaneClient {
                id: connect.client_id.to_owned(),
                version: connect.version,
            }),
            other => panic!("a client begins with {other:?}, not with an MQTT CONNECT"),
        }
    }

    /// Waits for the next packet; `None` at the end of the stream.
    fn next(&mut self) -> Option<Vec<u8>> {
        let len = self.await_packet()?;
        Some(self.read.drain(..len).collect())
    }

    /// Whether the next packet has been read.
    fn has_packet(&self) -> bool {
        self.packet_len().is_some()
    }

    fn packet_len(&self) -> Option<usize> {
        let len = packet_len(&self.read, MAX_PACKET_LEN).expect("MQTT without TLS");
        len.filter(|len| *len <= self.read.len())
    }

    /// Reads until there is a whole packet, and says how long it is.
    fn await_packet(&mut self) -> Option<usize> {
        loop {
            if let Some(len) = self.packet_len() {
                return Some(len);
            }
            let mut chunk = [0; 8 << 10];
            let n = self.stream.read(&mut chunk).ok().filter(|n| *n > 0)?;
            self.read.extend_from_slice(&chunk[..n]);
        }
    }
}
