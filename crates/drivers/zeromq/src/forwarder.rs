//! The forwarder: an XSUB/XPUB proxy, the "broker" of a ZeroMQ system.
//!
//! It does what `zmq_proxy` does in the ZeroMQ guide (chapter 2, "The Dynamic Discovery Problem"):
//! messages go from the XSUB socket to the XPUB socket, subscriptions the other way. It keeps no
//! messages beyond libzmq's queues and reads none of them. It is meant to run in a process of its
//! own, so that its CPU time can be measured; it prints nothing. While there is a subscriber to
//! [`MESSAGES_TOPIC`], it publishes there how many messages it has forwarded.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pubgauge_driver::{DriverError, Settings, accepted};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::address::ForwarderAddress;
use crate::options::{self, Queue, Topology, ZeromqOptions};
use crate::port::{allow_ipv6, configure};
use crate::topic::{translate, wire_topic};
use crate::zmq::{Context, IntOption, Socket, SocketType, ZmqMessage, explain, would_block};

/// Longest time until `stop` is noticed, in nanoseconds; a signal wakes the forwarder earlier.
const STOP_CHECK_NS: i64 = 100_000_000;

/// Most messages forwarded before subscriptions get their turn; as in libzmq's own proxy.
const BURST: usize = 1000;

/// Topic on which a forwarder publishes [`ForwarderCounts::messages`], in decimal digits: at once
/// when somebody subscribes and then ten times a second, whenever it has nothing to forward.
/// Subscribers to all topics get it too.
pub const MESSAGES_TOPIC: &str = "$SYS/forwarder/messages/received";

/// Between two of these messages.
const TELL_INTERVAL: Duration = Duration::from_millis(100);

/// Where a forwarder listens, and how.
#[derive(Clone, Debug)]
pub struct ForwarderOptions {
    address: ForwarderAddress,
    options: ZeromqOptions,
}

