//! Logging in by SASL (RFC 6120 §6, RFC 5802): the choice of a mechanism, and the checks that the
//! SASL library leaves out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pubgauge_driver::Secret;
use pubgauge_net::login;
use sasl::client::mechanisms::{Anonymous, Plain, Scram};
use sasl::client::{Mechanism, MechanismError};
use sasl::common::scram::{Sha1, Sha256};
use sasl::common::{ChannelBinding, Credentials};
use schemars::JsonSchema;
use serde::Deserialize;

/// The most rounds of SCRAM that a server may ask for. Each is a hash on the client: without a
/// bound, a hostile server could keep it busy for hours.
const MAX_ITERATIONS: u64 = 1_000_000;

/// The mechanism by which the certificate of TLS says who the client is (XEP-0178).
pub(crate) const EXTERNAL: &str = "EXTERNAL";

/// How to make a server offer it.
const OFFERS_EXTERNAL: &str = "a server offers EXTERNAL to clients that show a certificate, where it is told to ask for one: ejabberd by \
     `tls_verify: true` and `cafile` of its listener";

/// SASL EXTERNAL: the account, `USER@DOMAIN`, or nothing where the certificate alone says it.
struct External(Vec<u8>);

impl Mechanism for External {
    fn name(&self) -> &str {
        EXTERNAL
    }

    fn from_credentials(_: Credentials) -> Result<External, MechanismError> {
        Ok(External(Vec::new()))
    }

    fn initial(&mut self) -> Vec<u8> {
        self.0.clone()
    }
}

/// Which mechanism the settings ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Choice {
    /// The best that the server offers.
    #[default]
    Auto,
    Plain,
    #[serde(rename = "scram-sha-1")]
    ScramSha1,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    /// By the certificate that TLS was begun with (XEP-0178).
    External,
    Anonymous,
}

impl Choice {
    /// All that name a mechanism.
    pub const ALL: [Choice; 5] = [
        Choice::Plain,
        Choice::ScramSha1,
        Choice::ScramSha256,
        Choice::External,
        Choice::Anonymous,
    ];

    /// The mechanism in the words of settings and of system files.
    pub fn mechanism(self) -> Option<&'static str> {
        Some(match self {
            Choice::Auto => return None,
            Choice::Plain => "plain",
            Choice::ScramSha1 => "scram-sha-1",
            Choice::ScramSha256 => "scram-sha-256",
            Choice::External => "external",
            Choice::Anonymous => "anonymous",
        })
    }
}

/// Who logs in.
pub(crate) struct Account<'a> {
    pub username: Option<&'a str>,
    pub password: Option<&'a Secret>,
    /// The account's domain.
    pub domain: &'a str,
    /// A certificate was shown in TLS.
    pub certificate: bool,
    /// Some of it is the client's own.
    pub own: bool,
    /// Nobody can read what is sent.
    pub private: bool,
    /// The endpoint, for messages.
    pub shown: &'a str,
}

/// A login in progress.
pub(crate) struct Login {
    mechanism: Box<dyn Mechanism>,
    /// Our own nonce, with which the server's must begin (RFC 5802 §5.1).
    nonce: Option<Vec<u8>>,
    /// The server has yet to prove that it knows the password.
    unproven: bool,
}

/// The mechanism that is asked for, or the best of those that the server offers; and why it is that one, for messages.
///
/// # Errors
/// If it would send the password in the clear.
fn mechanism_name(
    choice: Choice,
    offers: &dyn Fn(&str) -> bool,
    account: &Account<'_>,
) -> Result<(&'static str, &'static str), String> {
    // A certificate beside a password is for the connection alone.
    let certificate = account.certificate && account.password.is_none();
    Ok(match (choice, account.username) {
        (Choice::External, _) => (EXTERNAL, ""),
        (Choice::Auto, _) if certificate && offers(EXTERNAL) => (EXTERNAL, ""),
        (Choice::Auto, None) if certificate && !offers("ANONYMOUS") => {
            (EXTERNAL, ", the way in by a certificate alone")
        }
        (Choice::Anonymous, _) => ("ANONYMOUS", ""),
        (Choice::Plain, _) => ("PLAIN", ""),
        (Choice::ScramSha1, _) => ("SCRAM-SHA-1", ""),
        (Choice::ScramSha256, _) => ("SCRAM-SHA-256", ""),
        (Choice::Auto, None) => ("ANONYMOUS", ", and no account was given"),
        (Choice::Auto, Some(_)) if offers("SCRAM-SHA-256") => ("SCRAM-SHA-256", ""),
        (Choice::Auto, Some(_)) if offers("SCRAM-SHA-1") => ("SCRAM-SHA-1", ""),
        (Choice::Auto, Some(_)) if offers("PLAIN") && !account.private => {
            return Err(
                    "the server offers no way to log in but PLAIN, which would send the password in the clear\n  hint: use xmpp+starttls:// or xmpps://, or say native.xmpp.mechanism = \"plain\" if you mean it".into(),
                );
        }
        (Choice::Auto, Some(_)) => ("PLAIN", ""),
    })
}

