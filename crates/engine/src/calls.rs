//! Sleep in calls of publish, of libraries that wait there until the system takes the message.

use std::ops::Range;

use pubgauge_driver::{Clock, Nanos};

use crate::usage::accounted;

/// Shortest call that counts as one that slept. Reading the kernel's times takes some 3 us: a hundredth of it.
const LONG: Nanos = 200_000;

/// Times each call of publish.
pub struct Calls {
    clock: Clock,
    /// The kernel's times of the thread, running and waiting, as they were read last, ns.
    accounts: Nanos,
}

impl Calls {
    /// Calls of the calling thread.
    pub fn new(clock: &Clock) -> Self {
        Calls {
            clock: clock.clone(),
            accounts: 0,
        }
    }

    /// When a call begins.
    #[inline]
    pub fn start_time(&self) -> Nanos {
        self.clock.now()
    }

    /// A call that began at `began` has returned: when it slept, if it was a long one.
    #[inline]
    pub fn returned(&mut self, began: Nanos) -> Option<Range<Nanos>> {
        let returned = self.clock.now();
        (returned >= began + LONG).then(|| self.sleep(began..returned))
    }

    /// The time that the kernel counts neither as running nor as waiting since it was asked last is sleep: too little counts
    /// rather than too much.
    #[cold]
    fn sleep(&mut self, call: Range<Nanos>) -> Range<Nanos> {
        let accounts = match self.clock {
            Clock::Virtual(_) => 0,
            Clock::Monotonic | Clock::Converted(_) => accounted(),
        };
        let took = call.end - call.start;
        let slept = took.saturating_sub(accounts.saturating_sub(self.accounts));
        self.accounts = accounts;
        call.end - slept..call.end
    }

    /// Takes a newer reading of the kernel's times of the thread, running and waiting, ns.
    pub fn accounted(&mut self, accounts: Nanos) {
        self.accounts = self.accounts.max(accounts);
    }
}
