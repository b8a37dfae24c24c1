//! Moves what was read into the link, packet by packet; duplicates, drops or delays packets as the
//! rules say.

use pubgauge_mqtt_codec::{MAX_PACKET_LEN, QoS, Version, packet_len};
use rand::RngExt;

use super::connection::{Connection, Live, Pipe};
use super::counts::Traffic;
use super::link::{Arrival, Kind, Lane, Late, Link};
use super::mqtt::{Protocol, Seen, Unacknowledged, introduction, look};
use super::rules::Direction;

/// DUP of a PUBLISH, in its first byte (5.0 §3.3.1.1).
const DUP: u8 = 8;

/// The link of a connection: the first that selects it, else the link of all, which is the first of
/// the list.
pub(super) fn choose(links: &[Link], order: usize, client_id: Option<&str>) -> usize {
    let mut named = links.iter().skip(1);
    let found = named.position(|link| link.select.holds(order, client_id));
    found.map_or(0, |at| at + 1)
}

/// Finds out a client's protocol, if that is not known, from the first bytes that it sent; its
/// CONNECT decides which link it has.
pub(super) fn introduce(connection: &mut Connection, links: &[Link], order: usize) {
    let unknown = |live: &&mut Box<Live>| live.protocol == Protocol::Unknown;
    let Some(live) = connection.live.as_mut().filter(unknown) else {
        return;
    };
    match introduction(&live.pipe(Direction::ToServer).inbox) {
        Ok(None) => {}
        Ok(Some(client)) => {
            live.protocol = Protocol::Mqtt(client.version);
            live.link = choose(links, order, Some(&client.client_id));
            connection.counts.client_id = Some(client.client_id);
        }
        Err(_) => live.protocol = Protocol::Other,
    }
}

/// One direction of a connection that has read something.
pub(super) struct Intake<'a> {
    lane: &'a mut Lane,
    pipe: &'a mut Pipe,
    /// PUBLISH packets of the other direction, which packets of this one acknowledge.
    answered: &'a mut Unacknowledged,
    traffic: &'a mut Traffic,
    arrival: Arrival,
}

impl<'a> Intake<'a> {
    /// The intake of an open connection, and its protocol; `None` while the protocol needs more
    /// bytes to be known.
    pub(super) fn of(
        connection: &'a mut Connection,
        links: &'a mut [Link],
        direction: Direction,
        arrival: Arrival,
    ) -> Option<(Intake<'a>, Protocol)> {
        let Connection { counts, live } = connection;
        let live = live.as_mut()?;
        let [to_server, to_client] = &mut live.pipes;
        let (pipe, back) = match direction {
            Direction::ToServer => (to_server, to_client),
            Direction::ToClient => (to_client, to_server),
        };
        let intake = Intake {
            lane: links[live.link].lane(direction),
            answered: &mut back.unacknowledged,
            traffic: counts.of_mut(direction),
            arrival,
            pipe,
        };
        let unknown = direction == Direction::ToServer && live.protocol == Protocol::Unknown;
        (!unknown && !intake.pipe.done).then_some((intake, live.protocol))
    }

    /// Takes in whole packets and leaves an incomplete one.
    ///
    /// # Errors
    /// Why the connection cannot go on.
    pub(super) fn take_in(&mut self, protocol: Protocol) -> Result<(), String> {
        let mut inbox = std::mem::take(&mut self.pipe.inbox);
        let taken = match protocol {
            Protocol::Mqtt(version) => self
                .packets(&inbox, version)
                .map_err(|error| format!("an MQTT packet is not one: {error}"))?,
            _ if self.lane.rules.need_mqtt() => {
                return Err("the rules are about MQTT, and this is not plain MQTT".to_owned());
            }
            _ => {
                self.receive(&inbox, Kind::Other);
                self.enter(&inbox, Kind::Other);
                inbox.len()
            }
        };
        inbox.drain(..taken);
        self.pipe.inbox = inbox;
        Ok(())
    }

    /// How many bytes of the packets at the start of the inbox were whole.
    fn packets(&mut self, inbox: &[u8], version: Version) -> Result<usize, String> {
        let mut taken = 0;
        let len = |at| packet_len(&inbox[at..], MAX_PACKET_LEN).map_err(|e| e.to_string());
        while let Some(len) = len(taken)?
            && let Some(packet) = inbox.get(taken..taken + len)
        {
            self.packet(packet, version)?;
            taken += len;
        }
        Ok(taken)
    }

    fn packet(&mut self, packet: &[u8], version: Version) -> Result<(), String> {
        match look(packet, version).map_err(|e| e.to_string())? {
            Seen::Other => {
                self.receive(packet, Kind::Other);
                self.enter(packet, Kind::Other);
            }
            Seen::PubAck { packet_id } => {
                self.receive(packet, Kind::Other);
                if self.answered.answers_duplicate(packet_id) {
                    self.traffic.acks_withheld += 1;
                } else {
                    self.enter(packet, Kind::Other);
                }
            }
            Seen::Publish { alias: true, .. } if self.lane.rules.confuse_aliases() => {
                return Err("lost or late packets would confuse its topic alias".to_owned());
            }
            Seen::Publish { qos, packet_id, .. } => {
                self.receive(packet, Kind::Publish);
                self.publish(packet, qos, packet_id);
            }
        }
        Ok(())
    }

    fn publish(&mut self, packet: &[u8], qos: QoS, packet_id: u16) {
        let rules = self.lane.rules;
        if qos == QoS::AtMostOnce && self.pipe.draws.random_bool(rules.lose) {
            self.traffic.dropped += 1;
            return;
        }
        self.enter(packet, Kind::Publish);
        if qos == QoS::AtLeastOnce {
            self.pipe.unacknowledged.push(packet_id, false);
        }
        if let Some(duplicate) = rules.duplicate
            && qos != QoS::ExactlyOnce
            && self.pipe.draws.random_bool(duplicate.share)
        {
            let mut bytes = packet.to_vec();
            if qos == QoS::AtLeastOnce {
                bytes[0] |= DUP;
            }
            self.traffic.duplicated += 1;
            self.traffic.waiting += Kind::Duplicate.amount(bytes.len() as u32);
            let late = Late {
                connection: self.arrival.connection,
                at: self.arrival.at + duplicate.late.as_nanos() as u64,
                packet_id,
                bytes,
            };
            if duplicate.late.is_zero() {
                self.enter_duplicate(&late);
            } else {
                self.lane.enter_late(late);
            }
        }
    }

    /// A duplicate enters now.
    pub(super) fn enter_duplicate(&mut self, late: &Late) {
        self.pipe.buffered += late.bytes.len();
        self.lane.enter(self.arrival, &late.bytes, Kind::Duplicate);
        if late.packet_id != 0 {
            self.pipe.unacknowledged.push(late.packet_id, true);
        }
    }

    fn receive(&mut self, bytes: &[u8], kind: Kind) {
        self.traffic.received += kind.amount(bytes.len() as u32);
    }

    fn enter(&mut self, bytes: &[u8], kind: Kind) {
        self.pipe.buffered += bytes.len();
        self.traffic.waiting += kind.amount(bytes.len() as u32);
        self.lane.enter(self.arrival, bytes, kind);
    }
}
