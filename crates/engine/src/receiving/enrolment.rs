//! The clients of a worker, and the parties that they belong to.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Entitlement, Member, ReceivingClient};
use crate::assignment::Brief;
use crate::groups::Gathered;
use crate::recording::MemberRecording;

/// The clients of a worker, and the parties that they belong to.
pub(super) struct Enrolment {
    /// In the order of the devices.
    pub(super) clients: Vec<ReceivingClient>,
    /// The parties with members among them.
    pub(super) parties: Vec<Member>,
    /// The members of groups, with nothing received.
    pub(super) shares: Vec<MemberRecording>,
}

impl Enrolment {
    /// Enters each of `devices` in the parties of its flows; `gathered` has the groups with members on other workers too.
    pub(super) fn enrol(brief: &Brief, devices: &[u32], gathered: &Gathered) -> Enrolment {
        let mut shares = Vec::new();
        let mine: FxHashSet<u32> = devices.iter().copied().collect();
        let mut entitlements: FxHashMap<u32, Vec<Entitlement>> = FxHashMap::default();
        let mut parties: Vec<Member> = Vec::new();
        for (p, party) in (0..).zip(&brief.audience.parties) {
            for (index, (flow, subscriber)) in (0..).zip(&party.members) {
                let device = brief.device_of((*flow, *subscriber));
                if !mine.contains(&device) {
                    continue;
                }
                let member = party.group.is_some().then(|| {
                    shares.push(MemberRecording {
                        party: p,
                        flow: *flow,
                        subscriber: *subscriber,
                        unique: 0,
                    });
                    shares.len() as u32 - 1
                });
                let apart = gathered.has(p);
                if parties.last().is_none_or(|last| last.party != p) {
                    parties.push(Member {
                        party: p,
                        grouped: member.is_some(),
                        apart,
                    });
                }
                let place = Entitlement {
                    party: p,
                    number: parties.len() as u32 - 1,
                    member,
                    apart: apart.then_some(index),
                };
                entitlements.entry(device).or_default().push(place);
            }
        }
        let client = |device: &u32| ReceivingClient {
            device: *device,
            parties: entitlements.remove(device).unwrap_or_default().into(),
            responds: brief.responds(*device),
            takes: brief.takes(*device),
            slow: brief.is_slow(*device),
            late: brief.late(*device).is_some(),
            ..ReceivingClient::default()
        };
        Enrolment {
            clients: devices.iter().map(client).collect(),
            parties,
            shares,
        }
    }
}
