//! Exchanges of clock readings over UDP.
//!
//! A question and its answer are packets of the same length, so that the server cannot amplify a flood.
//! Both are authenticated with a [`Key`] that the run made: packets without it, repeated ones and garbage
//! are counted and ignored. An attacker who delays packets makes the bound wider, never wrong.

mod client;
mod key;
mod packet;
mod reading;
mod server;
mod watch;

pub use client::{Client, ClientCounts};
pub use key::Key;
pub use reading::{Reading, monotonic};
pub use server::{Server, ServerCounts};
pub use watch::{Pace, Watch};
