//! Cost of the driver per message, beside the plainest program that moves the same stanzas:
//! one that fills string templates, and finds items and answers by searching the text, without
//! reading XML. Both in one run, on the same server:
//!
//! - `publish`: publish requests of 64 B payloads to a server (a thread of this program) that
//!   answers each, 100 at a time;
//! - `direct`: messages to one receiver, which are not answered, into a server that reads them;
//! - `receive`: notifications of 64 B payloads from a server that sends as fast as it is read;
//! - `ejabberd`: both through a real ejabberd, and what that costs it.
//!
//! CPU time is that of the measured thread (`CLOCK_THREAD_CPUTIME_ID`). Figures of a busy machine
//! scatter: trust the ratios.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use pubgauge_driver::*;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testbed::{SystemFile, Testbed};
use pubgauge_testing::bench::{Clients, PAYLOAD, Rounds, cpu, poll, poll_until, run_parts};
use pubgauge_testing::{config, scripted};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(1000);
const WINDOW: u64 = 100;

const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='1' from='localhost' version='1.0'>";

fn main() {
    // `cargo bench --bench xmpp_cost -- receive` runs one part.
    run_parts(&[
        ("publish", || publishing(MessagingPattern::PublishSubscribe)),
        ("direct", || publishing(MessagingPattern::PointToPoint)),
        ("receive", receiving),
        ("ejabberd", through_ejabberd),
    ]);
}

fn report(what: &str, rounds: &Rounds<f64>) {
    let ([plain, ours], ratio) = (rounds.medians(|rate| *rate), rounds.ratio(|rate| *rate));
    println!(
        "{what}: plain {:.0} k, driver {:.0} k messages per CPU-second (medians of {ROUNDS}); ratio {:.2} (from {:.2} to {:.2})",
        plain / 1e3,
        ours / 1e3,
        ratio.median,
        ratio.min,
        ratio.max,
    );
}

/// The server's side of one connection after the login.
type Service = fn(TcpStream);

/// A server; gives its port.
fn server(service: Service) -> u16 {
    let (port, _) = scripted(move |listener| {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut stream = stream;
                log_in(&mut stream);
                service(stream);
            });
        }
    });
    port
}

/// Reads until `what` was there.
fn expect(stream: &mut TcpStream, what: &str) -> String {
    let mut got = Vec::new();
    let mut byte = [0];
    while memmem::rfind(&got, what.as_bytes()).is_none() {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{what} never came");
        got.push(byte[0]);
    }
    String::from_utf8(got).unwrap()
}

fn id(text: &str) -> &str {
    let (_, rest) = text.rsplit_once(" id='").unwrap();
    rest.split_once('\'').unwrap().0
}

fn log_in(stream: &mut TcpStream) {
    let say = |stream: &mut TcpStream, until: &str, what: &str| {
        let got = expect(stream, until);
        write!(stream, "{what}").unwrap();
        got
    };
    say(
        stream,
        "version='1.0'",
        &format!(
            "{HEADER}<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>"
        ),
    );
    say(
        stream,
        "</auth>",
        "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
    );
    say(
        stream,
        "version='1.0'",
        &format!(
            "{HEADER}<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
        ),
    );
    let request = expect(stream, "</bind></iq>");
    write!(stream, "<iq type='result' id='{}'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>u@localhost/r</jid></bind></iq>", id(&request)).unwrap();
}

/// Answers a node's creation or subscription.
fn answer_first(stream: &mut TcpStream) {
    let request = expect(stream, "</pubsub></iq>");
    write!(stream, "<iq type='result' id='{}'/>", id(&request)).unwrap();
}

/// Answers each publish request as ejabberd words it.
fn answer(mut stream: TcpStream) {
    let mut buf = vec![0; 1 << 18];
    let mut kept = 0;
    let mut out = Vec::new();
    answer_first(&mut stream);
    loop {
        let n = match stream.read(&mut buf[kept..]) {
            Ok(0) | Err(_) => return,
            Ok(n) => kept + n,
        };
        out.clear();
        let mut from = 0;
        // Each request has its identifier near its beginning.
        while let Some(end) = memmem::find(&buf[from..n], b"</iq>") {
            let request = &buf[from..from + end];
            let at = memmem::find(request, b" id='").unwrap() + 5;
            let id = &request[at..at + memchr::memchr(b'\'', &request[at..]).unwrap()];
            out.extend_from_slice(
                b"<iq xml:lang='en' to='u@localhost/r' from='pubsub.localhost' type='result' id='",
            );
            out.extend_from_slice(id);
            out.extend_from_slice(b"'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='t'><item id='70339AE6A1A56'/></publish></pubsub></iq>");
            from += end + 5;
        }
        buf.copy_within(from..n, 0);
        kept = n - from;
        if stream.write_all(&out).is_err() {
            return;
        }
    }
}

/// Reads and forgets.
fn swallow(mut stream: TcpStream) {
    let mut buf = vec![0; 1 << 18];
    while stream.read(&mut buf).is_ok_and(|n| n > 0) {}
}

