//! The last check before a workload is run.

use pubgauge_driver::topic::{filter_fault, topic_fault};

use crate::audience::{Audience, AudienceError};
use crate::model::{Exchange, Workload};
use crate::schedule::{Schedule, ScheduleError};

/// Why a workload cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A publisher or subscriber refers to a device that is not there.
    #[error("flow `{flow}` refers to device {device}, but there are only {devices}")]
    NoSuchDevice {
        /// The flow's name.
        flow: String,
        /// Index that was asked for.
        device: u32,
        /// Number of devices.
        devices: usize,
    },
    /// A topic or filter that no system would take.
    #[error("flow `{flow}`: `{topic}` cannot be used: {fault}")]
    Topic {
        /// The flow's name.
        flow: String,
        /// The topic or filter.
        topic: String,
        /// The error in it.
        fault: &'static str,
    },
    /// A subscriber without filters.
    #[error("flow `{flow}`: subscriber {subscriber} has no filter")]
    NoFilter {
        /// The flow's name.
        flow: String,
        /// Index of the subscriber.
        subscriber: usize,
    },
    /// A ping-pong without a subscriber to answer.
    #[error("flow `{0}`: ping-pong needs at least one subscriber to answer")]
    NobodyAnswers(String),
    /// Devices that cannot come and go as they are to.
    #[error("flow `{flow}`: {fault}")]
    Presence {
        /// The flow's name.
        flow: String,
        /// The fault in it.
        fault: &'static str,
    },
    /// Subscribers that cannot be slow.
    #[error("flow `{flow}`: {fault}")]
    Slow {
        /// The flow's name.
        flow: String,
        /// The fault in it.
        fault: &'static str,
    },
    /// Subscribers that cannot be late.
    #[error("flow `{flow}`: {fault}")]
    Late {
        /// The flow's name.
        flow: String,
        /// The fault in it.
        fault: &'static str,
    },
    /// A will that cannot be.
    #[error("the will of `{device}` on `{topic}`: {fault}")]
    Will {
        /// The device's name.
        device: String,
        /// The will's topic.
        topic: String,
        /// The fault in it.
        fault: &'static str,
    },
    /// A flow that cannot be scheduled.
    #[error("flow `{flow}`: {error}")]
    Schedule {
        /// The flow's name.
        flow: String,
        /// Why not.
        error: ScheduleError,
    },
    /// Deliveries that could not be attributed.
    #[error(transparent)]
    Audience(#[from] AudienceError),
}

impl Workload {
    /// Checks everything that the types do not rule out and returns who is entitled to what.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<Audience, WorkloadError> {
        for flow in &self.flows {
            let name = || flow.name.clone();
            let publishers = flow.publishers.iter().map(|p| p.device);
            for device in publishers.chain(flow.subscribers.iter().map(|s| s.device)) {
                if device as usize >= self.devices.len() {
                    return Err(WorkloadError::NoSuchDevice {
                        flow: name(),
                        device,
                        devices: self.devices.len(),
                    });
                }
            }
            let fault = |topic: &str, fault: Option<&'static str>| match fault {
                None => Ok(()),
                Some(fault) => Err(WorkloadError::Topic {
                    flow: name(),
                    topic: topic.to_string(),
                    fault,
                }),
            };
            for topic in flow.publishers.iter().flat_map(|p| &p.topics) {
                fault(topic, topic_fault(topic))?;
            }
            for (subscriber, filters) in flow.subscribers.iter().map(|s| &s.filters).enumerate() {
                if filters.is_empty() {
                    return Err(WorkloadError::NoFilter {
                        flow: name(),
                        subscriber,
                    });
                }
                for filter in filters {
                    fault(filter, filter_fault(filter))?;
                }
            }
            if flow.exchange == Exchange::PingPong && flow.subscribers.is_empty() {
                return Err(WorkloadError::NobodyAnswers(name()));
            }
            Schedule::try_new(flow, 0..flow.publishers.len() as u32, self.seed).map_err(
                |error| WorkloadError::Schedule {
                    flow: name(),
                    error,
                },
            )?;
        }
        self.check_presence()
            .map_err(|(flow, fault)| WorkloadError::Presence { flow, fault })?;
        self.check_slow()
            .map_err(|(flow, fault)| WorkloadError::Slow { flow, fault })?;
        self.check_late()
            .map_err(|(flow, fault)| WorkloadError::Late { flow, fault })?;
        let audience = Audience::new(self)?;
        self.check_wills()
            .map_err(|(device, will, fault)| WorkloadError::Will {
                device,
                topic: will.topic,
                fault,
            })?;
        Ok(audience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_support::{flow, workload};

    fn sound() -> Workload {
        workload(vec![flow(
            vec![vec!["a/b".into()]],
            vec![(vec!["a/+".into()], None)],
        )])
    }

    #[test]
    fn sound_workloads_pass() {
        assert_eq!(sound().check().expect("sound").fan_out(0), 1);
    }

    #[test]
    fn each_fault_is_named() {
        let fault = |change: fn(&mut Workload)| {
            let mut workload = sound();
            change(&mut workload);
            workload.check().expect_err("unsound").to_string()
        };
        let message = fault(|w| w.devices.truncate(1));
        assert!(message.contains("device 1"), "{message}");
        let message = fault(|w| w.flows[0].publishers[0].topics[0] = "a/#".into());
        assert!(message.contains("goes to one topic"), "{message}");
        let message = fault(|w| w.flows[0].subscribers[0].filters[0] = "a/x+".into());
        assert!(message.contains("whole level"), "{message}");
        let message = fault(|w| w.flows[0].subscribers[0].filters.clear());
        assert!(message.contains("no filter"), "{message}");
        let message = fault(|w| w.flows[0].publishers[0].topics.clear());
        assert!(message.contains("no topic"), "{message}");
        let message = fault(|w| {
            w.flows[0].exchange = Exchange::PingPong;
            w.flows[0].subscribers.clear();
        });
        assert!(message.contains("to answer"), "{message}");
    }
}
