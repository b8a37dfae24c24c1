//! One fleet of each library behind one `Fleet`.

use pubgauge_driver::{
    Acknowledgement, Change, ClientId, ClientSpec, Clock, Delivery, DriverError, Events, Fleet,
    Nanos, Payload, Publish, Subscription, TopicId, WireBytes,
};

/// Longest sleep of a worker that has clients in both libraries, ns.
pub const SLICE: Nanos = 500_000;

/// The two fleets, and which client of this fleet each of their clients belongs to.
pub(crate) struct MixedFleet {
    sides: [Side; 2],
    clients: Vec<[Option<ClientId>; 2]>,
    /// Clients of both sides that still miss one of two changes of a kind.
    halves: Halves,
    clock: Clock,
}

/// Indices of the sides.
const OUT: usize = 0;
const INTO: usize = 1;

struct Side {
    fleet: Box<dyn Fleet>,
    /// The number in this fleet of each of its clients.
    ours: Vec<ClientId>,
}

/// Changes that a client of both sides has seen on one: a change counts once both have it.
#[derive(Default)]
struct Halves(Vec<(ClientId, bool)>);

impl Halves {
    /// Whether this completes the pair; `connected` tells the two kinds of changes apart.
    fn second(&mut self, client: ClientId, connected: bool) -> bool {
        match self.0.iter().position(|half| *half == (client, connected)) {
            Some(index) => {
                self.0.swap_remove(index);
                true
            }
            None => {
                self.0.push((client, connected));
                false
            }
        }
    }
}

impl MixedFleet {
    pub(crate) fn new(out: Box<dyn Fleet>, into: Box<dyn Fleet>, clock: Clock) -> Self {
        let side = |fleet| Side {
            fleet,
            ours: Vec::new(),
        };
        MixedFleet {
            sides: [side(out), side(into)],
            clients: Vec::new(),
            halves: Halves::default(),
            clock,
        }
    }

    fn client_on(&self, id: ClientId, side: usize) -> Result<ClientId, DriverError> {
        let place = self.clients.get(id.0 as usize).and_then(|c| c[side]);
        place.ok_or_else(|| {
            DriverError::with_hint(
                format!(
                    "client {} does not {}",
                    id.0,
                    if side == OUT { "publish" } else { "subscribe" }
                ),
                "say so when it connects: that decides in which library it lives",
            )
        })
    }

    fn poll_side(
        &mut self,
        side: usize,
        until: Nanos,
        events: &mut dyn Events,
    ) -> Result<bool, DriverError> {
        let Side { fleet, ours } = &mut self.sides[side];
        let mut relay = Relay {
            events,
            ours,
            clients: &self.clients,
            halves: &mut self.halves,
            reported: false,
        };
        fleet.poll(until, &mut relay)?;
        Ok(relay.reported)
    }

    fn for_each_side(&mut self, id: ClientId, mut act: impl FnMut(&mut dyn Fleet, ClientId)) {
        let Some(places) = self.clients.get(id.0 as usize).copied() else {
            return;
        };
        for (side, place) in places.into_iter().enumerate() {
            if let Some(place) = place {
                act(self.sides[side].fleet.as_mut(), place);
            }
        }
    }
}

/// Translates the clients of one side into ours.
struct Relay<'a> {
    events: &'a mut dyn Events,
    ours: &'a [ClientId],
    clients: &'a [[Option<ClientId>; 2]],
    halves: &'a mut Halves,
    reported: bool,
}

