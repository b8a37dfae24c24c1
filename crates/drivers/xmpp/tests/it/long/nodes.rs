//! Private ejabberd nodes: several at once, and nothing of them left.

use crate::common;

use common::{Rig, text};
use pubgauge_driver::Settings;
use pubgauge_testbed::{Running, Testbed, procfs};
use pubgauge_testing::system;

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
        // The same addresses and topics in both.
        let mut rig = Rig::open(&node.target, &Settings::default());
        let subscriber = rig.connect("s", true);
        rig.subscribe(subscriber, "t");
        let publisher = rig.connect("p", false);
        let topic = rig.advertise(publisher, "t");
        rigs.push((rig, publisher, topic));
    }
    for (n, (rig, publisher, topic)) in rigs.iter_mut().enumerate() {
        rig.publish(*publisher, *topic, &[n as u8], 0);
        rig.until("its own", |seen| !seen.delivered.is_empty());
    }
    for (n, (rig, ..)) in rigs.iter_mut().enumerate() {
        rig.wait(200);
        let got: Vec<_> = rig.seen.delivered.iter().map(text).collect();
        assert_eq!(got, [[n as u8]]);
    }
    let pids: Vec<i32> = nodes.iter().flat_map(Running::pids).collect();
    for pid in &pids {
        let all = procfs::descendants(*pid);
        let daemon = all.into_iter().find(|pid| name(*pid) == "epmd");
        assert_eq!(daemon, None, "a node has a port mapper of its own");
    }
    for (rig, ..) in rigs {
        rig.close();
    }
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
