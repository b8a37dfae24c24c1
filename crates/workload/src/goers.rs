//! Who of a workload comes and goes, and whether they can.

use std::collections::HashMap;

use crate::model::{Arrivals, Flow, Workload};
use crate::presence::Presence;

impl Flow {
    /// When a device of the flow is connected, by the side that it is on; `None`: always.
    pub fn presence_of(&self, subscribes: bool) -> Option<&Presence> {
        let presence = self.presence.as_deref()?;
        let on_side = if subscribes {
            presence.subscribers
        } else {
            presence.publishers
        };
        on_side.then_some(presence)
    }
}

impl Workload {
    /// Whether any subscriber comes and goes, because its own flow says so, or another that its device takes part in.
    pub fn has_absent_subscribers(&self) -> bool {
        let goers = self.goers();
        let subscribers = self.flows.iter().flat_map(|flow| &flow.subscribers);
        let mut devices = subscribers.map(|subscriber| subscriber.device);
        devices.any(|device| goers.contains_key(&device))
    }

    /// The devices that come and go, each with how.
    pub(crate) fn goers(&self) -> HashMap<u32, &Presence> {
        let each = self.flows.iter().flat_map(|flow| {
            let publishers = flow.publishers.iter().map(|p| (p.device, false));
            let subscribers = flow.subscribers.iter().map(|s| (s.device, true));
            let devices = publishers.chain(subscribers);
            devices.filter_map(|(device, subscribes)| Some((device, flow.presence_of(subscribes)?)))
        });
        each.collect()
    }

    /// Checks that those who come and go can.
    ///
    /// # Errors
    /// The flow, and what about it does not go with that.
    pub(crate) fn check_presence(&self) -> Result<(), (String, &'static str)> {
        let goers = self.goers();
        if goers.is_empty() {
            return Ok(());
        }
        for flow in &self.flows {
            let fault = |what| Err((flow.name.clone(), what));
            let waits = matches!(flow.arrivals, Arrivals::Bursts { every: None, .. });
            for publisher in &flow.publishers {
                let Some(known) = goers.get(&publisher.device) else {
                    continue;
                };
                if flow.is_flat_out() || waits {
                    return fault("a publisher that comes and goes needs a schedule");
                }
                if flow
                    .presence_of(false)
                    .is_some_and(|own| !own.same_times(known))
                {
                    return fault(
                        "a device comes and goes in one way, and another flow has another",
                    );
                }
            }
            for subscriber in &flow.subscribers {
                let Some(known) = goers.get(&subscriber.device) else {
                    continue;
                };
                if subscriber.group.is_some() {
                    return fault(
                        "a member of a group that shares misses nothing while it is away",
                    );
                }
                if flow.arrivals.burst_period().is_some() {
                    return fault("subscribers that come and go get bursts late");
                }
                if !self.phases.windows.is_empty() {
                    return fault(
                        "what subscribers that come and go get late belongs to no window",
                    );
                }
                if flow
                    .presence_of(true)
                    .is_some_and(|own| !own.same_times(known))
                {
                    return fault(
                        "a device comes and goes in one way, and another flow has another",
                    );
                }
            }
        }
        Ok(())
    }
}
