//! A broker at one address: its session, its connection if there is one, and when the next thing is due.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pubgauge_net::socket::Arrived;
use pubgauge_net::tls;

use crate::gather::Gather;
use crate::link::Link;
use crate::notice::Notice;
use crate::session::{Asked, BrokerSession, SessionState, Taking};

/// Shortest and longest wait before a failed connection is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Longest time from the beginning of a connection until its subscriptions stand.
const GREETING: Duration = Duration::from_secs(10);

/// Bytes that are read from a broker before the others have their turn.
const TURN: usize = 1 << 20;

/// Bytes that a broker may leave unread: acknowledgements of all messages that it may have in flight, twice.
const UNREAD: usize = 512 << 10;

/// A broker at one address.
pub struct Peer {
    /// Number of its endpoint in the configuration.
    pub endpoint: usize,
    pub address: SocketAddr,
    pub session: BrokerSession,
    pub link: Option<Link>,
    /// Its name does not stand for it any more.
    pub gone: bool,
    /// Its name stood for it when it was looked up last, by this start of the collector.
    pub named: bool,
    /// It is not connected, because no password goes there now.
    pub held: bool,
    /// When its subscriptions last stood, s since 1970.
    pub connected_s: u64,
    retry: Duration,
    /// When the connection is tried again, if it is down.
    again_at: Instant,
    begun_at: Instant,
    heard_at: Instant,
    pinged_at: Instant,
}

impl Peer {
    pub fn new(endpoint: usize, address: SocketAddr, session: BrokerSession, now: Instant) -> Peer {
        Peer {
            endpoint,
            address,
            session,
            link: None,
            gone: false,
            named: true,
            held: false,
            connected_s: 0,
            retry: RETRY.0,
            again_at: now,
            begun_at: now,
            heard_at: now,
            pinged_at: now,
        }
    }

    pub fn is_up(&self) -> bool {
        self.link.is_some() && self.session.state == SessionState::Up
    }

    /// Begins to connect.
    pub fn begin(&mut self, link: Link, now: Instant) {
        self.link = Some(link);
        (self.begun_at, self.heard_at, self.pinged_at) = (now, now, now);
        self.session.state = SessionState::Greeting;
    }

    /// Whether it is time to connect.
    pub fn is_due(&self, now: Instant) -> bool {
        self.link.is_none() && !self.held && !self.session.is_gone() && now >= self.again_at
    }

    /// The connection failed; how long until it is tried again.
    pub fn failed(&mut self, now: Instant) -> Duration {
        self.link = None;
        let wait = self.retry;
        self.again_at = now + wait;
        self.retry = (2 * wait).min(RETRY.1);
        wait
    }

    /// Ends the connection; the next one is made at once.
    pub fn drop_link(&mut self, now: Instant) {
        self.link = None;
        self.again_at = now;
    }

    /// When something is due: a connection, a ping, or the end of waiting.
    pub fn next_due(&self) -> Option<Instant> {
        match (&self.link, self.session.state) {
            (None, _) if self.held || self.session.is_gone() => None,
            (None, _) => Some(self.again_at),
            (Some(_), SessionState::Up) => Some(self.pinged_at + self.half_keep_alive()),
            (Some(_), _) => Some(self.begun_at + GREETING),
        }
    }

    /// Half of the time that may pass between two packets. Without a limit a minute: else a broker that is gone
    /// would not be missed.
    fn half_keep_alive(&self) -> Duration {
        match self.session.keep_alive_s {
            0 => Duration::from_secs(60),
            seconds => Duration::from_secs(u64::from(seconds)) / 2,
        }
    }

    /// Keeps the session alive. While nothing is `read`, answers cannot be heard, and none is missed.
    ///
    /// # Errors
    /// If the broker is silent.
    pub fn keep_alive(&mut self, now: Instant, reads: bool) -> Result<(), String> {
        let half = self.half_keep_alive();
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        let shown = &self.session.shown;
        if !reads {
            (self.heard_at, self.begun_at) = (now, now);
        }
        if self.session.state != SessionState::Up {
            if now < self.begun_at + GREETING {
                return Ok(());
            }
            return Err(format!(
                "{shown}: no answer within {} s\n  hint: is it an MQTT broker, and is a firewall on the way?",
                GREETING.as_secs()
            ));
        }
        if now >= self.pinged_at + half {
            if now.saturating_duration_since(self.heard_at) > 3 * half {
                return Err(format!(
                    "{shown}: the broker is silent: no packet for 1.5 times the keep alive"
                ));
            }
            self.pinged_at = now;
            self.session.ping(link.out());
        }
        Ok(())
    }

    /// TCP is connected, or failed: sends the CONNECT.
    ///
    /// # Errors
    /// Why the connection failed.
    pub fn connected(&mut self, asked: &Asked) -> Result<(), String> {
        let Some(link) = self.link.as_mut().filter(|link| link.connecting) else {
            return Ok(());
        };
        link.connected()?;
        self.session.begin(asked, link.out())?;
        link.flush()
    }

    /// Reads what is there, until its turn is over or `enough` holds of what was gathered. Whether more may be waiting.
    ///
    /// # Errors
    /// Why the connection cannot go on. What was gathered before stays.
    pub fn read(
        &mut self,
        taking: &mut Taking<'_>,
        enough: impl Fn(&Gather) -> bool,
        clock: impl Fn() -> (Instant, i64),
    ) -> Result<bool, String> {
        let mut more = false;
        let mut read = 0;
        while let Some(link) = self.link.as_mut().filter(|link| !link.connecting) {
            let before = link.input.len();
            let (arrived, received) = link.read()?;
            taking.at = clock();
            // Of TLS and WebSocket, too, which may carry nothing.
            read += received;
            // The beginning of a packet may have been there before.
            if link.input.len() > before {
                self.heard_at = taking.at.0;
            }
            let input = std::mem::take(&mut link.input);
            let taken = self.session.receive(&input, taking);
            link.input = input;
            link.consume(taken?);
            // Answers that need not wait for the disk.
            link.out().append(taking.out);
            link.flush()?;
            if link.unsent() > UNREAD {
                let shown = &self.session.shown;
                return Err(format!(
                    "{shown}: the broker sends, and reads none of the acknowledgements\n  hint: is it an MQTT server?"
                ));
            }
            match arrived {
                Arrived::Ended => return Err(self.closed()),
                Arrived::Drained => break,
                Arrived::More if read >= TURN || enough(taking.gather) => {
                    more = true;
                    break;
                }
                Arrived::More => {}
            }
        }
        if self.is_up() {
            self.retry = RETRY.0;
        }
        Ok(more)
    }

    /// The broker closed the connection. Before it answered, it may be that only one side speaks TLS.
    fn closed(&self) -> String {
        let shown = &self.session.shown;
        if self.session.state != SessionState::Greeting {
            let code = self.link.as_ref().map(Link::close_code);
            let code = code.unwrap_or_default();
            return format!("{shown}: the broker closed the connection{code}");
        }
        let port = tls::wrong_port(shown);
        format!(
            "{shown}: the broker closed the connection before it answered CONNECT\n  hint: {port}"
        )
    }

    /// The notice that it is lost.
    pub fn failure(&self, why: String, wait: Duration) -> Notice {
        Notice::Failed {
            broker: self.session.broker.clone(),
            why,
            again_in_ms: wait.as_millis() as u64,
        }
    }
}
