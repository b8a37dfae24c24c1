//! The XML configuration of a fleet's domain.

use std::fmt::Display;

use pubgauge_driver::{Batching, OnNetwork};

use crate::options::CycloneOptions;
use crate::ports::highest_index;

/// Receive buffer asked of the kernel, bytes: its usual net.core.rmem_max. Cyclone's own default
/// is 1 MiB, less than one message of 2 MiB.
const RECEIVE_BUFFER: i64 = 4 << 20;

/// The configuration for `domain`.
///
/// The domain's number on the network is `ExternalDomainId`: within the process each fleet has a
/// domain of another number, and with it sockets and threads of its own.
pub(crate) fn xml(options: &CycloneOptions, domain: u32, network: Option<&OnNetwork>) -> String {
    let native = &options.native;
    let usual = network.map_or("lo", |network| &network.interface);
    let interface = native.interface.as_ref().map_or(usual, |name| &name.0);
    let named = escaped(interface);
    let multicast = options.multicast.is_some();
    let allow = options.multicast.map_or("false", |mode| mode.as_str());
    let max_message = options.max_message_bytes;
    let fragment = element("FragmentSize", native.fragment_bytes, " B");
    let hops = element("MulticastTimeToLive", native.multicast_hops, "");
    let highest = highest_index(domain);
    let peers: Vec<String> = match (&native.peers, network) {
        (Some(peers), _) => peers.0.clone(),
        (None, Some(network)) => network.hosts.iter().map(ToString::to_string).collect(),
        (None, None) if interface == "lo" => vec!["127.0.0.1".to_owned()],
        (None, None) => Vec::new(),
    };
    let peer = |address: &String| format!("<Peer Address=\"{}\"/>", escaped(address));
    let peers: String = peers.iter().map(peer).collect();
    let peers = element("Peers", Some(peers).filter(|all| !all.is_empty()), "");
    let interval = element("SPDPInterval", options.keep_alive_s, " s");
    let lease = options.keep_alive_s.map(|s| 3 * u32::from(s));
    let lease = element("LeaseDuration", lease, " s");
    let batch = options.batching != Batching::Off;
    let receive_buffer = native.receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER);
    let send_buffer = native.send_buffer_bytes.map_or(String::new(), |bytes| {
        format!("<SocketSendBufferSize max=\"{bytes} B\"/>")
    });
    let heartbeat = element("HeartbeatInterval", native.heartbeat_ms, " ms");
    let nack_delay = element("NackDelay", native.nack_delay_ms, " ms");
    let high = element("WhcHigh", native.whc_high_bytes, " B");
    let high_init = element("WhcHighInit", native.whc_high_init_bytes, " B");
    let low = element("WhcLow", native.whc_low_bytes, " B");
    let adaptive = element("WhcAdaptive", native.whc_adaptive, "");
    // A writer that is deleted must not wait (WriterLingerDuration): on an orderly close the driver
    // itself waits for acknowledgements.
    format!(
        "<CycloneDDS><Domain Id=\"any\">\
         <General><Interfaces><NetworkInterface name=\"{named}\" multicast=\"{multicast}\"/>\
         </Interfaces><AllowMulticast>{allow}</AllowMulticast>{hops}\
         <MaxMessageSize>{max_message} B</MaxMessageSize>{fragment}</General>\
         <Discovery><ExternalDomainId>{domain}</ExternalDomainId>\
         <ParticipantIndex>auto</ParticipantIndex>\
         <MaxAutoParticipantIndex>{highest}</MaxAutoParticipantIndex>{peers}{interval}{lease}\
         </Discovery>\
         <Internal><WriteBatch>{batch}</WriteBatch>\
         <WriterLingerDuration>0 s</WriterLingerDuration>\
         <SocketReceiveBufferSize max=\"{receive_buffer} B\"/>{send_buffer}{heartbeat}{nack_delay}\
         <Watermarks>{high}{high_init}{low}{adaptive}</Watermarks></Internal>\
         </Domain></CycloneDDS>"
    )
}

