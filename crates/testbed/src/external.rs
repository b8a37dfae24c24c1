//! Systems that already run somewhere: an address instead of a file.

pub use pubgauge_driver::PASSWORD_VARIABLE;
use pubgauge_driver::{Drivers, Scheme, addresses, percent_decode, split_zone};

use crate::file::{Login, Origin, SystemFile, SystemKind};
use crate::spelling::spelling_hint;

/// How each client gets a user of its own, for hints.
const OWN_USERS: &str =
    "a user for each client: --set 'workload.flow.identities.publishers.user=dev-{n}'";

/// Schemes that other programs have, and what they are: the nearest scheme of a driver would be another protocol.
const FOREIGN: [(&[&str], &str); 9] = [
    (
        &["mqtt+ws", "ws+mqtt", "mqtt-ws"],
        "MQTT over WebSocket is written ws://",
    ),
    (
        &["mqtts+ws", "mqtt+wss", "mqtts+wss", "wss+mqtt", "mqtt-wss"],
        "MQTT over WebSocket with TLS is written wss://",
    ),
    (
        &["mqtt-sn", "mqttsn", "mqtt-sn+udp"],
        "that is MQTT-SN, over UDP; mqtt:// is MQTT over TCP",
    ),
    (
        &["quic", "mqtt+quic", "mqtt-quic"],
        "that is MQTT over QUIC; mqtt:// is MQTT over TCP, mqtts:// over TLS",
    ),
    (
        &[
            "amqp10", "amqp1", "amqp1.0", "amqp-1.0", "amqp+1.0", "amqps10",
        ],
        "that is AMQP 1.0; amqp:// is AMQP 0-9-1, another protocol",
    ),
    (
        &["http", "https"],
        "that is a page or a management interface, not what clients publish to",
    ),
    (&["coap", "coaps", "coap+tcp"], "that is CoAP"),
    (&["stomp", "stomp+ssl"], "that is STOMP"),
    (
        &["kafka", "pulsar", "pulsar+ssl", "redis", "rediss", "zenoh"],
        "that is another system's protocol",
    ),
];

/// An address that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is no address of a system: {what}\n  hint: {hint}")]
pub struct AddressError {
    /// The address, without a password.
    pub address: String,
    /// The error in it.
    pub what: String,
    pub hint: String,
}

/// The description of the system at `address`, which one of `drivers` speaks to: `mqtt://host:port`,
/// `mqtts://user@host`, `mqtt://[::1]`. A port that is left out is the scheme's usual one. With a comma,
/// publishers connect to the first place and subscribers to the second:
/// `mqtt://host:1883,host:1884`, `mqtt://host:1883,1884`. Where the scheme has a path, it holds for
/// both: `xmpp://host:5222,5223/domain`. Several brokers side by side are joined by `+`:
/// `mqtt://a:1883+mqtt://b:1883`; each has an endpoint. What follows a scheme without a usual port is
/// left to the driver.
///
/// # Errors
/// For anything else, above all for a password in the address: command lines and results are
/// read by others.
pub fn from_address(address: &str, drivers: &Drivers) -> Result<SystemFile, AddressError> {
    let mut brokers = Vec::new();
    for one in addresses(address) {
        brokers.push(broker(one, drivers)?);
    }
    let mut system = brokers.remove(0);
    for other in brokers {
        if (&other.driver, &other.login) != (&system.driver, &system.login) {
            return Err(AddressError {
                address: other.name,
                what: format!(
                    "it differs from {} in protocol or user",
                    system.endpoints[0]
                ),
                hint: "brokers side by side are alike; systems to compare are parted by commas"
                    .into(),
            });
        }
        system.name = format!("{}+{}", system.name, other.name);
        system.endpoints.extend(other.endpoints);
    }
    Ok(system)
}

