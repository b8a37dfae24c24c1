//! The connection's state machine, without sockets, also against hostile bytes.

use proptest::prelude::*;
use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::travel::header_text;
use pubgauge_driver::*;
use pubgauge_net::endpoint::Endpoint;
use pubgauge_net::fleet::{FleetClient, Protocol, Shared, State};

use crate::fleet::ADDRESSING;
use crate::options::NatsOptions;
use crate::protocol::{Nats, NatsClient, NatsLink, header_in};

#[derive(Default)]
struct Seen(Vec<String>);

impl Events for Seen {
    fn arrived(&mut self) {}
    fn delivered(&mut self, _: ClientId, d: Delivery<'_>) {
        let payload = String::from_utf8_lossy(d.payload);
        self.0
            .push(format!("{}: {payload}", d.topic.unwrap_or("?")));
    }
    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
    fn changed(&mut self, _: ClientId, change: Change) {
        self.0.push(match change {
            Change::Connected { .. } => "connected".to_owned(),
            Change::Subscribed => "subscribed".to_owned(),
            Change::SubscriptionRefused(why) => why,
            other => panic!("{other:?}"),
        });
    }
}

const INFO: &str = "INFO {\"max_payload\":1000,\"headers\":true}\r\n";

/// Runs `test` with a client that waits for INFO.
fn greeting<T>(test: impl FnOnce(&mut Nats, &mut NatsLink<'_>) -> T) -> T {
    let (options, _) = NatsOptions::resolve(&Settings::default()).unwrap();
    let endpoint = Endpoint::parse("nats://127.0.0.1:1", &ADDRESSING).unwrap();
    let mut shared = Shared::new(vec![endpoint], options.tuning);
    let mut nats = Nats::new(options, 1000);
    let spec = ClientSpec {
        name: "c".into(),
        ..ClientSpec::default()
    };
    let mut client = FleetClient::new(&spec, 0, nats.client(&spec).unwrap());
    let mut link = NatsLink::unwired(ClientId(0), &mut client, &mut shared);
    link.client.state = State::Greeting;
    test(&mut nats, &mut link)
}

#[test]
fn a_session_goes_as_the_protocol_shows_it() {
    greeting(|nats, link| {
        let mut seen = Seen::default();
        let whole = |nats: &mut Nats, link: &mut NatsLink<'_>, text: &str, seen: &mut Seen| {
            let used = nats.receive(link, text.as_bytes(), seen).unwrap();
            assert_eq!(used, text.len());
            let sent = std::mem::take(&mut link.out().bytes);
            String::from_utf8(sent).unwrap()
        };
        let sent = whole(nats, link, INFO, &mut seen);
        assert!(
            sent.starts_with("CONNECT {") && sent.contains("\"verbose\":false"),
            "{sent}"
        );
        assert!(sent.ends_with("}\r\nPING\r\n"), "{sent}");
        assert_eq!(whole(nats, link, "PONG\r\n", &mut seen), "");
        assert_eq!(link.client.state, State::Connected);
        nats.subscribe(link, &Subscription::matching("a/+"))
            .unwrap();
        nats.subscribe(link, &Subscription::matching("b")).unwrap();
        let asked = std::mem::take(&mut link.out().bytes);
        assert_eq!(asked, b"SUB a.*  1\r\nPING\r\nSUB b  2\r\nPING\r\n");
        let answers = "PONG\r\n-ERR 'Permissions Violation for Subscription to \"b\"'\r\nPONG\r\nMSG a.x 1 2\r\nhi\r\nPING\r\n";
        assert_eq!(whole(nats, link, answers, &mut seen), "PONG\r\n");
        assert_eq!(seen.0[..2], ["connected", "subscribed"]);
        assert!(seen.0[2].contains("Permissions Violation"), "{}", seen.0[2]);
        assert_eq!(seen.0[3..], ["a/x: hi"]);
        assert!(link.client.own.pongs.is_none(), "nothing is under way");
        let broken = nats.receive(link, b"PONG\r\n", &mut seen).unwrap_err();
        assert!(broken.failure.why.contains("nobody asked"));
    });
}

#[test]
fn what_a_greeting_may_not_be_is_told_in_words() {
    for (text, what) in [
        ("HTTP/1.1 400 Bad Request\r\n", "is it a NATS server?"),
        ("INFO {}\r\n", "its INFO"),
        ("MSG a 1 1\r\nx\r\n", "before the login"),
        (
            "INFO {\"max_payload\":1,\"tls_required\":true}\r\n",
            "nats+tls://",
        ),
        ("-ERR 'Authorization Violation'\r\n", "PUBGAUGE_PASSWORD"),
        (
            "-ERR 'Maximum Connections Exceeded'\r\n",
            "Maximum Connections",
        ),
        ("PONG\r\n", "nobody asked"),
    ] {
        let broken = greeting(|nats, link| {
            nats.receive(link, text.as_bytes(), &mut Seen::default())
                .expect_err(text)
        });
        let why = broken.failure.why;
        assert!(
            why.starts_with("nats://127.0.0.1:1: ") && why.contains(what),
            "{why}"
        );
    }
}

proptest! {
    /// No panic, and no more bytes used than there are, whatever a server sends.
    #[test]
    fn whatever_a_server_sends_it_is_taken_apart(
        steps in prop::collection::vec(prop_oneof![
            Just(INFO.to_owned()), Just("PONG\r\n".to_owned()), Just("PING\r\n".to_owned()),
            Just("-ERR 'Invalid Subject'\r\n".to_owned()), Just("MSG a 1 2\r\nhi\r\n".to_owned()),
            "[A-Z0-9 .\r\n]{0,20}",
        ], 1..30),
        subscribes: bool,
    ) {
        greeting(|nats, link| {
            struct Nobody;
            impl Events for Nobody {
                fn arrived(&mut self) {}
                fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {}
                fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
                fn changed(&mut self, _: ClientId, _: Change) {}
            }
            let mut bytes = Vec::new();
            for step in steps {
                bytes.extend_from_slice(step.as_bytes());
                if subscribes && link.is_connected() {
                    nats.subscribe(link, &Subscription::matching("a")).unwrap();
                }
                match nats.receive(link, &bytes, &mut Nobody) {
                    Ok(used) => drop(bytes.drain(..used)),
                    Err(_) => break,
                }
            }
        });
    }
}

#[test]
fn an_idle_client_is_small() {
    let size = size_of::<FleetClient<NatsClient>>();
    assert!(size <= 128, "{size}");
}

#[test]
fn headers_are_found_in_their_field() {
    let header: [u8; HEADER_LEN] = std::array::from_fn(|n| n as u8 * 3);
    let text = String::from_utf8(header_text(&header).to_vec()).unwrap();
    for fields in [
        format!("NATS/1.0\r\npubgauge: {text}\r\n\r\n"),
        format!("NATS/1.0\r\npubgauge: other\r\npubgauge: {text}\r\n\r\n"),
    ] {
        assert_eq!(header_in(fields.as_bytes()), Some(header), "{fields}");
    }
    for fields in [
        "",
        "NATS/1.0\r\n\r\n",
        "NATS/1.0\r\npubgauge: 00\r\n\r\n",
        "NATS/1.0\r\npubgauge: ",
    ] {
        assert_eq!(header_in(fields.as_bytes()), None, "{fields}");
    }
}