impl Events for Relay<'_> {
    fn arrived(&mut self) {
        self.events.arrived();
    }

    #[inline]
    fn delivered(&mut self, client: ClientId, delivery: Delivery<'_>) {
        self.reported = true;
        self.events
            .delivered(self.ours[client.0 as usize], delivery);
    }

    fn acknowledged(&mut self, client: ClientId, tag: u64, answer: Acknowledgement) {
        self.reported = true;
        self.events
            .acknowledged(self.ours[client.0 as usize], tag, answer);
    }

    fn changed(&mut self, client: ClientId, change: Change) {
        let ours = self.ours[client.0 as usize];
        let both = self.clients[ours.0 as usize].iter().all(Option::is_some);
        let pass = match &change {
            Change::Connected { .. } if both => self.halves.second(ours, true),
            Change::Closed if both => self.halves.second(ours, false),
            _ => true,
        };
        if pass {
            self.reported = true;
            self.events.changed(ours, change);
        }
    }
}

impl Fleet for MixedFleet {
    fn connect(&mut self, spec: &ClientSpec) -> Result<ClientId, DriverError> {
        let id = ClientId(self.clients.len() as u32);
        // One that says neither is taken for a publisher.
        let wanted = [spec.publishes || !spec.subscribes, spec.subscribes];
        let mut places = [None, None];
        for (side, wanted) in wanted.into_iter().enumerate() {
            if wanted {
                let place = match self.sides[side].fleet.connect(spec) {
                    Ok(place) => place,
                    Err(error) => {
                        // The other side has it already: it keeps its number there, and reports nothing.
                        if let Some(place) = places[OUT] {
                            self.sides[OUT].fleet.abort(place);
                        }
                        return Err(error);
                    }
                };
                self.sides[side].ours.push(id);
                places[side] = Some(place);
            }
        }
        self.clients.push(places);
        Ok(id)
    }

    fn subscribe(&mut self, id: ClientId, asked: &Subscription) -> Result<(), DriverError> {
        let place = self.client_on(id, INTO)?;
        self.sides[INTO].fleet.subscribe(place, asked)
    }

    fn advertise(&mut self, id: ClientId, topic: &str) -> Result<TopicId, DriverError> {
        let place = self.client_on(id, OUT)?;
        self.sides[OUT].fleet.advertise(place, topic)
    }

    #[inline]
    fn publish(&mut self, id: ClientId, topic: TopicId, payload: Payload<'_>, tag: u64) -> Publish {
        match self.clients.get(id.0 as usize) {
            Some([Some(place), _]) => self.sides[OUT].fleet.publish(*place, topic, payload, tag),
            _ => Publish::Refused(pubgauge_driver::Refusal::NotConnected),
        }
    }

    fn poll(&mut self, until: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
        let [out, into] = [OUT, INTO].map(|side| !self.sides[side].ours.is_empty());
        match (out, into) {
            (true, false) => self.poll_side(OUT, until, events).map(|_| ()),
            (false, _) => self.poll_side(INTO, until, events).map(|_| ()),
            (true, true) => loop {
                let now = self.clock.now();
                let mut reported = self.poll_side(OUT, 0, events)?;
                let slice = if reported { 0 } else { until.min(now + SLICE) };
                reported |= self.poll_side(INTO, slice, events)?;
                if reported || self.clock.now() >= until {
                    return Ok(());
                }
            },
        }
    }

    fn disconnect(&mut self, id: ClientId) {
        self.for_each_side(id, |fleet, place| fleet.disconnect(place));
    }

    fn abort(&mut self, id: ClientId) {
        self.halves.0.retain(|(client, _)| *client != id);
        self.for_each_side(id, |fleet, place| fleet.abort(place));
    }

    fn reconnect(&mut self, id: ClientId) -> Result<(), DriverError> {
        // One side may have failed and the other not.
        self.abort(id);
        let mut outcome = Ok(());
        self.for_each_side(id, |fleet, place| {
            if outcome.is_ok() {
                outcome = fleet.reconnect(place);
            }
        });
        outcome
    }

    fn unsettled(&self) -> u64 {
        self.sides[OUT].fleet.unsettled()
    }

    fn wire_bytes(&self) -> WireBytes {
        let [out, into] = [OUT, INTO].map(|side| self.sides[side].fleet.wire_bytes());
        WireBytes {
            sent: out.sent + into.sent,
            received: out.received + into.received,
        }
    }

