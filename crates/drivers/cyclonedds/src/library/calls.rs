//! The calls of the fleet.

use std::ffi::CString;

use pubgauge_dds::advertised::Topic;
use pubgauge_dds::library::{Library, News, Traffic, Written};
use pubgauge_dds::realtime_ns;
use pubgauge_dds::topic::Filter;
use pubgauge_driver::{
    Change, ClientId, Delivery, DriverError, Events, Nanos, Payload, Refusal, monotonic_now,
};

use super::Cyclone;
use super::entities::{GatheringWriter, Subscriber};
use super::topics::Topics;
use crate::batch::on_the_wire;
use crate::ffi::{self, failed};
use crate::native::Ownership;

/// Most messages taken from one reader before others, and the sender's schedule, get their turn.
const TURN: usize = 256;

/// Most readers that get a turn in one poll.
const READERS: usize = 1024;

impl Library for Cyclone {
    type Writer = GatheringWriter;

    /// The messages of a writer are an instance of their own; those of exclusive owners, who compete for one, are the
    /// topic's.
    fn create_writer(&mut self, topic: &str, key: u32) -> Result<GatheringWriter, DriverError> {
        let partition = CString::new(topic).map_err(|e| DriverError::new(e.to_string()))?;
        let writer = self
            .domain
            .writer(&partition, &self.writer_qos)
            .map_err(|code| failed("cannot create a writer", code))?;
        // FNV-1a: the same in all processes.
        let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let device = match self.options.native.ownership {
            Ownership::Exclusive => topic.as_bytes().iter().fold(0x811c_9dc5, mix),
            Ownership::Shared => key,
        };
        Ok(GatheringWriter {
            writer,
            device,
            pending: 0,
            listed: false,
        })
    }

    #[inline]
    fn write(
        &mut self,
        number: u32,
        publisher: &mut GatheringWriter,
        payload: Payload<'_>,
    ) -> Written {
        let gathers = self.gathers();
        let (writer, bytes) = (publisher.writer, on_the_wire(payload.len()));
        if gathers
            && publisher.pending > 0
            && self
                .batches
                .exceeded(self.batches.bytes_with(publisher.pending, bytes))
        {
            writer.flush();
            publisher.pending = 0;
        }
        let (head, body) = (payload.head, payload.body);
        match self.domain.write(writer, publisher.device, head, body) {
            ffi::Written::Yes => self.patience.sent(),
            ffi::Written::NotNow => {
                // Cyclone has sent what it had, to ask for acknowledgements.
                publisher.pending = 0;
                self.look = true;
                return Written::NoRoom;
            }
            ffi::Written::Failed(code) => return not_written(payload.len(), code),
        }
        if gathers {
            if self.batches.sent(bytes) {
                self.batches.adapt(monotonic_now());
            }
            publisher.pending = self.batches.bytes_with(publisher.pending, bytes);
            if self.batches.complete(publisher.pending) {
                writer.flush();
                publisher.pending = 0;
            } else if !publisher.listed {
                publisher.listed = true;
                self.gathering.push(number);
            }
        }
        Written::Accepted
    }

    fn flush(&mut self, topics: &mut [Topic<GatheringWriter>]) {
        while let Some(number) = self.gathering.pop() {
            if let Some(publisher) = &mut topics[number as usize].writer {
                publisher.flush();
            }
        }
    }

    fn is_settled(&self, publisher: &GatheringWriter) -> bool {
        self.domain.acknowledged(publisher.writer, 0)
    }

    fn end_writer(&mut self, publisher: GatheringWriter, wait: Nanos) {
        if wait > 0 {
            self.domain.acknowledged(publisher.writer, wait);
        }
        self.domain.free_writer(publisher.writer);
    }

    fn subscribe(
        &mut self,
        client: ClientId,
        filter: Filter,
        news: &mut News,
    ) -> Result<(), DriverError> {
        let mut others = self.subscribers.iter().flatten();
        if let Some(other) = others.find(|s| s.client == client && s.filter.overlaps(&filter.text))
        {
            return Err(DriverError::with_hint(
                format!(
                    "the filters {:?} and {:?} of one client overlap; each is a DDS reader, and \
                     both would get the same messages",
                    other.filter.text, filter.text
                ),
                "use filters that exclude each other, or one client for each",
            ));
        }
        let free = self.subscribers.iter().position(Option::is_none);
        let index = free.unwrap_or(self.subscribers.len());
        let partitions = filter.partitions.iter().map(|p| CString::new(p.as_str()));
        let partitions: Vec<CString> = partitions
            .collect::<Result<_, _>>()
            .map_err(|e| DriverError::new(e.to_string()))?;
        let since_ns = self.options.last_value.then(realtime_ns);
        let reader = self
            .domain
            .reader(
                index as u32,
                &partitions,
                filter.is_pattern(),
                &self.reader_qos,
            )
            .map_err(|code| failed("cannot create a reader", code))?;
        let subscriber = Subscriber {
            client,
            topics: Topics::new(&filter),
            filter,
            reader,
            since_ns,
        };
        match self.subscribers.get_mut(index) {
            Some(slot) => *slot = Some(subscriber),
            None => self.subscribers.push(Some(subscriber)),
        }
        news.push_back((client, Change::Subscribed));
        Ok(())
    }

