//! Tests of what drivers report when the client runs out of a resource, and that they report none
//! when a server does.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

use pubgauge_driver::*;

use crate::Rig;
use crate::confined::{Limits, confined, leave_files, leave_threads, threads};

/// The tests of a driver over sockets: of the driver `$driver`, at the URL that `$url` makes of a port.
#[macro_export]
macro_rules! exhaustion_tests {
    ($driver:expr, $url:literal) => {
        fn target(port: u16) -> ::pubgauge_driver::Target {
            ::pubgauge_driver::Target::single(format!($url, port))
        }

        #[test]
        fn descriptors_end() {
            $crate::exhaustion::runs_out_of_descriptors(&$driver, target);
        }

        #[test]
        fn ports_end() {
            $crate::exhaustion::runs_out_of_ports(&$driver, target);
        }

        #[test]
        fn a_server_refuses() {
            $crate::exhaustion::servers_refuse(&$driver, target);
        }
    };
}

/// More clients than the limits of these tests allow.
const MANY: u32 = 100;

/// A server that never accepts the connections in its listen queue.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// With 40 open files: a client that gets no descriptor fails with [`Resource::Descriptors`], also
/// when it reconnects; and clients connect once there are some again.
///
/// `target` makes a target from a port.
///
/// # Panics
/// If the driver says anything else.
#[track_caller]
pub fn runs_out_of_descriptors(driver: &dyn Driver, target: fn(u16) -> Target) {
    let limits = Limits {
        files: Some(40),
        ..Limits::default()
    };
    confined(limits, || {
        let (_listener, port) = silent();
        let mut rig = Rig::open(driver, target(port), Settings::default());
        let refused = (0..MANY).find_map(|n| {
            let spec = Rig::spec(&format!("c{n}"));
            rig.fleet.connect(&spec).err().map(|error| (n, error))
        });
        let (fit, error) = refused.expect("40 files do not do for 100 clients");
        assert_eq!(error.exhausted, Some(Resource::Descriptors), "{error}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
        assert!((1..40).contains(&fit), "{fit}");
        let last = ClientId(fit - 1);
        rig.fleet.abort(last);
        let taken = std::fs::File::open("/dev/null").expect("the one that was given back");
        let error = rig.fleet.reconnect(last).expect_err("no descriptor");
        assert_eq!(error.exhausted, Some(Resource::Descriptors), "{error}");
        drop(taken);
        rig.fleet.reconnect(last).expect("there is one again");
        // Another fleet cannot even begin.
        let error = driver
            .open(crate::config(target(port), Settings::default()))
            .err()
            .expect("no descriptor");
        assert_eq!(error.exhausted, Some(Resource::Descriptors), "{error}");
    });
}

/// With ten local ports: the eleventh connection from one source address fails for want of ports,
/// and one from another address does not. An address that this host cannot connect to at all is not
/// reported as a lack of ports.
///
/// # Panics
/// If the driver says anything else.
#[track_caller]
pub fn runs_out_of_ports(driver: &dyn Driver, target: fn(u16) -> Target) {
    let limits = Limits {
        ports: Some((40_000, 40_009)),
        ..Limits::default()
    };
    confined(limits, || {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 5000)).expect("outside the range");
        let mut rig = Rig::open(driver, target(5000), Settings::default());
        for n in 0..11 {
            let spec = Rig::spec(&format!("c{n}"));
            rig.fleet.connect(&spec).expect("begins");
        }
        rig.until("a failure", |seen| !seen.failed.is_empty());
        assert_eq!(
            rig.seen.exhausted,
            [(10, Resource::Ports)],
            "{:?}",
            rig.seen.failed
        );
        let why = &rig.seen.failed[0].1;
        assert!(
            why.contains("hint: widen net.ipv4.ip_local_port_range"),
            "{why}"
        );
        let elsewhere = ClientSpec {
            source: Some(Ipv4Addr::new(127, 0, 0, 2).into()),
            ..Rig::spec("c11")
        };
        rig.fleet.connect(&elsewhere).expect("begins");
        rig.poll_for(std::time::Duration::from_millis(20));
        assert_eq!(rig.seen.failed.len(), 1, "{:?}", rig.seen.failed);
        drop(listener);

        let off = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
        std::fs::write(off, "1").expect(off);
        let mut unreachable = target(5000);
        for endpoint in &mut unreachable.endpoints {
            *endpoint = endpoint.replace("127.0.0.1", "[::1]");
        }
        let mut rig = Rig::open(driver, unreachable, Settings::default());
        rig.fleet.connect(&Rig::spec("v6")).expect("begins");
        rig.until("a failure", |seen| !seen.failed.is_empty());
        assert_eq!(rig.seen.exhausted, [], "{:?}", rig.seen.failed);
        let why = &rig.seen.failed[0].1;
        assert!(why.contains("no address to connect to ::1 from"), "{why}");
    });
}

