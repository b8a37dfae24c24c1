//! Workers in processes of their own.

use std::path::PathBuf;
use std::sync::Arc;

use pubgauge_driver::{Attempt, DriverError, Nanos};
use pubgauge_engine::link::stream::{Peer, link};
use pubgauge_engine::link::{Link, Order, Outbox, Place, Secrets};
use pubgauge_testbed::Piped;

/// A process for each worker: `PROGRAM worker`, which calls
/// [`pubgauge_engine::link::stream::serve`]. It ends with its link, and with this program.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The program.
    pub program: PathBuf,
    /// The network namespace that they run in, as `ip netns` names it; the caller's if absent.
    pub namespace: Option<String>,
}

impl Place for Processes {
    fn start(
        &self,
        order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn Link>, DriverError> {
        let started = Piped::start(&self.program, &["worker"], self.namespace.as_deref());
        let (process, streams) = started.map_err(|error| {
            let what = format!("cannot start a worker, {} worker", self.program.display());
            DriverError::of_io(what, Attempt::Start, &error)
        })?;
        let peer = Arc::new(Process(process));
        link(streams.output, streams.input, order, secrets, outbox, peer)
    }

    fn lead(&self) -> Nanos {
        100_000_000
    }
}

struct Process(Piped);

impl Peer for Process {
    fn kill(&self) {
        self.0.kill();
    }

    fn ending(&self) -> String {
        self.0.ending()
    }
}
