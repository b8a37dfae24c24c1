//! Addresses of systems that run already, as users write them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The beginning of addresses and endpoints that one driver speaks to: `NAME://`, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The scheme's name, before `://`, for example `mqtts`. No two drivers have one in common.
    pub name: &'static str,
    /// Other names that endpoints in a system's file may have, for example `ssl`. No driver is found
    /// by them: an address without a system's file has [`Scheme::name`].
    pub also: &'static [&'static str],
    /// How connections are encrypted.
    pub encryption: Encryption,
    /// Port where none is given. `None`: what follows has a form of the driver's own, which the
    /// driver alone reads.
    pub usual_port: Option<u16>,
    /// The meaning of a path after the host, for example `VIRTUAL-HOST`; `None`: there is none.
    pub path: Option<&'static str>,
    /// The path at which WebSocket (RFC 6455) is asked for where an address has none; all bytes then go in its frames.
    /// `None`: no WebSocket.
    pub websocket: Option<&'static str>,
}

/// How the connections to an endpoint are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    None,
    /// By TLS after an exchange in plain text (RFC 6120 §5); a server without it is refused.
    StartTls,
    /// By TLS from the first byte.
    Tls,
}

impl Encryption {
    /// Whether connections are encrypted at all.
    pub fn is_on(self) -> bool {
        self != Encryption::None
    }
}

impl Scheme {
    /// Whether endpoints that begin with `name://` are of this scheme.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.also.contains(&name)
    }

    /// The scheme of an endpoint, if it is one of `schemes`.
    pub fn find<'a>(endpoint: &str, schemes: &'a [Scheme]) -> Option<&'a Scheme> {
        let (name, _) = endpoint.split_once("://")?;
        schemes.iter().find(|scheme| scheme.is(name))
    }
}

/// The form of an address: `mqtts://[USER@]HOST[:PORT] (TLS, port 8883)`.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.name)?;
        let Some(port) = self.usual_port else {
            return f.write_str("...");
        };
        let path = self.path.map_or(String::new(), |path| format!("[/{path}]"));
        let encryption = match self.encryption {
            Encryption::None => "",
            Encryption::StartTls => "STARTTLS, ",
            Encryption::Tls => "TLS, ",
        };
        write!(f, "[USER@]HOST[:PORT]{path} ({encryption}port {port})")
    }
}

/// The addresses of a system with several brokers, joined by `+`: `mqtt://a:1883+mqtt://b:1883`; the
/// only one if there is one. A `+` that no scheme follows belongs to the address, such as that of a
/// user name.
pub fn addresses(joined: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = joined;
    while let Some(end) = first_end(rest) {
        found.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    found.push(rest);
    found
}

/// Whether a client connects to an IPv4 address on loopback (127.0.0.0/8), so that any other address of that network may
/// be the source of the connection. Of an endpoint with two places clients that `only_subscribe` use the second.
pub fn is_on_loopback(endpoint: &str, only_subscribe: bool) -> bool {
    let place = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    let place = place.split('/').next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let place = match place.split_once(',') {
        // A second place that is a port alone is on the host of the first.
        Some((_, second)) if only_subscribe && second.parse::<u16>().is_err() => second,
        Some((first, _)) => first,
        None => place,
    };
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    host.parse::<Ipv4Addr>()
        .is_ok_and(|host| host.is_loopback())
}

/// Whether a word is a host as it would stand in an address, without a scheme: `localhost`, `127.0.0.1:1883`, `[::1]`,
/// `broker.example`, `h:1883`. No system's name is one of them but by chance.
pub fn is_host(word: &str) -> bool {
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, true),
        _ => (word, false),
    };
    let is_literal =
        word.parse::<Ipv6Addr>().is_ok() || (host.starts_with('[') && host.ends_with(']'));
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let named = !host.is_empty() && host.chars().all(is_name);
    is_literal || named && (port || host == "localhost" || host.contains('.'))
}

/// A part of an address with each `%40` in the place of what it stands for (RFC 3986 §2.1); `None` where that is no UTF-8,
/// or no two digits follow a `%`.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push((digit()? << 4 | digit()?) as u8);
    }
    String::from_utf8(out).ok()
}

