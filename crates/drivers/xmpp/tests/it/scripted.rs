//! The driver against servers that misbehave: they refuse, hang, close, talk nonsense.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::Duration;

use common::text;
use pubgauge_driver::{Acknowledgement, OnFull, Publish, Refusal, Secret, Settings, Target, Tls};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testing::{Rig, free_port, scripted};

const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='1' from='localhost' version='1.0'>";
const LOGIN: &str = "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>";
const SUCCESS: &str = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>";
const BIND: &str =
    "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>";

/// The other end of one connection.
struct Peer {
    stream: TcpStream,
    got: String,
}

impl Peer {
    /// Reads until `what` comes; returns all up to its end.
    fn expect(&mut self, what: &str) -> String {
        let mut buf = [0; 4096];
        loop {
            if let Some(at) = self.got.find(what) {
                let rest = self.got.split_off(at + what.len());
                return std::mem::replace(&mut self.got, rest);
            }
            let n = self.stream.read(&mut buf).unwrap();
            assert!(n > 0, "{what} never came; there was {:?}", self.got);
            self.got.push_str(std::str::from_utf8(&buf[..n]).unwrap());
        }
    }

    fn say(&mut self, what: &str) {
        self.stream.write_all(what.as_bytes()).unwrap();
    }

    /// The identifier of a request in `text`.
    fn id(text: &str) -> &str {
        let (_, rest) = text.rsplit_once(" id='").unwrap();
        rest.split_once('\'').unwrap().0
    }

    /// Logs a client in.
    fn log_in(&mut self) {
        self.expect("version='1.0'");
        self.say(&format!("{HEADER}{LOGIN}"));
        self.expect("</auth>");
        self.say(SUCCESS);
        self.expect("version='1.0'");
        self.say(&format!("{HEADER}{BIND}"));
        let request = self.expect("</bind></iq>");
        self.say(&format!(
            "<iq type='result' id='{}'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>u@localhost/r</jid></bind></iq>",
            Self::id(&request)
        ));
    }

    /// Waits until the client goes away.
    fn hold(&mut self) {
        while self.stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {}
    }
}

/// A server that does `what` with its first client.
fn server(what: impl FnOnce(&mut Peer) + Send + 'static) -> (Target, JoinHandle<()>) {
    let (port, thread) = scripted(move |listener| {
        let (stream, _) = listener.accept().unwrap();
        let mut peer = Peer {
            stream,
            got: String::new(),
        };
        what(&mut peer);
    });
    let target = Target {
        username: Some("u".into()),
        password: Some(Secret::new("p")),
        ..Target::single(format!("xmpp://127.0.0.1:{port}/localhost"))
    };
    (target, thread)
}

/// Connects to a server that says these things, each after the client has said something, and
/// gives the reason of the failure.
fn failure(scheme: &str, says: &[&str]) -> String {
    let says: Vec<String> = says.iter().map(ToString::to_string).collect();
    let (mut target, thread) = server(move |peer| {
        for line in says {
            let _ = peer.stream.read(&mut [0; 4096]);
            let _ = peer.stream.write_all(line.as_bytes());
        }
        peer.hold();
    });
    target.endpoints[0] = target.endpoints[0].replace("xmpp://", scheme);
    if scheme != "xmpp://" {
        target.tls = Some(Tls {
            ca_file: Some(authority()),
            ..Tls::default()
        });
    }
    let why = Rig::failure(&XmppDriver, target, Settings::default());
    thread.join().unwrap();
    why
}

/// A certificate that signs nothing, so that TLS can be set up.
fn authority() -> std::path::PathBuf {
    static FILE: std::sync::OnceLock<tempfile::NamedTempFile> = std::sync::OnceLock::new();
    let file = FILE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(made.cert.pem().as_bytes()).unwrap();
        file
    });
    file.path().to_owned()
}

fn stream_error(inside: &str) -> String {
    format!("{HEADER}<stream:error>{inside}</stream:error></stream:stream>")
}