/// Sends notifications as fast as they are read.
fn blast(mut stream: TcpStream) {
    answer_first(&mut stream);
    let payload = STANDARD.encode([7; PAYLOAD]);
    let one = format!(
        "<message to='u@localhost/r' from='pubsub.localhost' type='headline'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='t'><item id='70339AE6A1A56'><p xmlns='urn:pubgauge:payload:0'>{payload}</p></item></items></event></message>"
    );
    let many = one.repeat(500);
    while stream.write_all(many.as_bytes()).is_ok() {}
}

fn target(port: u16) -> Target {
    Target {
        username: Some("u".into()),
        password: Some(Secret::new("p")),
        ..Target::single(format!("xmpp://127.0.0.1:{port}/localhost"))
    }
}

#[derive(Default)]
struct Count {
    delivered: u64,
    acknowledged: u64,
    bytes: u64,
    clients: Clients,
}

impl Events for Count {
    fn arrived(&mut self) {}

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        self.delivered += 1;
        self.bytes += delivery.payload.len() as u64;
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {
        self.acknowledged += 1;
    }

    fn changed(&mut self, _: ClientId, change: Change) {
        self.clients.note(change);
    }
}

struct Bench {
    fleet: Box<dyn Fleet>,
    count: Count,
}

impl Bench {
    fn open(target: Target, pattern: MessagingPattern) -> Bench {
        let settings = Settings {
            pattern: Some(pattern),
            in_flight: (pattern == MessagingPattern::PublishSubscribe).then_some(WINDOW as u32),
            ..Settings::default()
        };
        let fleet = XmppDriver.open(FleetConfig {
            max_payload: 4096,
            clients: 2,
            ..config(target, settings)
        });
        Bench {
            fleet: fleet.unwrap(),
            count: Count::default(),
        }
    }

    fn poll(&mut self, ns: Nanos) {
        poll(&mut *self.fleet, &mut self.count, ns);
    }

    fn until(&mut self, holds: impl Fn(&Clients) -> bool) {
        poll_until(&mut *self.fleet, &mut self.count, |c| holds(&c.clients));
    }

    fn connect(&mut self, name: &str, subscribe: Option<&str>) -> ClientId {
        let spec = ClientSpec {
            name: name.into(),
            subscribes: subscribe.is_some(),
            ..ClientSpec::default()
        };
        let connected = self.count.clients.connected;
        let client = self.fleet.connect(&spec).unwrap();
        self.until(|clients| clients.connected > connected);
        if let Some(filter) = subscribe {
            let subscription = Subscription::matching(filter);
            self.fleet.subscribe(client, &subscription).unwrap();
            self.until(|clients| clients.subscribed == 1);
        }
        client
    }

    /// Publishes flat out for a round; gives how many were accepted.
    fn publish(&mut self, client: ClientId, topic: TopicId, round: Duration) -> u64 {
        let payload = Payload {
            head: &[7; 16],
            body: &[9; PAYLOAD - 16],
        };
        let mut sent = 0;
        let start = Instant::now();
        while start.elapsed() < round {
            for _ in 0..200 {
                match self.fleet.publish(client, topic, payload, 0) {
                    Publish::Accepted => sent += 1,
                    Publish::Blocked => self.poll(1_000_000),
                    Publish::Refused(why) => panic!("{why:?}"),
                }
            }
            self.poll(0);
        }
        sent
    }
}

/// A logged-in connection of the plain program.
fn plain(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let open = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>";
    for (say, until) in [
        (open, "</stream:features>"),
        (
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHUAcA==</auth>",
            "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
        ),
        (open, "</stream:features>"),
        (
            "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq>",
            "</iq>",
        ),
    ] {
        stream.write_all(say.as_bytes()).unwrap();
        expect(&mut stream, until);
    }
    stream
}

/// Asks for the node or the subscription, which the servers here answer alike.
fn plain_first(stream: &mut TcpStream) {
    stream.write_all(b"<iq type='set' id='n'><pubsub xmlns='http://jabber.org/protocol/pubsub'><create node='t'/></pubsub></iq>").unwrap();
    expect(stream, "<iq type='result' id='n'/>");
}

/// Counts the answers that come with one read.
fn plain_answers(stream: &mut TcpStream, buf: &mut [u8], kept: &mut usize) -> u64 {
    let n = *kept + stream.read(&mut buf[*kept..]).unwrap();
    let mut from = 0;
    let mut answers = 0;
    while let Some(end) = memmem::find(&buf[from..n], b"</iq>") {
        answers += 1;
        from += end + 5;
    }
    buf.copy_within(from..n, 0);
    *kept = n - from;
    answers
}