    fn writes(&self) -> Option<u64> {
        let [out, into] = [OUT, INTO].map(|side| self.sides[side].fleet.writes());
        Some(out? + into?)
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn close(&mut self, until: Nanos) {
        for side in &mut self.sides {
            side.fleet.close(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// A fleet that takes clients until it is told not to, and notes those that are aborted.
    struct Pretend {
        takes: Rc<RefCell<bool>>,
        clients: u32,
        news: Vec<(ClientId, Change)>,
        aborted: Rc<RefCell<Vec<ClientId>>>,
    }

    const CONNECTED: Change = Change::Connected {
        session_present: false,
        address: None,
    };

    impl Fleet for Pretend {
        fn connect(&mut self, _: &ClientSpec) -> Result<ClientId, DriverError> {
            if !*self.takes.borrow() {
                return Err(DriverError::new("refused"));
            }
            let id = ClientId(self.clients);
            self.clients += 1;
            self.news.push((id, CONNECTED));
            Ok(id)
        }

        fn subscribe(&mut self, _: ClientId, _: &Subscription) -> Result<(), DriverError> {
            unimplemented!()
        }

        fn advertise(&mut self, _: ClientId, _: &str) -> Result<TopicId, DriverError> {
            unimplemented!()
        }

        fn publish(&mut self, _: ClientId, _: TopicId, _: Payload<'_>, _: u64) -> Publish {
            unimplemented!()
        }

        fn poll(&mut self, _: Nanos, events: &mut dyn Events) -> Result<(), DriverError> {
            for (id, change) in self.news.drain(..) {
                events.changed(id, change);
            }
            Ok(())
        }

        fn disconnect(&mut self, _: ClientId) {}

        fn abort(&mut self, id: ClientId) {
            self.news.retain(|(client, _)| *client != id);
            self.aborted.borrow_mut().push(id);
        }

        fn reconnect(&mut self, _: ClientId) -> Result<(), DriverError> {
            unimplemented!()
        }

        fn unsettled(&self) -> u64 {
            0
        }

        fn wire_bytes(&self) -> WireBytes {
            WireBytes::default()
        }

        fn close(&mut self, _: Nanos) {}
    }

    #[derive(Default)]
    struct Changes(Vec<(ClientId, Change)>);

    impl Events for Changes {
        fn arrived(&mut self) {}
        fn delivered(&mut self, _: ClientId, _: Delivery<'_>) {}
        fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}
        fn changed(&mut self, client: ClientId, change: Change) {
            self.0.push((client, change));
        }
    }

    #[test]
    fn a_client_that_one_library_refuses_leaves_nothing_in_the_other() {
        let aborted = Rc::new(RefCell::new(Vec::new()));
        let takes = Rc::new(RefCell::new(false));
        let side = |takes: &Rc<RefCell<bool>>| {
            Box::new(Pretend {
                takes: takes.clone(),
                clients: 0,
                news: Vec::new(),
                aborted: aborted.clone(),
            })
        };
        let out = side(&Rc::new(RefCell::new(true)));
        let mut fleet = MixedFleet::new(out, side(&takes), Clock::Monotonic);
        let both = ClientSpec {
            publishes: true,
            subscribes: true,
            ..ClientSpec::default()
        };
        assert!(fleet.connect(&both).is_err());
        assert_eq!(*aborted.borrow(), [ClientId(0)]);
        let mut changes = Changes::default();
        fleet.poll(0, &mut changes).expect("polls");
        assert_eq!(changes.0, []);
        // The next one has its number, and is connected once.
        *takes.borrow_mut() = true;
        assert_eq!(fleet.connect(&both), Ok(ClientId(0)));
        fleet.poll(0, &mut changes).expect("polls");
        fleet.poll(0, &mut changes).expect("polls");
        assert_eq!(changes.0, [(ClientId(0), CONNECTED)]);
    }
}
