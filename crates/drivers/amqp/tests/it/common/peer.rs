//! Servers that follow a script.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use pubgauge_driver_amqp::codec::method::*;
use pubgauge_driver_amqp::codec::{ContentHeader, FrameKind, Method, PROTOCOL_HEADER, Properties};
use pubgauge_driver_amqp::codec::{begin_frame, decode_frame, end_frame};

/// The server's side of one connection.
pub struct Peer {
    pub stream: TcpStream,
    buf: Vec<u8>,
}

/// A published message.
#[derive(Debug, PartialEq)]
pub struct Published {
    pub routing_key: String,
    pub body: Vec<u8>,
    pub message_id: Option<Vec<u8>>,
}

impl Peer {
    /// Accepts a connection and reads its protocol header.
    pub fn accept(listener: &TcpListener) -> Peer {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut header = [0; 8];
        stream.read_exact(&mut header).unwrap();
        assert_eq!(header, PROTOCOL_HEADER);
        Peer {
            stream,
            buf: Vec::new(),
        }
    }

    /// The next frame: type, channel and payload; `None` at the end of the stream.
    pub fn frame(&mut self) -> Option<(FrameKind, u16, Vec<u8>)> {
        loop {
            if let Some((frame, len)) = decode_frame(&self.buf, 1 << 20).unwrap() {
                let result = (frame.kind, frame.channel, frame.payload.to_vec());
                self.buf.drain(..len);
                return Some(result);
            }
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("the client sends nothing: {error}"),
            }
        }
    }

    /// Hands the next method to `look`, signs of life passed over.
    #[track_caller]
    pub fn method<T>(&mut self, look: impl FnOnce(u16, Method<'_>) -> T) -> T {
        loop {
            match self.frame().expect("the client closed the connection") {
                (FrameKind::Heartbeat, ..) => {}
                (FrameKind::Method, channel, payload) => {
                    return look(channel, Method::decode(&payload).unwrap());
                }
                other => panic!("no method: {other:?}"),
            }
        }
    }

    /// Expects a method by its name and gives its channel.
    #[track_caller]
    pub fn expect(&mut self, name: &str) -> u16 {
        self.method(|channel, method| {
            assert_eq!(method.name(), name, "{method:?}");
            channel
        })
    }

    /// A whole published message.
    #[track_caller]
    pub fn published(&mut self) -> Published {
        let routing_key = self.method(|_, method| match method {
            Method::BasicPublish(p) => String::from_utf8(p.routing_key.to_vec()).unwrap(),
            other => panic!("no basic.publish: {other:?}"),
        });
        let (_, _, header) = self.frame().unwrap();
        let header = ContentHeader::decode(&header).unwrap();
        let mut body = Vec::new();
        while (body.len() as u64) < header.body_size {
            let (kind, _, payload) = self.frame().unwrap();
            assert_eq!(kind, FrameKind::Body);
            body.extend_from_slice(&payload);
        }
        Published {
            routing_key,
            body,
            message_id: header.properties.message_id.map(<[u8]>::to_vec),
        }
    }

    pub fn send(&mut self, channel: u16, method: Method<'_>) {
        let mut bytes = Vec::new();
        method.encode(channel, &mut bytes).unwrap();
        self.raw(&bytes);
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn start(&mut self, mechanisms: &str) {
        self.send(
            0,
            Method::ConnectionStart(ConnectionStart {
                version_minor: 9,
                mechanisms: Long(mechanisms.as_bytes()),
                locales: Long(b"en_US"),
                ..ConnectionStart::default()
            }),
        );
    }

    /// Lets the client in, with this heartbeat, as far as connection.open-ok.
    pub fn welcome(&mut self, heartbeat: u16) {
        self.start("AMQPLAIN PLAIN");
        self.expect("connection.start-ok");
        self.send(
            0,
            Method::ConnectionTune(ConnectionTune {
                channel_max: 2047,
                frame_max: 131_072,
                heartbeat,
                ..ConnectionTune::default()
            }),
        );
        self.expect("connection.tune-ok");
        self.expect("connection.open");
        self.send(0, Method::ConnectionOpenOk(ConnectionOpenOk::default()));
    }

    /// Opens the publishing channel, with confirms.
    pub fn publisher(&mut self) {
        assert_eq!(self.expect("channel.open"), 1);
        self.send(1, Method::ChannelOpenOk(ChannelOpenOk::default()));
        self.expect("confirm.select");
        self.send(1, Method::ConfirmSelectOk(ConfirmSelectOk::default()));
    }

    /// Opens the consuming channel and grants one subscription.
    pub fn consumer(&mut self) {
        assert_eq!(self.expect("channel.open"), 2);
        self.send(2, Method::ChannelOpenOk(ChannelOpenOk::default()));
        self.expect("basic.qos");
        self.send(2, Method::BasicQosOk(BasicQosOk::default()));
        self.expect("queue.declare");
        self.send(2, Method::QueueDeclareOk(QueueDeclareOk::default()));
        self.expect("queue.bind");
        self.send(2, Method::QueueBindOk(QueueBindOk::default()));
        let tag = self.method(|_, method| match method {
            Method::BasicConsume(c) => c.consumer_tag.to_vec(),
            other => panic!("no basic.consume: {other:?}"),
        });
        self.send(
            2,
            Method::BasicConsumeOk(BasicConsumeOk {
                consumer_tag: &tag,
                ..BasicConsumeOk::default()
            }),
        );
    }

    /// Waits until the client has closed its side.
    pub fn until_closed(mut self) {
        while self.frame().is_some() {}
    }
}

/// A header frame and the body frames of a message, in pieces of at most `piece` bytes.
pub fn content(channel: u16, properties: Properties<'_>, body: &[u8], piece: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let at = begin_frame(FrameKind::Header, channel, &mut bytes);
    ContentHeader {
        body_size: body.len() as u64,
        properties,
    }
    .encode(&mut bytes)
    .unwrap();
    end_frame(at, &mut bytes);
    for piece in body.chunks(piece) {
        let at = begin_frame(FrameKind::Body, channel, &mut bytes);
        bytes.extend_from_slice(piece);
        end_frame(at, &mut bytes);
    }
    bytes
}

/// A whole delivery on the consuming channel.
pub fn delivery(tag: u64, key: &str, body: &[u8], piece: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    Method::BasicDeliver(BasicDeliver {
        consumer_tag: b"c0",
        delivery_tag: tag,
        exchange: b"amq.topic",
        routing_key: key.as_bytes(),
        ..BasicDeliver::default()
    })
    .encode(2, &mut bytes)
    .unwrap();
    bytes.extend(content(2, Properties::default(), body, piece));
    bytes
}

pub fn confirm(number: u64, multiple: bool) -> Method<'static> {
    Method::BasicAck(BasicAck {
        delivery_tag: number,
        bits: u8::from(multiple),
        ..BasicAck::default()
    })
}