impl Login {
    /// Chooses a mechanism among those that the server offers.
    ///
    /// # Errors
    /// Why no mechanism can be used, and what to do.
    pub fn choose(
        choice: Choice,
        offered: &[String],
        account: &Account<'_>,
    ) -> Result<Login, String> {
        let offers = |name: &str| offered.iter().any(|m| m == name);
        let (name, why) = mechanism_name(choice, &offers, account)?;
        let (username, password) = (account.username.is_some(), account.password.is_some());
        let given = login::Given {
            username,
            password,
            own: account.own,
        };
        let (what, hint) = login::refused(account.shown, given);
        if !offers(name) {
            let hint = match (name, username) {
                (EXTERNAL, _) => format!(
                    "{OFFERS_EXTERNAL}; or give an account and its password beside the certificate"
                ),
                (_, true) => "set native.xmpp.mechanism".into(),
                (_, false) => format!(
                    "set native.xmpp.mechanism, or give the account that the server wants: {hint}"
                ),
            };
            let offered = match offered {
                [] => "nothing".into(),
                some => some.join(", "),
            };
            return Err(format!(
                "the server does not offer SASL {name}{why}; it offers {offered}\n  hint: {hint}"
            ));
        }
        if name == "ANONYMOUS" {
            return Ok(Login {
                mechanism: Box::new(Anonymous::new()),
                nonce: None,
                unproven: false,
            });
        }
        if name == EXTERNAL {
            let address = |user| format!("{user}@{}", account.domain).into_bytes();
            let external = External(account.username.map_or_else(Vec::new, address));
            return Ok(Login {
                mechanism: Box::new(external),
                nonce: None,
                unproven: false,
            });
        }
        let (Some(username), Some(password)) = (account.username, account.password) else {
            return Err(format!(
                "SASL {name} needs an account and its password: {what}\n  hint: {hint}"
            ));
        };
        let scram = name.starts_with("SCRAM");
        // The library leaves this to its caller (RFC 5802 §5.1, `saslname`).
        let username = if scram {
            username.replace('=', "=3D").replace(',', "=2C")
        } else {
            username.to_owned()
        };
        let credentials = Credentials::default()
            .with_username(username)
            .with_password(password.reveal())
            .with_channel_binding(ChannelBinding::None);
        fn build_mechanism<M: Mechanism + 'static>(
            credentials: Credentials,
        ) -> Result<Box<dyn Mechanism>, sasl::client::MechanismError> {
            Ok(Box::new(M::from_credentials(credentials)?))
        }
        let mechanism = match name {
            "PLAIN" => build_mechanism::<Plain>(credentials),
            "SCRAM-SHA-1" => build_mechanism::<Scram<Sha1>>(credentials),
            _ => build_mechanism::<Scram<Sha256>>(credentials),
        };
        Ok(Login {
            mechanism: mechanism.map_err(|error| format!("SASL {name}: {error}"))?,
            nonce: None,
            unproven: scram,
        })
    }

    pub fn name(&self) -> &str {
        self.mechanism.name()
    }

    /// The first word, base64. An empty one is written `=` (RFC 6120 §6.4.2).
    pub fn initial(&mut self) -> String {
        let initial = self.mechanism.initial();
        if self.unproven {
            let nonce = attribute(&initial, b'r').unwrap_or_default();
            self.nonce = Some(nonce.to_vec());
        }
        if initial.is_empty() {
            "=".into()
        } else {
            STANDARD.encode(initial)
        }
    }

    /// The answer to a challenge, base64.
    ///
    /// # Errors
    /// When the challenge is not one.
    pub fn response(&mut self, challenge: &str) -> Result<String, String> {
        let challenge = decode(challenge)?;
        if let Some(nonce) = &self.nonce {
            if !attribute(&challenge, b'r').is_some_and(|theirs| theirs.starts_with(nonce)) {
                return Err("the server's nonce does not begin with ours".into());
            }
            let iterations = attribute(&challenge, b'i')
                .and_then(|i| std::str::from_utf8(i).ok()?.parse::<u64>().ok());
            if !iterations.is_some_and(|i| (1..=MAX_ITERATIONS).contains(&i)) {
                return Err(format!(
                    "the server asks for a number of SCRAM iterations that is not between 1 and {MAX_ITERATIONS}"
                ));
            }
        }
        let response = self.mechanism.response(&challenge);
        response
            .map(|response| STANDARD.encode(response))
            .map_err(|error| error.to_string())
    }

    /// Checks the server's final message.
    ///
    /// # Errors
    /// When it does not prove that the server knows the password.
    pub fn success(&mut self, data: &str) -> Result<(), String> {
        let data = decode(data)?;
        if !self.unproven {
            Ok(())
        } else {
            self.mechanism
                .success(&data)
                .map_err(|error| error.to_string())
        }
    }
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    match text.trim() {
        "" | "=" => Ok(Vec::new()),
        text => STANDARD
            .decode(text)
            .map_err(|_| "the server's SASL data is not base64".to_owned()),
    }
}