    fn drop_readers(&mut self, client: ClientId) {
        for (index, slot) in self.subscribers.iter_mut().enumerate() {
            if let Some(subscriber) = slot.take_if(|s| s.client == client) {
                self.domain.free(subscriber.reader);
                self.unfinished.retain(|i| *i as usize != index);
            }
        }
    }

    fn prepare(&mut self, _: &mut News) -> Result<(), DriverError> {
        if self.gathers() && !self.held_back {
            self.batches.adapt(monotonic_now());
        }
        Ok(())
    }

    fn receive(&mut self, events: &mut dyn Events) -> Result<bool, DriverError> {
        let mut any = false;
        for _ in 0..self.unfinished.len() {
            if let Some(index) = self.unfinished.pop_front() {
                any |= self.turn(index, events)?;
            }
        }
        for _ in 0..READERS {
            let Some(index) = self.domain.next_ready() else {
                break;
            };
            any |= self.turn(index, events)?;
        }
        Ok(any)
    }

    /// May look for a while before it sleeps.
    fn wait(&mut self, duration: Nanos) {
        let now = monotonic_now();
        let wake = now.saturating_add(duration);
        let end = self.patience.look_until(now, self.held_back);
        let mut then = now;
        while !self.domain.has_ready() {
            if then >= end.min(wake) {
                self.domain.wait(wake);
                then = monotonic_now();
                break;
            }
            // Where there are fewer cores than threads, Cyclone's threads need this one: without
            // the yield, the message may come only once this thread sleeps.
            std::thread::yield_now();
            then = monotonic_now();
        }
        self.patience.waited(then - now, self.domain.has_ready());
    }

    fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
        self.domain.hold_back(held_back);
    }

    fn may_have_room(&mut self) -> bool {
        if self.gathers() {
            self.batches.restart(monotonic_now());
        }
        std::mem::take(&mut self.look) | self.domain.has_received()
    }

    fn has_room(&self, publisher: &GatheringWriter, due: bool) -> bool {
        self.domain.has_room(publisher.writer).unwrap_or(due)
    }

    fn retry(&self) -> Nanos {
        self.retry
    }

    fn traffic(&self) -> Option<Traffic> {
        self.domain.counts().then(|| self.domain.traffic())
    }
}

impl Cyclone {
    /// A reader's turn. Says whether it had anything.
    fn turn(&mut self, index: u32, events: &mut dyn Events) -> Result<bool, DriverError> {
        let Some(Some(subscriber)) = self.subscribers.get_mut(index as usize) else {
            return Ok(false);
        };
        let mut count = 0;
        let mut more = true;
        while more && count < TURN {
            more = self
                .taken
                .take(&subscriber.reader)
                .map_err(|code| failed("cannot take from a reader", code))?;
            if self.taken.len() == 0 {
                continue;
            }
            events.arrived();
            for at in 0..self.taken.len() {
                let sample = self.taken.get(at);
                let (topic, wanted) = subscriber
                    .topics
                    .topic_of(&subscriber.reader, sample.publication);
                if wanted {
                    let delivery = Delivery {
                        payload: sample.payload,
                        topic,
                        retained: subscriber.since_ns.is_some_and(|s| sample.source_ns < s),
                        redelivered: false,
                    };
                    events.delivered(subscriber.client, delivery);
                }
            }
            count += self.taken.len();
        }
        self.taken.release();
        if more {
            self.unfinished.push_back(index);
        }
        Ok(count > 0)
    }
}

#[cold]
fn not_written(len: usize, code: i32) -> Written {
    // A CDR sequence has a 32-bit length; the bound leaves room for Cyclone's own additions.
    if len > i32::MAX as usize - 64 {
        return Written::Refused(Refusal::TooLarge);
    }
    let error = failed(&format!("a message of {len} bytes was not taken"), code);
    Written::Failed(Box::new(error))
}
