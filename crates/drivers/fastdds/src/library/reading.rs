//! Taking samples from a reader and handing them on.

use pubgauge_driver::{ClientId, Delivery, DriverError, Events};

use crate::ffi::{GROUP, RawSample, Reader};

/// Most samples taken from one reader before others, and the sender's schedule, get their turn.
const TURN: usize = 256;
/// Payloads longer than this on average are taken one by one, so that each has its own stamp.
const LARGE: usize = 4096;

/// The result of one turn at a reader.
pub(super) struct Turn {
    pub(super) messages: usize,
    pub(super) more: bool,
}

/// Takes what has come for one subscriber, up to a turn's worth: each group of samples is taken
/// first, then stamped ([`Events::arrived`]), then delivered. Groups grow from one sample to
/// [`GROUP`], so that paced messages are stamped one by one and only messages at full speed share
/// stamps.
pub(super) fn take_turn(
    id: ClientId,
    reader: &mut Reader,
    since: Option<i64>,
    samples: &mut [RawSample],
    events: &mut dyn Events,
) -> Result<Turn, DriverError> {
    let mut group = 1;
    let mut messages = 0;
    loop {
        let Some((filled, more)) = reader.take(&mut samples[..group]) else {
            return Err(DriverError::new("Fast DDS failed to hand over samples"));
        };
        let mut bytes = 0;
        if filled > 0 {
            events.arrived();
            for sample in &samples[..filled] {
                // SAFETY: nothing is taken before the loop is over.
                let payload = unsafe { sample.payload() };
                bytes += payload.len();
                events.delivered(
                    id,
                    Delivery {
                        payload,
                        topic: None,
                        retained: since.is_some_and(|since| sample.source_ns < since),
                        redelivered: false,
                    },
                );
            }
            messages += filled;
        }
        if !more || messages >= TURN {
            return Ok(Turn { messages, more });
        }
        group = if bytes > LARGE * filled {
            1
        } else {
            (group * 2).min(GROUP)
        };
    }
}
