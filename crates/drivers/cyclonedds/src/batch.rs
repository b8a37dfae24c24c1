//! When a batch goes out.
//!
//! Cyclone gathers a writer's messages into a datagram and leaves it to the application to send it
//! before it is full. This module decides when: at a fixed number of bytes, or at the bytes that
//! come in a set time at the present rate, so that batches follow rate and payload (similar to
//! RTI's TurboMode). In any case everything goes out before the fleet waits.

use pubgauge_driver::{Batching, Nanos};

/// RTPS header (20 bytes), INFO_DST (16), and a closing HEARTBEAT (32): DDSI-RTPS 2.3, section 9.4.
const DATAGRAM_BYTES: u32 = 68;

/// INFO_TS (12 bytes), DATA (24) and our CDR head (12), for each message.
const MESSAGE_BYTES: u32 = 48;

/// The rate is measured over `COUNT` messages, or over `SPAN` ns if there are fewer.
const COUNT: u32 = 32;
const SPAN: Nanos = 1_000_000;

/// Weight of the newest measurement in the estimated rate.
const GAIN: f64 = 0.5;

/// Bytes that a payload takes in a datagram, whole words.
#[inline]
pub(crate) fn on_the_wire(payload: usize) -> u32 {
    u32::try_from(payload.saturating_add(3) & !3)
        .unwrap_or(u32::MAX)
        .saturating_add(MESSAGE_BYTES)
}

/// Decides for one fleet.
#[derive(Debug)]
pub(crate) struct Batches {
    /// Bytes at which a batch goes out; 0 if every message goes at once.
    limit: u32,
    adaptive: Option<Adaptive>,
}

#[derive(Debug)]
struct Adaptive {
    hold: Nanos,
    largest: u32,
    /// Bytes per ns.
    rate: f64,
    bytes: u64,
    count: u32,
    since: Nanos,
}

impl Batches {
    /// `largest` is what a datagram holds, `hold` how long a message may wait for others, ns.
    pub(crate) fn new(batching: Batching, largest: u32, hold: Nanos, now: Nanos) -> Self {
        let adaptive = (batching == Batching::Adaptive).then_some(Adaptive {
            hold,
            largest,
            rate: 0.0,
            bytes: 0,
            count: 0,
            since: now,
        });
        let limit = match batching {
            Batching::Bytes(bytes) => bytes,
            Batching::Off | Batching::Adaptive => 0,
        };
        Batches { limit, adaptive }
    }

    /// Bytes of the datagram that `pending` and a message more would make, if they go together.
    #[inline]
    pub(crate) fn bytes_with(&self, pending: u32, message: u32) -> u32 {
        let start = if pending == 0 {
            DATAGRAM_BYTES
        } else {
            pending
        };
        start.saturating_add(message)
    }

    /// Whether a datagram of so many bytes would be too long.
    #[inline]
    pub(crate) fn exceeded(&self, bytes: u32) -> bool {
        bytes > self.limit
    }

    /// Whether a datagram of so many bytes should be sent without waiting for more messages.
    #[inline]
    pub(crate) fn complete(&self, bytes: u32) -> bool {
        bytes >= self.limit
    }

