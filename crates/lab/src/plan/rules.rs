//! Independent loss and partitions: rules of `nft` on the packets that the switch forwards.
//!
//! Loss takes place between the counters of both hosts: a packet that the switch drops is counted as sent by
//! the sender and not as received by the receiver. A packet lost on the sender's link is lost for all
//! receivers; one lost on a receiver's link, only for this one.

use pubgauge_network::{Host, LinkState, Loss, Network};

const TABLE: &str = "bridge lab";
/// Numbers from which a random one is drawn to lose a share of packets.
const DRAWS: f64 = 1e6;

/// The whole script, with the initial states of links.
pub(super) fn script(network: &Network) -> String {
    let mut script = format!("table {TABLE} {{\n");
    for set in ["silent", "deaf"] {
        script += &format!("  set {set} {{ type ifname; }}\n");
    }
    for (chain, hook, side, set) in [
        ("sent", "prerouting", "iifname", "silent"),
        ("heard", "forward", "oifname", "deaf"),
    ] {
        script += &format!(
            "  chain {chain} {{\n    type filter hook {hook} priority 0; policy accept;\n    \
             {side} @{set} counter drop\n"
        );
        for host in network.hosts() {
            if let Some(Loss::Independent { share }) = network.link(host).loss {
                let lost = (share * DRAWS).round();
                let drawn = if lost < DRAWS {
                    format!(" numgen random mod {DRAWS} < {lost}")
                } else {
                    String::new()
                };
                script += &format!("    {side} \"{host}\"{drawn} counter drop\n");
            }
        }
        script.push_str("  }\n");
    }
    script.push_str("}\n");
    let link_states: Vec<(Host, LinkState)> = network
        .hosts()
        .map(|host| (host, network.link(host).state))
        .collect();
    script + &states(&link_states)
}

/// One transaction: all links change their states between two packets.
pub(super) fn states(states: &[(Host, LinkState)]) -> String {
    let mut script = String::new();
    for set in ["silent", "deaf"] {
        let passes = |state: LinkState| match set {
            "silent" => state.sends(),
            _ => state.hears(),
        };
        script += &format!("flush set {TABLE} {set}\n");
        let cut = states.iter().filter(|(_, state)| !passes(*state));
        let cut: Vec<String> = cut.map(|(host, _)| format!("\"{host}\"")).collect();
        if !cut.is_empty() {
            let elements = cut.join(", ");
            script += &format!("add element {TABLE} {set} {{ {elements} }}\n");
        }
    }
    script
}
