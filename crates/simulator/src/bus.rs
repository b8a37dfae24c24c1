//! The simulated system itself: queues, random draws and the record of what happened.

mod draws;
mod publishing;
mod stored;
mod wills;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rand::SeedableRng;
use rand::rngs::StdRng;

use self::stored::Stored;
use self::wills::PendingWill;
pub use self::wills::WillTruth;
use super::behaviour::{Behaviour, WhenFull};
use pubgauge_driver::Travel;
use pubgauge_driver::clock::{Clock, Nanos};
use pubgauge_driver::header::{HEADER_LEN, Header, Mark};
use pubgauge_driver::seam::{Acknowledgement, Subscription};
use pubgauge_driver::topic::TopicMatch;

/// One true delivery, or a loss.
#[derive(Clone, Debug, PartialEq)]
pub struct TruthRecord {
    /// Receiving client's name.
    pub subscriber: String,
    /// The group as whose member it receives.
    pub group: Option<String>,
    /// The message's header; `None` if the payload is not of this trial.
    pub header: Option<Header>,
    /// When the publisher handed it over, clock time.
    pub published_at: Nanos,
    /// When it was delivered, clock time; `None`: lost, or still under way.
    pub delivered_at: Option<Nanos>,
    /// Whether it never comes.
    pub lost: bool,
    /// Its place in the order of all deliveries.
    pub turn: u64,
    /// The message as it was published, where its header travelled beside the payload.
    pub carried: Option<Arc<Carried>>,
    /// It was kept as its topic's last value, and delivered as that.
    pub last_value: bool,
    /// Whose will it is, if it is one; it was published at [`TruthRecord::published_at`].
    pub will: Option<WillTruth>,
}

/// A message whose header travels beside its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Its topic.
    pub topic: String,
    /// Its payload, all of it.
    pub payload: Vec<u8>,
    /// How it travels.
    pub travel: Travel,
}

/// A message as a fleet hands it over.
pub(super) struct Sent<'a> {
    pub(super) topic: &'a str,
    pub(super) payload: Vec<u8>,
    /// The header and how the message travels, where the header is not in the payload.
    pub(super) apart: Option<([u8; HEADER_LEN], Travel)>,
    pub(super) acknowledge: Option<u64>,
    /// It lies before the system for good.
    pub(super) unread: bool,
    /// The system keeps it as its topic's last value.
    pub(super) keeps: bool,
}

/// The simulated system; all fleets of a trial share it.
pub struct Bus {
    inner: Mutex<Inner>,
    /// Signals fleets that sleep in real time.
    pub(super) arrived: Condvar,
    pub(super) clock: Clock,
    pub(super) born: Nanos,
    mark: Mark,
}

pub(super) struct Inner {
    behaviour: Behaviour,
    rng: StdRng,
    pub(super) fleets: Vec<BinaryHeap<Reverse<Parcel>>>,
    subscriptions: Vec<Subscribed>,
    turn: HashMap<String, usize>,
    /// Messages that wait for clients whose applications are busy, by fleet and client.
    pub(super) waiting: HashMap<(usize, u32), VecDeque<Parcel>>,
    last_delivery: HashMap<(usize, u32, u32), Nanos>,
    /// The messages of each topic that are kept for whoever subscribes later.
    stored: BTreeMap<String, Stored>,
    /// Wills that are not published yet.
    pending_wills: Vec<PendingWill>,
    busy_until: Nanos,
    inside: usize,
    order: u64,
    /// `None`: not recorded.
    truth: Option<Vec<TruthRecord>>,
    deliveries: u64,
}

struct Subscribed {
    fleet: usize,
    client: u32,
    name: String,
    filter: String,
    group: Option<String>,
    hears_from: Nanos,
    /// Time that it takes per delivery, and when it has finished all so far.
    takes_ns: Nanos,
    /// Delay of all that it gets, beside that of others.
    later_ns: Nanos,
    /// Probability that one of its deliveries is lost.
    loss: f64,
    busy_until: Nanos,
    /// Its client is not connected, and the system keeps for it what it would get.
    away: bool,
    /// The messages that the system has kept: topic, payload, the header where that is not in it, and the index in the record of
    /// what happened.
    kept: Vec<Kept>,
}

impl Subscribed {
    /// Its client, by fleet and number.
    fn client(&self) -> (usize, u32) {
        (self.fleet, self.client)
    }
}

type Kept = (String, Vec<u8>, Option<[u8; HEADER_LEN]>, usize);

/// An event on its way to a fleet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) due: Nanos,
    pub(super) order: u64,
    pub(super) client: u32,
    pub(super) content: BusContent,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BusContent {
    Message {
        topic: String,
        payload: Vec<u8>,
        /// The header, where it is not in the payload.
        header: Option<[u8; HEADER_LEN]>,
        redelivered: bool,
        /// It is the topic's last value.
        last_value: bool,
        /// It comes with a lower quality of service than was asked for.
        lowered: bool,
        /// Its index in the record of what happened, if there is one.
        truth: usize,
    },
    Acknowledgement {
        tag: u64,
        answer: Acknowledgement,
    },
}