/// Publishes flat out, by templates, for one round.
fn plain_publish(port: u16, pattern: MessagingPattern) -> f64 {
    let mut stream = plain(port);
    let direct = pattern == MessagingPattern::PointToPoint;
    if !direct {
        plain_first(&mut stream);
    }
    let payload = [7; PAYLOAD];
    let (mut sent, mut answered) = (0, 0);
    let mut out = String::new();
    let mut buf = vec![0; 1 << 18];
    let mut kept = 0;
    let start = Instant::now();
    let cpu = cpu::of_thread();
    while start.elapsed() < ROUND {
        out.clear();
        while out.len() < 16 << 10 && (direct || sent - answered < WINDOW) {
            use std::fmt::Write;
            if direct {
                out.push_str("<message to='u@localhost/t' type='headline'>");
            } else {
                write!(out, "<iq type='set' to='pubsub.localhost' id='p{sent:x}'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='t'><item>").unwrap();
            }
            out.push_str("<p xmlns='urn:pubgauge:payload:0'>");
            STANDARD.encode_string(payload, &mut out);
            out.push_str(if direct {
                "</p></message>"
            } else {
                "</p></item></publish></pubsub></iq>"
            });
            sent += 1;
        }
        stream.write_all(out.as_bytes()).unwrap();
        if !direct && sent - answered >= WINDOW {
            answered += plain_answers(&mut stream, &mut buf, &mut kept);
        }
    }
    cpu::per_second(if direct { sent } else { answered }, cpu)
}

fn publishing(pattern: MessagingPattern) {
    let direct = pattern == MessagingPattern::PointToPoint;
    let port = server(if direct { swallow } else { answer });
    let rounds = Rounds::run(ROUNDS, |_| {
        let plain = plain_publish(port, pattern);
        let mut bench = Bench::open(target(port), pattern);
        let client = bench.connect("r", None);
        let topic = bench.fleet.advertise(client, "t").unwrap();
        bench.publish(client, topic, Duration::from_millis(50));
        let (before, cpu) = (bench.count.acknowledged, cpu::of_thread());
        let sent = bench.publish(client, topic, ROUND);
        let answered = bench.count.acknowledged - before;
        let ours = cpu::per_second(if direct { sent } else { answered }, cpu);
        bench.fleet.abort(client);
        [plain, ours]
    });
    let what = if direct {
        "direct messages, sent"
    } else {
        "publish requests, answered"
    };
    report(what, &rounds);
}

fn receiving() {
    let port = server(blast);
    let rounds = Rounds::run(ROUNDS, |_| {
        let mut stream = plain(port);
        plain_first(&mut stream);
        let mut buf = vec![0; 1 << 18];
        let (mut items, mut kept) = (0, 0);
        let (start, cpu) = (Instant::now(), cpu::of_thread());
        while start.elapsed() < ROUND {
            let n = kept + stream.read(&mut buf[kept..]).unwrap();
            let mut from = 0;
            while let Some(end) = memmem::find(&buf[from..n], b"</item>") {
                items += 1;
                from += end + 7;
            }
            buf.copy_within(from..n, 0);
            kept = n - from;
        }
        let plain = cpu::per_second(items, cpu);
        drop(stream);
        let mut bench = Bench::open(target(port), MessagingPattern::PublishSubscribe);
        let client = bench.connect("r", Some("t"));
        let (before, cpu) = (bench.count.delivered, cpu::of_thread());
        let start = Instant::now();
        while start.elapsed() < ROUND {
            bench.poll(10_000_000);
        }
        let ours = cpu::per_second(bench.count.delivered - before, cpu);
        assert_eq!(bench.count.bytes, bench.count.delivered * PAYLOAD as u64);
        bench.fleet.abort(client);
        [plain, ours]
    });
    let what = "notifications, payload decoded by the driver and not by the plain one";
    report(what, &rounds);
}

fn through_ejabberd() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../systems/ejabberd.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let system = SystemFile::parse(&text, "ejabberd.toml").unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let testbed = Testbed::new().unwrap();
    let running = testbed
        .start(&system, Some("xmpp"), scratch.path())
        .unwrap();
    let pid = running.pid().unwrap();
    for pattern in [
        MessagingPattern::PublishSubscribe,
        MessagingPattern::PointToPoint,
    ] {
        let mut bench = Bench::open(running.target.clone(), pattern);
        bench.connect("s", Some("t"));
        let publisher = bench.connect("p", None);
        let topic = bench.fleet.advertise(publisher, "t").unwrap();
        bench.publish(publisher, topic, Duration::from_millis(500));
        let before = bench.count.delivered;
        let (broker, cpu) = (cpu::of_process(pid), cpu::of_thread());
        let start = Instant::now();
        bench.publish(publisher, topic, ROUND * 4);
        let count = bench.count.delivered - before;
        println!(
            "through ejabberd, {pattern:?}, one to one: {:.0} messages/s, {:.0} per broker CPU-second, {:.0} k per client CPU-second (published and received)",
            count as f64 / start.elapsed().as_secs_f64(),
            count as f64 / (cpu::of_process(pid) - broker),
            cpu::per_second(count, cpu) / 1e3,
        );
        bench.fleet.close(Clock::Monotonic.now() + 5_000_000_000);
    }
}
