//! A payload that is not what was published is counted, wherever it differs and however long it is.

use super::*;

/// The deliveries that a system with this behaviour made of messages of `bytes`, and those of them that
/// were told as damaged or as not of this trial.
fn damaged(bytes: u32, behaviour: Behaviour) -> (u64, u64) {
    let mut workload = workload(1, 1, Arrivals::Periodic { per_s: 20.0 });
    workload.phases.measure = Until::Time(SECOND);
    workload.flows[0].size = Sizes::Fixed { bytes };
    let clock = Clock::virtual_at(SECOND);
    let record = once(
        &workload,
        &behaviour,
        &Settings::default(),
        clock,
        |place| place,
        &mut Nobody,
    )
    .record;
    let foreign: u64 = record.recordings.iter().map(|r| r.foreign).sum();
    (
        record.sum().messages.published,
        record.sum().corrupt + foreign,
    )
}

#[test]
fn a_damaged_byte_of_a_body_is_noticed_wherever_it_is() {
    let bodies = [(17, 16..17), (24, 16..24), (64, 16..64), (300, 16..300)];
    for (bytes, positions) in bodies.into_iter().chain([(1040, 500..560)]) {
        for at in positions {
            let behaviour = Behaviour {
                corruption: 1.0,
                corrupt_byte: Some(at),
                ..Behaviour::default()
            };
            let (published, told) = damaged(bytes, behaviour);
            assert!(told >= published, "byte {at} of {bytes}: {told}");
        }
    }
}

#[test]
fn a_body_that_was_cut_or_lengthened_is_noticed_at_every_size() {
    for bytes in (16..=300).chain([1024, 4096, 4097, 65_536]) {
        let cut = Behaviour {
            cut: 1.0,
            ..Behaviour::default()
        };
        let lengthened = Behaviour {
            lengthened: 1.0,
            ..Behaviour::default()
        };
        for (what, behaviour) in [("cut", cut), ("lengthened", lengthened)] {
            let (published, told) = damaged(bytes, behaviour);
            assert!(
                told >= published,
                "{bytes} bytes, {what}: {told} of {published}"
            );
        }
    }
}

#[test]
fn payloads_as_they_were_published_are_not_damaged() {
    for bytes in [16, 17, 18, 64, 300, 5000, 300_000] {
        assert_eq!(
            damaged(bytes, Behaviour::default()),
            (20, 0),
            "{bytes} bytes"
        );
    }
}
