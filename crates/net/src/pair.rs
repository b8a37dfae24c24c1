//! Endpoints with one place for publishers and another for subscribers:
//! `mqtt://HOST:PORT,HOST:PORT`, or `mqtt://HOST:PORT,PORT` on one host.
//!
//! Some servers listen on a port for each, and a bridge of two brokers takes messages at one end and
//! delivers them at the other.

use pubgauge_driver::{ClientSpec, DriverError};

use crate::endpoint::{Addressing, Endpoint};

/// Reads a URL with one place or two, each with `parse`: where publishers connect to, also those that subscribe as
/// well, because one connection is to one place; and where those that only subscribe do. Both are the same place
/// unless the URL names two.
///
/// # Errors
/// Those of `parse`, for either place.
pub fn parse_both<E: Clone>(
    url: &str,
    parse: impl Fn(&str) -> Result<E, DriverError>,
) -> Result<[E; 2], DriverError> {
    match split(url) {
        Some((publishers, subscribers)) => Ok([parse(&publishers)?, parse(&subscribers)?]),
        None => parse(url).map(|one| [one.clone(), one]),
    }
}

/// All places of a target's endpoints, two for each, in the order of [`place_of`]. `parse` reads those of one URL, by
/// [`parse_both`].
///
/// # Errors
/// Those of `parse`; none, or more than a client's 16 bits can tell apart.
pub fn parse_places<E: Clone>(
    urls: &[String],
    protocol: &Addressing,
    parse: impl Fn(&str) -> Result<[E; 2], DriverError>,
) -> Result<Vec<E>, DriverError> {
    if urls.is_empty() || urls.len() > usize::from(u16::MAX / 2) {
        return Err(DriverError::with_hint(
            format!("{} {} endpoints", urls.len(), protocol.name),
            format!(
                "give at least one, {}://HOST:PORT",
                protocol.schemes[0].name
            ),
        ));
    }
    let pairs: Result<Vec<[E; 2]>, DriverError> = urls.iter().map(|url| parse(url)).collect();
    Ok(pairs?.concat())
}

/// [`parse_places`], where nothing but [`Endpoint::parse`] has to be known of an endpoint.
///
/// # Errors
/// The same.
pub fn plain_places(urls: &[String], protocol: &Addressing) -> Result<Vec<Endpoint>, DriverError> {
    let parse = |url: &str| Endpoint::parse(url, protocol);
    parse_places(urls, protocol, |url| parse_both(url, parse))
}

/// The index into `places` places ([`parse_places`]) that a client connects to.
///
/// # Errors
/// If the target has no such endpoint.
pub fn place_of(client: &ClientSpec, places: usize) -> Result<u16, DriverError> {
    let side = usize::from(client.subscribes && !client.publishes);
    let place = client.endpoint.saturating_mul(2).saturating_add(side);
    match u16::try_from(place) {
        Ok(place) if usize::from(place) < places => Ok(place),
        _ => Err(DriverError::new(format!(
            "client {:?} is for endpoint {}, but there are {}",
            client.name,
            client.endpoint,
            places / 2
        ))),
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
    let second = if port_alone {
        format!("{}:{second}", host_of(first))
    } else {
        second.to_owned()
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
    use pubgauge_driver::{Encryption, Scheme};

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
        let client = |endpoint, publishes, subscribes| ClientSpec {
            endpoint,
            publishes,
            subscribes,
            ..ClientSpec::default()
        };
        for (publishes, subscribes, side) in [
            (true, false, 0),
            (true, true, 0),
            (false, true, 1),
            (false, false, 0),
        ] {
            let place = |endpoint| place_of(&client(endpoint, publishes, subscribes), 4);
            assert_eq!(place(0).unwrap(), side);
            assert_eq!(place(1).unwrap(), 2 + side);
            for beyond in [2, usize::MAX] {
                let error = place(beyond).unwrap_err().to_string();
                assert!(error.contains("there are 2"), "{error}");
            }
        }
    }

    #[test]
    fn every_endpoint_has_two_places() {
        let protocol = Addressing {
            name: "MQTT",
            schemes: &[Scheme {
                name: "mqtt",
                also: &[],
                encryption: Encryption::None,
                usual_port: Some(1),
                path: None,
                websocket: None,
            }],
        };
        let read = |urls: &[&str]| {
            let urls: Vec<_> = urls.iter().map(|url| (*url).to_owned()).collect();
            plain_places(&urls, &protocol)
        };
        let ports: Vec<_> = read(&["mqtt://127.0.0.1:7,8", "mqtt://127.0.0.1:9"])
            .unwrap()
            .iter()
            .map(|e| e.addresses[0].port())
            .collect();
        assert_eq!(ports, [7, 8, 9, 9]);
        let none = read(&[]).unwrap_err();
        assert_eq!(
            none.hint.as_deref(),
            Some("give at least one, mqtt://HOST:PORT")
        );
        assert!(read(&["mqtt://127.0.0.1:7,x:y"]).is_err());
    }
}
