//! Last wills: how the connections of devices that have one ended, and which wills came to whom.
//!
//! A connection ends with one worker, and its will comes to others. Each tells what it saw, connection by connection, and
//! whoever adds the recordings up puts both together.

use pubgauge_driver::{ClientId, DriverError, Fleet, Mark, Nanos, WillStamp};
use pubgauge_workload::LastWill;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Ends of connections, and deliveries of wills, that a worker keeps of each.
pub(crate) const MOST: usize = 1 << 18;

/// The wills of one worker's clients, and those that came to its subscribers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WillRecording {
    /// The connections of devices with a will that ended before the trial did, in the order of their ends.
    pub ends: Vec<ConnectionEnd>,
    /// First deliveries, each of a will to a subscriber.
    pub deliveries: Vec<WillDelivery>,
    /// Ends and deliveries beyond those that are kept.
    pub not_kept: u64,
}

/// The end of one connection of a device with a will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionEnd {
    /// The device, as an index into the workload's.
    pub device: u32,
    /// Its connection, counted from 0 in the order of its attempts.
    pub connection: u32,
    pub how: HowEnded,
    /// When, by the worker's clock: before the connection was closed.
    pub at: Nanos,
    /// When it was back: when the attempt began that led to its next connection, and when it was read that this was made.
    pub back: Option<(Nanos, Nanos)>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HowEnded {
    /// It was cut without a word, as the workload has it.
    Cut,
    /// In order: its client said that it left.
    InOrder,
    /// The system ended it, or whoever is in between; or it was not made.
    Lost,
}

/// The first delivery of a will to one subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WillDelivery {
    /// Whose will it is.
    pub device: u32,
    /// Of which of its connections.
    pub connection: u32,
    /// The device that it came to.
    pub to: u32,
    /// When, by the worker's clock.
    pub at: Nanos,
    /// How often, all in all.
    pub copies: u32,
}

/// The connections of a worker's clients that have a will.
#[derive(Default)]
pub(crate) struct WillLog {
    /// By client; of those without a will `None`. Empty where none has one.
    clients: Vec<Option<Willing>>,
    ends: Vec<ConnectionEnd>,
    not_kept: u64,
}

/// A client with a will.
struct Willing {
    device: u32,
    bytes: u32,
    delay: Nanos,
    /// Its present connection.
    connection: u32,
    /// The end of its last one, in the list of all, until it is back.
    ended: Option<usize>,
    /// Its present connection has ended.
    is_over: bool,
    /// When its will has come, if it comes, clock time.
    awaited_until: Nanos,
}

impl WillLog {
    /// Of clients that are these devices, each with its will.
    pub fn new<'a>(devices: impl Iterator<Item = (u32, Option<&'a LastWill>)>) -> WillLog {
        let willing = |(device, will): (u32, Option<&LastWill>)| {
            will.map(|will| Willing {
                device,
                bytes: will.bytes,
                delay: Nanos::from(will.delay_s) * 1_000_000_000,
                connection: 0,
                ended: None,
                is_over: false,
                awaited_until: 0,
            })
        };
        let clients: Vec<Option<Willing>> = devices.map(willing).collect();
        let any = clients.iter().any(Option::is_some);
        WillLog {
            clients: if any { clients } else { Vec::new() },
            ..WillLog::default()
        }
    }

    fn client(&mut self, client: ClientId) -> Option<&mut Willing> {
        self.clients.get_mut(client.0 as usize)?.as_mut()
    }

    /// A client tries to connect again: its will says of which connection it is.
    ///
    /// # Errors
    /// A fleet whose clients have no wills.
    pub fn begin_again(
        &mut self,
        client: ClientId,
        mark: Mark,
        fleet: &mut dyn Fleet,
    ) -> Result<(), DriverError> {
        let Some(willing) = self.client(client) else {
            return Ok(());
        };
        willing.connection += 1;
        willing.is_over = false;
        let stamp = WillStamp {
            device: willing.device,
            connection: willing.connection,
        };
        fleet.renew_will(client, stamp.payload(mark, willing.bytes as usize))
    }

    /// The present connection of a client ends; its will comes within `patience` beyond its delay, or never.
    pub fn end_connection(&mut self, client: ClientId, how: HowEnded, at: Nanos, patience: Nanos) {
        let full = self.ends.len() >= MOST;
        let next = self.ends.len();
        let Some(willing) = self.client(client).filter(|willing| !willing.is_over) else {
            return;
        };
        willing.is_over = true;
        if how == HowEnded::Cut {
            willing.awaited_until = at.saturating_add(willing.delay + patience);
        }
        willing.ended = (!full).then_some(next);
        let end = ConnectionEnd {
            device: willing.device,
            connection: willing.connection,
            how,
            at,
            back: None,
        };
        if full {
            self.not_kept += 1;
        } else {
            self.ends.push(end);
        }
    }

    /// A client is connected again, by an attempt that began at the first of these times.
    pub fn note_return(&mut self, client: ClientId, times: (Nanos, Nanos)) {
        let Some(willing) = self.client(client) else {
            return;
        };
        if willing.delay > 0 {
            willing.awaited_until = 0;
        }
        if let Some(ended) = willing.ended.take() {
            self.ends[ended].back = Some(times);
        }
    }

    /// Until when wills may come, clock time; 0 if none may.
    pub fn awaited_until(&self) -> Nanos {
        let all = self.clients.iter().flatten();
        all.map(|willing| willing.awaited_until).max().unwrap_or(0)
    }

    /// The ends of connections, with the wills that came to this worker's subscribers.
    pub fn finish(&mut self, heard: &mut HeardWills) -> WillRecording {
        let mut deliveries: Vec<WillDelivery> = heard.of.drain().map(|(_, one)| one).collect();
        deliveries.sort_unstable_by_key(|one| (one.at, one.device, one.connection, one.to));
        WillRecording {
            ends: std::mem::take(&mut self.ends),
            deliveries,
            not_kept: self.not_kept + heard.not_kept,
        }
    }
}

