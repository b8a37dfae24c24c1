//! Costs of the driver as ratios within one run, each with the bar that it has to reach:
//!
//! - publishing 64 B at QoS 0 flat out into a private mosquitto without subscribers, against one
//!   blocking `write()` for each message into the same one;
//! - receiving 64 B messages, with the header decoded, from a raw sender on a local socket;
//! - connecting, and the memory of idle connections, at 15,000 connections to a server in another
//!   process (this program started again) that answers CONNECT and nothing else;
//! - publishing over 15,000 connections in turn, each message alone on its connection, 50 together each millisecond,
//!   against `write()` in the same order on as many bare connections;
//! - publishing and receiving over WebSocket, against the same over TCP: flat out, where many messages share a frame that
//!   goes out and each that comes has one of its own, as mosquitto sends them, and one at a time.
//!
//! CPU time is that of the measured thread (`CLOCK_THREAD_CPUTIME_ID`); publisher and receiver
//! run on threads of their own. Figures of a busy machine scatter: trust the ratios.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_mqtt_codec::{Connect, Packet, Properties, PublishTemplate, QoS, Version};
use pubgauge_testing::bench::process::Process;
use pubgauge_testing::bench::{
    Clients, MARK, PAYLOAD, Rounds, arguments, cpu, header, median, mqtt_bytes, parse, poll,
    poll_until, run_parts,
};
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::{config, confined, native};
use tungstenite::WebSocket;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(1500);
const IDLE_CONNECTIONS: usize = 15_000;
/// Source addresses that the connections are spread over. From one alone the kernel finds the
/// first 14,000 ports quickly (every other one of the range) and searches long for each further.
const SOURCES: usize = 4;
/// Connections under way at once.
const AT_ONCE: usize = 256;
/// Makes this program the server that answers CONNECT.
const ANSWER: &str = "--answer-connects";

fn main() {
    if arguments().first().is_some_and(|a| a == ANSWER) {
        return answer_connects();
    }
    // `cargo bench --bench mqtt_cost -- idle` runs one part.
    run_parts(&[
        ("publish", publishing),
        ("receive", receiving),
        ("idle", idle_connections),
        ("lone", lone_messages),
        ("websocket", websocket),
    ]);
}

/// Counts, and decodes headers as the engine does.
#[derive(Default)]
struct Sink {
    clients: Clients,
    delivered: u64,
    foreign: u64,
    checksum: u64,
}

impl Events for Sink {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        match Header::decode(delivery.payload, MARK) {
            Some(header) => {
                self.delivered += 1;
                self.checksum = self.checksum.wrapping_add(u64::from(header.sequence));
            }
            None => self.foreign += 1,
        }
    }
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
    fn changed(&mut self, _: ClientId, change: Change) {
        self.clients.note(change);
    }
}

fn open(port: u16, version: &str, clients: usize) -> Box<dyn Fleet> {
    open_at(&format!("mqtt://127.0.0.1:{port}"), version, clients)
}

fn open_at(url: &str, version: &str, clients: usize) -> Box<dyn Fleet> {
    let mut settings = Settings::default();
    native(&mut settings, "mqtt", "version", version.into());
    let config = FleetConfig {
        max_payload: PAYLOAD,
        clients,
        ..config(Target::single(url), settings)
    };
    MqttDriver.open(config).expect("the fleet opens")
}

fn spec(name: String) -> ClientSpec {
    ClientSpec {
        name,
        publishes: true,
        subscribes: true,
        ..ClientSpec::default()
    }
}

/// A mosquitto of its own that logs nothing.
fn mosquitto() -> Mosquitto {
    Mosquitto::start_with("allow_anonymous true\nlog_type none")
}

fn publishing() {
    let broker = mosquitto();
    let port = broker.port;
    for (version_name, version) in [("3.1.1", Version::V311), ("5", Version::V5)] {
        let rounds = Rounds::run(ROUNDS, |_| {
            let url = format!("mqtt://127.0.0.1:{port}");
            let ours = on_a_thread(move || publish_by_fleet(&url, version_name, 256));
            [on_a_thread(move || publish_by_write(port, version)), ours]
        });
        let [plain, ours] = rounds.medians(|rate| *rate);
        println!(
            "publish 64 B QoS 0 flat out into mosquitto, MQTT {version_name}: {:.2} M msgs/CPU-s (bar 8); \
             one write() per message: {:.2} M; ratio {:.1} (bar 4)",
            ours / 1e6,
            plain / 1e6,
            ours / plain
        );
    }
}

fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(work).join().expect("the thread ends")
}