/// A text as the value of an attribute: names come from studies, and from orders of other hosts.
fn escaped(text: &str) -> String {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || c.is_control();
    text.chars().fold(String::new(), |mut out, c| {
        if special(c) {
            out.push_str(&format!("&#{};", u32::from(c)))
        } else {
            out.push(c)
        }
        out
    })
}

/// An element with a value and its unit; nothing where no value is given.
fn element(element: &str, value: Option<impl Display>, unit: &str) -> String {
    value.map_or(String::new(), |value| {
        format!("<{element}>{value}{unit}</{element}>")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::resolve;
    use pubgauge_testing::settings;
    use serde_json::json;

    fn of(json: serde_json::Value) -> String {
        xml(&resolve(&settings(json)).unwrap().0, 7, None)
    }

    #[test]
    fn on_a_network_it_is_on_the_hosts_interface_and_looks_at_all_hosts() {
        let network = OnNetwork {
            address: [10, 0, 0, 2].into(),
            interface: "eth0".into(),
            hosts: vec![[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
        };
        let options = resolve(&Default::default()).unwrap().0;
        // The name comes with an order, perhaps of another host.
        let name =
            "x\"/><Tracing><OutputFile>/etc/cron.d/x</OutputFile></Tracing><a b=\"".to_owned();
        let strange = OnNetwork {
            interface: name,
            ..network.clone()
        };
        let escaped = super::xml(&options, 7, Some(&strange));
        assert!(
            !escaped.contains("<Tracing>") && escaped.contains("name=\"x&#34;/&#62;&#60;Tracing"),
            "{escaped}"
        );
        let xml = xml(&options, 7, Some(&network));
        for part in [
            "<NetworkInterface name=\"eth0\" multicast=\"false\"/>",
            "<Peers><Peer Address=\"10.0.0.1\"/><Peer Address=\"10.0.0.2\"/></Peers>",
        ] {
            assert!(xml.contains(part), "{part} is not in {xml}");
        }
    }

    #[test]
    fn the_default_stays_on_loopback_without_multicast() {
        let xml = of(json!({}));
        for part in [
            "<NetworkInterface name=\"lo\" multicast=\"false\"/>",
            "<AllowMulticast>false</AllowMulticast>",
            "<Peer Address=\"127.0.0.1\"/>",
            "<ExternalDomainId>7</ExternalDomainId>",
            "<WriteBatch>false</WriteBatch>",
        ] {
            assert!(xml.contains(part), "{part} is not in {xml}");
        }
    }

    #[test]
    fn settings_show() {
        let xml = of(json!({
            "multicast": true, "batching": "adaptive", "keep-alive-s": 2,
            "native": {"cyclonedds": {
                "interface": "eth0", "peers": "10.0.0.1,10.0.0.2", "whc-high-bytes": 4096,
                "whc-adaptive": false, "fragment-bytes": 8000, "heartbeat-ms": 10, "multicast-hops": 3,
            }},
        }));
        for part in [
            "<NetworkInterface name=\"eth0\" multicast=\"true\"/>",
            "<AllowMulticast>asm</AllowMulticast>",
            "<Peer Address=\"10.0.0.2\"/>",
            "<WriteBatch>true</WriteBatch>",
            "<LeaseDuration>6 s</LeaseDuration>",
            "<WhcHigh>4096 B</WhcHigh>",
            "<WhcAdaptive>false</WhcAdaptive>",
            "<FragmentSize>8000 B</FragmentSize>",
            "<HeartbeatInterval>10 ms</HeartbeatInterval>",
            "<MulticastTimeToLive>3</MulticastTimeToLive>",
        ] {
            assert!(xml.contains(part), "{part} is not in {xml}");
        }
        assert!(!xml.contains("127.0.0.1"));
    }

    #[test]
    fn elements_are_closed_in_order() {
        let xml = of(json!({"native": {"cyclonedds": {"whc-low-bytes": 1}}}));
        let mut open = Vec::new();
        for tag in xml.split('<').skip(1) {
            let tag = tag.split('>').next().unwrap();
            let name = tag.split([' ', '/']).find(|s| !s.is_empty()).unwrap();
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed));
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty());
    }
}