impl PartialOrd for Parcel {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Parcel {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

impl Bus {
    /// A new system. `mark` is the trial's, with which the record decodes headers.
    pub fn new(behaviour: Behaviour, clock: Clock, mark: Mark) -> Self {
        let rng = StdRng::seed_from_u64(behaviour.seed);
        let born = clock.now();
        Bus {
            inner: Mutex::new(Inner {
                behaviour,
                rng,
                fleets: Vec::new(),
                subscriptions: Vec::new(),
                turn: HashMap::new(),
                waiting: HashMap::new(),
                last_delivery: HashMap::new(),
                stored: BTreeMap::new(),
                pending_wills: Vec::new(),
                busy_until: 0,
                inside: 0,
                order: 0,
                truth: Some(Vec::new()),
                deliveries: 0,
            }),
            arrived: Condvar::new(),
            clock,
            born,
            mark,
        }
    }

    /// Leaves out the record of what happens, which takes some hundred bytes per delivery.
    pub fn without_truth(self) -> Self {
        self.lock().truth = None;
        self
    }

    /// Everything that happened so far, in the order of publishing; empty after
    /// [`Bus::without_truth`].
    pub fn truth(&self) -> Vec<TruthRecord> {
        self.lock().truth.clone().unwrap_or_default()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere must not hide the record; the data stays consistent per message.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn behaviour(&self) -> Behaviour {
        self.lock().behaviour.clone()
    }

    pub(super) fn join(&self) -> usize {
        let mut inner = self.lock();
        inner.fleets.push(BinaryHeap::new());
        inner.fleets.len() - 1
    }

    pub(super) fn subscribe(&self, fleet: usize, client: u32, name: &str, to: &Subscription) {
        let mut inner = self.lock();
        let hears_from = self.clock.now() + inner.behaviour.deaf_for_ns;
        let of_client = |all: &[(String, Nanos)]| {
            let mut all = all.iter();
            all.find(|(named, _)| named == name)
                .map_or(0, |(_, ns)| *ns)
        };
        let takes_ns = of_client(&inner.behaviour.slow_subscribers);
        let later_ns = of_client(&inner.behaviour.late_subscribers);
        let mut lossy = inner.behaviour.lossy_subscribers.iter();
        let loss = lossy.find(|(named, _)| named == name);
        let loss = loss.map_or(0.0, |(_, loss)| *loss);
        inner.subscriptions.push(Subscribed {
            fleet,
            client,
            name: name.to_owned(),
            filter: to.filter.clone(),
            group: to.group.clone(),
            hears_from,
            takes_ns,
            later_ns,
            loss,
            busy_until: 0,
            away: false,
            kept: Vec::new(),
        });
        let inner = &mut *inner;
        inner.send_stored(self.mark, self.clock.now(), &to.filter);
        self.arrived.notify_all();
    }

    pub(super) fn forget(&self, fleet: usize, client: u32) {
        self.lock()
            .subscriptions
            .retain(|s| (s.fleet, s.client) != (fleet, client));
    }

    /// A client's connection has ended. A `durable` session keeps its subscriptions and what is for it; else all that is
    /// under way to it is lost.
    pub(super) fn leave(&self, fleet: usize, client: u32, durable: bool) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        for parcel in inner.waiting.remove(&(fleet, client)).unwrap_or_default() {
            inner.note_drop(&parcel);
        }
        let all = std::mem::take(&mut inner.fleets[fleet]).into_sorted_vec();
        // From the last to the first.
        for Reverse(parcel) in all.into_iter().rev() {
            match parcel.content {
                BusContent::Message {
                    topic,
                    payload,
                    header,
                    truth,
                    ..
                } if parcel.client == client => {
                    inner.inside -= 1;
                    let mut of_client = inner.subscriptions.iter_mut();
                    let kept = of_client.find(|s| {
                        (s.fleet, s.client) == (fleet, client) && s.filter.matches_topic(&topic)
                    });
                    match kept.filter(|_| durable) {
                        Some(subscribed) => subscribed.kept.push((topic, payload, header, truth)),
                        None => inner.lose(truth),
                    }
                }
                _ => inner.fleets[fleet].push(Reverse(parcel)),
            }
        }
        if durable {
            let all = inner.subscriptions.iter_mut();
            all.filter(|s| (s.fleet, s.client) == (fleet, client))
                .for_each(|s| s.away = true);
        } else {
            (inner.subscriptions).retain(|s| (s.fleet, s.client) != (fleet, client));
        }
    }