impl ForwarderOptions {
    /// A forwarder at `address` for clients that run with `settings`. Of these it honours
    /// `queue-limit`, `on-full`, `priority`, `keep-alive-s`, and of `native.zeromq` the high-water
    /// marks, buffers, `linger-ms`, `handshake-ms`, `io-threads` and `tos`. With `on-full =
    /// "block"`, the default, a subscriber that stalls stalls all publishers and subscribers.
    ///
    /// # Errors
    /// When ZeroMQ cannot honour the settings, or the address has another transport.
    pub fn new(address: ForwarderAddress, settings: &Settings) -> Result<Self, DriverError> {
        let options = accepted("ZeroMQ", options::resolve(settings, Topology::Forwarder))?;
        if options.transport.is_some_and(|t| t != address.transport()) {
            return Err(DriverError::with_hint(
                format!("{address} is not what the setting `transport` asks for"),
                "give the forwarder an address of that transport",
            ));
        }
        Ok(ForwarderOptions { address, options })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwarderCounts {
    /// Messages taken from publishers and given to the XPUB socket. Where the settings say to
    /// drop, libzmq may have dropped some of them for some subscribers, and does not tell.
    pub messages: u64,
    /// Their bytes, frames without protocol.
    pub bytes: u64,
    /// Subscriptions and cancellations passed on to publishers.
    pub subscriptions: u64,
    /// How often a full queue stopped forwarding.
    pub blocked: u64,
}

/// Binds both sockets, passes their address to `ready` (with the ports that the system chose for
/// port 0), and forwards until `stop` is set, which it notices within 100 ms.
///
/// # Errors
/// When an address cannot be bound, or libzmq fails.
pub fn run(
    options: &ForwarderOptions,
    ready: impl FnOnce(&ForwarderAddress),
    stop: &AtomicBool,
) -> Result<ForwarderCounts, DriverError> {
    let ForwarderOptions { address, options } = options;
    let cannot = |what: &str, e: &io::Error| {
        DriverError::new(format!("ZeroMQ forwarder: {what}: {}", explain(e)))
    };
    let context = Context::start(options.native.io_threads, 16)
        .map_err(|e| cannot("cannot start libzmq", &e))?;
    let open = |kind, address: &str| {
        let socket = context.socket(kind)?;
        configure(&socket, kind, options)?;
        if kind == SocketType::Xpub && options.queue != Queue::Drop {
            socket.set(IntOption::XpubNoDrop, 1)?;
        }
        allow_ipv6(&socket, address)?;
        socket.bind(address)?;
        Ok::<_, io::Error>(socket)
    };
    let bind = |kind, address: String| {
        open(kind, &address).map_err(|e| {
            DriverError::with_hint(
                format!("ZeroMQ forwarder: cannot bind {address}: {}", explain(&e)),
                "choose another address, or port 0 for any that is free",
            )
        })
    };
    let files = Files(address);
    let xsub = bind(SocketType::Xsub, wildcard(address.for_publishers()))?;
    let xpub = bind(SocketType::Xpub, wildcard(address.for_subscribers()))?;
    let bound = bound_address(address, &xsub, &xpub).map_err(|e| cannot("no address", &e))?;
    ready(&bound);
    let mut proxy = Proxy {
        xsub,
        xpub,
        held: None,
        counts: ForwarderCounts::default(),
        asked: translate(MESSAGES_TOPIC, false)?.prefix,
        answer: wire_topic(MESSAGES_TOPIC)?,
        tell_at: None,
    };
    let outcome = proxy.run(stop);
    for socket in [&proxy.xsub, &proxy.xpub] {
        // Cannot fail on a live socket; if it did, waiting messages would be lost with the process.
        let _ = socket.set(IntOption::LingerMs, options.native.linger_ms);
    }
    let counts = proxy.counts;
    drop(proxy);
    drop(context);
    drop(files);
    outcome.map_err(|e| cannot("libzmq failed", &e))?;
    Ok(counts)
}

struct Proxy {
    xsub: Socket,
    xpub: Socket,
    /// A frame that found the subscribers' queues full.
    held: Option<ZmqMessage>,
    counts: ForwarderCounts,
    /// The subscription with which the count of messages is asked for.
    asked: Vec<u8>,
    /// The bytes before the count.
    answer: Box<[u8]>,
    /// When to publish it next; `None` if there is no subscriber.
    tell_at: Option<Instant>,
}

impl Proxy {
    fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut message = ZmqMessage::empty();
        while !stop.load(Ordering::Relaxed) {
            // Any call may handle commands and so make messages readable at its socket without
            // its descriptor saying so: sleep only after a round in which nothing was sent.
            let upstream = self.pass_subscriptions(&mut message)?;
            let downstream = self.pass_messages(&mut message)?;
            // Only in a pause is it certain that no message is half sent.
            if !upstream && !downstream && !self.tell_count()? {
                self.sleep()?;
            }
        }
        Ok(())
    }

    fn pass_subscriptions(&mut self, message: &mut ZmqMessage) -> io::Result<bool> {
        let mut any = false;
        while self.xpub.receive(message)?.is_some() {
            if let Some((&asks, topic)) = message.bytes().split_first()
                && topic == self.asked
            {
                self.tell_at = (asks == 1).then(Instant::now);
                any = true;
                continue;
            }
            let more = message.has_more();
            match self.xsub.send(message, more) {
                Ok(()) => self.counts.subscriptions += u64::from(!more),
                // Queues of subscriptions have the same limit as those of messages; libzmq
                // drops there, it never blocks. Not reached.
                Err(e) if would_block(&e) => {}
                Err(e) => return Err(e),
            }
            any = true;
        }
        Ok(any)
    }

    fn pass_messages(&mut self, message: &mut ZmqMessage) -> io::Result<bool> {
        let mut any = false;
        if let Some(mut held) = self.held.take() {
            if !self.pass(&mut held)? {
                self.held = Some(held);
                return Ok(false);
            }
            any = true;
        }
        for _ in 0..BURST {
            if self.xsub.receive(message)?.is_none() {
                break;
            }
            if !self.pass(message)? {
                self.counts.blocked += 1;
                self.held = Some(std::mem::replace(message, ZmqMessage::empty()));
                break;
            }
            any = true;
        }
        Ok(any)
    }

    /// Gives one frame to the subscribers; false if their queues are full.
    #[inline]
    fn pass(&mut self, message: &mut ZmqMessage) -> io::Result<bool> {
        let (more, len) = (message.has_more(), message.bytes().len() as u64);
        match self.xpub.send(message, more) {
            Ok(()) => {
                self.counts.messages += u64::from(!more);
                self.counts.bytes += len;
                Ok(true)
            }
            Err(e) if would_block(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Publishes the count, if there is a subscriber and it is time.
    fn tell_count(&mut self) -> io::Result<bool> {
        if self.held.is_some() || self.tell_at.is_none_or(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.tell_at = Some(Instant::now() + TELL_INTERVAL);
        let count = self.counts.messages.to_string();
        let message = ZmqMessage::copy_of(&[&self.answer, count.as_bytes()].concat())?;
        match self.xpub.send_new(message, false) {
            Ok(()) => Ok(true),
            // The queue is full: the next count will do.
            Err(e) if would_block(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn sleep(&self) -> io::Result<()> {
        let watch = |socket| PollFd::from_borrowed_fd(Socket::fd(socket), PollFlags::IN);
        let mut both = [watch(&self.xpub), watch(&self.xsub)];
        // While a frame is held, wait only for room in the subscribers' queues.
        let fds = if self.held.is_some() {
            &mut both[..1]
        } else {
            &mut both[..]
        };
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: STOP_CHECK_NS as _,
        };
        match rustix::event::poll(fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Removes the socket files when the forwarder ends, on every path.
struct Files<'a>(&'a ForwarderAddress);

impl Drop for Files<'_> {
    fn drop(&mut self) {
        if let ForwarderAddress::Ipc {
            xsub_path,
            xpub_path,
        } = self.0
        {
            for path in [xsub_path, xpub_path] {
                // Not there if binding failed.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// libzmq writes "any port" as `*`.
fn wildcard(address: String) -> String {
    match address.strip_suffix(":0") {
        Some(host) if host.starts_with("tcp://") => format!("{host}:*"),
        _ => address,
    }
}

fn bound_address(
    asked: &ForwarderAddress,
    xsub: &Socket,
    xpub: &Socket,
) -> io::Result<ForwarderAddress> {
    let port = |socket: &Socket| {
        let endpoint = socket.last_endpoint()?;
        endpoint
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok())
            .ok_or_else(|| io::Error::other(format!("libzmq says it is bound to {endpoint:?}")))
    };
    Ok(match asked {
        ForwarderAddress::Ipc { .. } => asked.clone(),
        ForwarderAddress::Tcp { host, .. } => ForwarderAddress::Tcp {
            host: host.clone(),
            xsub_port: port(xsub)?,
            xpub_port: port(xpub)?,
        },
    })
}
