//! How members of a group shared its messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One group whose members share messages: each message goes to one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GroupFigures {
    /// Its name.
    pub name: String,
    /// The flow of its first member.
    pub flow: String,
    /// The broker of its members, from 1.
    pub broker: u32,
    /// First deliveries of measured messages that each member got, in the order of the flow's subscribers.
    pub deliveries: Vec<u64>,
}

impl GroupFigures {
    /// The share of the group's deliveries that each member got, 0 to 1; empty where nothing came.
    pub fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        let all: u64 = self.deliveries.iter().sum();
        let some = self.deliveries.iter().filter(move |_| all > 0);
        some.map(move |one| *one as f64 / all as f64)
    }
}

/// Smallest and largest share of a member in its group, over all groups; `None` where nothing came to any.
pub fn extremes(groups: &[GroupFigures]) -> Option<(f64, f64)> {
    let shares = groups.iter().flat_map(GroupFigures::shares);
    shares.fold(None, |so_far, share| {
        let (low, high) = so_far.unwrap_or((share, share));
        Some((f64::min(low, share), f64::max(high, share)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(deliveries: &[u64]) -> GroupFigures {
        GroupFigures {
            deliveries: deliveries.to_vec(),
            ..GroupFigures::default()
        }
    }

    #[test]
    fn shares_are_of_the_members_own_group() {
        let groups = [group(&[1, 3]), group(&[500, 500]), group(&[0, 0])];
        assert_eq!(extremes(&groups), Some((0.25, 0.75)));
        assert_eq!(extremes(&[group(&[0])]), None);
        assert_eq!(extremes(&[]), None);
        assert_eq!(extremes(&[group(&[0, 9])]), Some((0.0, 1.0)));
    }
}
