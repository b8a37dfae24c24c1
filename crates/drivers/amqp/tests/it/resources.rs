//! The client's own resources end, and a server's do.

use pubgauge_driver::Target;
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_testing::exhaustion;

fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("amqp://127.0.0.1:{port}")],
        ..Target::default()
    }
}

#[test]
fn descriptors_end() {
    exhaustion::runs_out_of_descriptors(&AmqpDriver, target);
}

#[test]
fn ports_end() {
    exhaustion::runs_out_of_ports(&AmqpDriver, target);
}

#[test]
fn a_server_refuses() {
    exhaustion::servers_refuse(&AmqpDriver, target);
}
