//! Why connections end that should not.

use pubgauge_amqp_codec::Method;
use pubgauge_driver::Failure;

use crate::client::{Client, State};
use crate::shared::Shared;

/// Why a connection cannot go on.
#[derive(Debug)]
pub(crate) struct Broken {
    /// In words, with a hint.
    pub failure: Failure,
}

impl Broken {
    pub fn protocol(endpoint: &str, what: impl std::fmt::Display) -> Self {
        Broken::told(format!(
            "{endpoint}: the server broke the protocol: {what}\n  hint: is it an AMQP 0-9-1 server?"
        ))
    }

    pub fn told(failure: impl Into<Failure>) -> Self {
        Broken {
            failure: failure.into(),
        }
    }
}

/// A method that the server may send, but not now.
pub(crate) fn unexpected(client: &Client, shared: &Shared, method: &Method<'_>) -> Broken {
    let when = match client.state {
        State::Greeting => "before connection.start",
        State::LoggingIn => "during the login",
        State::Entering => "before connection.open-ok",
        _ => "out of turn",
    };
    Broken::protocol(
        shared.endpoint(client),
        format!("a {} {when}", method.name()),
    )
}
