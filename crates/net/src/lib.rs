//! The parts that drivers over TCP have in common: a whole fleet but for the protocol ([`fleet`]), and its
//! parts: endpoints, non-blocking sockets, TLS, output buffers, timers, advertised topics, and the loop
//! ([`event_loop`]). No protocol is known here: what is written and read between two system calls is the
//! driver's.

pub mod dotted_topics;
pub mod endpoint;
pub mod event_loop;
pub mod fleet;
pub mod login;
pub mod lookups;
pub mod out;
pub mod pair;
pub mod random;
pub mod socket;
pub mod timers;
pub mod tls;
pub mod topics;
pub mod waker;
pub mod websocket;
