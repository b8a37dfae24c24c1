//! The calls of the fleet.

use pubgauge_dds::library::{Library, News, Traffic, Written};
use pubgauge_dds::realtime_ns;
use pubgauge_dds::topic::Filter;
use pubgauge_driver::{Change, ClientId, DriverError, Events, Nanos, Payload, Refusal};

use super::FastDds;
use super::client_reader::ClientReader;
use super::reading::take_turn;
use crate::ffi::{self, DataWriter};
use crate::topic;

/// How soon a blocked publisher is told to try again if no datagram came before, ns.
const RETRY: Nanos = 1_000_000;

impl Library for FastDds {
    type Writer = DataWriter;

    fn create_writer(&mut self, topic: &str, key: u32) -> Result<DataWriter, DriverError> {
        let priority = self.options.native.priority_of(topic);
        self.participant.writer(topic, key, priority)
    }

    #[inline]
    fn write(&mut self, _: u32, writer: &mut DataWriter, payload: Payload<'_>) -> Written {
        // Read before the attempt: datagrams that come during it may make room as well.
        let arrivals = self.participant.arrivals();
        match writer.write(payload.head, payload.body) {
            ffi::Written::Yes => Written::Accepted,
            ffi::Written::NoRoom if self.options.drop_when_full => {
                Written::Refused(Refusal::Dropped)
            }
            ffi::Written::NoRoom => {
                if !self.held_back {
                    self.arrivals_before = arrivals;
                }
                Written::NoRoom
            }
            ffi::Written::Failed => Written::Refused(Refusal::TooLarge),
        }
    }

    fn is_settled(&self, writer: &DataWriter) -> bool {
        writer.settled()
    }

    fn end_writer(&mut self, writer: DataWriter, wait: Nanos) {
        // Best-effort samples are never acknowledged.
        let wait = if self.options.reliable { wait } else { 0 };
        writer.finish(i64::try_from(wait).unwrap_or(i64::MAX));
    }

    /// The next poll applies it.
    fn subscribe(
        &mut self,
        client: ClientId,
        filter: Filter,
        _: &mut News,
    ) -> Result<(), DriverError> {
        topic::check_pattern(&filter)?;
        let index = client.0 as usize;
        if self.readers.len() <= index {
            self.readers.resize_with(index + 1, ClientReader::default);
        }
        let reader = &mut self.readers[index];
        reader.partitions.extend(filter.partitions);
        reader.asked += 1;
        if reader.asked == 1 {
            self.asking.push(client);
        }
        Ok(())
    }

    fn drop_readers(&mut self, client: ClientId) {
        if let Some(reader) = self.readers.get_mut(client.0 as usize) {
            reader.drop_entity();
        }
    }

    /// Applies the subscriptions that were asked for since the last poll, in one change of each reader. Discovery
    /// announces all partitions of a reader with each change: 200 changes announce 200 lists of up to 200.
    fn prepare(&mut self, news: &mut News) -> Result<(), DriverError> {
        for id in std::mem::take(&mut self.asking) {
            let reader = &mut self.readers[id.0 as usize];
            let asked = std::mem::take(&mut reader.asked);
            if asked == 0 {
                continue;
            }
            reader.partitions.sort_unstable();
            reader.partitions.dedup();
            if let Err(why) = topic::check_announced(&reader.partitions) {
                news.push_back((id, Change::SubscriptionRefused(why)));
                continue;
            }
            match &reader.entity {
                Some(entity) => entity.set_partitions(&reader.partitions)?,
                None => {
                    reader.since_ns = realtime_ns();
                    reader.entity = Some(self.participant.reader(id.0, &reader.partitions)?);
                }
            }
            news.extend(std::iter::repeat_n((id, Change::Subscribed), asked));
        }
        Ok(())
    }

    /// Gives each reader that has something one turn.
    fn receive(&mut self, events: &mut dyn Events) -> Result<bool, DriverError> {
        self.note_ready_readers();
        let mut any = false;
        for _ in 0..self.flooded.len() {
            let Some(index) = self.flooded.pop_front() else {
                break;
            };
            let reader = &mut self.readers[index as usize];
            reader.is_flooded = false;
            let Some(entity) = &mut reader.entity else {
                continue;
            };
            let since = self.options.last_value.then_some(reader.since_ns);
            let turn = take_turn(ClientId(index), entity, since, &mut self.samples, events)?;
            any |= turn.messages > 0;
            if turn.more {
                reader.is_flooded = true;
                self.flooded.push_back(index);
            }
        }
        Ok(any)
    }

    fn wait(&mut self, duration: Nanos) {
        let arrivals = self.held_back.then_some(self.arrivals_before);
        let nanos = i64::try_from(duration).unwrap_or(i64::MAX);
        self.participant.sleep(arrivals, nanos);
    }

    fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    fn may_have_room(&mut self) -> bool {
        self.participant.arrivals() > self.arrivals_before
    }

    /// The library does not tell: it can only be tried.
    fn has_room(&self, _: &DataWriter, _: bool) -> bool {
        true
    }

    fn retry(&self) -> Nanos {
        RETRY
    }

    fn counts_unsettled(&self) -> bool {
        self.options.reliable
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.participant.traffic())
    }
}

impl FastDds {
    /// Notes which readers have got something.
    fn note_ready_readers(&mut self) {
        loop {
            let count = self.participant.ready(&mut self.ready);
            for index in &self.ready[..count] {
                if let Some(reader) = self.readers.get_mut(*index as usize)
                    && !reader.is_flooded
                {
                    reader.is_flooded = true;
                    self.flooded.push_back(*index);
                }
            }
            if count < self.ready.len() {
                return;
            }
        }
    }
}
