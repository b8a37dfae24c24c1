//! Why connections end that should not.

use std::fmt::Display;

use pubgauge_driver::Failure;

use crate::client::Client;
use crate::shared::Shared;

/// A connection cannot go on: why, and what to do.
pub(crate) struct Broken(pub Failure);

impl Broken {
    pub fn of(client: &Client, shared: &Shared, what: impl Display) -> Broken {
        Broken(format!("{}: {what}", shared.shown(client)).into())
    }
}