    /// Counts a message that was sent; says whether it is time to [`Batches::adapt`].
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) -> bool {
        let Some(adaptive) = &mut self.adaptive else {
            return false;
        };
        adaptive.bytes += u64::from(bytes);
        adaptive.count += 1;
        adaptive.count >= COUNT
    }

    /// Measures the rate anew; to be called before waiting as well, so that a rate that has
    /// fallen is noticed.
    pub(crate) fn adapt(&mut self, now: Nanos) {
        let Some(a) = &mut self.adaptive else {
            return;
        };
        let span = now.saturating_sub(a.since).max(1);
        if span < SPAN && a.count < COUNT {
            return;
        }
        let rate = a.bytes as f64 / span as f64;
        a.rate += GAIN * (rate - a.rate);
        a.bytes = 0;
        a.count = 0;
        a.since = now;
        self.limit = (a.rate * a.hold as f64).min(f64::from(a.largest)) as u32;
    }

    /// Measures from `now` on. While publishers are held back, their rate is not the one at which
    /// they would send: counting that time would shrink batches under back pressure, where they
    /// help most.
    pub(crate) fn restart(&mut self, now: Nanos) {
        if let Some(a) = &mut self.adaptive {
            a.bytes = 0;
            a.count = 0;
            a.since = now;
        }
    }

    /// The bytes at which a batch goes out at present.
    #[cfg(test)]
    fn limit(&self) -> u32 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOLD: Nanos = 100_000;

    /// The limit after 1000 messages at a steady rate.
    fn settled(messages_per_s: u64, payload: usize) -> Batches {
        let mut batches = Batches::new(Batching::Adaptive, 14_720, HOLD, 0);
        for n in 1..=1000 {
            batches.sent(on_the_wire(payload));
            batches.adapt(n * 1_000_000_000 / messages_per_s);
        }
        batches
    }

    #[test]
    fn slow_messages_wait_for_nobody() {
        let batches = settled(1000, 64);
        assert!(batches.complete(batches.bytes_with(0, on_the_wire(64))));
    }

    #[test]
    fn batches_follow_rate_and_payload() {
        // 100 us at 100,000/s are ten messages; at 500,000/s of 1 KiB a datagram is full.
        assert_eq!(settled(100_000, 64).limit() / on_the_wire(64), 9);
        assert_eq!(settled(500_000, 1024).limit(), 14_720);
        assert!(settled(100_000, 512).limit() > settled(100_000, 64).limit());
    }

    #[test]
    fn a_burst_that_ends_is_forgotten() {
        let mut batches = settled(500_000, 64);
        assert!(!batches.complete(batches.bytes_with(0, on_the_wire(16))));
        for ms in 3..23 {
            batches.adapt(ms * 1_000_000);
        }
        assert!(batches.complete(batches.bytes_with(0, on_the_wire(16))));
    }

    #[test]
    fn being_held_back_makes_batches_no_smaller() {
        let mut batches = settled(500_000, 1024);
        let full = batches.limit();
        for burst in 1..20 {
            let mut now = 2_000_000 + burst * 1_000_000;
            for _ in 0..100 {
                now += 2000;
                if batches.sent(on_the_wire(1024)) {
                    batches.adapt(now);
                }
            }
            // Held back for the rest of the millisecond.
            batches.restart(now + 800_000);
        }
        assert_eq!(batches.limit(), full);
    }

    #[test]
    fn off_completes_every_message_and_bytes_keep_their_limit() {
        let off = Batches::new(Batching::Off, 14_720, HOLD, 0);
        assert!(off.complete(off.bytes_with(0, on_the_wire(16))));
        let fixed = Batches::new(Batching::Bytes(1000), 14_720, HOLD, 0);
        assert!(!fixed.complete(999) && fixed.complete(1000) && fixed.exceeded(1001));
    }

    proptest! {
        #[test]
        fn the_limit_never_exceeds_a_datagram(
            steps in proptest::collection::vec((0u64..100_000, 0u32..100_000), 0..50),
        ) {
            let mut batches = Batches::new(Batching::Adaptive, 14_720, HOLD, 0);
            let mut now = 0;
            for (count, ns) in steps {
                now += u64::from(ns) * 100;
                batches.sent(u32::try_from(count).unwrap() * 50);
                batches.adapt(now);
                prop_assert!(batches.limit() <= 14_720);
            }
        }

        #[test]
        fn sizes_do_not_overflow(payload: usize, pending: u32) {
            let off = Batches::new(Batching::Off, 14_720, HOLD, 0);
            prop_assert!(off.bytes_with(pending, on_the_wire(payload)) >= pending);
        }
    }
}