/// The wills that come to a worker's subscribers.
#[derive(Debug, Default)]
pub(crate) struct HeardWills {
    /// By client, its device, where wills are timed at it; empty where nobody hears any.
    watchers: Vec<Option<u32>>,
    of: FxHashMap<(WillStamp, ClientId), WillDelivery>,
    not_kept: u64,
}

impl HeardWills {
    /// Of clients that are these devices, each with whether it is there throughout.
    pub fn new(devices: impl Iterator<Item = (u32, bool)>) -> HeardWills {
        let watchers = devices.map(|(device, hears)| hears.then_some(device));
        let watchers: Vec<Option<u32>> = watchers.collect();
        let any = watchers.iter().any(Option::is_some);
        HeardWills {
            watchers: if any { watchers } else { Vec::new() },
            ..HeardWills::default()
        }
    }

    /// A will came to a client at `at`, clock time.
    pub fn note(&mut self, client: ClientId, stamp: WillStamp, at: Nanos) {
        let Some(to) = self.watchers.get(client.0 as usize).copied().flatten() else {
            return;
        };
        if let Some(known) = self.of.get_mut(&(stamp, client)) {
            known.copies = known.copies.saturating_add(1);
        } else if self.of.len() >= MOST {
            self.not_kept += 1;
        } else {
            let first = WillDelivery {
                device: stamp.device,
                connection: stamp.connection,
                to,
                at,
                copies: 1,
            };
            self.of.insert((stamp, client), first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_of_one_connection_and_is_told_once() {
        let will = LastWill {
            topic: "gone".into(),
            bytes: 16,
            retain: false,
            qos: None,
            delay_s: 2,
        };
        let mut log = WillLog::new([(7, None), (8, Some(&will))].into_iter());
        let (plain, willing) = (ClientId(0), ClientId(1));
        log.end_connection(plain, HowEnded::Cut, 10, 5);
        log.end_connection(willing, HowEnded::Cut, 20, 5);
        log.end_connection(willing, HowEnded::Lost, 21, 5);
        assert_eq!(log.awaited_until(), 2_000_000_025);
        log.note_return(willing, (30, 31));
        assert_eq!(log.awaited_until(), 0);
        let mut heard = HeardWills::new([(7, true), (8, false)].into_iter());
        let stamp = WillStamp {
            device: 8,
            connection: 0,
        };
        heard.note(plain, stamp, 40);
        heard.note(plain, stamp, 50);
        heard.note(willing, stamp, 40);
        let end = ConnectionEnd {
            device: 8,
            connection: 0,
            how: HowEnded::Cut,
            at: 20,
            back: Some((30, 31)),
        };
        let delivery = WillDelivery {
            device: 8,
            connection: 0,
            to: 7,
            at: 40,
            copies: 2,
        };
        let told = log.finish(&mut heard);
        assert_eq!((told.ends, told.deliveries), (vec![end], vec![delivery]));
        assert_eq!(told.not_kept, 0);
    }
}
