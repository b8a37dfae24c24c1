//! The calls of [`Fleet`].

use pubgauge_driver::{
    Change, ClientId, ClientSpec, DriverError, Events, Fleet, Grant, Nanos, Payload, Publish,
    Refusal, Subscription, TopicId, Travel, WireBytes,
};

use super::{CLOSE_TIMEOUT_MS, ClientLink, FleetClient, Protocol, State, Taken, TcpFleet};
use crate::event_loop::Driven;
use crate::out::OUT_CAP;
use crate::pair;

impl<P: Protocol> TcpFleet<P> {
    fn known(&self, id: ClientId) -> Result<&FleetClient<P::Client>, DriverError> {
        self.clients
            .get(id.0 as usize)
            .ok_or_else(|| DriverError::new(format!("no client {} in this fleet", id.0)))
    }

    /// Writes a full buffer, and returns whether there is room then.
    #[cold]
    fn make_room(&mut self, id: ClientId) -> bool {
        let out = self.clients[id.0 as usize].out.as_ref();
        !out.is_some_and(|out| out.stuck)
            && self.flush(id).is_ok()
            && self.clients[id.0 as usize].pending() < OUT_CAP
    }

    /// The answer to a publish for which there is no room.
    fn no_room(&mut self, id: ClientId) -> Publish {
        if self.shared.tuning.drop_when_full {
            Publish::Refused(Refusal::Dropped)
        } else {
            self.not_yet(id)
        }
    }

    fn not_yet(&mut self, id: ClientId) -> Publish {
        self.clients[id.0 as usize].owes_writable = true;
        Publish::Blocked
    }
}

impl<P: Protocol> Fleet for TcpFleet<P> {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        let place = pair::place_of(spec, self.shared.endpoints.len())?;
        if let (Some([name, hint]), true) = (P::NO_WILLS, spec.will.is_some()) {
            return Err(DriverError::with_hint(
                format!(
                    "client {:?} has a will, which {name} does not know",
                    spec.name
                ),
                hint,
            ));
        }
        let own = self.protocol.client(spec)?;
        let id = ClientId(self.clients.len() as u32);
        let identities = &mut self.shared.identities;
        identities.note(self.clients.len(), &spec.login, self.tls.as_ref())?;
        let source = self.shared.number_of(spec.source);
        self.clients.push(FleetClient {
            source,
            ..FleetClient::new(spec, place, own)
        });
        self.begin(id).inspect_err(|_| {
            self.clients.pop();
        })?;
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, subscription: &Subscription) -> Result<(), DriverError> {
        if self.known(id)?.state != State::Connected {
            return Err(DriverError::new("a client subscribes once it is connected"));
        }
        let (protocol, mut link) = self.link(id);
        protocol.subscribe(&mut link, subscription)
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        self.known(id)?;
        let (protocol, mut link) = self.link(id);
        protocol.advertise(&mut link, topic)
    }

    fn advertise_as(
        &mut self,
        id: ClientId,
        topic: &str,
        travel: Travel,
    ) -> Result<TopicId, DriverError> {
        self.known(id)?;
        let (protocol, mut link) = self.link(id);
        protocol.advertise_as(&mut link, topic, travel)
    }

    fn is_acknowledged(&self, topic: TopicId) -> bool {
        self.protocol.is_acknowledged(topic)
    }

    #[inline]
    fn publish(&mut self, id: ClientId, topic: TopicId, payload: Payload<'_>, tag: u64) -> Publish {
        let Some(client) = self.clients.get_mut(id.0 as usize) else {
            return Publish::Refused(Refusal::NotConnected);
        };
        if client.state != State::Connected {
            return Publish::Refused(Refusal::NotConnected);
        }
        if client.pending() >= OUT_CAP && !self.make_room(id) {
            return self.no_room(id);
        }
        let client = &mut self.clients[id.0 as usize];
        if let Some(out) = client.out.as_mut().filter(|out| out.start != 0) {
            out.compact();
        }
        let mut link = ClientLink {
            id,
            client,
            shared: &mut self.shared,
            tls: self.tls.as_ref(),
        };
        match self.protocol.publish(&mut link, topic, payload, tag) {
            Taken::Accepted => {}
            Taken::Full => return self.no_room(id),
            Taken::NotYet => return self.not_yet(id),
            Taken::Refused(why) => return Publish::Refused(why),
        }
        link.shared.unsettled += 1;
        let out = link.client.out.as_ref();
        if out.is_some_and(|out| !out.stuck && out.pending().len() >= link.shared.tuning.batch) {
            // A failure is reported by the next poll.
            let _ = self.flush(id);
        }
        Publish::Accepted
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        self.run(until, events)
    }

    fn take_at_most(&mut self, id: ClientId, messages: Option<u32>) -> Result<(), DriverError> {
        if self.known(id)?.fd.is_none() {
            return Ok(());
        }
        let client = &mut self.clients[id.0 as usize];
        match (&mut client.layers, messages) {
            (Some(layers), None) => layers.bound = None,
            (None, None) => {}
            (_, bound) => client.layers.get_or_insert_default().bound = bound,
        }
        // No edge will come for what is waiting already.
        self.mark_ready(id);
        Ok(())
    }

    fn disconnect(&mut self, id: ClientId) {
        let Ok(client) = self.known(id) else {
            return;
        };
        match client.state {
            State::Closing => {}
            State::Connected => {
                self.look_at_clock();
                let (protocol, mut link) = self.link(id);
                protocol.goodbye(&mut link);
                link.client.state = State::Closing;
                link.mark_dirty(); // Whether or not there are last words.
                link.set_timer(CLOSE_TIMEOUT_MS);
            }
            State::Down | State::Connecting | State::Greeting => {
                self.drop_connection(id, false);
                self.shared.reports.forget(id);
                self.shared.reports.owe(id, Change::Closed);
            }
        }
    }

    fn abort(&mut self, id: ClientId) {
        if self.known(id).is_ok() {
            self.drop_connection(id, false);
            self.shared.reports.forget(id);
        }
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        match self.known(id)?.state {
            State::Down => self.begin(id),
            _ => Err(DriverError::new("the client is still connected")),
        }
    }

    fn renew_will(&mut self, id: ClientId, payload: Vec<u8>) -> Result<(), DriverError> {
        self.known(id)?;
        let client = &mut self.clients[id.0 as usize].own;
        if self.protocol.renew_will(client, payload) {
            Ok(())
        } else {
            Err(DriverError::new(format!("client {} has no will", id.0)))
        }
    }

    fn unsettled(&self) -> u64 {
        self.shared.unsettled
    }

    fn wire_bytes(&self) -> WireBytes {
        self.shared.wire
    }

    fn writes(&self) -> Option<u64> {
        Some(self.shared.writes)
    }

    fn close(&mut self, until: Nanos) {
        P::close(self, until);
        for id in 0..self.clients.len() as u32 {
            self.drop_connection(ClientId(id), false);
        }
    }

    fn grants(&self) -> Vec<Grant> {
        self.protocol.grants()
    }

    fn parting_messages(&self) -> u64 {
        self.protocol.parting_messages()
    }

    fn left_behind(&self) -> Option<String> {
        let what = self.protocol.left_behind()?;
        let shown = &self.shared.endpoints.first()?.shown;
        Some(format!("{shown}: {what}"))
    }
}
