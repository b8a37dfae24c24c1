//! The client's own resources end, and a server's do.

use pubgauge_driver::Target;
use pubgauge_driver_nats::NatsDriver;
use pubgauge_testing::exhaustion;

fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("nats://127.0.0.1:{port}")],
        ..Target::default()
    }
}

#[test]
fn descriptors_end() {
    exhaustion::runs_out_of_descriptors(&NatsDriver, target);
}

#[test]
fn ports_end() {
    exhaustion::runs_out_of_ports(&NatsDriver, target);
}

#[test]
fn a_server_refuses() {
    exhaustion::servers_refuse(&NatsDriver, target);
}
