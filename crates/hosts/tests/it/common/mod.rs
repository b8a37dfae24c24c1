//! A run that lets workers in.
#![allow(dead_code)] // Each test file uses its own part.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pubgauge_hosts::{
    Address, Counts, Credentials, Dial, Identity, JoinError, Limits, Listener, Machine, Member,
    Options, Rank, join,
};

/// Long enough on a machine that others keep busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Run {
    pub credentials: Credentials,
    pub listener: Listener,
}

impl Run {
    pub fn of(size: u32) -> Run {
        Run::with(
            size,
            Limits {
                time: PATIENCE,
                ..Limits::default()
            },
        )
    }

    pub fn with(size: u32, limits: Limits) -> Run {
        let identity = Identity::generate().unwrap();
        let credentials = identity.credentials(size).unwrap();
        let options = Options {
            limits,
            ..Options::default()
        };
        let listener = Listener::start(&identity, &credentials, options).unwrap();
        Run {
            credentials,
            listener,
        }
    }

    pub fn dial(&self, rank: u32) -> Dial {
        dial(self.listener.address(), self.credentials.clone(), rank)
    }

    pub fn join(&self, rank: u32) -> Member {
        join(&self.dial(rank)).unwrap()
    }

    pub fn expect(&self, what: &str, fits: impl Fn(Counts) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !fits(self.listener.counts()) {
            assert!(
                Instant::now() < until,
                "{what}: {:?}",
                self.listener.counts()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// All of that, and nobody else.
    pub fn counts(&self, expected: Counts) {
        self.expect(&format!("{expected:?}"), |counts| counts == expected);
    }

    /// Whatever has been, a worker that is entitled to it is let in.
    pub fn still_lets_in(&self, rank: u32) {
        let member = self.join(rank);
        assert_eq!(member.welcome.size as usize, self.credentials.tokens.len());
    }
}

pub fn dial(address: SocketAddr, credentials: Credentials, rank: u32) -> Dial {
    Dial {
        conductor: Address {
            host: address.ip().to_string(),
            port: address.port(),
        },
        credentials,
        rank: Rank { rank, size: None },
        machine: Machine::here(),
        patience: PATIENCE,
    }
}

pub fn refused(result: Result<Member, JoinError>) -> String {
    match result {
        Err(error @ JoinError::Refused { .. }) => error.to_string(),
        other => panic!("a refusal was expected: {other:?}"),
    }
}