/// A value of a SCRAM message.
fn attribute(message: &[u8], name: u8) -> Option<&[u8]> {
    let mut parts = message.split(|b| *b == b',');
    parts.find_map(|part| part.strip_prefix(&[name, b'='][..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn nobody() -> Account<'static> {
        Account {
            username: None,
            password: None,
            domain: "d.org",
            certificate: false,
            own: false,
            private: true,
            shown: "xmpp://h:5222",
        }
    }

    /// A certificate says who its client is, unless a password does.
    #[test]
    fn a_certificate_alone_logs_in() {
        let offered = names(&["SCRAM-SHA-256", "EXTERNAL", "ANONYMOUS"]);
        let password = Secret::new("p");
        let first = |username, password| {
            let account = Account {
                username,
                password,
                certificate: true,
                ..nobody()
            };
            let mut login = Login::choose(Choice::Auto, &offered, &account).unwrap();
            let first = login.initial();
            login.success("").err().map_or(first, |_| "SCRAM".into())
        };
        assert_eq!(first(None, None), "=");
        assert_eq!(first(Some("u"), None), STANDARD.encode("u@d.org"));
        assert_eq!(first(Some("u"), Some(&password)), "SCRAM");
        let account = Account {
            certificate: true,
            ..nobody()
        };
        let choose = |choice, offered| Login::choose(choice, &names(offered), &account).err();
        let why = choose(Choice::Auto, &["PLAIN"]).unwrap();
        assert!(
            why.contains("EXTERNAL") && why.contains("tls_verify"),
            "{why}"
        );
        assert_eq!(choose(Choice::Auto, &["ANONYMOUS"]), None);
        let why = choose(Choice::External, &["ANONYMOUS"]).unwrap();
        assert!(why.contains("it offers ANONYMOUS"), "{why}");
    }

    fn choose(
        choice: Choice,
        offered: &[&str],
        username: Option<&str>,
        private: bool,
    ) -> Result<String, String> {
        let password = Secret::new("p");
        let account = Account {
            username,
            password: Some(&password),
            private,
            ..nobody()
        };
        let login = Login::choose(choice, &names(offered), &account)?;
        Ok(login.name().to_owned())
    }

    #[test]
    fn the_best_offered_is_chosen() {
        let all = ["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "ANONYMOUS"];
        assert_eq!(
            choose(Choice::Auto, &all, Some("u"), true).unwrap(),
            "SCRAM-SHA-256"
        );
        assert_eq!(
            choose(Choice::Auto, &all[..2], Some("u"), false).unwrap(),
            "SCRAM-SHA-1"
        );
        assert_eq!(
            choose(Choice::Auto, &all[..1], Some("u"), true).unwrap(),
            "PLAIN"
        );
        assert_eq!(choose(Choice::Auto, &all, None, true).unwrap(), "ANONYMOUS");
        assert_eq!(
            choose(Choice::Plain, &all, Some("u"), false).unwrap(),
            "PLAIN"
        );
    }

    #[test]
    fn what_cannot_be_is_said() {
        let error = choose(Choice::Auto, &["PLAIN"], Some("u"), false).unwrap_err();
        assert!(
            error.contains("in the clear") && error.contains("hint"),
            "{error}"
        );
        let error = choose(Choice::ScramSha1, &["X"], Some("u"), true).unwrap_err();
        assert!(error.contains("it offers X"), "{error}");
        let error = choose(Choice::Auto, &["PLAIN"], None, true).unwrap_err();
        assert!(error.contains("no account was given"), "{error}");
        let error = choose(Choice::Plain, &["PLAIN"], None, true).unwrap_err();
        assert!(error.contains("needs an account"), "{error}");
    }

    #[test]
    fn a_server_that_cheats_is_found_out() {
        let password = Secret::new("p");
        let account = Account {
            username: Some("a,b=c"),
            password: Some(&password),
            ..nobody()
        };
        let begin = || {
            let mut login =
                Login::choose(Choice::ScramSha1, &names(&["SCRAM-SHA-1"]), &account).unwrap();
            let first = STANDARD.decode(login.initial()).unwrap();
            let nonce = String::from_utf8(attribute(&first, b'r').unwrap().to_vec()).unwrap();
            (login, String::from_utf8(first).unwrap(), nonce)
        };
        let (mut login, first, _) = begin();
        assert!(first.starts_with("n,,n=a=2Cb=3Dc,r="), "{first}");
        let challenge = |r: &str, i: &str| STANDARD.encode(format!("r={r},s=c2FsdA==,i={i}"));
        let error = login.response(&challenge("theirs", "4096")).unwrap_err();
        assert!(error.contains("nonce"), "{error}");
        let (mut login, _, nonce) = begin();
        let error = login
            .response(&challenge(&nonce, "4000000000"))
            .unwrap_err();
        assert!(error.contains("iterations"), "{error}");
        // Success without a proof, or before the challenge.
        let (mut login, _, nonce) = begin();
        assert!(login.success("").is_err());
        login
            .response(&challenge(&format!("{nonce}x"), "1"))
            .unwrap();
        assert!(login.success("").is_err());
        assert!(login.success(&STANDARD.encode("v=AAAA")).is_err());
        assert!(begin().0.response("!").is_err());
    }
}