/// Messages per CPU-second of this thread through the fleet: those given to the kernel. So many are published between two
/// looks at the fleet.
fn publish_by_fleet(url: &str, version: &str, burst: u32) -> f64 {
    let mut fleet = open_at(url, version, 1);
    let mut sink = Sink::default();
    let client = fleet.connect(&spec("fleet".into())).expect("it begins");
    poll_until(&mut *fleet, &mut sink, |s| s.clients.connected == 1);
    let topic = fleet
        .advertise(client, "site/7/power")
        .expect("a valid topic");
    let filler = Filler::new(PAYLOAD);
    let mut sequence = 0u32;
    let (cpu, start) = (cpu::of_thread(), Instant::now());
    while start.elapsed() < ROUND {
        // The engine stamps a batch at a time when it runs flat out.
        let now = Clock::Monotonic.now();
        if burst == 1 {
            poll(&mut *fleet, &mut sink, 0);
        }
        for _ in 0..burst {
            let head = header(now, sequence);
            let body = filler.body(0, sequence, PAYLOAD);
            match fleet.publish(client, topic, Payload { head: &head, body }, 0) {
                Publish::Accepted => sequence = sequence.wrapping_add(1),
                Publish::Blocked => {
                    poll(&mut *fleet, &mut sink, 100_000_000);
                    break;
                }
                Publish::Refused(why) => panic!("refused: {why:?}"),
            }
        }
    }
    let sent = u64::from(sequence) - fleet.unsettled();
    let rate = cpu::per_second(sent, cpu);
    fleet.abort(client);
    rate
}

/// That rate with one blocking `write()` per message and nothing else.
fn publish_by_write(port: u16, version: Version) -> f64 {
    let mut stream = bare_connection(port, version, "write");
    let mut packet = Vec::new();
    template(version).append(&mut packet, 0, &[1; 16], &[2; PAYLOAD - 16]);
    let (cpu, start, mut sent) = (cpu::of_thread(), Instant::now(), 0u64);
    while start.elapsed() < ROUND {
        for _ in 0..256 {
            stream.write_all(&packet).expect("it is taken");
            sent += 1;
        }
    }
    cpu::per_second(sent, cpu)
}

fn bare_connection(port: u16, version: Version, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("mosquitto is there");
    stream.set_nodelay(true).expect("an option");
    let connect = Connect {
        version,
        clean_start: true,
        client_id: name,
        ..Connect::default()
    };
    let connect = mqtt_bytes(version, Packet::Connect(connect));
    stream.write_all(&connect).expect("it is taken");
    let mut answer = [0; 64];
    let _ = stream.read(&mut answer).expect("a CONNACK");
    stream
}

fn template(version: Version) -> PublishTemplate {
    let (topic, properties) = ("site/7/power", Properties::default());
    PublishTemplate::new(version, topic, QoS::AtMostOnce, false, properties).expect("a valid topic")
}

fn receiving() {
    for (name, version) in [("3.1.1", Version::V311), ("5", Version::V5)] {
        let rates: Vec<f64> = (0..ROUNDS)
            .map(|_| on_a_thread(move || receive(name, version, false)))
            .collect();
        println!(
            "receive 64 B QoS 0 with the header decoded, MQTT {name}: {:.2} M msgs/CPU-s (bar 4, with the engine's ledger and histogram on top)",
            median(&rates) / 1e6
        );
    }
}

fn receive(name: &'static str, version: Version, over_websocket: bool) -> f64 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let sender = std::thread::spawn(move || {
        let mut server = Server::accept(&listener, over_websocket);
        server.next();
        let v5 = version == Version::V5;
        server.send(if v5 {
            &[0x20, 3, 0, 0, 0]
        } else {
            &[0x20, 2, 0, 0]
        });
        let subscribe = server.next();
        let id = [subscribe[2], subscribe[3]];
        let suback = if v5 {
            vec![0x90, 4, id[0], id[1], 0, 0]
        } else {
            vec![0x90, 3, id[0], id[1], 0]
        };
        server.send(&suback);
        let (template, mut batch) = (template(version), Vec::new());
        for sequence in 0..1000 {
            let mut packet = Vec::new();
            template.append(&mut packet, 0, &header(1, sequence), &[7; PAYLOAD - 16]);
            if over_websocket {
                batch.extend([0x82, packet.len() as u8]);
            }
            batch.append(&mut packet);
        }
        let start = Instant::now();
        let stream = server.stream();
        // The receiver ends the connection.
        while start.elapsed() < ROUND * 2 && stream.write_all(&batch).is_ok() {}
    });
    let scheme = if over_websocket { "ws" } else { "mqtt" };
    let mut fleet = open_at(&format!("{scheme}://127.0.0.1:{port}"), name, 1);
    let mut sink = Sink::default();
    let client = fleet.connect(&spec("receiver".into())).expect("it begins");
    poll_until(&mut *fleet, &mut sink, |s| s.clients.connected == 1);
    fleet
        .subscribe(client, &Subscription::matching("#"))
        .expect("a valid filter");
    poll_until(&mut *fleet, &mut sink, |s| s.delivered > 0);
    let (cpu, start, before) = (cpu::of_thread(), Instant::now(), sink.delivered);
    while start.elapsed() < ROUND {
        poll(&mut *fleet, &mut sink, 10_000_000);
    }
    assert_eq!(sink.foreign, 0);
    let rate = cpu::per_second(sink.delivered - before, cpu);
    fleet.abort(client);
    drop(fleet);
    sender.join().expect("the sender ends");
    rate
}

