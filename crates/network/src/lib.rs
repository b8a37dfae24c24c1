//! An emulated network as plain data: its hosts, the properties of their links to the switch, and measurements
//! of the bare links; and the sizes of hosts, on such a network or on one machine. Pure; `crates/lab` makes such a
//! network, a study asks for one, results contain it.

mod baseline;
mod check;
mod describe;
mod network;
mod sizes;

pub use baseline::{Baseline, DATAGRAM_BYTES, RoundTrip, Throughput};
pub use check::{
    FASTEST, FieldProblem, LONGEST_DELAY_NS, MOST_HOSTS, SHORTEST_QUEUE_NS, SLOWEST, SMALLEST_LOSS,
};
pub use network::{
    Host, HostRole, Hosts, Link, LinkState, Loss, Nanos, Network, Reordering, USUAL_QUEUE_NS,
};
pub use sizes::{HostSizes, SizedHosts};
