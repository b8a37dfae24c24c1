//! Workers on other hosts, as they are typed.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use pubgauge_driver::Course;

/// Where the workers of a run are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Workers on other hosts (docs/hosts.md)")]
pub struct HostsArgs {
    /// Run the workers on another host: a command that starts there what is put behind it, for example
    /// "ssh loadgen-1" or "kubectl exec -i pod-1 --". Repeat it for more hosts: those of the publishing
    /// devices come first.
    #[arg(
        hide_short_help = true,
        long = "load-host",
        value_name = "COMMAND",
        requires = "at"
    )]
    pub host: Vec<String>,
    /// File of hosts, which says what each host is for.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        requires = "at",
        conflicts_with = "host"
    )]
    pub hosts: Option<PathBuf>,
    /// An address of this host that the others reach. Systems that are started here listen there.
    #[arg(hide_short_help = true, long, value_name = "ADDRESS")]
    pub at: Option<IpAddr>,
    /// The program on the other hosts. Default: pubgauge, as the shell there finds it.
    #[arg(hide_short_help = true, long, value_name = "PROGRAM", requires = "at")]
    pub host_program: Option<String>,
}

impl HostsArgs {
    /// Whether the workers are on other hosts.
    pub fn are_given(&self) -> bool {
        !self.host.is_empty() || self.hosts.is_some()
    }
}

/// `pubgauge worker`.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkerArgs {
    /// Say which host this is and answer questions for its clock, until standard input ends, for a run
    /// that reaches this host from there.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "clock")]
    pub echo: Option<IpAddr>,
    /// How the run's clock differs from this host's.
    #[arg(long, value_name = "NEAR,FAR,DRIFT")]
    pub clock: Option<Course>,
}
