//! Endpoints: `mqtt://[user@]host[:port]`, `amqps://...` and the like.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use crate::websocket;
use pubgauge_driver::{Attempt, DriverError, Encryption, Scheme, percent_decode, split_zone};

/// How a protocol's endpoints are written.
#[derive(Clone, Copy, Debug)]
pub struct Addressing {
    /// The protocol, in error messages.
    pub name: &'static str,
    /// Its schemes, the usual one first.
    pub schemes: &'static [Scheme],
}

/// Where a server is, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As the user wrote it, without user name: for messages.
    pub shown: String,
    /// Host name or address, for the certificate check; an address without its interface.
    pub host: String,
    /// The interface of a link-local address of IPv6.
    pub zone: Option<String>,
    pub port: u16,
    /// Its addresses, at least one once it was looked up.
    pub addresses: Vec<SocketAddr>,
    /// How connections are encrypted.
    pub encryption: Encryption,
    /// User name in the URL.
    pub username: Option<String>,
    /// Text after the host's `/`, decoded; `None` if there is no `/`, and for WebSocket.
    pub path: Option<String>,
    /// The URL at which WebSocket is asked for, `ws://HOST:PORT/PATH`.
    pub websocket: Option<String>,
}

/// A host as it stands in an address.
struct Place<'a> {
    host: &'a str,
    zone: Option<&'a str>,
    port: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// # Errors
    /// Why it is none.
    fn read(authority: &'a str) -> Result<Place<'a>, &'static str> {
        let Some(literal) = authority.strip_prefix('[') else {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            if host.is_empty() || host.contains(['/', '?', '#']) {
                return Err("no host, or something after it");
            }
            let zone = None;
            return Ok(Place { host, zone, port });
        };
        let (literal, after) = literal.split_once(']').ok_or("missing ]")?;
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err("something other than a port after ]"),
        };
        let (_, zone) = split_zone(literal).ok_or("no IPv6 address in the brackets")?;
        let host = literal.split('%').next().unwrap_or_default();
        Ok(Place { host, zone, port })
    }
}

impl Endpoint {
    /// Reads the URL and looks the host up, which may take as long as name servers do.
    ///
    /// # Errors
    /// A URL of another form, one with a password, a host that is not found.
    pub fn parse(url: &str, protocol: &Addressing) -> Result<Endpoint, DriverError> {
        let mut endpoint = Endpoint::read(url, protocol)?;
        endpoint.addresses = endpoint.look_up()?;
        Ok(endpoint)
    }

    /// The addresses of its host, which may take as long as name servers do.
    ///
    /// # Errors
    /// A host that is not found.
    pub fn look_up(&self) -> Result<Vec<SocketAddr>, DriverError> {
        let shown = &self.shown;
        let (host, advice) = match &self.zone {
            None => (
                self.host.clone(),
                "check the spelling and the name service, or give an IP address".to_owned(),
            ),
            Some(zone) => (
                format!("{}%{zone}", self.host),
                format!("is there an interface {zone}? `ip link` lists them"),
            ),
        };
        let found = (host.as_str(), self.port).to_socket_addrs();
        let addresses: Vec<_> = found
            .map_err(|error| {
                let what = format!("the host of {shown} was not found");
                DriverError::of_io(what, Attempt::Open, &error).or_hint(advice)
            })?
            .collect();
        if addresses.is_empty() {
            return Err(DriverError::with_hint(
                format!("the host of {shown} has no address"),
                "check the name service, or give an IP address",
            ));
        }
        Ok(addresses)
    }

