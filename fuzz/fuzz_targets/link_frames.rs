//! Any bytes as what a worker in another process says, and as what it is told: understood or refused, never a panic,
//! and no more memory than bytes have come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubgauge_engine::link::{Order, frames};
use pubgauge_engine::worker::{Command, Report};

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok(Some(_)) = frames::read::<Report>(&mut rest) {}
    let mut rest = data;
    while let Ok(Some(command)) = frames::read::<Command>(&mut rest) {
        let mut bytes = Vec::new();
        frames::write(&mut bytes, &command).expect("it was on the wire");
        let again = frames::read::<Command>(&mut &bytes[..]).expect("what was written is read");
        assert_eq!(again, Some(command));
    }
    let _ = frames::read::<Order>(&mut &data[..]);
});