fn broker(address: &str, drivers: &Drivers) -> Result<SystemFile, AddressError> {
    let shown = without_password(address);
    let error = |what: &str, hint: String| AddressError {
        address: shown.clone(),
        what: what.to_owned(),
        hint,
    };
    let Some((name, rest)) = address.split_once("://") else {
        return Err(error("it has no scheme", with_scheme(&shown, drivers)));
    };
    let Some((driver, scheme)) = drivers.by_scheme(name) else {
        let (what, hint) = unknown_scheme(name, &shown, drivers);
        return Err(error(&what, hint));
    };
    let driver = driver.name();
    let Some(usual_port) = scheme.usual_port else {
        return Ok(external(address.to_owned(), driver, None));
    };
    let example = || format!("write {scheme}");
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, rest),
    };
    if user.is_some_and(|user| user.contains(',') && user.contains('@')) {
        return Err(error(
            "it names two users",
            format!("one user name before all places; {OWN_USERS}"),
        ));
    }
    if user.is_some_and(|user| user.contains(':')) {
        return Err(error(
            "it holds a password, which would show in the process list and in the results",
            format!("leave the password out and set the environment variable {PASSWORD_VARIABLE}"),
        ));
    }
    if user.is_some_and(str::is_empty) {
        return Err(error("the user name before `@` is empty", example()));
    }
    let user = match user.map(percent_decode) {
        Some(None) => {
            return Err(error(
                "its user name is not percent-encoded UTF-8",
                format!("a `%` of the name itself is written `%25`, an `@` is `%40`; {OWN_USERS}"),
            ));
        }
        user => user.flatten(),
    };
    // Over WebSocket that is the path to ask for.
    let is_nothing = scheme.websocket.is_none();
    let place = place
        .strip_suffix('/')
        .filter(|_| is_nothing)
        .unwrap_or(place);
    let (place, path) = match place.find('/') {
        Some(at) if scheme.path.is_some() => place.split_at(at),
        _ => (place, ""),
    };
    let odd = |c: char| "?#@".contains(c) || c.is_whitespace();
    let odd_path = path.chars().find(|c| odd(*c) || *c == ',');
    if let Some(odd) = place.chars().find(|c| odd(*c) || *c == '/').or(odd_path) {
        return Err(error(&format!("`{odd}` has no meaning here"), example()));
    }
    let whole =
        |place: &str| with_port(place, usual_port).map_err(|(what, hint)| error(&what, hint));
    let place = match place.split_once(',') {
        None => whole(place)?,
        // Publishers connect to the first place, subscribers to the second.
        Some((publishers, subscribers)) => {
            let publishers = whole(publishers)?;
            let (host, _) = publishers.rsplit_once(':').unwrap_or_default();
            let subscribers = if is_number(subscribers) {
                whole(&format!("{host}:{subscribers}"))?
            } else {
                whole(subscribers)?
            };
            format!("{publishers},{subscribers}")
        }
    };
    Ok(external(format!("{name}://{place}{path}"), driver, user))
}

/// Rejoins addresses that a list with commas between systems has split: an address with two places,
/// of which the second is a port or ends in one (`mqtt://h:1`, `2`).
pub fn join_addresses(pieces: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for piece in pieces {
        // The second place of a broker, after which another broker may follow.
        let piece_of = addresses(&format!("x://{piece}"))[0].len() - "x://".len();
        let whole = piece;
        let piece = &piece[..piece_of];
        let place = piece.split_once('/').map_or(piece, |(place, _)| place);
        let port = place.rsplit_once(':').map_or(place, |(_, port)| port);
        let is_place = is_number(port) && !piece.contains("://");
        match joined.last_mut() {
            Some(last) if is_place && takes_a_place(last) => {
                last.push(',');
                last.push_str(whole);
            }
            _ => joined.push(whole.clone()),
        }
    }
    joined
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether the last broker of an address has no second place yet.
fn takes_a_place(address: &str) -> bool {
    let last = addresses(address).pop().unwrap_or_default();
    last.contains("://") && !last.contains(',')
}

/// `HOST[:PORT]` with its port. The error is what is wrong, and what to do.
fn with_port(place: &str, usual_port: u16) -> Result<String, (String, String)> {
    let (host, port) = match place.rsplit_once(':') {
        _ if place.ends_with(']') => (place, None),
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    };
    let literal = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address = literal.map(split_zone);
    if let Some(Some((address, None))) = address
        && address.is_unicast_link_local()
    {
        return Err((
            format!("`{host}` is an address of one link"),
            format!("name the interface: [{address}%eth0]"),
        ));
    }
    let host_ok = match address {
        Some(address) => address.is_some(),
        None => !host.is_empty() && !host.contains([':', '[', ']', ',']),
    };
    if !host_ok {
        return Err((
            format!("`{host}` is no host"),
            "a name, an IPv4 address, or an IPv6 address in brackets: [::1]".into(),
        ));
    }
    let port = match port {
        None => usual_port,
        Some(text) => match text.parse::<u16>() {
            Ok(port) if port != 0 => port,
            _ => {
                return Err((
                    format!("`{text}` is no port"),
                    "a port is a number from 1 to 65535".into(),
                ));
            }
        },
    };
    Ok(format!("{host}:{port}"))
}

/// The hint for an address without a scheme: itself with the scheme whose usual port it has, else with all of them.
pub fn with_scheme(place: &str, drivers: &Drivers) -> String {
    let with_ports = |(_, scheme): &(_, &Scheme)| scheme.usual_port.is_some();
    let of_port = meant(place, None, drivers);
    let all: Vec<String> = match of_port {
        Some(name) => vec![format!("{name}://{place}")],
        None => {
            let schemes = drivers.schemes().filter(with_ports);
            let plain = schemes.filter(|(_, scheme)| !scheme.encryption.is_on());
            plain
                .map(|(_, s)| format!("{}://{place}", s.name))
                .collect()
        }
    };
    format!("write {}", all.join(" or "))
}

/// The scheme that is meant at a place: the one whose usual port it has, else one that `word` is another name of.
fn meant(place: &str, word: Option<&str>, drivers: &Drivers) -> Option<&'static str> {
    let of_word = || {
        let mut schemes = drivers.schemes();
        let is_meant = |word: &str| schemes.find(|(_, scheme)| scheme.also.contains(&word));
        word.and_then(is_meant)
    };
    let port = place.split(['/', ',']).next().unwrap_or_default();
    let port = port
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    let mut schemes = drivers.schemes();
    let is_on = of_word().map(|(_, scheme)| scheme.encryption.is_on());
    let of_port = schemes.find(|(_, scheme)| {
        port.is_some()
            && scheme.usual_port == port
            && is_on.is_none_or(|is_on| scheme.encryption.is_on() == is_on)
    });
    of_port.or_else(of_word).map(|(_, scheme)| scheme.name)
}

