//! Promises of the settings, on a private RabbitMQ.

use crate::common;

use std::time::Duration;

use common::*;
use pubgauge_driver::*;

/// Messages in a queue, as RabbitMQ's own command counts them.
fn queued(rabbit: &Rabbit, queue: &str) -> Option<(u64, u64)> {
    rabbit
        .ctl(&[
            "list_queues",
            "-q",
            "--no-table-headers",
            "name",
            "messages",
            "consumers",
        ])
        .lines()
        .filter_map(|line| {
            let mut fields = line.split('\t');
            let name = fields.next()?;
            let mut number = || fields.next()?.trim().parse().ok();
            (name == queue).then(|| Some((number()?, number()?)))?
        })
        .next()
}

#[test]
fn counts_are_those_of_the_server() {
    let rabbit = Rabbit::shared();
    let mut rig = rabbit.rig(durable());
    let subscriber = rig.named("counted");
    rig.subscribe(subscriber, "counts/#");
    rig.disconnect(subscriber);
    let publisher = rig.named("counting");
    let topic = rig.fleet.advertise(publisher, "counts/a").unwrap();
    for n in 0..5000 {
        rig.publish(publisher, topic, n, 16 + (n % 300) as usize);
    }
    rig.until("5000 confirms", |s| s.acknowledged.len() == 5000);
    assert_eq!(rig.fleet.unsettled(), 0);
    assert!(
        rig.seen
            .acknowledged
            .iter()
            .all(|(.., a)| *a == Acknowledgement::Taken)
    );
    let queue = "pubgauge.session.counted";
    assert_eq!(queued(&rabbit, queue), Some((5000, 0)));
    rig.fleet.reconnect(subscriber).unwrap();
    rig.until("all of them", |s| s.messages.len() == 5000);
    assert_eq!(rig.seen.connected.last(), Some(&(subscriber.0, true)));
    let in_order: Vec<u64> = (0..5000).collect();
    assert_eq!(rig.sequences(subscriber), in_order);
    assert!(
        rig.seen
            .messages
            .iter()
            .all(|m| m.topic == "counts/a" && !m.redelivered)
    );
    // All were acknowledged: the server has nothing left to give.
    rig.poll_for(Duration::from_millis(200));
    assert_eq!(queued(&rabbit, queue), Some((0, 1)));
    assert!(rig.fleet.wire_bytes().sent > 5000 * (16 + 150));
}

#[test]
fn exchanges_route_as_their_names_say() {
    let rabbit = Rabbit::shared();
    for (exchange, filter, topic, hears) in [
        ("topic", "e/+/z", "e/1.5/z", true),
        ("topic", "e/+/z", "e/1/y", false),
        ("topic", "e/#", "e", true),
        ("direct", "e/x*", "e/x*", true),
        ("direct", "e/x", "e/xx", false),
        ("fanout", "#", "e/anything", true),
        ("default", "e/queue", "e/queue", true),
        ("default", "e/queue", "e/other", false),
    ] {
        let mut rig = rabbit.rig(native(reliable(), "exchange", exchange.into()));
        let client = rig.named("e");
        rig.subscribe(client, filter);
        let heard = rig.fleet.advertise(client, topic).unwrap();
        rig.publish(client, heard, 1, 64);
        rig.until("confirmed", |s| s.acknowledged.len() == 1);
        if hears {
            rig.until("delivered", |s| s.messages.len() == 1)
        } else {
            rig.poll_for(Duration::from_millis(200))
        }
        let topics: Vec<_> = rig.seen.messages.iter().map(|m| m.topic.as_str()).collect();
        let expected: &[&str] = if hears { &[topic] } else { &[] };
        assert_eq!(topics, expected, "{exchange} {filter}");
    }
    // An exchange of one's own is declared by whoever comes first.
    let own = native(reliable(), "exchange-name", "pubgauge-test".into());
    let mut rig = rabbit.rig(own);
    let client = rig.named("own");
    rig.subscribe(client, "own/#");
    let topic = rig.fleet.advertise(client, "own/a").unwrap();
    rig.publish(client, topic, 7, 64);
    rig.until("delivered", |s| s.messages.len() == 1);
    let exchanges = rabbit.ctl(&["list_exchanges", "-q", "name", "type"]);
    assert!(exchanges.contains("pubgauge-test\ttopic"), "{exchanges}");
}

