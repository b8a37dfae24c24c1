//! A lock that outlives panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is never left half changed, so a panic elsewhere does not spoil it; and stopping
    // must work above all after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