/// The error in a scheme that no driver has, and the word to write; `shown` is the address.
fn unknown_scheme(name: &str, shown: &str, drivers: &Drivers) -> (String, String) {
    let place = shown.split_once("://").map_or("", |(_, place)| place);
    let is_foreign = |(names, _): &&(&[&str], &str)| names.contains(&name);
    if let Some((_, words)) = FOREIGN.iter().find(is_foreign) {
        return (format!("no driver speaks `{name}://`"), (*words).to_owned());
    }
    let is_other_name = drivers.schemes().any(|(_, s)| s.also.contains(&name));
    match meant(place, Some(name), drivers).filter(|_| is_other_name) {
        Some(scheme) => (
            format!("`{name}://` does not tell the protocol"),
            format!("write {scheme}://{place}"),
        ),
        None => {
            let names = drivers.schemes().map(|(_, scheme)| scheme.name);
            let what = format!("no driver speaks `{name}://`");
            (what, spelling_hint(name, names))
        }
    }
}

fn external(address: String, driver: &str, user: Option<String>) -> SystemFile {
    SystemFile {
        name: address.clone(),
        driver: driver.to_owned(),
        description: "already running; neither started nor stopped by pubgauge".to_owned(),
        kind: SystemKind::External,
        endpoints: vec![address],
        login: user.map(|username| Login {
            username,
            password: None,
        }),
        origin: Origin::Address,
        ..SystemFile::default()
    }
}

