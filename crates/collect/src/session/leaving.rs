//! A session that is given up: nothing more goes into it, what is in it comes out, and then the broker drops it.

use std::time::{Duration, Instant};

use pubgauge_mqtt_codec::encode_pingreq;

use super::{Asked, BrokerSession, SessionState};

/// How long nothing may have come from a broker that was asked for nothing more, before it is asked whether that was all.
const QUIET: Duration = Duration::from_secs(1);

/// How far the session of a broker is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Its messages come out. Nothing came since then, and a ping that was sent since is the one of this number.
    Draining {
        since: Option<Instant>,
        probe: Option<u64>,
    },
    /// Nothing is in it: the next connection begins anew, and keeps nothing.
    Dropping,
    /// The broker has no session any more.
    Left,
}

/// The next event of a session that is being given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeavingStep {
    /// Bytes from the broker, or time.
    Wait,
    /// A ping was appended.
    Probed,
    /// Nothing is in it: this connection is to be ended, and the next one drops it.
    Empty,
}

impl BrokerSession {
    /// Begins to give it up: unsubscribes from everything. `asked` asks for nothing more.
    ///
    /// # Errors
    /// If something in it is longer than the protocol allows.
    pub fn begin_leaving(&mut self, asked: &Asked, out: &mut Vec<u8>) -> Result<(), String> {
        self.leaving = Some(Leaving::Draining {
            since: None,
            probe: None,
        });
        self.ask_again(asked, &[], out)?;
        if self.state == SessionState::Subscribing {
            // The answer to the SUBSCRIBE counts for nothing any more.
            (self.state, self.had_session) = (SessionState::Up, true);
        }
        Ok(())
    }

    /// Goes on giving it up, on a connection that stands. `is_idle` is whether all that came is stored and acknowledged.
    ///
    /// A broker sends the messages behind those that are acknowledged before it answers a ping that came after the
    /// acknowledgements. One that takes a moment has that moment as well.
    pub fn go_on_leaving(&mut self, now: Instant, is_idle: bool, out: &mut Vec<u8>) -> LeavingStep {
        let is_open = !self.has_left || !is_idle || !self.unreleased.is_empty();
        let Some(Leaving::Draining { since, probe }) = &mut self.leaving else {
            return LeavingStep::Wait;
        };
        if is_open || self.came {
            self.came = false;
            (*since, *probe) = (None, None);
            return LeavingStep::Wait;
        }
        let quiet = now.saturating_duration_since(*since.get_or_insert(now));
        match *probe {
            Some(probe) if self.pongs >= probe => {
                self.leaving = Some(Leaving::Dropping);
                LeavingStep::Empty
            }
            None if quiet >= QUIET => {
                self.pings += 1;
                *probe = Some(self.pings);
                self.credit.ask();
                encode_pingreq(out);
                LeavingStep::Probed
            }
            _ => LeavingStep::Wait,
        }
    }

    /// Whether the next connection is to begin anew, and keep nothing.
    pub(super) fn is_dropping(&self) -> bool {
        self.leaving == Some(Leaving::Dropping)
    }

    /// Whether the broker has no session any more.
    pub fn is_gone(&self) -> bool {
        self.leaving == Some(Leaving::Left)
    }
}