    /// Reads the URL, and looks nothing up: without addresses.
    ///
    /// # Errors
    /// A URL of another form, one with a password.
    pub fn read(url: &str, protocol: &Addressing) -> Result<Endpoint, DriverError> {
        let bad = |what: &str| {
            // Never shows what stands before a @, which may hold a password.
            let url = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
            let forms: Vec<_> = protocol.schemes.iter().map(Scheme::to_string).collect();
            DriverError::with_hint(
                format!("{url:?} is not an {} endpoint: {what}", protocol.name),
                format!("expected {}", forms.join(" or ")),
            )
        };
        let (name, rest) = url.split_once("://").ok_or_else(|| bad("no scheme"))?;
        let scheme = Scheme::find(url, protocol.schemes).ok_or_else(|| bad("unknown scheme"))?;
        let (rest, asked_for) = match (rest.find('/'), scheme.websocket) {
            (Some(at), Some(_)) => (&rest[..at], Some(&rest[at..])),
            (None, usual) => (rest, usual),
            (Some(_), None) => (rest, None),
        };
        let (rest, path) = match rest.split_once('/') {
            None => (rest, None),
            Some((rest, "")) if scheme.path.is_none() => (rest, None),
            Some(_) if scheme.path.is_none() => {
                return Err(bad("no host, or something after it"));
            }
            Some((rest, path)) => {
                let path = percent_decode(path)
                    .ok_or_else(|| bad("the path is not percent-encoded UTF-8"))?;
                (rest, Some(path))
            }
        };
        let (username, authority) = match rest.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => {
                return Err(DriverError::with_hint(
                    format!("an {} endpoint has a password in its URL", protocol.name),
                    "give only the user name there and the password by environment or file, so that it never appears in results",
                ));
            }
            Some((user, authority)) => {
                let user = percent_decode(user)
                    .ok_or_else(|| bad("the user name is not percent-encoded UTF-8"))?;
                (Some(user), authority)
            }
            None => (None, rest),
        };
        let Place { host, zone, port } = Place::read(authority).map_err(bad)?;
        let port = match port {
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| bad("the port is not a number from 1 to 65535"))?,
            None => scheme.usual_port.ok_or_else(|| bad("no port"))?,
        };
        let shown = format!("{name}://{authority}");
        let websocket = asked_for.map(|path| match zone {
            // An interface means nothing to the server.
            Some(_) => format!("{name}://[{host}]:{port}{path}"),
            None => format!("{shown}{path}"),
        });
        if let Some(Err(error)) = websocket.as_deref().map(websocket::check) {
            return Err(bad(&format!("its path cannot be asked for: {error}")));
        }
        Ok(Endpoint {
            shown,
            host: host.to_owned(),
            zone: zone.map(str::to_owned),
            port,
            addresses: Vec::new(),
            encryption: scheme.encryption,
            username,
            path,
            websocket,
        })
    }

    /// Whether its host is a name, which name servers can give other addresses to.
    pub fn has_name(&self) -> bool {
        self.host.parse::<IpAddr>().is_err()
    }

    /// The address of a client by its number: clients take the addresses of a name in turn, as DNS round robin spreads
    /// devices. They are those of the family of `source`, or without one of the family of the first address.
    ///
    /// # Errors
    /// If none is of that family.
    pub fn address_for(
        &self,
        source: Option<IpAddr>,
        number: usize,
    ) -> Result<SocketAddr, DriverError> {
        self.address_among(&self.addresses, source, number)
    }

    /// As [`Endpoint::address_for`], among these addresses of its host.
    ///
    /// # Errors
    /// As [`Endpoint::address_for`].
    pub fn address_among(
        &self,
        addresses: &[SocketAddr],
        source: Option<IpAddr>,
        number: usize,
    ) -> Result<SocketAddr, DriverError> {
        let first = addresses.first().map(SocketAddr::ip);
        let family = source.or(first);
        let same_family = |a: &&SocketAddr| family.is_some_and(|f| f.is_ipv4() == a.is_ipv4());
        let all = || addresses.iter().filter(same_family);
        let found = all().nth(number % all().count().max(1)).copied();
        found.ok_or_else(|| {
            DriverError::with_hint(
                format!(
                    "{} has no address of the family of the source address",
                    self.shown
                ),
                "IPv4 goes to IPv4 and IPv6 to IPv6",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Scheme = Scheme {
        name: "mqtt",
        also: &["tcp"],
        encryption: Encryption::None,
        usual_port: Some(1883),
        path: None,
        websocket: None,
    };
    const MQTT: Addressing = Addressing {
        name: "MQTT",
        schemes: &[
            PLAIN,
            Scheme {
                name: "mqtts",
                also: &["ssl"],
                encryption: Encryption::Tls,
                usual_port: Some(8883),
                ..PLAIN
            },
            Scheme {
                name: "wss",
                usual_port: Some(443),
                path: Some("PATH"),
                websocket: Some("/usual"),
                ..PLAIN
            },
        ],
    };
    const AMQP: Addressing = Addressing {
        name: "AMQP",
        schemes: &[Scheme {
            name: "amqps",
            encryption: Encryption::Tls,
            usual_port: Some(5671),
            path: Some("VIRTUAL-HOST"),
            ..PLAIN
        }],
    };

    #[test]
    fn a_path_is_told_where_the_protocol_has_one() {
        let path = |url| Endpoint::parse(url, &AMQP).unwrap().path;
        assert_eq!(path("amqps://127.0.0.1"), None);
        assert_eq!(path("amqps://127.0.0.1/"), Some(String::new()));
        assert_eq!(path("amqps://u@127.0.0.1:1/%2ftest"), Some("/test".into()));
        assert_eq!(
            Endpoint::parse("amqps://127.0.0.1", &AMQP)
                .unwrap()
                .addresses,
            ["127.0.0.1:5671".parse().unwrap()]
        );
    }

    #[test]
    fn websocket_is_asked_for_at_a_path() {
        let asked = |url| Endpoint::read(url, &MQTT).unwrap().websocket.unwrap();
        assert_eq!(asked("wss://u@h"), "wss://h/usual");
        assert_eq!(asked("wss://h:1/"), "wss://h:1/");
        assert_eq!(asked("wss://[::1]:1/a%20b/c"), "wss://[::1]:1/a%20b/c");
        assert_eq!(asked("wss://[fe80::1%lo]/a"), "wss://[fe80::1]:443/a");
        assert_eq!(Endpoint::read("mqtt://h", &MQTT).unwrap().websocket, None);
        let error = Endpoint::read("wss://h/a b", &MQTT).unwrap_err();
        assert!(error.to_string().contains("cannot be asked for"), "{error}");
    }

    #[test]
    fn a_malformed_url_does_not_show_a_password() {
        let error = Endpoint::parse("amqq://u:secret@h", &AMQP).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn urls_are_taken_apart() {
        let plain = Endpoint::parse("mqtt://127.0.0.1", &MQTT).unwrap();
        assert_eq!(plain.addresses, ["127.0.0.1:1883".parse().unwrap()]);
        assert!(!plain.encryption.is_on() && plain.username.is_none());
        let tls = Endpoint::parse("mqtts://a%40b@[::1]:99/", &MQTT).unwrap();
        assert_eq!(tls.addresses, ["[::1]:99".parse().unwrap()]);
        assert_eq!(tls.encryption, Encryption::Tls);
        let other_name = Endpoint::parse("ssl://127.0.0.1", &MQTT).unwrap();
        assert_eq!(other_name.shown, "ssl://127.0.0.1");
        assert_eq!(other_name.addresses, ["127.0.0.1:8883".parse().unwrap()]);
        assert_eq!(tls.username.as_deref(), Some("a@b"));
        assert!(!tls.shown.contains("a%40b"));
    }

    #[test]
    fn a_link_local_address_is_on_its_interface() {
        let endpoint = Endpoint::parse("mqtts://[fe80::1%lo]:1", &MQTT).unwrap();
        let on_lo = std::net::SocketAddrV6::new("fe80::1".parse().unwrap(), 1, 0, 1);
        assert_eq!(endpoint.addresses, [SocketAddr::V6(on_lo)]);
        assert_eq!(endpoint.host, "fe80::1", "as a certificate has it");
        let error = Endpoint::parse("mqtt://[fe80::1%nowhere]", &MQTT).unwrap_err();
        assert!(
            error.to_string().contains("an interface nowhere?"),
            "{error}"
        );
    }

    #[test]
    fn an_address_is_of_the_family_of_the_source() {
        let mut endpoint = Endpoint::parse("mqtt://127.0.0.1:1", &MQTT).unwrap();
        endpoint.addresses.push("[::1]:2".parse().unwrap());
        let port = |source: Option<&str>| {
            let source = source.map(|s| s.parse().unwrap());
            endpoint.address_for(source, 0).map(|a| a.port())
        };
        assert_eq!(port(None).unwrap(), 1);
        assert_eq!(port(Some("127.0.0.2")).unwrap(), 1);
        assert_eq!(port(Some("::1")).unwrap(), 2);
        endpoint.addresses.truncate(1);
        let error = endpoint.address_for(Some("::1".parse().unwrap()), 0);
        assert!(error.unwrap_err().hint.is_some());
    }

    #[test]
    fn clients_take_the_addresses_of_a_name_in_turn() {
        let mut endpoint = Endpoint::parse("mqtt://127.0.0.1:1", &MQTT).unwrap();
        for other in ["[::1]:2", "127.0.0.2:3"] {
            endpoint.addresses.push(other.parse().unwrap());
        }
        let ports = |source: Option<&str>| {
            let source = source.map(|s| s.parse().unwrap());
            let port = |number| endpoint.address_for(source, number).unwrap().port();
            [0, 1, 2, 3].map(port)
        };
        assert_eq!(ports(None), [1, 3, 1, 3]);
        assert_eq!(ports(Some("::1")), [2; 4]);
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_a_hint() {
        for url in [
            "",
            "127.0.0.1:1883",
            "http://x",
            "mqtt://",
            "mqtt://h:0",
            "mqtt://h:x",
            "mqtt://[::1",
            "mqtt://[::1]x",
            "mqtt://h/p",
        ] {
            let error = Endpoint::parse(url, &MQTT).unwrap_err();
            assert!(error.hint.is_some(), "{url}: {error}");
        }
        let error = Endpoint::parse("mqtt://user:secret@h", &MQTT).unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
