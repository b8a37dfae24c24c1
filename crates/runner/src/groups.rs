//! Deliveries to members of groups that share messages.

use std::collections::BTreeMap;

use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::recording::MemberRecording;
use pubgauge_figures::group::GroupFigures;
use pubgauge_workload::Workload;

/// The groups of a trial, in the order of their first members.
pub fn of_trial(workload: &Workload, record: &TrialRecord) -> Vec<GroupFigures> {
    let mut groups: BTreeMap<u32, Vec<&MemberRecording>> = BTreeMap::new();
    for member in record.recordings.iter().flat_map(|r| &r.members) {
        groups.entry(member.party).or_default().push(member);
    }
    let figures = |mut members: Vec<&MemberRecording>| {
        members.sort_by_key(|member| (member.flow, member.subscriber));
        let first = members.first()?;
        let flow = &workload.flows[first.flow as usize];
        let subscriber = &flow.subscribers[first.subscriber as usize];
        let device = workload.devices.get(subscriber.device as usize);
        Some(GroupFigures {
            name: subscriber.group.clone().unwrap_or_default(),
            flow: flow.name.clone(),
            broker: device.map_or(0, |device| device.broker) + 1,
            deliveries: members.iter().map(|member| member.unique).collect(),
        })
    };
    groups.into_values().filter_map(figures).collect()
}
