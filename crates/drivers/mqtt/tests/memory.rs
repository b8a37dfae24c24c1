//! The memory of publishers that have nothing to send.

use std::cell::Cell;
use std::io::{Read, Write};

use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testing::allocator::ReportingAllocator;
use pubgauge_testing::{Observations, config, scripted};

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that the GNU allocator takes for so many.
fn taken(bytes: usize) -> u64 {
    match bytes {
        0 => 0,
        _ => (bytes as u64 + 8).next_multiple_of(16).max(32),
    }
}

fn count(more: usize, less: usize) {
    let _ = BYTES.try_with(|n| n.set(n.get().wrapping_add(taken(more)).wrapping_sub(taken(less))));
}

#[global_allocator]
static ALLOCATOR: ReportingAllocator = ReportingAllocator(count);

/// As many as fill the tables that grow by doubling.
const PUBLISHERS: usize = 1_790;

/// A server that accepts clients and answers their CONNECT.
fn welcoming() -> u16 {
    let (port, _) = scripted(|listener| {
        let mut accepted = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let read = stream.read(&mut [0; 256]).unwrap();
            assert!(read > 0);
            stream.write_all(&[0x20, 2, 0, 0]).unwrap();
            accepted.push(stream);
        }
    });
    port
}

#[test]
fn an_idle_publisher_is_small() {
    pubgauge_testbed::raise_nofile().unwrap();
    let target = Target::single(format!("mqtt://127.0.0.1:{}", welcoming()));
    let mut settings = Settings::default();
    pubgauge_testing::native(&mut settings, "mqtt", "version", "3.1.1".into());
    let mut fleet = MqttDriver
        .open(FleetConfig {
            clients: PUBLISHERS,
            ..config(target, settings)
        })
        .unwrap();
    let mut seen = Observations::default();
    let before = BYTES.get() as i64;
    for n in 0..PUBLISHERS {
        let spec = ClientSpec {
            name: format!("pubgauge-3f2a9c-p{n:05}"),
            publishes: true,
            ..ClientSpec::default()
        };
        let client = fleet.connect(&spec).unwrap();
        while seen.connected.len() <= n {
            let until = clock::monotonic_now() + 50_000_000;
            fleet.poll(until, &mut seen).unwrap();
        }
        let topic = format!("pubgauge/3f2a9c/flow/{n:05}");
        fleet.advertise(client, &topic).unwrap();
    }
    seen = Observations::default();
    // The list of clients was allocated when the fleet was opened.
    let each = (BYTES.get() as i64 - before) / PUBLISHERS as i64;
    println!("{each} bytes for each idle publisher beside its place in the list of clients");
    assert!(each <= 160, "{each}");
    assert!(seen.failed.is_empty());
}
