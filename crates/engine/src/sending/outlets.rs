//! The topics on which a worker's publishers send.

use pubgauge_driver::{ClientId, DriverError, Fleet, TopicId, Travel};
use pubgauge_workload::Exchange;
use rustc_hash::FxHashMap;

use super::{Local, Sending, Whereabouts, reply_topic};

/// The state that sending on a stream needs.
pub(super) struct Outlet {
    pub(super) topic: TopicId,
    /// That of its sentinels, which are no last values.
    pub(super) sentinels: TopicId,
    /// The system acknowledges its messages, where it acknowledges any.
    pub(super) acknowledged: bool,
    /// Next sequence number of measured and of warm-up messages.
    pub(super) next: [u32; 2],
}

impl Outlet {
    fn new(topic: TopicId, sentinels: TopicId) -> Self {
        Outlet {
            topic,
            sentinels,
            acknowledged: true,
            next: [0; 2],
        }
    }
}

impl Sending {
    /// Makes the publishers of this worker's devices known. `clients` gives each device's client.
    ///
    /// # Errors
    /// A topic that the system cannot express.
    pub fn advertise(
        &mut self,
        fleet: &mut dyn Fleet,
        clients: &FxHashMap<u32, ClientId>,
    ) -> Result<(), DriverError> {
        let brief = self.brief.clone();
        for (f, flow) in brief.workload.flows.iter().enumerate() {
            for (p, publisher) in flow.publishers.iter().enumerate() {
                let Some(client) = clients.get(&publisher.device) else {
                    continue;
                };
                let local = self.locals.len() as u32;
                self.locals.push(Local {
                    client: *client,
                    flow: f as u32,
                    first_stream: brief.audience.first_stream(f as u32, p as u32),
                    first_outlet: self.outlets.len() as u32,
                    topics: publisher.topics.len() as u32,
                    turn: 0,
                    place: Whereabouts::Here,
                    blocked: false,
                    blocked_since: None,
                    out_since: None,
                });
                self.by_client.push((client.0, local));
                for (t, topic) in publisher.topics.iter().enumerate() {
                    let outlet = match brief.travel(f, p, t) {
                        None => {
                            let topic = fleet.advertise(*client, topic)?;
                            Outlet::new(topic, topic)
                        }
                        Some(travel) => {
                            let proving = Travel {
                                retain: Some(false),
                                ..travel
                            };
                            Outlet::new(
                                fleet.advertise_as(*client, topic, travel)?,
                                fleet.advertise_as(*client, topic, proving)?,
                            )
                        }
                    };
                    self.outlets.push(Outlet {
                        acknowledged: fleet.is_acknowledged(outlet.topic),
                        ..outlet
                    });
                }
            }
            if flow.exchange != Exchange::PingPong {
                continue;
            }
            let topics = flow.publishers.iter().flat_map(|p| &p.topics);
            for (stream, topic) in brief.streams_of(f).zip(topics) {
                let devices = brief.audience.responding_devices(&brief.workload, stream);
                for client in devices.filter_map(|device| clients.get(&device)) {
                    let topic = fleet.advertise(*client, &reply_topic(topic))?;
                    self.reply_topics.insert((client.0, stream), topic);
                }
            }
        }
        self.by_client.sort_unstable();
        Ok(())
    }
}
