//! The driver's messages and checks for a plain program in C or C++: two functions that it calls.

use std::ffi::{c_char, c_long, c_void};

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{ClientId, Clock, Delivery, Events, Filler, Nanos};

use super::{PAYLOAD, header};

/// Messages with one time stamp, as the engine and the drivers do it in a flood.
const TOGETHER: c_long = 64;

/// Called before each send with [`Checked::user`], a buffer of [`Checked::size`] bytes, and the message's number from 0.
pub type Fill = extern "C" fn(*mut c_void, *mut c_char, c_long);
/// Called for each message received with [`Checked::user`], the message, its length in bytes, and its number from 0.
pub type Check = extern "C" fn(*mut c_void, *const c_char, usize, c_long);

/// Messages of a plain program, and who checks them.
pub struct Checked {
    before: &'static [u8],
    filler: Filler,
    now: Nanos,
    sink: Box<dyn Events>,
}

impl Checked {
    /// Messages of `before`, for protocols that put a topic there, and a payload of [`PAYLOAD`] bytes, which the sink
    /// gets alone.
    pub fn new(before: &'static [u8], sink: impl Events + 'static) -> Self {
        Checked {
            before,
            filler: Filler::new(PAYLOAD),
            now: 0,
            sink: Box::new(sink),
        }
    }

    /// Length of a message, bytes.
    pub fn size(&self) -> usize {
        self.before.len() + PAYLOAD
    }

    /// The first argument of both functions. It is valid while this value lives and nothing else uses it.
    pub fn user(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }

    /// Writes topic, header and body of a message (a [`Fill`]).
    pub extern "C" fn fill(user: *mut c_void, message: *mut c_char, number: c_long) {
        // SAFETY: `user` is of `Checked::user`, and the message has room for `size` bytes.
        let (checked, message) = unsafe {
            let checked = &mut *user.cast::<Checked>();
            let message = std::slice::from_raw_parts_mut(message.cast::<u8>(), checked.size());
            (checked, message)
        };
        if number % TOGETHER == 0 {
            checked.now = Clock::Monotonic.now();
        }
        let sequence = number as u32;
        let (before, payload) = message.split_at_mut(checked.before.len());
        before.copy_from_slice(checked.before);
        let (head, body) = payload.split_at_mut(HEADER_LEN);
        head.copy_from_slice(&header(checked.now, sequence));
        body.copy_from_slice(checked.filler.body(0, sequence, PAYLOAD));
    }

    /// Gives a message's payload to the sink (a [`Check`]).
    pub extern "C" fn check(
        user: *mut c_void,
        message: *const c_char,
        size: usize,
        number: c_long,
    ) {
        // SAFETY: `user` is of `Checked::user`, and the message as long as is said.
        let (checked, message) = unsafe {
            let message = std::slice::from_raw_parts(message.cast::<u8>(), size);
            (&mut *user.cast::<Checked>(), message)
        };
        if number % TOGETHER == 0 {
            checked.sink.arrived();
        }
        let delivery = Delivery {
            payload: &message[checked.before.len()..],
            topic: None,
            retained: false,
            redelivered: false,
        };
        checked.sink.delivered(ClientId(0), delivery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::pair::Sink;

    #[test]
    fn what_is_filled_passes_the_check() {
        let mut checked = Checked::new(b"topic\0", Sink::new(false, |_, _| {}));
        let mut message = vec![0; checked.size()];
        let (user, size) = (checked.user(), message.len());
        for number in 0..3 {
            let at: *mut u8 = message.as_mut_ptr();
            Checked::fill(user, at.cast(), number);
            Checked::check(user, at.cast(), size, number);
        }
        assert!(message.starts_with(b"topic\0"));
    }
}
