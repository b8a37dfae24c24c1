//! Endpoints: `mqtt://[user@]host[:port]`, `amqps://...` and the like.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use pubgauge_driver::{Attempt, DriverError};

/// How a protocol's endpoints are written.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// The protocol, in error messages.
    pub protocol: &'static str,
    /// Schemes without TLS; the first is the usual one.
    pub plain: &'static [&'static str],
    /// Schemes with TLS; the first is the usual one.
    pub secure: &'static [&'static str],
    /// Port of the plain schemes, where none is given.
    pub plain_port: u16,
    /// Port of the secure schemes, where none is given.
    pub secure_port: u16,
    /// What a path after the host means, in error messages; `None` if there must be none.
    pub path: Option<&'static str>,
}

/// Where a server is, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As the user wrote it, without user name: for messages.
    pub shown: String,
    /// Host name or address, for the certificate check.
    pub host: String,
    /// Its addresses, at least one.
    pub addresses: Vec<SocketAddr>,
    /// Whether TLS is spoken.
    pub tls: bool,
    /// User name in the URL.
    pub username: Option<String>,
    /// What stands after the host's `/`, decoded; `None` if there is no `/`.
    pub path: Option<String>,
}

impl Endpoint {
    /// Reads the URL and looks the host up, which may take as long as name servers do.
    ///
    /// # Errors
    /// A URL of another form, one with a password, a host that is not found.
    pub fn parse(url: &str, scheme_of: &Scheme) -> Result<Endpoint, DriverError> {
        let bad = |what: &str| {
            let path = scheme_of
                .path
                .map_or(String::new(), |what| format!(", {what} after /"));
            // Never shows what stands before a @, which may hold a password.
            let url = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
            DriverError::with_hint(
                format!("{url:?} is not an {} endpoint: {what}", scheme_of.protocol),
                format!(
                    "expected {}://HOST[:PORT] (port {}) or {}://HOST[:PORT] (TLS, port {}), optionally USER@ before HOST{path}",
                    scheme_of.plain[0],
                    scheme_of.plain_port,
                    scheme_of.secure[0],
                    scheme_of.secure_port
                ),
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("no scheme"))?;
        let (tls, default_port) = if scheme_of.plain.contains(&scheme) {
            (false, scheme_of.plain_port)
        } else if scheme_of.secure.contains(&scheme) {
            (true, scheme_of.secure_port)
        } else {
            return Err(bad("unknown scheme"));
        };
        let (rest, path) = match rest.split_once('/') {
            None => (rest, None),
            Some((rest, "")) if scheme_of.path.is_none() => (rest, None),
            Some(_) if scheme_of.path.is_none() => {
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
                    format!(
                        "an {} endpoint has a password in its URL",
                        scheme_of.protocol
                    ),
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
        let (host, port) = match authority.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or_else(|| bad("missing ]"))?;
                match after.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if after.is_empty() => (host, None),
                    None => return Err(bad("something other than a port after ]")),
                }
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if host.is_empty() || host.contains(['/', '?', '#']) {
            return Err(bad("no host, or something after it"));
        }
        let port = match port {
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| bad("the port is not a number from 1 to 65535"))?,
            None => default_port,
        };
        let shown = format!("{scheme}://{authority}");
        let addresses: Vec<_> = (host, port)
            .to_socket_addrs()
            .map_err(|error| {
                let what = format!("the host of {shown} was not found");
                DriverError::of_io(what, Attempt::Open, &error)
                    .or_hint("check the spelling and the name service, or give an IP address")
            })?
            .collect();
        if addresses.is_empty() {
            return Err(bad("the host has no address"));
        }
        Ok(Endpoint {
            shown,
            host: host.to_owned(),
            addresses,
            tls,
            username,
            path,
        })
    }

    /// The first address that can be reached from `source`.
    ///
    /// # Errors
    /// If none is of its family.
    pub fn address_for(&self, source: Option<IpAddr>) -> Result<SocketAddr, DriverError> {
        let same_family = |a: &&SocketAddr| source.is_none_or(|s| s.is_ipv4() == a.is_ipv4());
        let found = self.addresses.iter().find(same_family).copied();
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

fn percent_decode(text: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const MQTT: Scheme = Scheme {
        protocol: "MQTT",
        plain: &["mqtt", "tcp"],
        secure: &["mqtts", "ssl"],
        plain_port: 1883,
        secure_port: 8883,
        path: None,
    };
    const AMQP: Scheme = Scheme {
        protocol: "AMQP",
        plain: &["amqp"],
        secure: &["amqps"],
        plain_port: 5672,
        secure_port: 5671,
        path: Some("the virtual host"),
    };

    #[test]
    fn a_path_is_told_where_the_protocol_has_one() {
        let path = |url| Endpoint::parse(url, &AMQP).unwrap().path;
        assert_eq!(path("amqp://127.0.0.1"), None);
        assert_eq!(path("amqp://127.0.0.1/"), Some(String::new()));
        assert_eq!(path("amqps://u@127.0.0.1:1/%2ftest"), Some("/test".into()));
        assert_eq!(
            Endpoint::parse("amqps://127.0.0.1", &AMQP)
                .unwrap()
                .addresses,
            ["127.0.0.1:5671".parse().unwrap()]
        );
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
        assert!(!plain.tls && plain.username.is_none());
        let tls = Endpoint::parse("mqtts://a%40b@[::1]:99/", &MQTT).unwrap();
        assert_eq!(tls.addresses, ["[::1]:99".parse().unwrap()]);
        assert!(tls.tls);
        assert_eq!(tls.username.as_deref(), Some("a@b"));
        assert!(!tls.shown.contains("a%40b"));
    }

    #[test]
    fn an_address_is_of_the_family_of_the_source() {
        let mut endpoint = Endpoint::parse("mqtt://127.0.0.1:1", &MQTT).unwrap();
        endpoint.addresses.push("[::1]:2".parse().unwrap());
        let port = |source: Option<&str>| {
            let source = source.map(|s| s.parse().unwrap());
            endpoint.address_for(source).map(|a| a.port())
        };
        assert_eq!(port(None).unwrap(), 1);
        assert_eq!(port(Some("127.0.0.2")).unwrap(), 1);
        assert_eq!(port(Some("::1")).unwrap(), 2);
        endpoint.addresses.truncate(1);
        let error = endpoint.address_for(Some("::1".parse().unwrap()));
        assert!(error.unwrap_err().hint.is_some());
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