#[test]
fn refusals_are_told_in_words_with_advice() {
    let first = format!("{HEADER}{LOGIN}");
    let streams = "xmlns='urn:ietf:params:xml:ns:xmpp-streams'";
    let host_unknown = stream_error(&format!("<host-unknown {streams}/>"));
    let other_host = stream_error(&format!(
        "<see-other-host {streams}>b.example:9</see-other-host>"
    ));
    let conflict = stream_error(&format!(
        "<conflict {streams}/><text {streams}>Replaced</text>"
    ));
    let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'";
    let not_authorized = format!("<failure {sasl}><not-authorized/><text>no</text></failure>");
    let challenge = format!("<challenge {sasl}>!</challenge>");
    let nothing = format!("{HEADER}<stream:features/>");
    let bind_error = "<iq type='error' id='c0'><error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>";
    let bound = format!("{HEADER}{BIND}");
    let over = format!("{HEADER}</stream:stream>");
    let cases: [(&[&str], &str, &str); 14] = [
        (&[&host_unknown], "host-unknown", "/DOMAIN"),
        (
            &[&other_host],
            "see-other-host: b.example:9",
            "connect to that host",
        ),
        (&[&conflict], "conflict (Replaced)", "names of clients"),
        (
            &[&first, &not_authorized],
            "SASL PLAIN failed: not-authorized (no)",
            "password",
        ),
        (&[&first, &challenge], "not base64", ""),
        (&[&nothing], "it offers nothing", "native.xmpp.mechanism"),
        (
            &["HTTP/1.1 400 Bad Request\r\n\r\n"],
            "not XMPP",
            "port for XMPP clients",
        ),
        (
            &["<html><body>"],
            "not an XMPP stream",
            "port for XMPP clients",
        ),
        (
            &["<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]>"],
            "XMPP forbids",
            "port",
        ),
        (
            &[
                &first,
                "<success xmlns='urn:other'/><message/><proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            ],
            "something else than was due",
            "",
        ),
        (&[&first, SUCCESS, &nothing], "no resource binding", ""),
        (
            &[&first, SUCCESS, &bound, bind_error],
            "conflict",
            "must differ",
        ),
        (
            &[&first, SUCCESS, &bound, "<iq type='result' id='c0'/>"],
            "no full address",
            "",
        ),
        (&[&first, SUCCESS, &over], "ended the stream", "log"),
    ];
    for (says, words, hint) in cases {
        let why = failure("xmpp://", says);
        assert!(why.contains(words) && why.contains(hint), "{says:?}: {why}");
        assert!(why.contains("xmpp://127.0.0.1:"), "{why}");
    }
    let mismatched = format!("{HEADER}<a></b>");
    let why = failure("xmpp://", &[&mismatched]);
    assert!(why.contains("not XMPP"), "{why}");
}

#[test]
fn starttls_is_never_done_without() {
    let first = format!("{HEADER}{LOGIN}");
    let offers = first.replace(
        "<mechanisms",
        "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/><mechanisms",
    );
    let why = failure("xmpp+starttls://", &[&first]);
    assert!(why.contains("does not offer STARTTLS"), "{why}");
    let tls = "xmlns='urn:ietf:params:xml:ns:xmpp-tls'";
    let why = failure("xmpp+starttls://", &[&offers, &format!("<failure {tls}/>")]);
    assert!(why.contains("refuses STARTTLS"), "{why}");
    // Bytes injected behind <proceed/> are not taken for what the server says encrypted.
    let why = failure(
        "xmpp+starttls://",
        &[&offers, &format!("<proceed {tls}/>{HEADER}{LOGIN}")],
    );
    assert!(why.contains("data between STARTTLS and TLS"), "{why}");
    let why = failure(
        "xmpp+starttls://",
        &[&offers, &format!("<proceed {tls}/>"), "not TLS"],
    );
    assert!(why.contains("TLS failed"), "{why}");
}

#[test]
fn items_are_counted_and_not_stanzas() {
    let (target, thread) = server(|peer| {
        peer.log_in();
        let request = peer.expect("</pubsub></iq>");
        peer.say(&format!("<iq type='result' id='{}'/>", Peer::id(&request)));
        let item = |n: u8| {
            let mut bytes = vec![7; 16];
            bytes.push(n);
            use base64::Engine;
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            format!("<item id='{n}'><p xmlns='urn:pubgauge:payload:0'>{text}</p></item>")
        };
        let event = |items: &str| {
            format!(
                "<message from='pubsub.localhost'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='t'>{items}</items></event></message>"
            )
        };
        let all = [
            event(&format!("{}{}", item(b'1'), item(b'2'))),
            event("<retract id='1'/><retract id='2'/>"),
            "<message><body>hello</body></message> <presence/>".into(),
            event(&format!(
                "<retract id='0'/>{}",
                item(b'3').replace("</p>", "\n  </p>")
            )),
        ]
        .concat();
        // In pieces of every size.
        let mut rest = all.as_bytes();
        for n in (1..).take_while(|n| *n < 60) {
            let (now, later) = rest.split_at(n.min(rest.len()));
            peer.stream.write_all(now).unwrap();
            std::thread::sleep(Duration::from_micros(300));
            rest = later;
        }
        assert!(rest.is_empty());
        peer.hold();
    });
    let mut rig = Rig::open(&XmppDriver, target, Settings::default());
    let client = rig.named_subscriber("c");
    rig.subscribe(client, "t");
    rig.until("three items", |seen| seen.delivered == 3);
    rig.poll_for(Duration::from_millis(100));
    let got: Vec<_> = rig.seen.messages.iter().map(text).collect();
    assert_eq!(got, [b"1", b"2", b"3"]);
    rig.fleet.abort(client);
    thread.join().unwrap();
}

#[test]
fn answers_come_in_any_order_and_errors_are_rejections() {
    let (target, thread) = server(|peer| {
        peer.log_in();
        let request = peer.expect("</pubsub></iq>");
        peer.say(&format!("<iq type='result' id='{}'/>", Peer::id(&request)));
        let ids: Vec<String> = (0..3)
            .map(|_| {
                Peer::id(&peer.expect("<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish"))
                    .to_owned()
            })
            .collect();
        peer.say(&format!("<iq type='result' id='{}'/>", ids[2]));
        peer.say(&format!("<iq type='error' id='{}'><error type='auth'><forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>", ids[0]));
        // Answers to what was not asked.
        peer.say("<iq type='result' id='p77'/><iq type='result' id='zz'/><iq type='result'/>");
        peer.say(&format!(
            "<iq type='result' id='{}'/><iq type='result' id='{}'/>",
            ids[1], ids[1]
        ));
        // A question of the server's is answered.
        peer.say("<iq type='get' id='q1' from='localhost'><ping xmlns='urn:xmpp:ping'/></iq><iq type='get' id='q2'><x xmlns='y'/></iq>");
        let replies = peer.expect("</iq>");
        let _ = replies;
        peer.expect("<iq type='result' id='q1' to='localhost'/>");
        peer.expect("id='q2'><error");
        peer.hold();
    });
    let mut rig = Rig::open(&XmppDriver, target, Settings::default());
    let client = rig.named_publisher("c");
    let topic = rig.fleet.advertise(client, "t").unwrap();
    for tag in 0..3 {
        rig.publish(client, topic, tag, 64);
    }
    rig.until("three answers", |seen| seen.acknowledged.len() == 3);
    let answers: Vec<_> = rig
        .seen
        .acknowledged
        .iter()
        .map(|(_, tag, a)| (*tag, *a))
        .collect();
    assert_eq!(
        answers,
        [
            (2, Acknowledgement::Taken),
            (0, Acknowledgement::Rejected(403)),
            (1, Acknowledgement::Taken)
        ]
    );
    assert_eq!(rig.fleet.unsettled(), 0);
    rig.poll_for(Duration::from_millis(100));
    rig.fleet.abort(client);
    thread.join().unwrap();
}

#[test]
fn a_stanza_without_end_is_bounded() {
    let (target, thread) = server(|peer| {
        peer.log_in();
        peer.say("<message><body>");
        let flood = vec![b'a'; 1 << 20];
        let mut sent = 0;
        while sent < 64 {
            if peer.stream.write_all(&flood).is_err() {
                break;
            }
            sent += 1;
        }
        assert!(sent < 64, "the client took 64 MiB");
    });
    let why = Rig::failure(&XmppDriver, target, Settings::default());
    assert!(why.contains("stanza of more than"), "{why}");
    thread.join().unwrap();
}

#[test]
fn a_silent_server_is_given_up() {
    let (target, thread) = server(|peer| {
        peer.log_in();
        peer.expect("<ping xmlns='urn:xmpp:ping'/>");
        peer.hold();
    });
    let settings = Settings {
        keep_alive_s: Some(1),
        ..Settings::default()
    };
    let why = Rig::failure(&XmppDriver, target, settings);
    assert!(why.contains("no sign of life"), "{why}");
    thread.join().unwrap();
}

#[test]
fn a_server_that_is_gone_is_told_with_advice() {
    let (target, thread) = server(Peer::log_in);
    let mut rig = Rig::open(&XmppDriver, target, Settings::default());
    let client = rig.named_publisher("c");
    rig.until("failed", |seen| !seen.failed.is_empty());
    let why = &rig.seen.failed[0].1;
    assert!(why.contains("hint"), "{why}");
    let topic = rig.fleet.advertise(client, "t").unwrap();
    let refused = Publish::Refused(Refusal::NotConnected);
    assert_eq!(rig.try_publish(client, topic, 0, 64), refused);
    thread.join().unwrap();
}

#[test]
fn a_full_queue_drops_where_that_is_wanted() {
    let (target, thread) = server(|peer| {
        peer.log_in();
        let request = peer.expect("</pubsub></iq>");
        peer.say(&format!("<iq type='result' id='{}'/>", Peer::id(&request)));
        // It never answers again.
        peer.hold();
    });
    let settings = Settings {
        on_full: Some(OnFull::Drop),
        in_flight: Some(2),
        ..Settings::default()
    };
    let mut rig = Rig::open(&XmppDriver, target, settings);
    let client = rig.named_publisher("c");
    let topic = rig.fleet.advertise(client, "t").unwrap();
    for tag in 0..2 {
        rig.publish(client, topic, tag, 64);
    }
    let dropped = Publish::Refused(Refusal::Dropped);
    assert_eq!(rig.try_publish(client, topic, 2, 64), dropped);
    assert_eq!(rig.fleet.unsettled(), 2);
    rig.fleet.abort(client);
    assert_eq!(rig.fleet.unsettled(), 0);
    thread.join().unwrap();
}

#[test]
fn nobody_there_is_told_with_advice() {
    let target = Target::single(format!("xmpp://127.0.0.1:{}", free_port()));
    let why = Rig::failure(&XmppDriver, target, Settings::default());
    assert!(why.contains("refused") && why.contains("hint"), "{why}");
}