/// The other end of a connection, whose packets come one at a time.
enum Server {
    Plain(TcpStream),
    WebSocket(Box<WebSocket<TcpStream>>),
}

impl Server {
    fn accept(listener: &TcpListener, over_websocket: bool) -> Server {
        let (stream, _) = listener.accept().expect("the fleet connects");
        if !over_websocket {
            return Server::Plain(stream);
        }
        #[allow(clippy::result_large_err)] // As the library has it.
        let answer = |_: &Request, mut answer: Response| -> Result<Response, ErrorResponse> {
            let name = "mqtt".parse().expect("a name");
            answer.headers_mut().insert("Sec-WebSocket-Protocol", name);
            Ok(answer)
        };
        let socket = tungstenite::accept_hdr(stream, answer).expect("it is asked for");
        Server::WebSocket(Box::new(socket))
    }

    fn next(&mut self) -> Vec<u8> {
        match self {
            Server::Plain(stream) => {
                let mut buf = vec![0; 512];
                let len = stream.read(&mut buf).expect("a packet");
                buf.truncate(len);
                buf
            }
            Server::WebSocket(socket) => socket.read().expect("a packet").into_data().to_vec(),
        }
    }

    fn send(&mut self, packet: &[u8]) {
        match self {
            Server::Plain(stream) => stream.write_all(packet).expect("it is taken"),
            Server::WebSocket(socket) => {
                let message = tungstenite::Message::binary(packet.to_vec());
                socket.send(message).expect("it is taken");
            }
        }
    }

    fn stream(&mut self) -> &mut TcpStream {
        match self {
            Server::Plain(stream) => stream,
            Server::WebSocket(socket) => socket.get_mut(),
        }
    }
}

/// A server at this address that answers one CONNECT of MQTT 5, and reads and throws away all that follows: a server that
/// takes its time would make a client look for room again and again, and that is what would be measured.
fn discard(over_websocket: bool) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let reader = std::thread::spawn(move || {
        let mut server = Server::accept(&listener, over_websocket);
        server.next();
        server.send(&[0x20, 3, 0, 0, 0]);
        let mut bytes = vec![0; 1 << 18];
        while server.stream().read(&mut bytes).is_ok_and(|len| len > 0) {}
    });
    let scheme = if over_websocket { "ws" } else { "mqtt" };
    (format!("{scheme}://127.0.0.1:{port}"), reader)
}

fn websocket() {
    let told = |what: &str, rounds: Rounds<f64>| {
        let [plain, ours] = rounds.medians(|rate| *rate);
        // Of processor time for each message.
        let ratio = rounds.ratio(|rate| 1.0 / *rate);
        println!(
            "{what}: {:.3} us of CPU for each message over TCP, {:.3} us over WebSocket; ratio {:.2} ({:.2} to {:.2}; bar 1.3)",
            1e6 / plain,
            1e6 / ours,
            ratio.median,
            ratio.min,
            ratio.max
        );
    };
    for (what, burst) in [
        ("publish 64 B flat out", 256),
        ("publish 64 B one at a time", 1),
    ] {
        let rounds = Rounds::run(ROUNDS, |_| {
            [false, true].map(|over| {
                let (url, reader) = discard(over);
                let rate = on_a_thread(move || publish_by_fleet(&url, "5", burst));
                reader.join().expect("the reader ends");
                rate
            })
        });
        told(what, rounds);
    }
    let rounds = Rounds::run(ROUNDS, |_| {
        [false, true].map(|over| on_a_thread(move || receive("5", Version::V5, over)))
    });
    told("receive 64 B, each in a frame of its own", rounds);
}

