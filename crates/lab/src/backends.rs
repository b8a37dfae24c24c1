//! The backends that networks are made with on this machine.

use crate::tool::{self, ToolError};
use pubgauge_testbed::{Namespace, on_path};

/// Whether a backend works here: what came of trying it.
pub type Works = Result<(), ToolError>;

/// The backends that networks are made with, and whether each works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backends {
    /// `ip` and `bridge`, with a kernel that has bridges and pairs of interfaces (veth): hosts, links, switch.
    pub ip: Works,
    /// `nft` on bridged packets: independent loss, partitions.
    pub nft: Works,
    /// Token bucket filter of `tc`: rates.
    pub tbf: Works,
    /// Network emulator of `tc`: delay, jitter, loss in bursts, duplicates, reordering.
    pub netem: Works,
    /// `vde_switch` and `wirefilter`: replace netem in user space where the kernel has none.
    pub wirefilter: Works,
}

/// The packages to install for a backend that is missing.
pub(crate) mod hint {
    pub const IP: &str = "apt-get install iproute2";
    pub const NFT: &str = "apt-get install nftables; modprobe nf_tables_bridge";
    pub const TBF: &str = "apt-get install iproute2; modprobe sch_tbf";
    pub const NETEM: &str = "modprobe sch_netem";
    pub const WIREFILTER: &str = "apt-get install vde2; modprobe tun";
}

impl Backends {
    /// All of them, as on a machine where each works.
    pub fn all() -> Backends {
        Backends {
            ip: Ok(()),
            nft: Ok(()),
            tbf: Ok(()),
            netem: Ok(()),
            wirefilter: Ok(()),
        }
    }

    /// Tries each in a new network namespace, which is removed afterwards.
    ///
    /// # Errors
    /// If no network namespace can be made.
    pub fn look() -> std::io::Result<Backends> {
        let place = Namespace::create()?;
        let qdisc = |kind: &str| {
            let line = format!("qdisc replace dev lo root {kind}\n");
            tool::run(&place, &["tc", "-batch", "-"], &line)
        };
        Ok(Backends {
            ip: links(&place),
            nft: tool::run(&place, &["nft", "-f", "-"], NFT_TRIAL),
            tbf: qdisc("tbf rate 1mbit burst 10000 limit 10000"),
            netem: qdisc("netem delay 1ms loss gemodel 1% 10%"),
            wirefilter: wirefilter(),
        })
    }
}

const NFT_TRIAL: &str = "table bridge lab {
  set names { type ifname; }
  chain trial {
    type filter hook prerouting priority 0; policy accept;
    iifname @names numgen random mod 1000000 < 1 counter drop
  }
}
";

fn links(place: &Namespace) -> Works {
    let lines = "link add switch0 type bridge\nlink add left type veth peer name right\n";
    tool::run(place, &["ip", "-batch", "-"], lines)?;
    tool::run(place, &["bridge", "-batch", "-"], "fdb show\n")
}

fn wirefilter() -> Works {
    for program in ["vde_switch", "wirefilter"] {
        if on_path(program).is_none() {
            return Err(format!("there is no program `{program}`").into());
        }
    }
    let mut options = std::fs::OpenOptions::new();
    match options.read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("/dev/net/tun: {error}").into()),
    }
}
