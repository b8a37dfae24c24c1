//! Answers of a broker that does not take a collector, in words.

use pubgauge_mqtt_codec::{
    ConnAck, Disconnect, PropertyId, ReasonCode, Version, connect_return_code_words,
};
use pubgauge_net::login;

use super::{Asked, BrokerSession};

impl BrokerSession {
    pub(super) fn refused(&self, connack: &ConnAck<'_>, asked: &Asked) -> String {
        let code = connack.code;
        let is_v311 = asked.version == Version::V311;
        let (words, number) = if is_v311 {
            (
                connect_return_code_words(code.0),
                format!("return code {}", code.0),
            )
        } else {
            (code.words(), format!("reason code 0x{:02x}", code.0))
        };
        let hint = match (is_v311, code.0) {
            (true, 4 | 5) | (false, 0x86 | 0x87) => {
                let given = login::Given {
                    username: self.username.is_some(),
                    password: self.password.is_some(),
                    own: false,
                };
                let (what, hint) = login::refused(&self.shown, given);
                format!(": {what}\n  hint: {hint}")
            }
            (true, 1) | (false, 0x84) => "\n  hint: set `mqtt` to what the broker speaks".into(),
            (true, 2) | (false, 0x85) => {
                "\n  hint: the broker does not take this name as client identifier".into()
            }
            _ => String::new(),
        };
        let told = connack.properties.text(PropertyId::ReasonString);
        let told = told.map(|told| format!(": {told}")).unwrap_or_default();
        format!(
            "{}: the broker refused the connection: {words} ({number}){told}{hint}",
            self.shown
        )
    }

    pub(super) fn dismissed(&self, end: &Disconnect<'_>) -> String {
        let hint = match end.reason {
            ReasonCode::SESSION_TAKEN_OVER => {
                "\n  hint: another collector has the same name, or two of the addresses lead to one broker"
            }
            _ => "",
        };
        format!(
            "{}: the broker ended the connection: {}{hint}",
            self.shown, end.reason
        )
    }
}
