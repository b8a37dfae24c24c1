//! A plain client beside the driver: one blocking socket, one write for all that the window lets out, and the driver's
//! checks on what it reads (the number of each confirm, header and sequence of each message). It has no second
//! connection, no timers, no limits and no reconnect.
//!
//! It waits in `recv`, which no client of several connections can, or ([`Wait::Epoll`]) in `epoll_wait` up to a
//! deadline, as the driver must: one system call more for each read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use pubgauge_driver::{Filler, Header};
use pubgauge_driver_amqp::codec::method::{
    BasicAck, BasicConsume, BasicQos, ChannelOpen, ConfirmSelect, ConnectionClose, ConnectionOpen,
    ConnectionStartOk, ConnectionTuneOk, Long, MULTIPLE, consume as consume_bits,
};
use pubgauge_driver_amqp::codec::{
    Method, PROTOCOL_HEADER, Properties, PublishTemplate, decode_delivery, decode_frame,
};
use pubgauge_testing::bench::{MARK, PAYLOAD, header};
use rustix::event::{Timespec, epoll};

use crate::{Mode, WINDOW};

/// Longest frame, bytes: RabbitMQ's own default.
const FRAME_MAX: usize = 128 << 10;
/// As much as the driver reads at once, bytes.
const READ_BUF: usize = 256 << 10;
const CHANNEL: u16 = 1;
/// Deadline of a wait in epoll: that of the driver's polls here.
const DEADLINE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Where a client waits for bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Recv,
    /// In `epoll_wait`, before each `recv`.
    Epoll,
}

struct Connection {
    stream: TcpStream,
    epoll: Option<OwnedFd>,
    buffer: Box<[u8]>,
    /// Bytes that are read and not taken.
    unread: std::ops::Range<usize>,
    out: Vec<u8>,
}

impl Connection {
    /// With one channel, as `guest`.
    fn open(wait: Wait, endpoint: &str) -> Self {
        let address = endpoint.trim_start_matches("amqp://");
        let stream = TcpStream::connect(address).expect("RabbitMQ is there");
        stream.set_nodelay(true).expect("an option");
        let epoll = (wait == Wait::Epoll).then(|| {
            let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a set");
            let data = epoll::EventData::new_u64(0);
            epoll::add(&set, &stream, data, epoll::EventFlags::IN).expect("the socket is watched");
            set
        });
        let mut connection = Connection {
            stream,
            epoll,
            buffer: vec![0; READ_BUF].into(),
            unread: 0..0,
            out: PROTOCOL_HEADER.to_vec(),
        };
        connection.flush();
        connection.wait("connection.start");
        let login = Method::ConnectionStartOk(ConnectionStartOk {
            mechanism: b"PLAIN",
            response: Long(b"\0guest\0guest"),
            locale: b"en_US",
            ..ConnectionStartOk::default()
        });
        connection.ask(0, login, "connection.tune");
        let limits = Method::ConnectionTuneOk(ConnectionTuneOk {
            channel_max: 1,
            frame_max: FRAME_MAX as u32,
            ..ConnectionTuneOk::default()
        });
        limits.encode(0, &mut connection.out).expect("short names");
        let host = Method::ConnectionOpen(ConnectionOpen {
            virtual_host: b"/",
            ..ConnectionOpen::default()
        });
        connection.ask(0, host, "connection.open-ok");
        let channel = Method::ChannelOpen(ChannelOpen::default());
        connection.ask(CHANNEL, channel, "channel.open-ok");
        connection
    }

    fn flush(&mut self) {
        self.stream.write_all(&self.out).expect("it is taken");
        self.out.clear();
    }

    fn ask(&mut self, channel: u16, method: Method<'_>, answer: &str) {
        method.encode(channel, &mut self.out).expect("short names");
        self.flush();
        self.wait(answer);
    }

    /// Reads until this method comes. Nothing else may come before it.
    fn wait(&mut self, name: &str) {
        let mut seen = false;
        while !seen {
            self.read();
            self.take(|bytes| {
                let (frame, length) = decode_frame(bytes, FRAME_MAX).expect("a frame")?;
                let method = Method::decode(frame.payload).expect("a method");
                assert_eq!((method.name(), seen), (name, false));
                seen = true;
                Some(length)
            });
        }
    }

    /// One read of what is there, once there is something.
    fn read(&mut self) {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if let Some(epoll) = &self.epoll {
            let mut ready = [epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0),
            }];
            while epoll::wait(epoll, &mut ready, Some(&DEADLINE)).expect("it waits") == 0 {}
        }
        let came = self.stream.read(&mut self.buffer[self.unread.end..]);
        let came = came.expect("it is read");
        assert!(came > 0, "RabbitMQ ended the connection");
        self.unread.end += came;
    }

    /// Gives what was read to `one`, until it takes nothing: it says how many bytes it took.
    fn take(&mut self, mut one: impl FnMut(&[u8]) -> Option<usize>) {
        while let Some(length) = one(&self.buffer[self.unread.clone()]) {
            self.unread.start += length;
        }
    }

    fn close(mut self) {
        let close = Method::ConnectionClose(ConnectionClose {
            reply_code: 200,
            ..ConnectionClose::default()
        });
        self.ask(0, close, "connection.close-ok");
    }
}

