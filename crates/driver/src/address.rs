//! Addresses of systems that run already, as users write them.

use std::fmt;
use std::net::Ipv4Addr;

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

/// Whether an endpoint is an IPv4 address on loopback (127.0.0.0/8): any other address of that
/// network may be the source of a connection to it.
pub fn is_on_loopback(endpoint: &str) -> bool {
    let place = endpoint
        .split_once("://")
        .map_or(endpoint, |(_, rest)| rest);
    let place = place.split(['/', ',']).next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    host.parse::<Ipv4Addr>()
        .is_ok_and(|host| host.is_loopback())
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
            ("mqtt://127.0.0.1:1883", true),
            ("amqp://u@127.3.2.1:5672/v", true),
            ("mqtt://127.0.0.1:1,127.0.0.1:2", true),
            ("mqtt://10.0.0.1:1883/127.0.0.1", false),
            ("mqtt://127.0.0.1@10.0.0.1:1883", false),
            ("mqtt://1127.0.0.10.example:1883", false),
            ("mqtt://[::1]:1883", false),
            ("", false),
        ] {
            assert_eq!(is_on_loopback(endpoint), is, "{endpoint}");
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
