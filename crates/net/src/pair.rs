//! Endpoints with one place for publishers and another for subscribers:
//! `mqtt://HOST:PORT,HOST:PORT`, or `mqtt://HOST:PORT,PORT` on one host.
//!
//! Some servers listen on a port for each, and a bridge of two brokers takes messages at one end and
//! delivers them at the other.

use pubgauge_driver::{ClientSpec, DriverError};

use crate::endpoint::{Endpoint, Scheme};

/// Where the publishers and where the subscribers of one endpoint connect to; the same place
/// unless its URL names two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// For clients that publish, also those that subscribe as well: one connection is to one
    /// place.
    pub publishers: Endpoint,
    /// For clients that only subscribe.
    pub subscribers: Endpoint,
}

impl Pair {
    /// Reads a URL with one place or two.
    ///
    /// # Errors
    /// As [`Endpoint::parse`], for either place.
    pub fn parse(url: &str, scheme: &Scheme) -> Result<Pair, DriverError> {
        let (publishers, subscribers) = match split(url) {
            Some((publishers, subscribers)) => (
                Endpoint::parse(&publishers, scheme)?,
                Endpoint::parse(&subscribers, scheme)?,
            ),
            None => {
                let one = Endpoint::parse(url, scheme)?;
                (one.clone(), one)
            }
        };
        Ok(Pair {
            publishers,
            subscribers,
        })
    }

    /// Both places, that of the publishers first.
    pub fn both(self) -> [Endpoint; 2] {
        [self.publishers, self.subscribers]
    }

    /// Which of [`Pair::both`] a client connects to.
    pub fn side(client: &ClientSpec) -> usize {
        usize::from(client.subscribes && !client.publishes)
    }
}

/// The URLs of the two places, if there are two. Scheme, user name and path hold for both.
pub fn split(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let (rest, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (user, authority) = match rest.rfind('@') {
        Some(at) => rest.split_at(at + 1),
        None => ("", rest),
    };
    let (first, second) = authority.split_once(',')?;
    let port_alone = !second.is_empty() && second.bytes().all(|b| b.is_ascii_digit());
    let second = match port_alone {
        true => format!("{}:{second}", host_of(first)),
        false => second.to_owned(),
    };
    let url = |place: &str| format!("{scheme}://{user}{place}{path}");
    Some((url(first), url(&second)))
}

/// A place without its port.
fn host_of(place: &str) -> &str {
    match place.rsplit_once(':') {
        Some((host, _)) if !place.ends_with(']') => host,
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_places_become_two_urls() {
        let cases = [
            ("mqtt://h:1,2", Some(("mqtt://h:1", "mqtt://h:2"))),
            ("mqtt://h,2", Some(("mqtt://h", "mqtt://h:2"))),
            ("mqtt://a:1,b:2", Some(("mqtt://a:1", "mqtt://b:2"))),
            ("mqtts://u@a,b", Some(("mqtts://u@a", "mqtts://u@b"))),
            (
                "mqtt://[::1]:1,2",
                Some(("mqtt://[::1]:1", "mqtt://[::1]:2")),
            ),
            ("mqtt://[::1],2", Some(("mqtt://[::1]", "mqtt://[::1]:2"))),
            (
                "amqp://u,v@h:1,2/a,b",
                Some(("amqp://u,v@h:1/a,b", "amqp://u,v@h:2/a,b")),
            ),
            ("mqtt://h:1", None),
            ("mqtt://u,v@h:1", None),
            ("h:1,2", None),
            ("mqtt://h:1,", Some(("mqtt://h:1", "mqtt://"))),
        ];
        for (url, expected) in cases {
            let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(split(url), expected, "{url}");
        }
    }

    #[test]
    fn who_publishes_connects_to_the_first() {
        let client = |publishes, subscribes| ClientSpec {
            publishes,
            subscribes,
            ..ClientSpec::default()
        };
        assert_eq!(Pair::side(&client(true, false)), 0);
        assert_eq!(Pair::side(&client(true, true)), 0);
        assert_eq!(Pair::side(&client(false, true)), 1);
        assert_eq!(Pair::side(&client(false, false)), 0);
    }
}