#[test]
fn mandatory_messages_that_nobody_gets_are_told() {
    let rabbit = Rabbit::shared();
    let mut rig = rabbit.rig(native(reliable(), "mandatory", true.into()));
    let client = rig.named("m");
    rig.subscribe(client, "mandatory/heard");
    let heard = rig.fleet.advertise(client, "mandatory/heard").unwrap();
    let unheard = rig.fleet.advertise(client, "mandatory/unheard").unwrap();
    for n in 0..400 {
        // Large ones come back in several frames.
        let len = if n % 40 == 39 { 300_000 } else { 64 };
        rig.publish(client, if n % 2 == 0 { heard } else { unheard }, n, len);
    }
    rig.until("400 answers", |s| s.acknowledged.len() == 400);
    for (_, tag, answer) in &rig.seen.acknowledged {
        let expected = match tag % 2 {
            0 => Acknowledgement::Taken,
            _ => Acknowledgement::NoSubscriber,
        };
        assert_eq!(*answer, expected, "message {tag}");
    }
    rig.until("the others", |s| s.messages.len() == 200);
}

#[test]
fn transactions_publish_at_their_commit() {
    let rabbit = Rabbit::shared();
    let mut rig = rabbit.rig(native(durable(), "transactions", 100.into()));
    let client = rig.named("tx");
    rig.subscribe(client, "tx/a");
    let topic = rig.fleet.advertise(client, "tx/a").unwrap();
    // A whole transaction, and nothing goes in between it and its answer.
    for n in 0..100 {
        assert_eq!(rig.try_publish(client, topic, n, 16), Publish::Accepted);
    }
    assert_eq!(rig.try_publish(client, topic, 100, 16), Publish::Blocked);
    assert_eq!(rig.fleet.unsettled(), 100);
    rig.until("the commit", |s| {
        s.acknowledged.len() == 100 && !s.writable.is_empty()
    });
    rig.until("its messages", |s| s.messages.len() == 100);
    // Part of one, which ends when there is nothing due.
    for n in 100..130 {
        assert_eq!(rig.try_publish(client, topic, n, 16), Publish::Accepted);
    }
    rig.until("the rest", |s| {
        s.acknowledged.len() == 130 && s.messages.len() == 130
    });
    let tags: Vec<u64> = rig
        .seen
        .acknowledged
        .iter()
        .map(|(_, tag, _)| *tag)
        .collect();
    assert_eq!(tags, (0..130).collect::<Vec<_>>());
}

#[test]
fn what_a_full_queue_rejects_is_told() {
    let rabbit = Rabbit::shared();
    let settings = Settings {
        queue_limit: Some(10),
        on_full: Some(OnFull::Drop),
        ..native(durable(), "overflow", "reject-publish".into())
    };
    let mut rig = rabbit.rig(settings);
    let subscriber = rig.named("full");
    rig.subscribe(subscriber, "full/a");
    rig.disconnect(subscriber);
    let publisher = rig.named("filling");
    let topic = rig.fleet.advertise(publisher, "full/a").unwrap();
    for n in 0..50 {
        rig.publish(publisher, topic, n, 64);
        rig.until("an answer", |s| s.acknowledged.len() as u64 == n + 1);
    }
    type Answers = Vec<(u32, u64, Acknowledgement)>;
    let (taken, rejected): (Answers, Answers) = rig
        .seen
        .acknowledged
        .drain(..)
        .partition(|(.., a)| *a == Acknowledgement::Taken);
    assert!(
        rejected
            .iter()
            .all(|(.., a)| matches!(a, Acknowledgement::Rejected(_)))
    );
    let kept = queued(&rabbit, "pubgauge.session.full").unwrap().0;
    assert_eq!(taken.len() as u64, kept);
    assert!((10..50).contains(&kept), "{kept}");
}

