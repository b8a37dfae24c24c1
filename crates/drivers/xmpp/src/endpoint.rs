//! Endpoints: `xmpp://[user@]host[:port][/domain]`, `xmpp+starttls://...` and `xmpps://...`.

use pubgauge_driver::DriverError;
use pubgauge_net::endpoint::{Endpoint as Net, Scheme};

const SCHEME: Scheme = Scheme {
    protocol: "XMPP",
    plain: &["xmpp", "xmpp+starttls"],
    secure: &["xmpps"],
    plain_port: 5222,
    secure_port: 5223,
    path: Some("the XMPP domain"),
};

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
    pub net: Net,
    /// The XMPP domain.
    pub domain: String,
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
        let net = Net::parse(url, &SCHEME)?;
        let bad = |what: &str| {
            DriverError::with_hint(
                format!("{} is not an XMPP endpoint: {what}", net.shown),
                "expected xmpp://HOST[:PORT][/DOMAIN] (not encrypted), xmpp+starttls://... or xmpps://..., optionally USER@ before HOST",
            )
        };
        let security = match net.shown.split_once("://") {
            Some(("xmpp+starttls", _)) => Security::StartTls,
            _ if net.tls => Security::Direct,
            _ => Security::None,
        };
        let account = net.username.as_deref().or(default_user);
        let (username, of_user) = match account.map(|a| a.split_once('@').ok_or(a)) {
            None => (None, None),
            Some(Ok((user, domain))) => (Some(user.to_owned()), Some(domain)),
            Some(Err(user)) => (Some(user.to_owned()), None),
        };
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
            security,
            username,
            net,
        })
    }

    /// Whether nobody but this host can read what is sent: encrypted, or never on a wire.
    pub fn is_private(&self) -> bool {
        self.security != Security::None || self.net.addresses.iter().all(|a| a.ip().is_loopback())
    }
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
        assert_eq!((plain.security, plain.username), (Security::None, None));
        assert_eq!(plain.domain, "127.0.0.1");
        let tls = parse("xmpps://a%40b.org@[::1]:99/", Some("other"));
        assert_eq!(tls.net.addresses, ["[::1]:99".parse().unwrap()]);
        assert_eq!(tls.security, Security::Direct);
        assert_eq!(
            (tls.username.as_deref(), tls.domain.as_str()),
            (Some("a"), "b.org")
        );
        assert!(!tls.net.shown.contains("a%40b"));
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
