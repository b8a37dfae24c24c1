//! The client's own resources end, and a server's do.

use pubgauge_driver::Target;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testing::exhaustion;

fn target(port: u16) -> Target {
    Target {
        endpoints: vec![format!("xmpp://127.0.0.1:{port}/localhost")],
        ..Target::default()
    }
}

#[test]
fn descriptors_end() {
    exhaustion::runs_out_of_descriptors(&XmppDriver, target);
}

#[test]
fn ports_end() {
    exhaustion::runs_out_of_ports(&XmppDriver, target);
}

#[test]
fn a_server_refuses() {
    exhaustion::servers_refuse(&XmppDriver, target);
}
