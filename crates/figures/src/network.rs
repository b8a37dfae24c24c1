//! Networks that trials ran on, and the traffic on the links of their hosts.

use crate::model::{Results, Trial};
pub use crate::traffic::{HostTraffic, NetworkInfo, NetworkTraffic};

/// Share of its rate from which a link is full. It is below 1 because the counters are read a moment before or
/// after the measurement begins and ends.
pub const FULL: f64 = 0.97;

/// The link of a trial's network that was filled most, and the share of its rate that it carried in its busier
/// direction; `None` where no link has a rate, or nothing was counted.
pub fn fullest_link(trial: &Trial) -> Option<(&HostTraffic, f64)> {
    let on = trial.network.as_ref()?;
    let counted = on.not_told.is_none() && trial.duration_s > 0.0;
    let share = |host: &HostTraffic| {
        let bytes = host.sent_bytes.max(host.received_bytes);
        let rate = host.rate_bits_per_s.filter(|_| counted)?;
        Some(8.0 * bytes as f64 / trial.duration_s / rate as f64)
    };
    let shares = on
        .hosts
        .iter()
        .filter_map(|host| Some((host, share(host)?)));
    shares.max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// The fullest link, if it was full (97 % of its rate or more): traffic waited for the link, was late or was lost there.
pub fn full_link(trial: &Trial) -> Option<(&HostTraffic, f64)> {
    fullest_link(trial).filter(|(_, share)| *share >= FULL)
}

/// The network that a trial ran on.
pub fn network_of<'a>(results: &'a Results, trial: &Trial) -> Option<&'a NetworkInfo> {
    let number = trial.network.as_ref()?.network;
    results.networks.get(number as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::figure;

    fn host(name: &str, rate: Option<u64>, sent: u64, received: u64) -> HostTraffic {
        HostTraffic {
            host: name.into(),
            rate_bits_per_s: rate,
            sent_bytes: sent,
            received_bytes: received,
            ..HostTraffic::default()
        }
    }

    fn trial(hosts: Vec<HostTraffic>) -> Trial {
        Trial {
            duration_s: 2.0,
            network: Some(NetworkTraffic {
                hosts,
                ..NetworkTraffic::default()
            }),
            ..Trial::default()
        }
    }

    #[test]
    fn the_fullest_link_is_the_one_nearest_to_its_rate_in_either_direction() {
        let trial = trial(vec![
            host("broker-1", None, 9_000_000, 9_000_000),
            host("publisher-1", Some(8_000_000), 1_000_000, 10),
            host("subscriber-1", Some(1_000_000), 10, 245_000),
        ]);
        let (fullest, share) = fullest_link(&trial).unwrap();
        assert_eq!((fullest.host.as_str(), share), ("subscriber-1", 0.98));
    }

    #[test]
    fn links_of_subscribers_are_told_apart_from_others() {
        let received = |trial: &Trial| figure(trial, None, "subscriber-links-received-bytes-rate");
        let mut counted = trial(vec![
            host("broker-1", None, 9_000, 900),
            host("publisher-1", None, 10, 7_000),
            host("subscriber-1", None, 10, 300),
            host("subscriber-2", None, 10, 500),
        ]);
        assert_eq!(received(&counted), Some(400.0));
        counted.network.as_mut().unwrap().not_told = Some("read too late".into());
        assert_eq!(received(&counted), None);
        assert_eq!(received(&trial(vec![host("broker-1", None, 1, 1)])), None);
        assert_eq!(received(&Trial::default()), None);
    }

    #[test]
    fn nothing_is_said_of_links_without_a_rate_or_without_counts() {
        assert!(fullest_link(&trial(vec![host("publisher-1", None, 7, 7)])).is_none());
        assert!(fullest_link(&Trial::default()).is_none());
        let mut late = trial(vec![host("publisher-1", Some(8), 7, 7)]);
        late.network.as_mut().unwrap().not_told = Some("read late".into());
        assert!(fullest_link(&late).is_none());
    }
}
