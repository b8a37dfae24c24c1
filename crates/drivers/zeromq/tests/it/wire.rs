//! Facts that clients cannot see: how messages were gathered, and how their packets were marked. The
//! sockets are libzmq's own, found among this process's descriptors.

use crate::common;

use std::sync::Mutex;

use common::*;
use pubgauge_driver::{Publish, Settings};
use pubgauge_driver_zeromq::ZeromqDriver;
use serde_json::json;

/// The sockets of one test must not be taken for another's.
static ONE: Mutex<()> = Mutex::new(());

/// An option of every connected TCP socket of this process.
fn options<T: Copy + Default>(level: i32, name: i32) -> Vec<T> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Some(fd) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let link = std::fs::read_link(entry.path()).unwrap_or_default();
        if !link.to_string_lossy().starts_with("socket:") || !connected_tcp(fd) {
            continue;
        }
        let mut value = T::default();
        let mut len = size_of::<T>() as libc::socklen_t;
        // SAFETY: value and len are valid for the call, and len says how large value is.
        let result =
            unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut len) };
        if result == 0 {
            found.push(value);
        }
    }
    found
}

fn connected_tcp(fd: i32) -> bool {
    let mut address = libc::sockaddr_in {
        sin_family: 0,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: 0 },
        sin_zero: [0; 8],
    };
    let mut len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: address and len are valid for the call, and len says how large address is.
    let result = unsafe { libc::getpeername(fd, (&raw mut address).cast(), &raw mut len) };
    result == 0 && i32::from(address.sin_family) == libc::AF_INET
}

#[test]
fn a_priority_marks_the_packets() {
    let _one = ONE.lock().unwrap();
    let scratch = scratch();
    for (priority, mark) in [(None, 0), (Some(10), 5 << 5), (Some(-10), 1 << 5)] {
        let settings = Settings {
            priority,
            ..Settings::default()
        };
        let pair = Pair::open(ZeromqDriver, &settings, &direct(&scratch));
        let marks: Vec<i32> = options(libc::IPPROTO_IP, libc::IP_TOS);
        assert!(marks.len() >= 2, "both ends are in this process: {marks:?}");
        let marked = marks.iter().filter(|m| **m == mark).count();
        assert!(marked >= 2, "priority {priority:?}: {marks:?}, not {mark}");
        drop(pair);
    }
}

/// The segments with data that TCP sockets of this process sent: `tcpi_data_segs_out`, below
/// of `struct tcp_info` (linux/tcp.h).
fn segments() -> u64 {
    #[derive(Clone, Copy)]
    struct Info([u8; 256]);
    impl Default for Info {
        fn default() -> Self {
            Info([0; 256])
        }
    }
    let at = |info: Info| {
        let bytes = info.0[DATA_SEGS_OUT..DATA_SEGS_OUT + 4].try_into().unwrap();
        u64::from(u32::from_ne_bytes(bytes))
    };
    let infos: Vec<Info> = options(libc::IPPROTO_TCP, libc::TCP_INFO);
    infos.into_iter().map(at).sum()
}

/// Its offset in that structure, which only grows at its end.
const DATA_SEGS_OUT: usize = 156;

#[test]
fn waiting_messages_go_out_together() {
    const COUNT: u32 = 5000;
    let _one = ONE.lock().unwrap();
    let scratch = scratch();
    let settings = settings(json!({"queue-limit": 10_000, "batching": "adaptive"}));
    let mut pair = Pair::open(ZeromqDriver, &settings, &direct(&scratch));
    let before = segments();
    // One by one, each on its way before the next: a segment for each.
    for sequence in 0..200 {
        let taken = pair
            .publishing
            .publish(pair.from, pair.topic, 1, sequence, 64);
        assert_eq!(taken, Publish::Accepted);
        pair.subscribing
            .poll_until(60 * SECOND, |s| s.seen.len() > sequence as usize);
    }
    let single = segments() - before;
    assert!(single >= 200, "{single} segments for 200 single messages");
    let before = segments();
    for sequence in 200..200 + COUNT {
        while pair
            .publishing
            .publish(pair.from, pair.topic, 1, sequence, 64)
            != Publish::Accepted
        {
            pair.publishing.poll_for(SECOND / 1000);
        }
    }
    let all = 200 + COUNT as usize;
    pair.subscribing
        .poll_until(60 * SECOND, |s| s.seen.len() >= all);
    assert_eq!(pair.subscribing.seen.seen.len(), all);
    let together = segments() - before;
    assert!(
        together < u64::from(COUNT) / 4,
        "{together} segments for {COUNT} messages in a row"
    );
}
