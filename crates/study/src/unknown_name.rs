//! Messages for names that nothing has.

use std::borrow::Borrow;
use std::net::Ipv6Addr;

use pubgauge_driver::is_host;
use pubgauge_quantities::spelling::did_you_mean;

/// The message for a name in a study that is, for example, `no workload` of it.
pub(crate) fn not_of_study<S: AsRef<str> + Borrow<str>>(
    name: &str,
    what: &str,
    names: &[S],
) -> String {
    let near = did_you_mean(name, names);
    let there = names.join(", ");
    format!("`{name}` is {what} of this study{near}; there is {there}")
}

/// Message and hint for a name that no system has.
pub(crate) fn no_such_system(name: &str, known: &[String]) -> (String, String) {
    let lists = "`pubgauge systems` lists them; a server that runs already is named by its address, for example \
                 pubgauge run --on mqtt://localhost:1883; one that pubgauge is to start, by a file (docs/add-a-broker.md)"
        .to_owned();
    if let Some((system, variant)) = name.split_once(':')
        && known.iter().any(|k| k == system)
    {
        let own = known.iter().filter_map(|k| k.strip_prefix(system));
        let own: Vec<_> = own.filter_map(|k| k.strip_prefix(':')).collect();
        let message = format!("`{system}` has no variant `{variant}`");
        return if own.is_empty() {
            (format!("{message}: it has none"), lists)
        } else {
            (message, format!("its variants are `{}`", own.join("`, `")))
        };
    }
    if is_host(name) {
        let message =
            format!("`{name}` is no system, and no address: it does not tell the protocol");
        let place = match name.parse::<Ipv6Addr>() {
            Ok(_) => format!("[{name}]"),
            Err(_) => name.to_owned(),
        };
        return (
            message,
            format!("write mqtt://{place}, amqp://{place}, nats://{place} or xmpp://{place}"),
        );
    }
    let near = did_you_mean(name, known);
    let message = format!("there is no system `{name}`{near}");
    (message, lists)
}