#[test]
fn conflation_keeps_the_newest() {
    let rabbit = Rabbit::shared();
    let mut rig = rabbit.rig(Settings {
        conflate: Some(true),
        ..durable()
    });
    let subscriber = rig.named("conflated");
    rig.subscribe(subscriber, "conflate/a");
    rig.disconnect(subscriber);
    let publisher = rig.named("conflating");
    let topic = rig.fleet.advertise(publisher, "conflate/a").unwrap();
    for n in 0..20 {
        rig.publish(publisher, topic, n, 64);
    }
    rig.until("confirms", |s| s.acknowledged.len() == 20);
    rig.fleet.reconnect(subscriber).unwrap();
    rig.until("one message", |s| !s.messages.is_empty());
    rig.poll_for(Duration::from_millis(200));
    assert_eq!(rig.sequences(subscriber), [19]);
}

#[test]
fn prefetch_bounds_what_one_consumer_holds() {
    let rabbit = Rabbit::shared();
    let settings = native(reliable(), "prefetch", 5.into());
    let mut slow = rabbit.rig(settings.clone());
    let mut quick = rabbit.rig(settings.clone());
    let mut out = rabbit.rig(settings);
    for (rig, name) in [(&mut slow, "slow"), (&mut quick, "quick")] {
        let member = rig.named(name);
        rig.subscribe_shared(member, "prefetch/a", Some("g"));
    }
    let publisher = out.named("out");
    let topic = out.fleet.advertise(publisher, "prefetch/a").unwrap();
    for n in 0..100 {
        out.publish(publisher, topic, n, 64);
    }
    out.until("confirms", |s| s.acknowledged.len() == 100);
    // The slow one does not read: five are on their way to it, all others are for the quick one.
    quick.until("all but five", |s| s.messages.len() == 95);
    quick.poll_for(Duration::from_millis(200));
    assert_eq!(quick.seen.messages.len(), 95);
    slow.until("five", |s| s.messages.len() == 5);
}

