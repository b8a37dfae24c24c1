//! Private ejabberd nodes: several at once, and nothing of them left.

use std::time::Duration;

use pubgauge_driver::Settings;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testbed::{Running, Testbed, procfs};
use pubgauge_testing::{Rig, system};

fn start(scratch: &std::path::Path) -> Running {
    let testbed = Testbed::new().unwrap();
    let started = testbed.start(&system("ejabberd"), Some("xmpp"), scratch);
    started.unwrap_or_else(|error| panic!("{error}"))
}

fn name(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

#[test]
fn several_nodes_do_not_meet_and_leave_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let nodes = [start(scratch.path()), start(scratch.path())];
    assert!(nodes[0].version.as_deref().is_some_and(|v| !v.is_empty()));
    let mut rigs = Vec::new();
    for node in &nodes {
        // Both have these addresses and topics.
        let mut rig = Rig::open(&XmppDriver, node.target.clone(), Settings::default());
        let subscriber = rig.named_subscriber("s");
        rig.subscribe(subscriber, "t");
        let publisher = rig.named_publisher("p");
        let topic = rig.fleet.advertise(publisher, "t").unwrap();
        rigs.push((rig, subscriber, publisher, topic));
    }
    for (n, (rig, _, publisher, topic)) in (0u64..).zip(&mut rigs) {
        rig.publish(*publisher, *topic, n, 64);
        rig.until("its own", |seen| seen.delivered > 0);
    }
    for (n, (rig, subscriber, ..)) in (0u64..).zip(&mut rigs) {
        rig.poll_for(Duration::from_millis(200));
        assert_eq!(rig.sequences(*subscriber), [n]);
    }
    let pids: Vec<i32> = nodes.iter().flat_map(Running::pids).collect();
    for pid in &pids {
        let all = procfs::descendants(*pid);
        let daemon = all.into_iter().find(|pid| name(*pid) == "epmd");
        assert_eq!(daemon, None, "a node has a port mapper of its own");
    }
    drop(rigs);
    for node in nodes {
        node.stop();
    }
    for pid in pids {
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists() || name(pid).is_empty(),
            "{pid} ({}) is left",
            name(pid)
        );
    }
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
}
