//! That limits are those that were asked for, and that what is missing under them is found.

use pubgauge_driver::Resource;
use pubgauge_testing::confined::{Limits, confined, leave_files, leave_threads};

#[test]
fn so_many_files_are_left() {
    confined(Limits::default(), || {
        for left in [0, 1, 7, 50] {
            leave_files(left);
            let left = left as usize;
            assert_eq!(Resource::can_have(left, 0), Ok(()));
            let told = Resource::can_have(left + 1, 0);
            assert_eq!(told, Err(Resource::Descriptors), "{left} left");
            let missing = (left == 0).then_some(Resource::Descriptors);
            assert_eq!(Resource::missing_now(), missing);
        }
    });
}

#[test]
fn so_many_threads_are_left() {
    let limits = Limits {
        account: true,
        ..Limits::default()
    };
    confined(limits, || {
        for left in [5, 1, 0] {
            leave_threads(left);
            let left = left as usize;
            assert_eq!(Resource::can_have(3, left), Ok(()));
            let told = Resource::can_have(3, left + 1);
            assert_eq!(told, Err(Resource::Threads), "{left} left");
        }
        assert_eq!(Resource::missing_now(), Some(Resource::Threads));
    });
}

#[test]
fn so_many_ports_are_left() {
    let limits = Limits {
        ports: Some((50_000, 50_005)),
        ..Limits::default()
    };
    confined(limits, || {
        let bind = || std::net::TcpListener::bind("127.0.0.1:0");
        let bound: Vec<_> = (0..6).map(|_| bind().expect("a port")).collect();
        let error = bind().expect_err("no port");
        let told = Resource::exhausted_by(pubgauge_driver::Attempt::BindAnyPort, &error);
        assert_eq!((told, bound.len()), (Some(Resource::Ports), 6));
    });
}

#[test]
fn what_goes_wrong_in_it_is_told() {
    let run = || confined(Limits::default(), || panic!("what is wrong in it"));
    if std::env::var_os("PUBGAUGE_CONFINED_TEST").is_some() {
        return run();
    }
    let told = std::panic::catch_unwind(run).expect_err("it failed");
    let told = told.downcast_ref::<String>().expect("words");
    assert!(told.contains("what is wrong in it"), "{told}");
}
