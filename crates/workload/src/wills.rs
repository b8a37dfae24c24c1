//! Last wills: who has one, and which subscribers they are timed at.

use std::collections::{HashMap, HashSet};

use pubgauge_driver::topic::{TopicMatch, topic_fault};

use crate::model::{LastWill, Workload};

/// The subscribers that wills are counted and timed at: those that are there from the beginning to the end, take what
/// comes as it comes, and do not share it.
#[derive(Clone, Debug, Default)]
pub struct WillWatchers<'a> {
    /// Devices by the filters of theirs that have no wildcards.
    exact: HashMap<&'a str, Vec<u32>>,
    /// The other filters, with the devices that have each.
    wild: Vec<(&'a str, Vec<u32>)>,
}

impl WillWatchers<'_> {
    /// The devices that hear a topic, in ascending order; one with several filters that match it as often.
    pub fn of_topic(&self, topic: &str) -> Vec<u32> {
        let exact = self.exact.get(topic).into_iter().flatten();
        let wild = self.wild.iter();
        let wild = wild.filter(|(filter, _)| filter.matches_topic(topic));
        let wild = wild.flat_map(|(_, devices)| devices);
        let mut all: Vec<u32> = exact.chain(wild).copied().collect();
        all.sort_unstable();
        all
    }

    /// All of their devices.
    pub fn devices(&self) -> HashSet<u32> {
        let wild = self.wild.iter().map(|(_, devices)| devices);
        let all = self.exact.values().chain(wild).flatten();
        all.copied().collect()
    }
}

impl Workload {
    /// Whether any device has a will.
    pub fn has_wills(&self) -> bool {
        self.devices.iter().any(|device| device.will.is_some())
    }

    /// The subscribers that its wills are counted and timed at; none where no device has a will.
    pub fn will_watchers(&self) -> WillWatchers<'_> {
        let mut watchers = WillWatchers::default();
        if !self.has_wills() {
            return watchers;
        }
        let goers = self.goers();
        let subscribers = || self.flows.iter().flat_map(|flow| &flow.subscribers);
        let apart = subscribers().filter(|s| s.group.is_some() || s.takes.or(s.late).is_some());
        let apart: HashSet<u32> = apart.map(|s| s.device).collect();
        let mut wild: HashMap<&str, Vec<u32>> = HashMap::new();
        for subscriber in subscribers() {
            let device = subscriber.device;
            if apart.contains(&device) || goers.contains_key(&device) {
                continue;
            }
            for filter in &subscriber.filters {
                let by_filter = if filter.is_wild() {
                    &mut wild
                } else {
                    &mut watchers.exact
                };
                by_filter.entry(filter).or_default().push(device);
            }
        }
        watchers.wild = wild.into_iter().collect();
        watchers
    }

    /// Checks that wills can be published, and that somebody is there to time them at.
    ///
    /// # Errors
    /// The device, its will, and the fault in it.
    pub(crate) fn check_wills(&self) -> Result<(), (String, Box<LastWill>, &'static str)> {
        let watchers = self.will_watchers();
        for device in &self.devices {
            let Some(will) = &device.will else { continue };
            let fault = |fault| Err((device.name.clone(), will.clone(), fault));
            if let Some(what) = topic_fault(&will.topic) {
                return fault(what);
            }
            let heard_by = watchers.of_topic(&will.topic);
            if heard_by.is_empty() {
                return fault(
                    "no subscriber hears it that is there throughout (neither away, late nor slow, nor a member of a group): \
                     add a flow with publishers = 0, and with `subscribe` for the topics of the wills",
                );
            }
            if heard_by.windows(2).any(|pair| pair[0] == pair[1]) {
                return fault(
                    "a connection hears it by two of its filters; systems differ in whether they then deliver once or twice",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Arrivals, LastWill, Workload};
    use crate::units::SECOND;

    /// Two publishers with wills, heard by two subscribers of all topics, and a third that hears one of them.
    fn willing() -> Workload {
        let mut workload = Workload::fan(2, 3, Arrivals::Periodic { per_s: 10.0 });
        let flow = &mut workload.flows[0];
        for (n, publisher) in flow.publishers.iter().enumerate() {
            workload.devices[publisher.device as usize].will = Some(Box::new(LastWill {
                topic: format!("gone/{n}"),
                bytes: 16,
                retain: false,
                qos: None,
                delay_s: 0,
            }));
        }
        for subscriber in &mut flow.subscribers[..2] {
            subscriber.filters.push("gone/+".into());
        }
        flow.subscribers[2].filters.push("gone/1".into());
        workload
    }

    #[test]
    fn who_hears_a_will_is_told_by_its_topic() {
        let workload = willing();
        workload.check().unwrap();
        let watchers = workload.will_watchers();
        let devices: Vec<u32> = (workload.flows[0].subscribers.iter())
            .map(|s| s.device)
            .collect();
        assert_eq!(watchers.of_topic("gone/0"), devices[..2]);
        assert_eq!(watchers.of_topic("gone/1"), devices);
        assert_eq!(watchers.devices(), devices.into_iter().collect());
    }

    #[test]
    fn who_is_not_there_throughout_hears_none() {
        let refused = |change: fn(&mut Workload), words: &str| {
            let mut workload = willing();
            change(&mut workload);
            let why = workload.check().unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        };
        refused(
            |w| {
                for subscriber in &mut w.flows[0].subscribers[..2] {
                    subscriber.late = Some(SECOND);
                }
            },
            "no subscriber hears it",
        );
        refused(
            |w| {
                let subscribers = &mut w.flows[0].subscribers;
                subscribers[0].filters.push("gone/0".into());
            },
            "by two of its filters",
        );
        refused(
            |w| w.devices[0].will.as_mut().unwrap().topic = "gone/#".into(),
            "goes to one topic",
        );
    }
}