fn without_password(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    match rest.rsplit_once('@') {
        Some((user, place)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}{user}@{place}")
        }
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pubgauge_driver::{
        Driver, DriverError, Encryption, Fleet, FleetConfig, Mapping, Scheme, Settings, Target,
        Traits, Unsupported,
    };
    use pubgauge_driver_amqp::AmqpDriver;
    use pubgauge_driver_mqtt::MqttDriver;
    use pubgauge_driver_nats::NatsDriver;
    use pubgauge_driver_xmpp::XmppDriver;
    use pubgauge_driver_zeromq::ZeromqDriver;
    use pubgauge_simulator::SimulatedDriver;

    use super::*;

    fn from_address(address: &str) -> Result<SystemFile, AddressError> {
        let drivers = Drivers::new(vec![
            Arc::new(AmqpDriver),
            Arc::new(MqttDriver),
            Arc::new(NatsDriver),
            Arc::new(XmppDriver),
            Arc::new(ZeromqDriver),
        ]);
        super::from_address(address, &drivers.unwrap())
    }

    /// The simulated system under another name, at addresses.
    struct Coap;

    impl Driver for Coap {
        fn name(&self) -> &'static str {
            "coap"
        }

        fn schemes(&self) -> &'static [Scheme] {
            &[Scheme {
                name: "coaps+tcp",
                also: &["dtls"],
                encryption: Encryption::Tls,
                usual_port: Some(5684),
                path: Some("RESOURCE"),
                websocket: None,
            }]
        }

        fn resolve(&self, s: &Settings, t: &Target) -> Result<Vec<Mapping>, Vec<Unsupported>> {
            SimulatedDriver.resolve(s, t)
        }

        fn traits(&self, settings: &Settings) -> Traits {
            SimulatedDriver.traits(settings)
        }

        fn open(&self, config: FleetConfig) -> Result<Box<dyn Fleet>, DriverError> {
            SimulatedDriver.open(config)
        }
    }

    #[test]
    fn addresses_are_of_the_drivers_that_there_are() {
        let of = |address: &str, drivers: &Drivers| {
            let system = super::from_address(address, drivers);
            system.map(|system| (system.driver, system.endpoints.concat()))
        };
        let found = of("coaps+tcp://u@h,b/r", &Coap.into()).unwrap();
        assert_eq!(found.0, "coap");
        assert_eq!(found.1, "coaps+tcp://h:5684,b:5684/r");
        let refused = |address, drivers: &Drivers| of(address, drivers).unwrap_err().to_string();
        let error = refused("mqtt://h", &Coap.into());
        assert!(error.contains("no driver speaks `mqtt://`"), "{error}");
        // Too common a name to stand for one protocol.
        let error = refused("dtls://h", &Coap.into());
        assert!(error.ends_with("write coaps+tcp://h"), "{error}");
        let error = refused("coaps+tcp://h?", &Coap.into());
        let hint = "write coaps+tcp://[USER@]HOST[:PORT][/RESOURCE] (TLS, port 5684)";
        assert!(error.ends_with(hint), "{error}");
        let error = refused("h:5684", &Coap.into());
        assert!(error.ends_with("write coaps+tcp://h:5684"), "{error}");
    }

    #[test]
    fn addresses_become_systems() {
        let cases = [
            (
                "mqtt://localhost:1884",
                "mqtt",
                "mqtt://localhost:1884",
                None,
            ),
            (
                "mqtts://ann@broker.example",
                "mqtt",
                "mqtts://broker.example:8883",
                Some("ann"),
            ),
            ("mqtt://[::1]", "mqtt", "mqtt://[::1]:1883", None),
            ("mqtt://[::1]:99/", "mqtt", "mqtt://[::1]:99", None),
            ("ws://u@h:9001", "mqtt", "ws://h:9001", Some("u")),
            ("wss://h/", "mqtt", "wss://h:443/", None),
            ("ws://h:1,2/a/b", "mqtt", "ws://h:1,h:2/a/b", None),
            ("amqp://h", "amqp", "amqp://h:5672", None),
            ("amqp://h/", "amqp", "amqp://h:5672", None),
            ("amqp://h/%2ftest", "amqp", "amqp://h:5672/%2ftest", None),
            ("amqp://h:1,2/v", "amqp", "amqp://h:1,h:2/v", None),
            ("xmpps://a,b/c.d", "xmpp", "xmpps://a:5223,b:5223/c.d", None),
            (
                "xmpp://u@d.org@h,1",
                "xmpp",
                "xmpp://h:5222,h:1",
                Some("u@d.org"),
            ),
            ("mqtt://h,1884", "mqtt", "mqtt://h:1883,h:1884", None),
            ("nats+tls://u@h", "nats", "nats+tls://h:4222", Some("u")),
            ("mqtt://a%40b%25@h", "mqtt", "mqtt://h:1883", Some("a@b%")),
            (
                "mqtt://[fe80::1%25eth0]:99",
                "mqtt",
                "mqtt://[fe80::1%25eth0]:99",
                None,
            ),
            ("mqtt://u@a:1,b", "mqtt", "mqtt://a:1,b:1883", Some("u")),
            ("mqtt://[::1]:1,2", "mqtt", "mqtt://[::1]:1,[::1]:2", None),
            (
                "zmq-forwarder+tcp://h:1,2",
                "zeromq",
                "zmq-forwarder+tcp://h:1,2",
                None,
            ),
        ];
        for (address, driver, endpoint, user) in cases {
            let system = from_address(address).unwrap();
            assert_eq!(system.driver, driver);
            assert_eq!(system.endpoints, [endpoint]);
            assert_eq!(system.kind, SystemKind::External);
            assert_eq!(system.login.as_ref().map(|l| l.username.as_str()), user);
        }
    }

    #[test]
    fn several_brokers_are_one_system() {
        let system = from_address("mqtt://u@a+mqtt://u@b:99").unwrap();
        assert_eq!(system.endpoints, ["mqtt://a:1883", "mqtt://b:99"]);
        assert_eq!(system.name, "mqtt://a:1883+mqtt://b:99");
        assert_eq!(system.login.unwrap().username, "u");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_hint() {
        let cases = [
            ("localhost:1883", "no scheme"),
            ("mqt://h", "did you mean `mqtt`?"),
            ("mqtt://", "is no host"),
            ("mqtt://h:0", "is no port"),
            ("mqtt://h:70000", "is no port"),
            ("mqtt://h:1883/x", "`/` has no meaning here"),
            ("amqp://h/a b", "` ` has no meaning here"),
            ("xmpp://h/a,b", "`,` has no meaning here"),
            ("xmpp:///d", "is no host"),
            ("mqtt://::1:1883", "in brackets"),
            ("mqtt://h:1,", "is no host"),
            ("mqtt://h:1,2,3", "is no"),
            ("mqtt://@h", "user name before `@` is empty"),
            ("mqtt://a+amqp://b", "differs from mqtt://a:1883"),
            ("mqtt://u@a+mqtt://b", "in protocol or user"),
            ("mqtt://a+mqtt://b:0", "is no port"),
            ("mqtt://u@a:1,v@b:2", "it names two users"),
            ("mqtt://a%4@h", "not percent-encoded"),
            ("mqtt://dev%i@h", "identities.publishers.user=dev-{n}"),
            ("mqtt://[fe80::1]", "name the interface: [fe80::1%eth0]"),
            ("mqtt://[fe80::1%]", "is no host"),
            ("tcp://h", "write mqtt://h"),
            ("tcp://u@h:1884", "write mqtt://u@h:1884"),
            ("ssl://h:8883", "write mqtts://h:8883"),
            ("tls://h", "write mqtts://h"),
            ("tcp://h:5672", "write amqp://h:5672"),
            ("ssl://h:5671/v", "write amqps://h:5671/v"),
            ("127.0.0.1:1883", "write mqtt://127.0.0.1:1883"),
            (
                "localhost",
                "write amqp://localhost or mqtt://localhost or ws://localhost or nats://localhost or xmpp://localhost",
            ),
            ("mqtt-sn://h", "that is MQTT-SN"),
            ("mqtt+ws://h", "is written ws://"),
            ("amqp10://h", "that is AMQP 1.0; amqp:// is AMQP 0-9-1"),
            ("https://h", "a management interface"),
            ("zmq-forwarder+udp://h:1,2", "did you mean `zmq-forwarder+"),
        ];
        for (address, expected) in cases {
            let error = from_address(address).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn addresses_that_a_list_has_torn_apart_are_put_together() {
        let cases = [
            ("mqtt://h:1,2,mosquitto", vec!["mqtt://h:1,2", "mosquitto"]),
            (
                "mqtt://h:1,b:2,mqtt://h",
                vec!["mqtt://h:1,b:2", "mqtt://h"],
            ),
            ("mqtt://h,nats,3", vec!["mqtt://h", "nats", "3"]),
            (
                "mqtt://h:1,2+mqtt://b:3,4,nats",
                vec!["mqtt://h:1,2+mqtt://b:3,4", "nats"],
            ),
            (
                "xmpp://h:1,2/d.org,ejabberd",
                vec!["xmpp://h:1,2/d.org", "ejabberd"],
            ),
            (
                "zmq-forwarder+tcp://h:1,2",
                vec!["zmq-forwarder+tcp://h:1,2"],
            ),
            (
                "mosquitto:memory,hivemq",
                vec!["mosquitto:memory", "hivemq"],
            ),
        ];
        for (list, expected) in cases {
            let pieces: Vec<String> = list.split(',').map(str::to_owned).collect();
            assert_eq!(join_addresses(&pieces), expected, "{list}");
        }
    }

    #[test]
    fn a_password_in_the_address_is_refused_and_not_repeated() {
        let error = from_address("mqtt://ann:s3cret@h").unwrap_err().to_string();
        assert!(error.contains(PASSWORD_VARIABLE), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
