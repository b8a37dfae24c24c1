//! The end of a connection.

use pubgauge_driver::Failure;

/// Why a connection cannot go on.
#[derive(Debug)]
pub struct Broken {
    /// In words, with a hint.
    pub failure: Failure,
    /// The protocol's error code for the server, if the server is at fault.
    pub code: Option<u8>,
}

impl Broken {
    /// From words that name the endpoint and have a hint. The server is told nothing.
    pub fn new(failure: impl Into<Failure>) -> Broken {
        Broken {
            failure: failure.into(),
            code: None,
        }
    }
}