    /// A client with a durable session is connected again: it gets what was kept for it.
    pub(super) fn resume(&self, fleet: usize, client: u32) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let mut due = self.clock.now() + inner.behaviour.delay_median_ns;
        let mut kept = Vec::new();
        for s in &mut inner.subscriptions {
            if (s.fleet, s.client) == (fleet, client) {
                s.away = false;
                kept.append(&mut s.kept);
            }
        }
        kept.sort_by_key(|(.., truth)| *truth);
        for (topic, payload, header, truth) in kept {
            inner.inside += 1;
            // Later messages wait for it.
            let decoded = match &header {
                Some(header) => Header::decode(header, self.mark),
                None => Header::decode(&payload, self.mark),
            };
            let stream = decoded.map_or(u32::MAX, |h| h.stream);
            inner.last_delivery.insert((fleet, client, stream), due);
            let message = BusContent::Message {
                topic,
                payload,
                header,
                redelivered: false,
                last_value: false,
                lowered: false,
                truth,
            };
            inner.send(fleet, client, due, message);
            due += inner.behaviour.backlog_every_ns;
        }
    }

    /// Whether a publisher must wait.
    pub(super) fn full(&self) -> bool {
        let inner = self.lock();
        inner.behaviour.capacity > 0 && inner.inside >= inner.behaviour.capacity
    }
}

impl Inner {
    /// Puts something on its way to a client of a fleet.
    fn send(&mut self, fleet: usize, client: u32, due: Nanos, content: BusContent) {
        self.order += 1;
        self.fleets[fleet].push(Reverse(Parcel {
            due,
            order: self.order,
            client,
            content,
        }));
    }

    /// Records that a delivery never comes.
    fn lose(&mut self, truth: usize) {
        if let Some(record) = self.truth.as_mut().and_then(|all| all.get_mut(truth)) {
            record.lost = true;
        }
    }

    /// Records a delivery to the subscription of this index, if asked to; returns its index there.
    fn note(&mut self, index: usize, header: Option<Header>, now: Nanos, lost: bool) -> usize {
        let Some(truth) = &mut self.truth else {
            return 0;
        };
        truth.push(TruthRecord {
            subscriber: self.subscriptions[index].name.clone(),
            group: self.subscriptions[index].group.clone(),
            header,
            published_at: now,
            delivered_at: None,
            lost,
            turn: 0,
            carried: None,
            last_value: false,
            will: None,
        });
        truth.len() - 1
    }

    /// Records what a message carries, if asked to.
    fn note_carried(&mut self, index: usize, carried: &Arc<Carried>) {
        if let Some(record) = self.truth.as_mut().and_then(|truth| truth.get_mut(index)) {
            record.carried = Some(carried.clone());
        }
    }

    /// The next parcel of `fleet` that is due at `now`.
    pub(super) fn take_due(&mut self, fleet: usize, now: Nanos) -> Option<Parcel> {
        self.publish_wills(now);
        let heap = &mut self.fleets[fleet];
        if heap.peek()?.0.due > now {
            return None;
        }
        Some(heap.pop()?.0)
    }

    /// Notes that a parcel is delivered.
    pub(super) fn note_delivery(&mut self, parcel: &Parcel, now: Nanos) {
        if let BusContent::Message { truth, .. } = parcel.content {
            self.inside -= 1;
            self.deliveries += 1;
            if let Some(record) = self.truth.as_mut().and_then(|all| all.get_mut(truth)) {
                record.delivered_at = Some(now);
                record.turn = self.deliveries;
            }
        }
    }

    /// Notes that a parcel never comes.
    fn note_drop(&mut self, parcel: &Parcel) {
        if let BusContent::Message { truth, .. } = parcel.content {
            self.inside -= 1;
            self.lose(truth);
        }
    }

    /// Lets a parcel wait for a client of `fleet` whose application is busy; false if that closes its connection.
    pub(super) fn wait(&mut self, fleet: usize, parcel: Parcel) -> bool {
        let key = (fleet, parcel.client);
        let bound = self.behaviour.waiting;
        let waiting = self.waiting.entry(key).or_default();
        let full = bound.filter(|bound| waiting.len() >= bound.most);
        let dropped = match full.map(|bound| bound.then) {
            None => {
                waiting.push_back(parcel);
                return true;
            }
            Some(WhenFull::Disconnect) => {
                waiting.push_back(parcel);
                return false;
            }
            Some(WhenFull::DropNewest) => Some(parcel),
            Some(WhenFull::DropOldest) => {
                waiting.push_back(parcel);
                waiting.pop_front()
            }
        };
        if let Some(dropped) = &dropped {
            self.note_drop(dropped);
        }
        true
    }

    pub(super) fn next_due(&self, fleet: usize) -> Option<Nanos> {
        let wills = self.pending_wills.iter().map(|will| will.due);
        let parcel = self.fleets[fleet].peek().map(|p| p.0.due);
        wills.chain(parcel).min()
    }
}
