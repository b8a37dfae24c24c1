//! Recordings whose contents travel: what the simulated system was given is what was recorded.

use std::io::Write;

use pubgauge_driver::Travel;
use pubgauge_workload::schedule::{Replay, ReplayMode};
use pubgauge_workload::trace::{Outlets, TraceSource};

use super::*;

/// One recorded message: topic, payload, quality of service, retain.
type Message = (String, Vec<u8>, Option<u8>, Option<bool>);

/// Numbers that look random (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A recording of 60 messages of five devices, some of them below 16 bytes, on few topics in different manners.
fn planted(seed: u64) -> (tempfile::NamedTempFile, Vec<Message>) {
    let mut numbers = Numbers(seed);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    writeln!(file, "time,device,topic,payload,qos,retain").expect("written");
    let mut messages = Vec::new();
    for n in 0..60 {
        let device = if n < 5 { n } else { numbers.below(5) };
        let topic = format!("site/{device}/{}", numbers.below(3));
        let length = 1 + numbers.below(39);
        let payload: Vec<u8> = (0..length)
            .map(|_| b'a' + numbers.below(26) as u8)
            .collect();
        let payload = String::from_utf8(payload).expect("letters");
        let qos = Some(numbers.below(4) as u8).filter(|qos| *qos < 3);
        let retain = [None, Some(false), Some(true)][numbers.below(3) as usize];
        let word = |number: Option<u8>| number.map(|n| n.to_string()).unwrap_or_default();
        let at = n as f64 / 10.0;
        let (told_qos, told_retain) = (word(qos), word(retain.map(u8::from)));
        writeln!(
            file,
            "{at},{device},{topic},{payload},{told_qos},{told_retain}"
        )
        .expect("written");
        messages.push((topic, payload.into_bytes(), qos, retain));
    }
    (file, messages)
}

fn replaying(file: &tempfile::NamedTempFile, publishers: u32) -> Workload {
    let replay = Replay {
        source: TraceSource {
            files: vec![file.path().to_owned()],
            ..TraceSource::default()
        },
        looped: false,
        mode: ReplayMode::Tape,
        contents: true,
        ..Replay::default()
    };
    let trace = replay.open().expect("sound");
    let outlets = Outlets::new(&trace, publishers);
    let mut workload = workload(publishers, 2, Arrivals::Replay(replay.into()));
    workload.phases.warm_up = Until::Time(0);
    let flow = &mut workload.flows[0];
    flow.size = Sizes::Recorded;
    for (number, publisher) in (0..).zip(&mut flow.publishers) {
        let topics = outlets.outlets_of(number).filter_map(|(topic, _)| topic);
        publisher.topics = topics
            .map(|topic| trace.topics[topic as usize].clone())
            .collect();
    }
    for subscriber in &mut flow.subscribers {
        subscriber.filters = vec!["site/#".into()];
    }
    workload
}

#[test]
fn what_travels_is_what_was_recorded() {
    for seed in 0..100 {
        let (file, messages) = planted(seed);
        let publishers = [1, 2, 5, 12][seed as usize % 4];
        let settings = Settings {
            reliability: Some(Reliability::AtLeastOnce),
            ..Settings::default()
        };
        let clock = Clock::virtual_at(SECOND);
        let run = simulate(
            replaying(&file, publishers),
            Behaviour::default(),
            settings,
            clock,
        );
        agree(&run);
        let sum = run.record.sum();
        let copies = publishers.div_ceil(5) as usize;
        // Of 12 publishers the last two play the first two devices a third time.
        let whole = publishers < 5 || publishers % 5 == 0;
        if whole {
            assert_eq!(
                sum.messages.published as usize,
                messages.len() * copies,
                "seed {seed}"
            );
        }
        let at_most_once = |m: &&Message| m.2 == Some(0);
        if whole {
            let never = messages.iter().filter(at_most_once).count() * copies;
            assert_eq!(sum.never_acknowledged as usize, never, "seed {seed}");
        }
        assert_eq!((sum.unacknowledged, sum.corrupt), (0, 0), "seed {seed}");
        let subscribers: std::collections::BTreeSet<&String> =
            run.truth.iter().map(|r| &r.subscriber).collect();
        assert_eq!(subscribers.len(), 2);
        for subscriber in subscribers {
            let records = run.truth.iter().filter(|r| r.subscriber == *subscriber);
            let mut proving = 0;
            let mut carried: Vec<Message> = Vec::new();
            for record in records {
                let header = record.header.expect("of this trial");
                let it = record.carried.as_ref().expect("the header is apart");
                let Travel { qos, retain, .. } = it.travel;
                if header.kind == Kind::Measured {
                    carried.push((it.topic.clone(), it.payload.clone(), qos, retain));
                } else {
                    assert_eq!((it.payload.len(), retain), (0, Some(false)), "seed {seed}");
                    proving += 1;
                }
            }
            assert!(proving > 0);
            let copied = (0..copies).flat_map(|_| messages.clone());
            let mut expected: Vec<Message> = copied.collect();
            if whole {
                carried.sort();
                expected.sort();
                assert_eq!(carried, expected, "seed {seed}");
            } else {
                assert!(
                    carried.iter().all(|message| expected.contains(message)),
                    "seed {seed}"
                );
            }
        }
    }
}
