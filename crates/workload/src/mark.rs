//! Names that two runs on one system must not share.

use crate::model::Workload;

/// First level of the topics of flows that name none.
pub const DEFAULT_ROOT: &str = "pubgauge";

impl Workload {
    /// Gives the workload names of its own: the default topics, the connections and the groups
    /// carry `word`. Topics that the study names stay as they are: two runs that use one of them at
    /// the same time hear each other, and tell their messages apart by the marks.
    ///
    /// Only the first level of a default topic changes, so that filters with wildcards still match.
    pub fn marked(&self, word: &str) -> Workload {
        let mut marked = self.clone();
        let topic = |topic: &mut String| {
            let rest = topic.strip_prefix(DEFAULT_ROOT);
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                *topic = format!("{DEFAULT_ROOT}-{word}{rest}");
            }
        };
        for device in &mut marked.devices {
            device.name = format!("{}-{word}", device.name);
            if let Some(will) = &mut device.will {
                topic(&mut will.topic);
            }
        }
        for flow in &mut marked.flows {
            let publishers = flow.publishers.iter_mut().flat_map(|p| &mut p.topics);
            publishers.for_each(&topic);
            for subscriber in &mut flow.subscribers {
                subscriber.filters.iter_mut().for_each(&topic);
                if let Some(group) = &mut subscriber.group {
                    *group = format!("{group}-{word}");
                }
            }
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use crate::tests_support::{flow, workload};

    #[test]
    fn default_topics_connections_and_groups_are_marked() {
        let topics = vec![
            "pubgauge/fleet/1".into(),
            "pubgauges/x".into(),
            "site/pubgauge/a".into(),
        ];
        let filters = vec!["pubgauge/+/1".into(), "site/#".into(), "+/fleet/2".into()];
        let plain = workload(vec![flow(
            vec![topics],
            vec![(filters, Some("team".into()))],
        )]);
        let marked = plain.marked("0a1b2c3d");
        let flow = &marked.flows[0];
        assert_eq!(
            flow.publishers[0].topics,
            [
                "pubgauge-0a1b2c3d/fleet/1",
                "pubgauges/x",
                "site/pubgauge/a"
            ]
        );
        let subscriber = &flow.subscribers[0];
        assert_eq!(
            subscriber.filters,
            ["pubgauge-0a1b2c3d/+/1", "site/#", "+/fleet/2"]
        );
        assert_eq!(subscriber.group.as_deref(), Some("team-0a1b2c3d"));
        assert!(marked.devices.iter().all(|d| d.name.ends_with("-0a1b2c3d")));
        let streams = |w: &crate::Workload| w.check().expect("sound").parties[0].streams.clone();
        assert_eq!(streams(&marked), streams(&plain));
    }
}