fn raise_file_limit() {
    let need = IDLE_CONNECTIONS as u64 + 100;
    assert!(
        confined::all_files() >= need,
        "this bench needs {need} file descriptors (ulimit -n)"
    );
}

/// Resident memory of this process in bytes.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages: f64 = statm
        .split(' ')
        .nth(1)
        .and_then(|p| p.parse().ok())
        .expect("a number");
    pages * 4096.0
}

fn idle_connections() {
    raise_file_limit();
    let mut server = Process::start(&[ANSWER]);
    let port = parse(&server.line());
    let bare = connect_bare(port);
    let (before, cpu, start) = (resident(), cpu::of_thread(), Instant::now());
    let (_fleet, _, _) = many(port);
    let rate = cpu::per_second(IDLE_CONNECTIONS as u64, cpu);
    let wall = start.elapsed();
    println!(
        "{IDLE_CONNECTIONS} connections: {rate:.0} connects/CPU-s (bar 30000); the system calls alone: {bare:.0}; \
         ratio {:.2}; {:.0} bytes of resident memory each (bar 1024); {:.1} s",
        rate / bare,
        (resident() - before) / IDLE_CONNECTIONS as f64,
        wall.as_secs_f64()
    );
}

/// A fleet of many connections.
fn many(port: u16) -> (Box<dyn Fleet>, Sink, Vec<ClientId>) {
    let mut fleet = open(port, "5", IDLE_CONNECTIONS);
    let (mut sink, mut clients) = (Sink::default(), Vec::new());
    while sink.clients.connected < IDLE_CONNECTIONS {
        // The engine limits how many connect at once.
        while clients.len() < IDLE_CONNECTIONS && clients.len() - sink.clients.connected < AT_ONCE {
            let spec = ClientSpec {
                source: Some(IpAddr::from([
                    127,
                    0,
                    0,
                    2 + (clients.len() % SOURCES) as u8,
                ])),
                ..spec(format!("pubgauge-0-{}", clients.len()))
            };
            clients.push(fleet.connect(&spec).expect("it begins"));
        }
        poll(&mut *fleet, &mut sink, 10_000_000);
    }
    (fleet, sink, clients)
}

/// Devices with a message now and then: each message costs a write of its own, whoever writes it.
fn lone_messages() {
    raise_file_limit();
    let rounds = Rounds::run(ROUNDS, |_| {
        let [first, second] = [mosquitto(), mosquitto()];
        let (to_first, to_second) = (first.port, second.port);
        let plain = on_a_thread(move || lone_by_write(to_first));
        [plain, on_a_thread(move || lone_by_fleet(to_second))]
    });
    let [plain, ours] = rounds.medians(|us| *us);
    let ratio = rounds.ratio(|us| *us);
    println!(
        "lone messages over {IDLE_CONNECTIONS} connections: {ours:.2} us of CPU each; one write() each: {plain:.2} us; \
         ratio {:.2} ({:.2} to {:.2})",
        ratio.median, ratio.min, ratio.max
    );
}

/// Sends one after the other, 50 each millisecond, and gives the processor time of this thread for each, us.
fn paced(mut send: impl FnMut(usize, u32), mut flush: impl FnMut()) -> f64 {
    const EACH_MS: u64 = 50;
    let (cpu, start, mut sent) = (cpu::of_thread(), Instant::now(), 0u64);
    while start.elapsed() < 2 * ROUND {
        let due = start.elapsed().as_millis() as u64 * EACH_MS;
        while sent < due {
            send(sent as usize % IDLE_CONNECTIONS, sent as u32);
            sent += 1;
        }
        flush();
        std::thread::sleep(Duration::from_millis(1));
    }
    1e6 / cpu::per_second(sent, cpu)
}

fn lone_by_fleet(port: u16) -> f64 {
    let (fleet, mut sink, clients) = many(port);
    let fleet = std::cell::RefCell::new(fleet);
    let advertise = |client| fleet.borrow_mut().advertise(client, "site/7/power");
    let topics: Vec<_> = clients.iter().map(|&client| advertise(client)).collect();
    let filler = Filler::new(PAYLOAD);
    let us = paced(
        |nth, sequence| {
            let (head, body) = (header(1, sequence), filler.body(0, sequence, PAYLOAD));
            let topic = *topics[nth].as_ref().expect("a valid topic");
            let payload = Payload { head: &head, body };
            let told = fleet.borrow_mut().publish(clients[nth], topic, payload, 0);
            assert!(matches!(told, Publish::Accepted));
        },
        || poll(&mut **fleet.borrow_mut(), &mut sink, 0),
    );
    fleet
        .borrow_mut()
        .close(Clock::Monotonic.now() + 5_000_000_000);
    us
}