/// A server without descriptors closes what it accepts, resets it, or stops listening: the driver
/// must not report a lack at the client.
///
/// # Panics
/// If the driver reports that the client has run out of a resource.
#[track_caller]
pub fn servers_refuse(driver: &dyn Driver, target: fn(u16) -> Target) {
    let closed: fn(TcpStream) = drop;
    let reset: fn(TcpStream) = |stream| {
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: a live socket and a value of the size that is given.
        let set = unsafe {
            libc::setsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const at_once).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0);
    };
    for end in [closed, reset] {
        let (listener, port) = silent();
        let mut rig = Rig::open(driver, target(port), Settings::default());
        rig.fleet.connect(&Rig::spec("c")).expect("begins");
        end(listener.accept().expect("a connection").0);
        rig.until("a failure", |seen| !seen.failed.is_empty());
        assert_eq!(rig.seen.exhausted, [], "{:?}", rig.seen.failed);
    }
    let (listener, port) = silent();
    let mut rig = Rig::open(driver, target(port), Settings::default());
    rig.fleet.connect(&Rig::spec("c")).expect("begins");
    // Connections that were never accepted are reset.
    drop(listener);
    rig.until("a failure", |seen| !seen.failed.is_empty());
    rig.fleet.connect(&Rig::spec("d")).expect("begins");
    rig.until("another", |seen| seen.failed.len() == 2);
    assert_eq!(rig.seen.exhausted, [], "{:?}", rig.seen.failed);
}

/// The DDS domain of [`libraries_tell`].
const DOMAIN: u16 = 77;

/// Opens fleets of a DDS library, with sockets and threads of its own, with 0, 1, 2 ... descriptors
/// left, and with no UDP port left in its domain: the error names what is missing, nothing crashes,
/// and a fleet that does open has all of its threads.
///
/// # Panics
/// If the driver says anything else.
#[track_caller]
pub fn a_library_wants_descriptors(driver: &dyn Driver, all_settings: &[Settings]) {
    let limits = Limits {
        ports: Some((40_000, 40_999)),
        ..Limits::default()
    };
    confined(limits, || {
        for settings in all_settings {
            until_it_opens(driver, settings, Resource::Descriptors, leave_files);
            let first = 7400 + 250 * DOMAIN;
            let taken: Vec<UdpSocket> = (first..first + 250)
                .map(|port| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).expect("is free"))
                .collect();
            let error = threads_of(driver, settings, ENOUGH, leave_files);
            let error = error.expect_err("no port is left");
            assert_eq!(error.exhausted, Some(Resource::Ports), "{error}");
            drop(taken);
        }
    });
}

/// A fleet with 0, 1, 2 ... threads left names threads as what ran out.
///
/// # Panics
/// If the driver says anything else.
#[track_caller]
pub fn a_library_wants_threads(driver: &dyn Driver, all_settings: &[Settings]) {
    let limits = Limits {
        account: true,
        ..Limits::default()
    };
    confined(limits, || {
        for settings in all_settings {
            until_it_opens(driver, settings, Resource::Threads, leave_threads);
        }
    });
}

/// More threads or descriptors than any library takes.
const ENOUGH: u64 = 1000;

fn until_it_opens(driver: &dyn Driver, settings: &Settings, resource: Resource, leave: fn(u64)) {
    let one = Crowd {
        fleets: 1,
        ..Crowd::default()
    };
    let said = driver.footprint(settings, &Target::default(), &one);
    let complete = said.threads;
    // The first fleet of a process may start threads that stay, at any time later.
    let all = || threads_of(driver, settings, ENOUGH, leave).expect("opens");
    let seen: Vec<u64> = std::iter::repeat_with(all).take(10).collect();
    assert!(
        seen.contains(&complete),
        "{complete} of {seen:?}: {settings:?}"
    );
    for left in 0..64 {
        match threads_of(driver, settings, left, leave) {
            Ok(threads) => {
                assert!(threads >= complete, "{threads} with {left} {resource} left");
                return;
            }
            Err(error) => assert_eq!(error.exhausted, Some(resource), "{left} left: {error}"),
        }
    }
    panic!("64 {resource} are too few");
}

/// Opens a fleet with so much left of a resource; returns how many threads that started.
fn threads_of(
    driver: &dyn Driver,
    settings: &Settings,
    left: u64,
    leave: fn(u64),
) -> Result<u64, DriverError> {
    let target = Target::single(format!("dds://localhost/{DOMAIN}"));
    let config = crate::config(target, settings.clone());
    // Threads of the fleet before may still be ending.
    let mut before = threads();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(20));
        match threads() {
            same if same == before => break,
            other => before = other,
        }
    }
    leave(left);
    let fleet = driver.open(config);
    leave(ENOUGH);
    let started = threads() - before;
    drop(fleet?);
    Ok(started)
}
