//! libzmq's threads, in a process of its own so that they can be counted.

use crate::common;

use common::*;
use pubgauge_driver::Settings;
use pubgauge_driver_zeromq::ZeromqDriver;
use serde_json::json;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux").count()
}

#[test]
fn open_starts_all_threads_and_close_ends_them() {
    let before = threads();
    for io_threads in [1, 3] {
        let scratch = scratch();
        let settings = settings(json!({"native": {"zeromq": {"io-threads": io_threads}}}));
        let mut pair = Rig::open(ZeromqDriver, settings, direct(&scratch), 0);
        assert!(pair.fleet.has_threads());
        // One that closes sockets, and those that move bytes.
        assert_eq!(threads(), before + 1 + io_threads);
        let (_, address) = pair.connect(&publisher("p"));
        pair.connect(&subscriber("s", &[address.expect("direct")]));
        assert_eq!(threads(), before + 1 + io_threads, "connecting starts none");
        pair.close();
        assert_eq!(threads(), before);
    }
    let fleet = Rig::open(ZeromqDriver, Settings::default(), direct(&scratch()), 0);
    drop(fleet);
    assert_eq!(threads(), before, "dropping closes");
}
