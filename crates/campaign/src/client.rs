//! How the client of a run works.

use std::path::Path;

use pubgauge_engine::assignment::Workers;
use pubgauge_setup::Setup;
use pubgauge_testbed::shares::Share;
use serde::{Deserialize, Serialize};

/// Most processes on each side.
pub const MOST_PROCESSES: u32 = 64;

/// How the client works, for all trials of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientOptions {
    /// Worker threads for the publishing devices of each broker, 1 to 1,024.
    pub publisher_workers: u32,
    /// Worker threads for the other devices of each broker, 1 to 1,024.
    pub subscriber_workers: u32,
    /// The publishing devices of each broker run in so many processes and its others in as many, each with one worker: 1 to
    /// [`MOST_PROCESSES`]. Without it all are threads of one process, unless that may not open enough files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Real-time priority (`SCHED_FIFO`) of the workers, 1 to 99.
    pub realtime: Option<u8>,
    /// Processors for the workers, in turn; empty: the scheduler chooses.
    pub pin: Vec<usize>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            publisher_workers: 1,
            subscriber_workers: 1,
            processes: None,
            realtime: None,
            pin: Vec::new(),
        }
    }
}

impl ClientOptions {
    /// The setup of a trial of the plan, with the workers' priority of this run.
    pub(crate) fn setup(&self, planned: &Setup) -> Setup {
        let mut setup = planned.clone();
        setup.client.realtime = self.realtime;
        setup
    }

    /// As a trial takes them; `program` is this one, and each worker process gets `share` at most.
    pub(crate) fn client(&self, program: &Path, share: Share) -> pubgauge_runner::ClientConfig {
        pubgauge_runner::ClientConfig {
            workers: self.workers(),
            pin: self.pin.clone(),
            processes: self.processes.map(|_| pubgauge_runner::Processes {
                program: program.to_owned(),
                namespace: None,
                share,
            }),
            hosts: None,
        }
    }

    /// Workers on each side.
    pub fn workers(&self) -> Workers {
        Workers {
            publishers: self.processes.unwrap_or(self.publisher_workers),
            subscribers: self.processes.unwrap_or(self.subscriber_workers),
            ..Workers::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_of_a_run_joins_the_setup_that_the_study_asks_for() {
        let mut planned = Setup::default();
        planned.client.pacing_within = 1_000_000;
        planned.client.poll_when_idle = true;
        let options = ClientOptions {
            realtime: Some(7),
            ..ClientOptions::default()
        };
        let mut expected = planned.clone();
        expected.client.realtime = Some(7);
        assert_eq!(options.setup(&planned), expected);
        assert_eq!(ClientOptions::default().setup(&planned), planned);
    }
}
