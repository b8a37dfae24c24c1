//! From the CONNACK to subscriptions that stand, and subscriptions that change meanwhile.

use pubgauge_mqtt_codec::{
    ConnAck, EncodeError, FiltersBuf, Packet, PropertyId, ReasonCode, RetainHandling, SubAck,
    Subscribe, SubscribeOptions, TopicFiltersBuf, Unsubscribe, Version,
};

use super::{Asked, BrokerSession, Leaving, SessionState, Taking};
use crate::notice::Notice;

/// Rounds are counted up to here: packet identifiers have 16 bits, and a round takes two.
const MOST_ROUNDS: u16 = 30_000;

impl BrokerSession {
    pub(super) fn accepted(
        &mut self,
        connack: &ConnAck<'_>,
        taking: &mut Taking<'_>,
    ) -> Result<(), String> {
        if connack.code != ReasonCode::SUCCESS {
            return Err(self.refused(connack, taking.asked));
        }
        if self.is_dropping() {
            self.leaving = Some(Leaving::Left);
            self.had_session = false;
            self.unreleased.clear();
            return Ok(());
        }
        if let Some(in_flight) = &taking.asked.in_flight {
            in_flight.check(connack, &self.shown)?;
        }
        if !connack.session_present {
            self.unreleased.clear();
            if self.had_session {
                taking.notices.push(Notice::SessionLost {
                    broker: self.broker.clone(),
                });
            }
        }
        self.had_session |= connack.session_present;
        self.was_present = connack.session_present;
        let granted = (connack.properties).number(PropertyId::SessionExpiryInterval);
        if let Some(granted_s) = granted.filter(|granted| *granted < taking.asked.expiry_s) {
            taking.notices.push(Notice::ShorterSession {
                broker: self.broker.clone(),
                granted_s,
                asked_s: taking.asked.expiry_s,
            });
        }
        if let Some(wanted) = connack.properties.number(PropertyId::ServerKeepAlive) {
            self.keep_alive_s = u16::try_from(wanted).unwrap_or(u16::MAX);
        }
        self.state = SessionState::Subscribing;
        self.subscribe(&taking.asked.filters, taking.asked, taking.out)?;
        if taking.asked.filters.is_empty() {
            self.session_stands(taking)?;
        }
        Ok(())
    }

    /// Follows a change of the subscriptions: subscribes to what is `added`, then leaves what is dropped. In this order, so
    /// that nothing is missed in between.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn ask_again(
        &mut self,
        asked: &Asked,
        added: &[String],
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.has_left = false;
        match self.state {
            // The SUBSCRIBE that follows the CONNACK asks for everything.
            SessionState::Greeting => Ok(()),
            // The answer to the SUBSCRIBE before does not count any more.
            SessionState::Subscribing => self.subscribe(&asked.filters, asked, out),
            SessionState::Up => self.subscribe(added, asked, out),
        }
    }

    /// Appends a SUBSCRIBE to these filters, and the UNSUBSCRIBE from those that are dropped.
    fn subscribe(
        &mut self,
        filters: &[String],
        asked: &Asked,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        self.round = self.round % MOST_ROUNDS + 1;
        self.awaited = filters.to_vec();
        encode(self.round, filters, asked, out)
            .map_err(|error| format!("{}: the SUBSCRIBE cannot be encoded: {error}", self.shown))
    }

    pub(super) fn subscribed(
        &mut self,
        suback: &SubAck<'_>,
        taking: &mut Taking<'_>,
    ) -> Result<(), String> {
        if suback.packet_id != subscribe_id(self.round) {
            // To a SUBSCRIBE before the last.
            return Ok(());
        }
        if suback.codes.len() != self.awaited.len() {
            return Err(
                self.breach(&"a SUBACK with another number of codes than filters were asked for")
            );
        }
        let asked = taking.asked;
        let is_topic = |filter: &&String| asked.own_filter.as_ref() != Some(*filter);
        let (mut refused, mut refused_topics) = (0, 0);
        for (filter, &code) in self.awaited.iter().zip(suback.codes) {
            let (broker, filter) = (self.broker.clone(), filter.clone());
            if code >= 0x80 {
                refused += 1;
                refused_topics += usize::from(is_topic(&&filter));
                let why = ReasonCode(code).words().to_owned();
                taking.notices.push(Notice::SubscriptionRefused {
                    broker,
                    filter,
                    why,
                });
            } else if code < asked.qos as u8 {
                taking.notices.push(Notice::LowerQos {
                    broker,
                    filter,
                    qos: code,
                });
            }
        }
        if refused_topics == asked.filters.iter().filter(is_topic).count() {
            return Err(format!(
                "{}: the broker refused every subscription\n  hint: may this user subscribe to these topics? Does the broker have shared subscriptions?",
                self.shown
            ));
        }
        if self.state == SessionState::Up && refused < self.awaited.len() {
            taking.notices.push(Notice::Subscribed {
                broker: self.broker.clone(),
            });
        }
        self.session_stands(taking)
    }

    fn session_stands(&mut self, taking: &mut Taking<'_>) -> Result<(), String> {
        let asked = taking.asked;
        let was_up = self.state == SessionState::Up;
        self.state = SessionState::Up;
        self.had_session = true;
        self.has_left |= asked.dropped_filters.is_empty();
        let Some(canary) = self.canary.as_mut().filter(|_| !was_up) else {
            return Ok(());
        };
        let (now, out) = (taking.at.0, &mut *taking.out);
        canary
            .came_up(now, self.was_present, asked.version, out)
            .map_err(|error| format!("{}: the canary cannot be encoded: {error}", self.shown))
    }

    pub(super) fn unsubscribed(&mut self, packet_id: u16) {
        self.has_left |= packet_id == unsubscribe_id(self.round);
    }
}

fn subscribe_id(round: u16) -> u16 {
    2 * round - 1
}

fn unsubscribe_id(round: u16) -> u16 {
    2 * round
}

fn encode(
    round: u16,
    filters: &[String],
    asked: &Asked,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let is_v5 = asked.version == Version::V5;
    if !filters.is_empty() {
        let options = SubscribeOptions {
            qos: asked.qos,
            no_local: false,
            retain_as_published: is_v5,
            // With every SUBSCRIBE all retained messages would come again.
            retain_handling: if is_v5 {
                RetainHandling::SendIfNew
            } else {
                RetainHandling::Send
            },
        };
        let mut each = FiltersBuf::default();
        for filter in filters {
            each.push(filter, options)?;
        }
        let subscribe = Subscribe {
            packet_id: subscribe_id(round),
            filters: each.as_filters(),
            ..Subscribe::default()
        };
        Packet::Subscribe(subscribe).encode(asked.version, out)?;
    }
    if !asked.dropped_filters.is_empty() {
        let mut each = TopicFiltersBuf::default();
        for filter in &asked.dropped_filters {
            each.push(filter)?;
        }
        let unsubscribe = Unsubscribe {
            packet_id: unsubscribe_id(round),
            filters: each.as_filters(),
            ..Unsubscribe::default()
        };
        Packet::Unsubscribe(unsubscribe).encode(asked.version, out)?;
    }
    Ok(())
}
