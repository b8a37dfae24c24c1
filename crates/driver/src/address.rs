//! Addresses of systems that run already, as users write them.

/// The addresses of a system with several brokers, joined by `+`: `mqtt://a:1883+mqtt://b:1883`; the
/// only one if there is one. A `+` that no scheme follows belongs to the address, such as that of a
/// user name.
pub fn addresses(joined: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = joined;
    while let Some(end) = first_end(rest) {
        found.push(&rest[..end]);
        rest = &rest[end + 1..];
    }
    found.push(rest);
    found
}

/// Where the first of several addresses ends.
fn first_end(joined: &str) -> Option<usize> {
    let begin = joined.find("://")? + "://".len();
    let plus = joined[begin..].match_indices('+').map(|(at, _)| begin + at);
    plus.into_iter().find(|at| {
        let scheme = joined[at + 1..].split_once("://");
        scheme.is_some_and(|(scheme, _)| {
            !scheme.is_empty()
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for (joined, each) in [
            ("mqtt://a", &["mqtt://a"][..]),
            (
                "mqtt://a:1+mqtt://b:2+mqtts://u@c",
                &["mqtt://a:1", "mqtt://b:2", "mqtts://u@c"],
            ),
            (
                "xmpp+starttls://a/d+xmpp+starttls://b/d",
                &["xmpp+starttls://a/d", "xmpp+starttls://b/d"],
            ),
            ("mqtt://u+tag@a+mqtt://b", &["mqtt://u+tag@a", "mqtt://b"]),
            (
                "mqtt://a:1,2+mqtt://b:1,2",
                &["mqtt://a:1,2", "mqtt://b:1,2"],
            ),
            ("zmq-forwarder+tcp://a:1,2", &["zmq-forwarder+tcp://a:1,2"]),
            ("mosquitto", &["mosquitto"]),
        ] {
            assert_eq!(addresses(joined), each, "{joined}");
        }
    }
}
