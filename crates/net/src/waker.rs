//! Wakes a loop from other threads.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use pubgauge_driver::{Attempt, DriverError};
use rustix::event::{EventfdFlags, eventfd};

/// Wakes a loop from other threads: one that waits for its descriptor to be readable.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// # Errors
    /// If there are no more descriptors.
    pub fn new() -> Result<Waker, DriverError> {
        let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let made = made.map_err(|errno| {
            DriverError::of_io(
                "cannot make an event descriptor",
                Attempt::Open,
                &errno.into(),
            )
        });
        made.map(|fd| Waker(Arc::new(fd)))
    }

    pub fn wake(&self) {
        // It fails only when it is full of wakes that are not taken.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Takes all wakes.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