fn lone_by_write(port: u16) -> f64 {
    let mut streams: Vec<_> = (0..IDLE_CONNECTIONS)
        .map(|nth| bare_connection(port, Version::V5, &format!("write-{nth}")))
        .collect();
    let mut packet = Vec::new();
    let (template, filler) = (template(Version::V5), Filler::new(PAYLOAD));
    paced(
        |nth, sequence| {
            packet.clear();
            let (head, body) = (header(1, sequence), filler.body(0, sequence, PAYLOAD));
            template.append(&mut packet, 0, &head, body);
            streams[nth].write_all(&packet).expect("it is taken");
        },
        || {},
    )
}

/// Connects per CPU-second with the system calls that a connection cannot do without, and
/// nothing else: what this machine allows at this moment.
fn connect_bare(port: u16) -> f64 {
    use rustix::event::epoll;
    use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
    const COUNT: usize = 5000;
    let packet = Connect {
        clean_start: true,
        keep_alive_s: 60,
        client_id: "pubgauge-0-10000",
        ..Connect::default()
    };
    let connect = mqtt_bytes(Version::V5, Packet::Connect(packet));
    let address = std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
    let none = epoll::Event {
        flags,
        data: epoll::EventData::new_u64(0),
    };
    let (mut sockets, mut answered, mut list, mut buf) = (Vec::new(), 0, [none; 256], [0; 512]);
    let mut greeted = vec![false; COUNT];
    let cpu = cpu::of_thread();
    while answered < COUNT {
        while sockets.len() < COUNT && sockets.len() - answered < AT_ONCE {
            let kind = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, kind, None)
                .expect("a socket");
            net::sockopt::set_tcp_nodelay(&socket, true).expect("an option");
            let begun = net::connect(&socket, &address);
            assert!(matches!(begun, Ok(()) | Err(rustix::io::Errno::INPROGRESS)));
            let data = epoll::EventData::new_u64(sockets.len() as u64);
            epoll::add(&set, &socket, data, flags).expect("it is watched");
            sockets.push(socket);
        }
        let n = epoll::wait(&set, &mut list, None).expect("epoll waits");
        for event in &list[..n] {
            let (data, flags) = (event.data, event.flags);
            let at = data.u64() as usize;
            if !std::mem::replace(&mut greeted[at], true) {
                net::send(&sockets[at], &connect, SendFlags::NOSIGNAL).expect("it is taken");
            }
            if flags.contains(epoll::EventFlags::IN) {
                net::recv(&sockets[at], &mut buf[..], RecvFlags::empty()).expect("a CONNACK");
                answered += 1;
            }
        }
    }
    let rate = cpu::per_second(COUNT as u64, cpu);
    for socket in &sockets {
        // Reset instead of TIME_WAIT, so that the ports are free for what follows.
        let at_once = Some(Duration::ZERO);
        net::sockopt::set_socket_linger(socket, at_once).expect("an option");
    }
    rate
}

/// The other process: takes connections, answers the first bytes of each with a CONNACK of
/// MQTT 5, and ends when its parent does.
fn answer_connects() {
    use rustix::event::epoll;
    raise_file_limit();
    // SAFETY: a plain system call without pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.set_nonblocking(true).expect("an option");
    // SAFETY: a plain system call on a descriptor that we own; a longer queue of connections.
    unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 4096) };
    println!("{}", listener.local_addr().expect("it is bound").port());
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    let (read, data) = (epoll::EventFlags::IN, epoll::EventData::new_u64);
    epoll::add(&set, &listener, data(u64::MAX), read).expect("it is watched");
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let mut list = [epoll::Event {
        flags: read,
        data: data(0),
    }; 256];
    let mut buf = [0; 512];
    loop {
        let n = epoll::wait(&set, &mut list, None).unwrap_or(0);
        for event in &list[..n] {
            let data = event.data;
            if data.u64() != u64::MAX {
                let slot = &mut streams[data.u64() as usize];
                let Some(stream) = slot else { continue };
                match stream.read(&mut buf) {
                    Ok(0) | Err(_) => *slot = None,
                    Ok(_) => drop(stream.write(&[0x20, 3, 0, 0, 0])),
                }
                continue;
            }
            while let Ok((stream, _)) = listener.accept() {
                let data = epoll::EventData::new_u64(streams.len() as u64);
                epoll::add(&set, &stream, data, read).expect("it is watched");
                streams.push(Some(stream));
            }
        }
    }
}
