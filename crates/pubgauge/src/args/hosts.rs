//! Workers on other hosts, as they are typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pubgauge_driver::Course;

/// Where the workers of a run are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Workers on other hosts (docs/hosts.md)")]
pub struct HostsArgs {
    /// Run the workers on other hosts, whose agents join this run: started by anything (join), by
    /// srun, one on each node (slurm), or as pods of a cluster by kubectl (kubernetes).
    #[arg(long, value_name = "HOW", value_enum)]
    pub workers_from: Option<WorkersFrom>,
    /// How many hosts: those of the publishing devices come first. Default: as many as the study's
    /// [testbed.network] has for both sides.
    #[arg(long, value_name = "N", requires = "workers_from",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub hosts: Option<u32>,
    /// Where the agents join: an address of this host that they reach, at which systems that are
    /// started here listen too. Default: 127.0.0.1:17631 (join).
    #[arg(long, value_name = "ADDRESS:PORT", requires = "workers_from")]
    pub join_at: Option<SocketAddr>,
    /// Where to write the agents' credentials, which nobody else may read; removed in the end.
    /// Default: pubgauge-join in the current folder.
    #[arg(long, value_name = "FILE", requires = "workers_from")]
    pub join_file: Option<PathBuf>,
    /// The image of the pods, whose program is pubgauge (kubernetes).
    #[arg(
        long,
        value_name = "IMAGE",
        required_if_eq("workers_from", "kubernetes")
    )]
    pub image: Option<String>,
    /// How long to wait for the agents, for example 10min. Default: 5min.
    #[arg(long, value_name = "TIME", requires = "workers_from")]
    pub join_within: Option<String>,
}

/// What starts agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkersFrom {
    /// Anything: ssh, pdsh, clush, mpirun, a batch script, by hand.
    Join,
    /// `srun`, which this run calls.
    Slurm,
    /// `kubectl`, which this run calls.
    Kubernetes,
}

/// `pubgauge hosts`.
#[derive(Debug, Subcommand)]
pub enum HostsVerb {
    /// Print what a Kubernetes cluster needs to run the agents of a run that waits for hosts: a Secret with
    /// the credentials, a headless Service, an Indexed Job. For `kubectl apply -f -`.
    Render(RenderArgs),
}

/// `pubgauge hosts render`.
#[derive(Clone, Debug, Args)]
pub struct RenderArgs {
    /// Where the run listens (its --join-at), as pods reach it.
    #[arg(long, value_name = "HOST:PORT")]
    pub join: String,
    /// The image of the pods, whose program is pubgauge.
    #[arg(long, value_name = "IMAGE")]
    pub image: String,
    /// The credentials that the run has written: there is a pod for each of its ranks.
    #[arg(long, value_name = "FILE", default_value = "pubgauge-join")]
    pub join_file: PathBuf,
    /// The name of all that is made. Default: pubgauge- and eight digits of the run's certificate.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// `pubgauge worker`.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkerArgs {
    /// Join the run that waits for hosts there, and work for it until it is over. The credentials are
    /// in the file that the variable PUBGAUGE_JOIN_FILE names. Without an address: where srun was
    /// started.
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "")]
    pub join: Option<String>,
    /// Which host this is, from 0. Default: as Slurm, mpirun or Kubernetes say, or the only one with
    /// credentials.
    #[arg(long, value_name = "N", requires = "join")]
    pub rank: Option<u32>,
    /// The folder with the files of this host that the run may have read: recorded traces, certificates,
    /// keys. Default with --join: none.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// What the clock of the run reads, by this host's (used by an agent itself).
    #[arg(
        long,
        value_name = "NEAR,FAR,DRIFT",
        hide = true,
        conflicts_with = "join"
    )]
    pub clock: Option<Course>,
    /// No remarks: standard error has nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}
