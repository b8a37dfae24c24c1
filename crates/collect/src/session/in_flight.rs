//! How many unacknowledged messages a broker must allow when acknowledgements take long.

use std::time::Duration;

use pubgauge_mqtt_codec::{ConnAck, PropertyId};

use crate::config::Direct;

/// The limit of a broker that tells none: that of the packet identifiers (5.0 §3.2.2.3.3).
const UNTOLD: u32 = 65_535;

/// How many unacknowledged messages a broker must allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InFlight {
    per_s: f64,
    /// Longest time from a message until its acknowledgement.
    within: Duration,
}

impl InFlight {
    /// `put` is how long an object takes. While one is put, the next one is gathered. `None` where no rate was asked for.
    pub fn for_direct(direct: Direct, put: Duration) -> Option<InFlight> {
        Some(InFlight {
            per_s: direct.per_s?,
            within: direct.every.max(put) + put,
        })
    }

    fn needed(&self) -> u32 {
        (self.per_s * self.within.as_secs_f64()).ceil() as u32
    }

    /// Whether a broker allows as many. It does not tell how many it sends; how many it takes is the same setting in
    /// mosquitto, EMQX and RabbitMQ.
    ///
    /// # Errors
    /// If it does not, in words with the figures.
    pub fn check(&self, connack: &ConnAck<'_>, shown: &str) -> Result<(), String> {
        let told = connack.properties.number(PropertyId::ReceiveMaximum);
        let (limit, needed) = (told.unwrap_or(UNTOLD), self.needed());
        if needed <= limit {
            return Ok(());
        }
        let (per_s, within_s) = (self.per_s, self.within.as_secs_f64());
        Err(format!(
            "{shown}: the broker allows {limit} unacknowledged messages; {per_s} messages a second, acknowledged within {within_s:.2} s, are {needed}\n  hint: raise its limit (mosquitto: max_inflight_messages), lower `upload.rate` or `upload.every`, or have messages acknowledged once they are on a disk (`upload.acknowledge`)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_mqtt_codec::{PropertiesBuf, Property};

    /// The answer to a broker that tells such a limit.
    fn said(in_flight: InFlight, limit: Option<u16>) -> Result<(), String> {
        let mut properties = PropertiesBuf::default();
        if let Some(limit) = limit {
            properties.push(Property::ReceiveMaximum(limit)).unwrap();
        }
        let connack = ConnAck {
            properties: properties.as_properties(),
            ..ConnAck::default()
        };
        in_flight.check(&connack, "mqtt://h:1")
    }

    #[test]
    fn a_limit_is_held_against_the_rate_and_the_time_of_an_acknowledgement() {
        let of = |per_s: f64, every_ms: u64, put_ms: u64| {
            let every = Duration::from_millis(every_ms);
            let direct = Direct {
                every,
                bytes: 1,
                per_s: Some(per_s),
            };
            InFlight::for_direct(direct, Duration::from_millis(put_ms)).unwrap()
        };
        // Gathered for a second, put within 250 ms.
        let thousand = of(1000.0, 1000, 250);
        assert_eq!(said(thousand, Some(1250)), Ok(()));
        assert_eq!(said(thousand, None), Ok(()));
        let refused = said(thousand, Some(1249)).unwrap_err();
        assert!(
            refused.starts_with(
                "mqtt://h:1: the broker allows 1249 unacknowledged messages; 1000 messages a second, acknowledged within 1.25 s, are 1250\n"
            ),
            "{refused}"
        );
        // A store that is slower than the gathering: two objects' time.
        assert_eq!(said(of(10.0, 100, 1000), Some(20)), Ok(()));
        assert!(said(of(10.0, 100, 1000), Some(19)).is_err());
        // More than a connection can have.
        assert!(said(of(60_000.0, 1000, 500), None).is_err());
    }
}
