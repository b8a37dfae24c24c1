//! Endpoints: `mqtt://[user@]host[:port]` and `mqtts://...`.

use std::net::{SocketAddr, ToSocketAddrs};

use pubgauge_driver::DriverError;

/// Where a server is, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// As the user wrote it, without user name: for messages.
    pub shown: String,
    /// Host name or address, for the certificate check.
    pub host: String,
    pub addresses: Vec<SocketAddr>,
    pub tls: bool,
    pub username: Option<String>,
}

impl Endpoint {
    /// Reads the URL and looks the host up, which may take as long as name servers do.
    pub fn parse(url: &str) -> Result<Endpoint, DriverError> {
        let bad = |what: &str| {
            DriverError::with_hint(
                format!("{url:?} is not an MQTT endpoint: {what}"),
                "expected mqtt://HOST[:PORT] (port 1883) or mqtts://HOST[:PORT] (TLS, port 8883), optionally USER@ before HOST",
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("no scheme"))?;
        let (tls, default_port) = match scheme {
            "mqtt" | "tcp" => (false, 1883),
            "mqtts" | "ssl" | "tls" => (true, 8883),
            _ => return Err(bad("unknown scheme")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (username, authority) = match rest.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => {
                return Err(DriverError::with_hint(
                    "an MQTT endpoint has a password in its URL",
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
                DriverError::with_hint(
                    format!("the host of {shown} was not found: {error}"),
                    "check the spelling and the name service, or give an IP address",
                )
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

    #[test]
    fn urls_are_taken_apart() {
        let plain = Endpoint::parse("mqtt://127.0.0.1").unwrap();
        assert_eq!(plain.addresses, ["127.0.0.1:1883".parse().unwrap()]);
        assert!(!plain.tls && plain.username.is_none());
        let tls = Endpoint::parse("mqtts://a%40b@[::1]:99/").unwrap();
        assert_eq!(tls.addresses, ["[::1]:99".parse().unwrap()]);
        assert!(tls.tls);
        assert_eq!(tls.username.as_deref(), Some("a@b"));
        assert!(!tls.shown.contains("a%40b"));
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
            let error = Endpoint::parse(url).unwrap_err();
            assert!(error.hint.is_some(), "{url}: {error}");
        }
        let error = Endpoint::parse("mqtt://user:secret@h").unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