/// An IPv6 address as it stands between brackets, and the interface that a `%` or, as in URLs, `%25` parts from it (RFC
/// 6874 §2): `fe80::1%eth0`. `None` where it is no such address.
pub fn split_zone(literal: &str) -> Option<(Ipv6Addr, Option<&str>)> {
    let Some((address, zone)) = literal.split_once('%') else {
        return Some((literal.parse().ok()?, None));
    };
    let zone = zone.strip_prefix("25").unwrap_or(zone);
    let is_name = |c: char| c.is_ascii_graphic() && !"%/[]@,".contains(c);
    let sound = !zone.is_empty() && zone.chars().all(is_name);
    Some((address.parse().ok()?, Some(zone).filter(|_| sound)?.into()))
}

/// Where the first of several addresses ends.
fn first_end(joined: &str) -> Option<usize> {
    let begin = joined.find("://")? + "://".len();
    let plus = joined[begin..].match_indices('+').map(|(at, _)| begin + at);
    plus.into_iter().find(|at| {
        let scheme = joined[at + 1..].split_once("://");
        scheme.is_some_and(|(scheme, _)| {
            !scheme.is_empty()
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_by_the_host_alone() {
        for (endpoint, is) in [
            ("mqtt://127.0.0.1:1883", [true; 2]),
            ("amqp://u@127.3.2.1:5672/v", [true; 2]),
            ("mqtt://127.0.0.1:1,127.0.0.1:2", [true; 2]),
            ("mqtt://127.0.0.1:1,2", [true; 2]),
            ("mqtt://127.0.0.1:1,[::1]:1", [true, false]),
            ("amqp://u@[::1]:1,127.0.0.1:1/v", [false, true]),
            ("mqtt://10.0.0.1:1883/127.0.0.1", [false; 2]),
            ("mqtt://127.0.0.1@10.0.0.1:1883", [false; 2]),
            ("mqtt://1127.0.0.10.example:1883", [false; 2]),
            ("mqtt://[::1]:1883", [false; 2]),
            ("", [false; 2]),
        ] {
            let found = [false, true].map(|side| is_on_loopback(endpoint, side));
            assert_eq!(found, is, "{endpoint}");
        }
    }

    #[test]
    fn hosts_are_told_from_names_of_systems() {
        for host in [
            "localhost",
            "127.0.0.1",
            "h:1883",
            "::1",
            "[::1]",
            "[::1]:99",
            "a-b.example",
        ] {
            assert!(is_host(host), "{host}");
        }
        for name in [
            "mosquitto",
            "mosquitto:memory",
            "",
            ":1",
            "studies/a.toml",
            "mqtt://h",
        ] {
            assert!(!is_host(name), "{name}");
        }
    }

    #[test]
    fn a_zone_stands_behind_an_address_of_ipv6() {
        let zone = |literal| split_zone(literal).map(|(_, zone)| zone);
        assert_eq!(zone("::1"), Some(None));
        assert_eq!(zone("fe80::1%eth0"), Some(Some("eth0")));
        assert_eq!(zone("fe80::1%25eth0"), Some(Some("eth0")));
        for literal in [
            "fe80::1%",
            "fe80::1%a b",
            "fe80::1%a%b",
            "127.0.0.1%lo",
            "h%lo",
        ] {
            assert_eq!(zone(literal), None, "{literal}");
        }
    }

    #[test]
    fn addresses_are_told_apart() {
        for (joined, each) in [
            ("mqtt://a", &["mqtt://a"][..]),
            (
                "mqtt://a:1+mqtt://b:2+mqtts://u@c",
                &["mqtt://a:1", "mqtt://b:2", "mqtts://u@c"],
            ),
            (
                "xmpp+starttls://a/d+xmpp+starttls://b/d",
                &["xmpp+starttls://a/d", "xmpp+starttls://b/d"],
            ),
            ("mqtt://u+tag@a+mqtt://b", &["mqtt://u+tag@a", "mqtt://b"]),
            (
                "mqtt://a:1,2+mqtt://b:1,2",
                &["mqtt://a:1,2", "mqtt://b:1,2"],
            ),
            ("zmq-forwarder+tcp://a:1,2", &["zmq-forwarder+tcp://a:1,2"]),
            ("mosquitto", &["mosquitto"]),
        ] {
            assert_eq!(addresses(joined), each, "{joined}");
        }
    }
}
