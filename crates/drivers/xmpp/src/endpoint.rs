//! Endpoints: `xmpp://[user@]host[:port][/domain]`, `xmpp+starttls://...` and `xmpps://...`; with
//! places for publishers and subscribers, `xmpp://host:port,port/domain`.

use pubgauge_driver::{DriverError, Encryption, Scheme};
use pubgauge_net::endpoint::{Addressing, Endpoint as Net};
use pubgauge_net::pair::parse_both;

/// How XMPP endpoints are written.
pub(crate) const ADDRESSING: Addressing = Addressing {
    name: "XMPP",
    schemes: &[
        PLAIN,
        Scheme {
            name: "xmpp+starttls",
            encryption: Encryption::StartTls,
            ..PLAIN
        },
        // XEP-0368.
        Scheme {
            name: "xmpps",
            encryption: Encryption::Tls,
            usual_port: Some(5223),
            ..PLAIN
        },
    ],
};

const PLAIN: Scheme = Scheme {
    name: "xmpp",
    also: &[],
    encryption: Encryption::None,
    usual_port: Some(5222),
    path: Some("DOMAIN"),
    websocket: None,
};

/// A server's addresses, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub net: Net,
    /// The XMPP domain.
    pub domain: String,
    /// The account, without its domain.
    pub username: Option<String>,
}

/// An account with its domain or without, as name and domain.
pub(crate) fn split_account(account: &str) -> (&str, Option<&str>) {
    match account.split_once('@') {
        Some((user, domain)) => (user, Some(domain)),
        None => (account, None),
    }
}

impl Endpoint {
    /// Reads the URL and looks the host up, which may take as long as name servers do.
    ///
    /// The domain is the one after the host, else the one in the user name (`user@domain`, the
    /// one in the URL before `default_user`), else the host.
    pub fn parse(url: &str, default_user: Option<&str>) -> Result<Endpoint, DriverError> {
        let net = Net::parse(url, &ADDRESSING)?;
        let bad = |what: &str| {
            DriverError::with_hint(
                format!("{} is not an XMPP endpoint: {what}", net.shown),
                "expected xmpp://HOST[:PORT][/DOMAIN] (not encrypted), xmpp+starttls://... or xmpps://..., optionally USER@ before HOST",
            )
        };
        let account = net.username.as_deref().or(default_user);
        let (username, of_user) = account.map(split_account).unzip();
        let (username, of_user) = (username.map(str::to_owned), of_user.flatten());
        let in_url = net.path.as_deref().filter(|path| !path.is_empty());
        let domain = in_url.or(of_user).unwrap_or(&net.host).to_owned();
        if domain.contains(|c: char| "/@?#<>&'\"".contains(c) || c.is_whitespace()) {
            return Err(bad("the domain after / is not one"));
        }
        if username.as_deref() == Some("") {
            return Err(bad("an empty user name"));
        }
        Ok(Endpoint {
            domain,
            username,
            net,
        })
    }

    /// Whether no other host can read what is sent: encrypted, or loopback only.
    pub fn is_private(&self) -> bool {
        self.net.encryption.is_on() || self.net.addresses.iter().all(|a| a.ip().is_loopback())
    }
}

/// Reads the URL of one place, or of one for publishers and one for subscribers.
///
/// Both are of one domain: there the nodes of the one are those of the other, and so are the
/// addresses of clients.
pub(crate) fn parse_pair(
    url: &str,
    default_user: Option<&str>,
) -> Result<[Endpoint; 2], DriverError> {
    let pair = parse_both(url, |url| Endpoint::parse(url, default_user))?;
    let [publishers, subscribers] = &pair;
    if publishers.domain == subscribers.domain {
        return Ok(pair);
    }
    Err(DriverError::with_hint(
        format!(
            "{} would be of the XMPP domain {:?}, but {} of {:?}",
            publishers.net.shown, publishers.domain, subscribers.net.shown, subscribers.domain
        ),
        "publishers and subscribers are of one domain, whichever of its servers they connect to: name it, xmpp://HOST:PORT,HOST:PORT/DOMAIN",
    ))
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
        assert_eq!(plain.net.addresses, ["127.0.0.1:5222".parse().unwrap()]);
        assert_eq!(
            (plain.net.encryption, plain.username),
            (Encryption::None, None)
        );
        assert_eq!(plain.domain, "127.0.0.1");
        let tls = parse("xmpps://a%40b.org@[::1]:99/", Some("other"));
        assert_eq!(tls.net.addresses, ["[::1]:99".parse().unwrap()]);
        assert_eq!(tls.net.encryption, Encryption::Tls);
        assert_eq!(
            (tls.username.as_deref(), tls.domain.as_str()),
            (Some("a"), "b.org")
        );
        assert!(!tls.net.shown.contains("a%40b"));
        let start = parse("xmpp+starttls://127.0.0.1/c.org", Some("u@d.org"));
        assert_eq!(start.net.encryption, Encryption::StartTls);
        assert_eq!(
            (start.username.as_deref(), start.domain.as_str()),
            (Some("u"), "c.org")
        );
    }

    #[test]
    fn two_places_are_of_one_domain() {
        let ports = |url| {
            parse_pair(url, Some("u@d.org"))
                .unwrap()
                .map(|e| (e.net.addresses[0].port(), e.domain))
        };
        let of = |domain: &str, ports: [u16; 2]| ports.map(|port| (port, domain.to_owned()));
        assert_eq!(ports("xmpp://127.0.0.1:1,2/c.org"), of("c.org", [1, 2]));
        assert_eq!(ports("xmpp://127.0.0.1:1,[::1]:2"), of("d.org", [1, 2]));
        assert_eq!(ports("xmpps://127.0.0.1"), of("d.org", [5223, 5223]));
        let error = parse_pair("xmpp://127.0.0.1:1,127.0.0.2:1", None).unwrap_err();
        assert!(error.to_string().contains("127.0.0.2"), "{error}");
        assert!(error.hint.unwrap().contains("/DOMAIN"));
        assert!(parse_pair("xmpp://127.0.0.1:1,127.0.0.2:1/d", None).is_ok());
        // The host is the domain where no other is named.
        assert!(parse_pair("xmpp://127.0.0.1:1,2", None).is_ok());
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