/// Messages that wait for their confirm.
struct Window {
    waits: [bool; WINDOW as usize],
    sent: u64,
    settled: u64,
    /// All up to this one are settled.
    whole: u64,
}

impl Window {
    fn settle(&mut self, number: u64, multiple: bool) {
        assert!(number > self.whole && number <= self.sent);
        let first = if multiple { self.whole + 1 } else { number };
        for one in first..=number {
            let waits = &mut self.waits[(one % u64::from(WINDOW)) as usize];
            self.settled += u64::from(std::mem::take(waits));
        }
        while self.whole < self.sent && !self.waits[((self.whole + 1) % u64::from(WINDOW)) as usize]
        {
            self.whole += 1;
        }
    }
}

pub(crate) fn publish(wait: Wait, mode: Mode, endpoint: &str, topic: &str, count: u64) {
    let mut connection = Connection::open(wait, endpoint);
    let confirmed = mode == Mode::Confirmed;
    if confirmed {
        let select = Method::ConfirmSelect(ConfirmSelect::default());
        connection.ask(CHANNEL, select, "confirm.select-ok");
    }
    let (key, properties) = (topic.replace('/', "."), Properties::default());
    let template = PublishTemplate::new(CHANNEL, "amq.topic", &key, confirmed, properties);
    let template = template.expect("a short key");
    let filler = Filler::new(PAYLOAD);
    let mut window = Window {
        waits: [false; WINDOW as usize],
        sent: 0,
        settled: 0,
        whole: 0,
    };
    while window.whole < count {
        while window.sent < count && window.sent - window.whole < u64::from(WINDOW) {
            let head = header(0, window.sent as u32);
            let body = filler.body(0, window.sent as u32, PAYLOAD);
            window.sent += 1;
            let id = window.sent;
            template.append(&mut connection.out, FRAME_MAX, id, &head, body);
            window.waits[(id % u64::from(WINDOW)) as usize] = true;
        }
        connection.flush();
        if !confirmed {
            window.settle(window.sent, true);
            continue;
        }
        connection.read();
        connection.take(|bytes| {
            let (frame, length) = decode_frame(bytes, FRAME_MAX).expect("a frame")?;
            match Method::decode(frame.payload).expect("a method") {
                Method::BasicAck(ack) => {
                    window.settle(ack.delivery_tag, ack.bits & MULTIPLE != 0);
                }
                other => panic!("{}", other.name()),
            }
            Some(length)
        });
    }
    assert_eq!(window.settled, count);
    connection.close();
}

pub(crate) fn consume(wait: Wait, mode: Mode, endpoint: &str, topic: &str, count: u64) {
    let mut connection = Connection::open(wait, endpoint);
    let confirmed = mode == Mode::Confirmed;
    if confirmed {
        let prefetch = Method::BasicQos(BasicQos {
            prefetch_count: WINDOW,
            ..BasicQos::default()
        });
        connection.ask(CHANNEL, prefetch, "basic.qos-ok");
    }
    let queue = format!("pubgauge.group.g.{}", topic.replace('/', "."));
    let consumer = Method::BasicConsume(BasicConsume {
        queue: queue.as_bytes(),
        consumer_tag: b"c1",
        bits: if confirmed { 0 } else { consume_bits::NO_ACK },
        ..BasicConsume::default()
    });
    consumer
        .encode(CHANNEL, &mut connection.out)
        .expect("short names");
    connection.flush();
    let (mut next, mut last) = (0u32, 0);
    while u64::from(next) < count {
        connection.read();
        connection.take(|bytes| {
            let Some((delivered, length)) = decode_delivery(bytes, FRAME_MAX) else {
                // Part of a message, or the answer to what was asked for.
                let (frame, length) = decode_frame(bytes, FRAME_MAX).expect("a frame")?;
                let method = Method::decode(frame.payload).expect("a method");
                return (method.name() == "basic.consume-ok").then_some(length);
            };
            let header = Header::decode(delivered.body, MARK).expect("one of ours");
            assert_eq!(header.sequence, next);
            next += 1;
            last = delivered.delivery_tag;
            Some(length)
        });
        if confirmed && last > 0 {
            let ack = Method::BasicAck(BasicAck {
                delivery_tag: last,
                bits: MULTIPLE,
                ..BasicAck::default()
            });
            ack.encode(CHANNEL, &mut connection.out)
                .expect("short names");
            connection.flush();
        }
    }
    assert_eq!(u64::from(next), count);
}