#[test]
fn deliveries_without_acknowledgement_come_again_marked() {
    let rabbit = Rabbit::shared();
    let mut rig = rabbit.rig(durable());
    let subscriber = rig.named("again");
    rig.subscribe(subscriber, "again/a");
    let mut out = rabbit.rig(reliable());
    let publisher = out.named("again-out");
    let topic = out.fleet.advertise(publisher, "again/a").unwrap();
    for n in 0..10 {
        out.publish(publisher, topic, n, 64);
    }
    out.until("confirms", |s| s.acknowledged.len() == 10);
    // They are in the subscriber's socket, unread.
    std::thread::sleep(Duration::from_millis(300));
    rig.fleet.abort(subscriber);
    rig.fleet.reconnect(subscriber).unwrap();
    rig.until("all", |s| s.messages.len() == 10);
    assert!(rig.seen.messages.iter().all(|m| m.redelivered));
    assert_eq!(rig.sequences(subscriber), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_server_short_of_memory_holds_publishers_back() {
    // Above this mark from the beginning.
    let rabbit = Rabbit::start(|system| {
        for file in &mut system.files {
            file.content = file.content.replace(
                "log.console = true\n",
                "log.console = true\nvm_memory_high_watermark.absolute = 10MB\n",
            );
        }
    });
    let mut rig = rabbit.rig(reliable());
    let client = rig.named("held");
    let topic = rig.fleet.advertise(client, "held/a").unwrap();
    rig.publish(client, topic, 0, 64);
    // connection.blocked comes after the first message; before, those that follow are accepted.
    let end = clock::monotonic_now() + 60 * SECOND;
    while rig.try_publish(client, topic, 1, 64) != Publish::Blocked {
        assert!(clock::monotonic_now() < end, "never blocked");
        rig.poll_for(Duration::from_millis(20));
    }
    assert!(rig.seen.acknowledged.is_empty());
    rabbit.ctl(&["set_vm_memory_high_watermark", "0.9"]);
    rig.until("word that it goes on", |s| !s.writable.is_empty());
    rig.publish(client, topic, 1, 64);
    rig.until("confirms", |s| s.acknowledged.len() >= 2);
}

#[test]
fn a_queue_that_is_deleted_is_told() {
    let rabbit = Rabbit::shared();
    let mut rig = rabbit.rig(durable());
    let client = rig.named("deleted");
    rig.subscribe(client, "deleted/a");
    rabbit.ctl(&["delete_queue", "pubgauge.session.deleted"]);
    rig.until("failed", |s| !s.failed.is_empty());
    let why = &rig.seen.failed[0].1;
    assert!(
        why.contains("its queue is gone") && why.contains("hint"),
        "{why}"
    );
    rig.fleet.reconnect(client).unwrap();
    rig.until("connected again", |s| s.connected.len() == 2);
    assert_eq!(rig.seen.connected[1], (client.0, false));
}

#[test]
fn a_queue_with_other_properties_is_told() {
    let rabbit = Rabbit::shared();
    let mut first = rabbit.rig(durable());
    let client = first.named("other");
    first.subscribe(client, "other/a");
    first.disconnect(client);
    // The session is there, so it is resumed; to subscribe again with other settings is refused.
    let mut second = rabbit.rig(Settings {
        queue_limit: Some(5),
        ..durable()
    });
    let shared = Subscription::matching("other/b").of_group("g");
    let mut third = rabbit.rig(durable());
    let other = third.named("third");
    third.subscribe_shared(other, "other/b", Some("g"));
    let client = second.client(&ClientSpec {
        name: "fourth".into(),
        ..ClientSpec::default()
    });
    second.fleet.subscribe(client, &shared).unwrap();
    second.until("refused", |s| !s.refused.is_empty());
    let why = &second.seen.refused[0].1;
    assert!(why.contains("406") && why.contains("delete_queue"), "{why}");
    // The connection goes on, and the client may subscribe to something else.
    second.subscribe(client, "other/c");
}

#[test]
fn queues_are_of_the_kind_that_durability_and_session_ask_for() {
    let rabbit = Rabbit::shared();
    let at = |durability, session| Settings {
        durability: Some(durability),
        session: Some(session),
        ..reliable()
    };
    use Durability::*;
    use Session::*;
    for (n, (settings, group, expected)) in [
        (at(Memory, Clean), None, "false\tfalse\ttrue\tclassic"),
        (at(Disk, Clean), None, "true\ttrue\tfalse\tclassic"),
        (at(Memory, Durable), None, "false\tfalse\tfalse\tclassic"),
        (at(DiskSynced, Durable), None, "true\tfalse\tfalse\tclassic"),
        (at(Memory, Clean), Some("g"), "false\ttrue\tfalse\tclassic"),
        (
            native(at(DiskSynced, Durable), "queue-type", "quorum".into()),
            None,
            // RabbitMQ leaves out what a kind of queue cannot be.
            "true\tfalse\t\tquorum",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let fields = ["name", "durable", "auto_delete", "exclusive", "type"];
        let list = [&["list_queues", "-q", "--no-table-headers"][..], &fields].concat();
        let before = rabbit.ctl(&list);
        let mut rig = rabbit.rig(settings);
        let client = rig.named(&format!("kind{n}"));
        rig.subscribe_shared(client, &format!("kind/{n}"), group);
        let after = rabbit.ctl(&list);
        // Other tests have queues too: ours is told by its name, or by being ours alone.
        let is_new = |line: &&str| !before.contains(line.split('\t').next().unwrap());
        let kinds: Vec<&str> = after
            .lines()
            .filter(is_new)
            .filter_map(|line| line.split_once('\t'))
            .map(|(_, kind)| kind)
            .collect();
        assert!(kinds.contains(&expected), "{n}: {kinds:?}");
        let topic = rig.fleet.advertise(client, &format!("kind/{n}")).unwrap();
        for sequence in 0..200 {
            rig.publish(client, topic, sequence, 64);
        }
        rig.until("all", |s| s.messages.len() == 200);
        rig.until("confirms", |s| s.acknowledged.len() == 200);
        assert_eq!(rig.sequences(client), (0..200).collect::<Vec<_>>());
    }
}
