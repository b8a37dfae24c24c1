//! The settings that only this driver knows, `native.xmpp.*`.

use pubgauge_driver::NativeSettings;
use pubgauge_net::socket::SocketOptions;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::sasl::Choice;

/// The driver's name in study files.
pub(crate) const NAME: &str = "xmpp";

pub(crate) static NATIVE: NativeSettings<XmppNative> = NativeSettings::for_driver(NAME);

/// `native.xmpp.*` as given.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct XmppNative {
    /// SASL mechanism; auto is EXTERNAL with a client certificate and no password, where the server offers that, else the first
    /// of SCRAM-SHA-256, SCRAM-SHA-1 and PLAIN that it offers, and ANONYMOUS without an account.
    pub mechanism: Choice,
    /// Service of the nodes (XEP-0060).
    pub pubsub_service: Option<Service>,
    /// Interval at which nodes that match a wildcard are looked for, ms (XEP-0030); with 0 at the subscription
    /// only.
    #[schemars(range(max = 3_600_000))]
    pub discovery_interval_ms: Option<u32>,
    #[serde(flatten)]
    pub socket: SocketOptions,
}

/// A bare address: no resource, and nothing that would have to be escaped.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub(crate) struct Service(pub String);

impl TryFrom<String> for Service {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let odd = |c: char| "/<>&'\"".contains(c) || c.is_whitespace() || c.is_control();
        if text.is_empty() || text.len() > 1023 || text.contains(odd) {
            Err("expected the address of a service, such as \"pubsub.example.org\"")
        } else {
            Ok(Service(text))
        }
    }
}
