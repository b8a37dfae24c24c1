//! Answers of a broker to one who publishes.

use std::time::Instant;

use pubgauge_mqtt_codec::{
    Ack, ConnAck, Packet, PropertyId, ReasonCode, Version, connect_return_code_words, decode,
};
use pubgauge_net::tls;

use super::{Publisher, WINDOW};

/// Longest packet that a broker may send: it has nothing to say but acknowledgements.
const MOST: usize = 64 << 10;

impl Publisher {
    /// Takes in the packets that are whole; how many bytes they have.
    ///
    /// # Errors
    /// Why the connection cannot go on.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            match decode(rest, self.version, MOST) {
                Ok(None) => return Ok(at),
                Ok(Some((packet, len))) => {
                    self.heard_at = Instant::now();
                    self.take(&packet)?;
                    at += len;
                }
                Err(_) if !self.is_connected && tls::looks_like_tls(rest) => {
                    return Err(tls::unexpected(&self.shown).to_string());
                }
                Err(error) => {
                    return Err(format!(
                        "{}: {error}\n  hint: is it an MQTT server, and of this version?",
                        self.shown
                    ));
                }
            }
        }
    }

    fn take(&mut self, packet: &Packet<'_>) -> Result<(), String> {
        match packet {
            Packet::ConnAck(answer) => self.begin(answer),
            Packet::PubAck(ack) => {
                self.settle(ack);
                Ok(())
            }
            Packet::Disconnect(farewell) => Err(format!(
                "{}: the broker ends the connection: {}",
                self.shown,
                farewell.reason.words()
            )),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, answer: &ConnAck<'_>) -> Result<(), String> {
        let shown = &self.shown;
        if answer.code != ReasonCode::SUCCESS {
            let words = match self.version {
                Version::V5 => answer.code.words(),
                Version::V311 => connect_return_code_words(answer.code.0),
            };
            return Err(format!("{shown}: the broker refuses: {words}"));
        }
        let number = |id| answer.properties.number(id);
        if number(PropertyId::MaximumQoS) == Some(0) {
            return Err(format!(
                "{shown}: the broker takes QoS 0 alone, which it does not acknowledge"
            ));
        }
        if let Some(most) = number(PropertyId::ReceiveMaximum) {
            self.allowed.window = WINDOW.min(most as usize).max(1);
        }
        if let Some(most) = number(PropertyId::MaximumPacketSize) {
            self.allowed.most_bytes = most as usize;
        }
        if let Some(seconds) = number(PropertyId::ServerKeepAlive) {
            self.allowed.keep_alive_s = u16::try_from(seconds).unwrap_or(u16::MAX).max(1);
        }
        self.allowed.retains = number(PropertyId::RetainAvailable) != Some(0);
        self.is_connected = true;
        Ok(())
    }

    fn settle(&mut self, ack: &Ack<'_>) {
        if self.in_flight.remove(&ack.packet_id).is_some() {
            let count = if ack.reason.is_error() {
                &mut self.refused
            } else {
                &mut self.acknowledged
            };
            *count += 1;
        }
    }
}
