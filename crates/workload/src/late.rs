//! Subscribers that subscribe when messages have long been published.

use crate::model::{Exchange, Workload};
use crate::slow::uses_of_devices;

impl Workload {
    /// Whether any subscriber subscribes within the measurement.
    pub fn has_late_subscribers(&self) -> bool {
        let mut all = self.flows.iter().flat_map(|flow| &flow.subscribers);
        all.any(|subscriber| subscriber.late.is_some())
    }

    /// Checks that those who are late can be.
    ///
    /// # Errors
    /// The flow, and what about it does not go with that.
    pub(crate) fn check_late(&self) -> Result<(), (String, &'static str)> {
        if !self.has_late_subscribers() {
            return Ok(());
        }
        let uses = uses_of_devices(self);
        for flow in &self.flows {
            let fault = |what| Err((flow.name.clone(), what));
            for subscriber in flow.subscribers.iter().filter(|s| s.late.is_some()) {
                if subscriber.group.is_some() {
                    return fault(
                        "a member of a group that shares is late for nothing: the others have it",
                    );
                }
                if uses[&subscriber.device] > 1 {
                    return fault("the connection of a late subscriber has this one use alone");
                }
                if flow.presence_of(true).is_some() {
                    return fault("a subscriber that comes and goes is not late as well");
                }
                if subscriber.takes.is_some() {
                    return fault("a subscriber is late or slow, not both");
                }
                if flow.exchange == Exchange::PingPong {
                    return fault(
                        "with late subscribers a flow asks no questions: who would answer them is not there yet",
                    );
                }
                if subscriber.late >= Some(self.phases.measure.latest()) {
                    return fault("a late subscriber subscribes before the measurement ends");
                }
            }
        }
        let mut all = self.flows.iter().flat_map(|flow| &flow.subscribers);
        if all.all(|subscriber| subscriber.takes.or(subscriber.late).is_some()) {
            let first = self.flows.first().map(|flow| flow.name.clone());
            return Err((
                first.unwrap_or_default(),
                "all subscribers are late or slow: there is none beside whom they are",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Arrivals, Exchange, Workload};
    use crate::units::SECOND;

    fn late() -> Workload {
        let mut workload = Workload::fan(2, 3, Arrivals::Periodic { per_s: 10.0 });
        workload.flows[0].subscribers[2].late = Some(SECOND);
        workload
    }

    #[test]
    fn nothing_is_expected_for_a_late_subscriber() {
        let audience = late().check().unwrap();
        assert_eq!((audience.fan_out(0), audience.late_fan_out(0)), (2, 1));
        assert_eq!((audience.slow_fan_out(0), audience.listeners(1)), (0, 2));
    }

    #[test]
    fn who_cannot_be_late_is_refused() {
        let refused = |change: fn(&mut Workload), words: &str| {
            let mut workload = late();
            change(&mut workload);
            let why = workload.check().unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        refused(
            |w| w.flows[0].subscribers[2].group = Some("g".into()),
            "a group that shares",
        );
        refused(|w| w.flows[0].subscribers[2].device = 0, "one use alone");
        refused(|w| w.flows[0].subscribers[2].takes = Some(1), "not both");
        refused(
            |w| w.flows[0].subscribers[2].late = Some(u64::MAX),
            "before the measurement ends",
        );
        refused(
            |w| w.flows[0].exchange = Exchange::PingPong,
            "asks no questions",
        );
        refused(
            |w| {
                for subscriber in &mut w.flows[0].subscribers {
                    subscriber.late = Some(SECOND);
                }
            },
            "all subscribers are late",
        );
    }
}
