use super::*;
use pubgauge_mqtt_codec::{MAX_PACKET_LEN, decode};

/// A canary every second, its broker, and the time.
struct Rig {
    canary: Canary,
    out: Vec<u8>,
    begun: Instant,
    now: Instant,
}

/// A message on its way.
#[derive(Clone, Debug)]
struct Sent {
    id: u16,
    dup: bool,
    topic: String,
    payload: Vec<u8>,
}

impl Rig {
    fn new() -> Rig {
        let asked = config::Canary {
            every: Duration::from_secs(1),
            topic: "canaries".into(),
        };
        let now = Instant::now();
        Rig {
            canary: Canary::new(&asked, "c", now),
            out: Vec::new(),
            begun: now,
            now,
        }
    }

    fn after(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    /// What was written since.
    fn written(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        let mut rest = &self.out[..];
        while let Ok(Some((packet, len))) = decode(rest, Version::V5, MAX_PACKET_LEN) {
            let Packet::Publish(publish) = packet else {
                panic!("{packet:?}");
            };
            all.push(Sent {
                id: publish.packet_id,
                dup: publish.dup,
                topic: publish.topic.to_owned(),
                payload: publish.payload.to_owned(),
            });
            rest = &rest[len..];
        }
        self.out.clear();
        all
    }

    /// The next one, a second after the last, which the broker acknowledges.
    fn next(&mut self) -> Sent {
        self.after(1);
        self.canary
            .send(self.now, Version::V5, &mut self.out)
            .unwrap();
        let sent = self.written().pop().expect("it is due");
        assert!(self.canary.acknowledged(sent.id, ReasonCode::SUCCESS));
        sent
    }

    fn deliver(&mut self, sent: &Sent) -> bool {
        let publish = Publish {
            topic: &sent.topic,
            payload: &sent.payload,
            ..Publish::default()
        };
        self.canary.takes(&publish, self.now)
    }

    fn counts(&self) -> [u64; 3] {
        let counts = self.canary.counts(self.now, true);
        [counts.acknowledged, counts.delivered, counts.lost]
    }
}

#[test]
fn one_that_was_acknowledged_and_is_overtaken_is_lost() {
    let mut rig = Rig::new();
    let all: Vec<Sent> = (0..5).map(|_| rig.next()).collect();
    assert_eq!(all[0].topic, "canaries/c");
    rig.deliver(&all[0]);
    rig.deliver(&all[3]);
    assert_eq!(rig.canary.lost(rig.now, false), [0; 0]);
    rig.after(9);
    // Out of order for a moment, and one that comes twice.
    rig.deliver(&all[1]);
    rig.deliver(&all[1]);
    rig.deliver(&all[3]);
    rig.after(1);
    assert_eq!(rig.canary.lost(rig.now, false), [3]);
    assert_eq!(rig.counts(), [5, 3, 1]);
    // Told once, and too late now.
    rig.deliver(&all[2]);
    rig.after(100);
    assert_eq!(rig.canary.lost(rig.now, false), [0; 0]);
    assert_eq!(rig.counts(), [5, 3, 1]);
    // The last one may be on its way still, at the end as well.
    assert_eq!(rig.canary.lost(rig.now, true), [0; 0]);
    let sixth = rig.next();
    rig.deliver(&sixth);
    assert_eq!(rig.canary.lost(rig.now, true), [5]);
}

#[test]
fn one_that_was_not_acknowledged_is_sent_again_and_counts_once() {
    let mut rig = Rig::new();
    rig.canary.send(rig.now, Version::V5, &mut rig.out).unwrap();
    let first = rig.written().pop().unwrap();
    rig.after(5);
    rig.canary.send(rig.now, Version::V5, &mut rig.out).unwrap();
    assert!(rig.written().is_empty(), "one at a time");
    for is_resumed in [true, false] {
        rig.canary
            .came_up(rig.now, is_resumed, Version::V5, &mut rig.out)
            .unwrap();
        let again = rig.written().pop().unwrap();
        assert_eq!(
            (again.id, again.dup, &again.payload),
            (first.id, is_resumed, &first.payload)
        );
    }
    // It comes before its acknowledgement.
    assert!(rig.deliver(&first));
    rig.canary.acknowledged(first.id, ReasonCode::SUCCESS);
    rig.canary.acknowledged(first.id, ReasonCode::SUCCESS);
    assert_eq!(rig.counts(), [1, 1, 0]);
    assert_eq!(
        rig.canary.counts(rig.now, true).took,
        Some(Duration::from_secs(5))
    );
}

#[test]
fn one_that_is_refused_or_overdue_is_told() {
    let mut rig = Rig::new();
    rig.canary.send(rig.now, Version::V5, &mut rig.out).unwrap();
    let first = rig.written().pop().unwrap();
    assert!(rig.canary.acknowledged(first.id, ReasonCode(0x87)));
    assert_eq!(rig.canary.refused(), Some("not authorized"));
    assert_eq!((rig.canary.refused(), rig.counts()), (None, [0, 0, 0]));
    // An acknowledgement of something else.
    assert!(!rig.canary.acknowledged(1, ReasonCode::SUCCESS));
    rig.next();
    rig.after(61);
    let counts = rig.canary.counts(rig.now, true);
    assert!(counts.is_overdue);
    assert_eq!(counts.waits_since, Some(rig.begun + Duration::from_secs(1)));
    assert!(!rig.canary.counts(rig.now, false).is_overdue);
    // What waited while there was no connection is overdue later.
    rig.canary
        .came_up(rig.now, true, Version::V5, &mut rig.out)
        .unwrap();
    assert!(!rig.canary.counts(rig.now, true).is_overdue);
    rig.after(61);
    assert!(rig.canary.counts(rig.now, true).is_overdue);
}

#[test]
fn what_others_publish_to_its_topic_is_none() {
    let mut rig = Rig::new();
    let first = rig.next();
    let with = |topic: &str, payload: &str| Sent {
        topic: topic.into(),
        payload: payload.into(),
        ..first.clone()
    };
    assert!(!rig.deliver(&with("canaries/d", "{}")));
    assert!(!rig.deliver(&with("canaries/c", "hello")));
    // Of an earlier start of this collector.
    let earlier = "{\"canary\":\"00\",\"number\":7}";
    assert!(rig.deliver(&with("canaries/c", earlier)));
    assert_eq!(rig.counts(), [1, 0, 0]);
}

#[test]
fn no_more_are_under_way_than_are_kept() {
    let mut rig = Rig::new();
    let all: Vec<Sent> = (0..MOST).map(|_| rig.next()).collect();
    rig.after(1);
    rig.canary.send(rig.now, Version::V5, &mut rig.out).unwrap();
    assert!(rig.written().is_empty());
    rig.deliver(&all[MOST - 1]);
    rig.after(10);
    assert_eq!(rig.canary.lost(rig.now, false).len(), MOST - 1);
    let next = rig.next();
    assert!(next.id >= FIRST_ID);
}
