//! Endpoints: `xmpp://[user@]host[:port][/domain]`, `xmpp+starttls://...` and `xmpps://...`.

use std::net::{SocketAddr, ToSocketAddrs};

use pubgauge_driver::DriverError;

/// How a connection is encrypted. What was asked for is what happens: never less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// Not at all.
    None,
    /// After STARTTLS (RFC 6120 §5), which the server must offer.
    StartTls,
    /// From the first byte (XEP-0368).
    Direct,
}

/// Where a server is, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// As the user wrote it, without user name: for messages.
    pub shown: String,
    /// The XMPP domain, which is what the certificate is for too (RFC 6120 §13.7.2).
    pub domain: String,
    pub addresses: Vec<SocketAddr>,
    pub security: Security,
    /// The account, without its domain.
    pub username: Option<String>,
}

impl Endpoint {
    /// Reads the URL and looks the host up, which may take as long as name servers do.
    ///
    /// The domain is the one after the host, else the one in the user name (`user@domain`, the
    /// one in the URL before `default_user`), else the host.
    pub fn parse(url: &str, default_user: Option<&str>) -> Result<Endpoint, DriverError> {
        let bad = |what: &str| {
            DriverError::with_hint(
                format!("{url:?} is not an XMPP endpoint: {what}"),
                "expected xmpp://HOST[:PORT][/DOMAIN] (port 5222, not encrypted), xmpp+starttls://HOST[:PORT][/DOMAIN] (port 5222) or xmpps://HOST[:PORT][/DOMAIN] (TLS, port 5223), optionally USER@ before HOST",
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("no scheme"))?;
        let (security, default_port) = match scheme {
            "xmpp" => (Security::None, 5222),
            "xmpp+starttls" => (Security::StartTls, 5222),
            "xmpps" => (Security::Direct, 5223),
            _ => return Err(bad("unknown scheme")),
        };
        let (rest, domain) = match rest.split_once('/') {
            Some((rest, domain)) => (rest, Some(domain).filter(|d| !d.is_empty())),
            None => (rest, None),
        };
        let (in_url, authority) = match rest.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => {
                return Err(DriverError::with_hint(
                    "an XMPP endpoint has a password in its URL",
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
        if host.is_empty() || host.contains(['?', '#']) {
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
        let account = in_url.as_deref().or(default_user);
        let (username, of_user) = match account.map(|a| a.split_once('@').ok_or(a)) {
            None => (None, None),
            Some(Ok((user, domain))) => (Some(user.to_owned()), Some(domain)),
            Some(Err(user)) => (Some(user.to_owned()), None),
        };
        let domain = domain.or(of_user).unwrap_or(host).to_owned();
        if domain.contains(|c: char| "/@?#<>&'\"".contains(c) || c.is_whitespace()) {
            return Err(bad("the domain is not one"));
        }
        if username.as_deref() == Some("") {
            return Err(bad("an empty user name"));
        }
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
            domain,
            addresses,
            security,
            username,
        })
    }

    /// Whether nobody but this host can read what is sent: encrypted, or never on a wire.
    pub fn is_private(&self) -> bool {
        self.security != Security::None || self.addresses.iter().all(|a| a.ip().is_loopback())
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

    fn parse(url: &str, user: Option<&str>) -> Endpoint {
        Endpoint::parse(url, user).unwrap()
    }

    #[test]
    fn urls_are_taken_apart() {
        let plain = parse("xmpp://127.0.0.1", None);
        assert_eq!(plain.addresses, ["127.0.0.1:5222".parse().unwrap()]);
        assert_eq!((plain.security, plain.username), (Security::None, None));
        assert_eq!(plain.domain, "127.0.0.1");
        let tls = parse("xmpps://a%40b.org@[::1]:99/", Some("other"));
        assert_eq!(tls.addresses, ["[::1]:99".parse().unwrap()]);
        assert_eq!(tls.security, Security::Direct);
        assert_eq!(
            (tls.username.as_deref(), tls.domain.as_str()),
            (Some("a"), "b.org")
        );
        assert!(!tls.shown.contains("a%40b"));
        let start = parse("xmpp+starttls://127.0.0.1/c.org", Some("u@d.org"));
        assert_eq!(start.security, Security::StartTls);
        assert_eq!(
            (start.username.as_deref(), start.domain.as_str()),
            (Some("u"), "c.org")
        );
    }

    #[test]
    fn a_password_is_safe_where_nobody_listens() {
        assert!(parse("xmpp://127.0.0.1", None).is_private());
        assert!(!parse("xmpp://192.0.2.1", None).is_private());
        assert!(parse("xmpp+starttls://192.0.2.1", None).is_private());
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_a_hint() {
        for url in [
            "",
            "127.0.0.1:5222",
            "http://x",
            "xmpp://",
            "xmpp://h:0",
            "xmpp://h:x",
            "xmpp://[::1",
            "xmpp://[::1]x",
            "xmpp://127.0.0.1/a/b",
            "xmpp://@127.0.0.1",
        ] {
            let error = Endpoint::parse(url, None).unwrap_err();
            assert!(error.hint.is_some(), "{url}: {error}");
        }
        let error = Endpoint::parse("xmpp://user:secret@h", None).unwrap_err();
        assert!(!error.to_string().contains("secret"));
    }
}
