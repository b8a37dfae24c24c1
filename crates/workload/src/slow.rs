//! Subscribers whose applications take their time: some slow ones beside others, or all of a flow.

use std::collections::HashMap;

use crate::model::{Arrivals, Exchange, Workload};

impl Workload {
    /// Checks that those whose applications take their time can.
    ///
    /// # Errors
    /// The flow, and what about it does not go with that.
    pub(crate) fn check_slow(&self) -> Result<(), (String, &'static str)> {
        let all = || self.flows.iter().flat_map(|flow| &flow.subscribers);
        let takes_time = self
            .flows
            .iter()
            .any(|flow| flow.subscribers_take.is_some());
        let any_slow = all().any(|subscriber| subscriber.takes.is_some());
        if !takes_time && !any_slow {
            return Ok(());
        }
        let uses = uses_of_devices(self);
        for flow in self
            .flows
            .iter()
            .filter(|flow| flow.subscribers_take.is_some())
        {
            let fault = |what| Err((flow.name.clone(), what));
            if flow.subscribers_take == Some(0) {
                return fault("an application takes some time for each message, or none is said");
            }
            let mut subscribers = flow.subscribers.iter();
            if subscribers.any(|subscriber| uses[&subscriber.device] > 1) {
                return fault(
                    "the connection of a subscriber whose application takes its time has this one use alone",
                );
            }
            if flow.presence_of(true).is_some() {
                return fault("a subscriber that comes and goes takes what comes as it comes");
            }
            if flow.exchange == Exchange::PingPong {
                return fault("who answers takes a question as it comes");
            }
            if flow.subscribers.iter().any(|s| s.late.is_some()) {
                return fault("a late subscriber takes what comes as it comes");
            }
        }
        if !any_slow {
            return Ok(());
        }
        for flow in &self.flows {
            let fault = |what| Err((flow.name.clone(), what));
            for subscriber in flow.subscribers.iter().filter(|s| s.takes.is_some()) {
                if subscriber.takes == Some(0) {
                    return fault("a slow subscriber takes some time for each message");
                }
                if subscriber.group.is_some() {
                    return fault(
                        "a member of a group that shares leaves to others what it does not take",
                    );
                }
                if uses[&subscriber.device] > 1 {
                    return fault("the connection of a slow subscriber has this one use alone");
                }
                if flow.presence_of(true).is_some() {
                    return fault("a subscriber that comes and goes is not slow as well");
                }
            }
            let is_slow = flow.subscribers.iter().any(|s| s.takes.is_some());
            let waits = matches!(flow.arrivals, Arrivals::Bursts { every: None, .. });
            if is_slow && (flow.is_flat_out() || waits || flow.exchange == Exchange::PingPong) {
                return fault(
                    "with slow subscribers a flow needs a schedule that waits for nobody",
                );
            }
        }
        if all().all(|subscriber| subscriber.takes.is_some()) {
            let first = self.flows.first().map(|flow| flow.name.clone());
            return Err((
                first.unwrap_or_default(),
                "all subscribers are slow: there is none beside whom they are",
            ));
        }
        Ok(())
    }
}

/// In how many ways each device takes part, as a publisher or a subscriber of a flow.
pub(crate) fn uses_of_devices(workload: &Workload) -> HashMap<u32, u32> {
    let mut uses: HashMap<u32, u32> = HashMap::new();
    for flow in &workload.flows {
        let publishers = flow.publishers.iter().map(|publisher| publisher.device);
        let subscribers = flow.subscribers.iter().map(|subscriber| subscriber.device);
        for device in publishers.chain(subscribers) {
            *uses.entry(device).or_default() += 1;
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use crate::model::{Arrivals, Exchange, Workload};
    use crate::presence::{Between, Presence};

    fn slow() -> Workload {
        let mut workload = Workload::fan(2, 3, Arrivals::Periodic { per_s: 10.0 });
        workload.flows[0].subscribers[1].takes = Some(5_000_000);
        workload
    }

    #[test]
    fn what_a_slow_subscriber_hears_is_expected_apart() {
        let audience = slow().check().unwrap();
        assert_eq!((audience.fan_out(0), audience.slow_fan_out(0)), (2, 1));
        assert_eq!(audience.listeners(1), 3);
    }

    #[test]
    fn whose_application_takes_its_time_is_expected_with_the_others() {
        let mut workload = Workload::fan(2, 3, Arrivals::FlatOut);
        workload.flows[0].subscribers_take = Some(100_000);
        let audience = workload.check().unwrap();
        assert_eq!((audience.fan_out(0), audience.slow_fan_out(0)), (3, 0));
        let refused = |change: fn(&mut Workload), words: &str| {
            let mut workload = workload.clone();
            change(&mut workload);
            let why = workload.check().unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        refused(|w| w.flows[0].subscribers_take = Some(0), "some time");
        refused(|w| w.flows[0].subscribers[1].device = 0, "one use alone");
        refused(|w| w.flows[0].exchange = Exchange::PingPong, "who answers");
        refused(|w| w.flows[0].subscribers[2].late = Some(1), "late");
    }

    #[test]
    fn who_cannot_be_slow_is_refused() {
        let refused = |change: fn(&mut Workload), words: &str| {
            let mut workload = slow();
            change(&mut workload);
            let why = workload.check().unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        refused(
            |w| w.flows[0].subscribers[1].takes = Some(0),
            "takes some time",
        );
        refused(
            |w| w.flows[0].subscribers[1].group = Some("g".into()),
            "a group that shares",
        );
        refused(|w| w.flows[0].subscribers[1].device = 0, "one use alone");
        refused(|w| w.flows[0].arrivals = Arrivals::FlatOut, "a schedule");
        refused(
            |w| {
                for subscriber in &mut w.flows[0].subscribers {
                    subscriber.takes = Some(1);
                }
            },
            "all subscribers are slow",
        );
        refused(
            |w| {
                w.flows[0].presence = Some(Box::new(Presence {
                    publishers: false,
                    subscribers: true,
                    online: Between::exactly(1_000),
                    offline: Between::exactly(1_000),
                    spread: true,
                    back_within: None,
                    vanishes: false,
                }));
            },
            "comes and goes",
        );
    }
}
