//! What drivers with an epoll loop over TCP have in common: endpoints, non-blocking sockets, TLS,
//! output buffers, timers, and the loop itself ([`turns`]). No protocol is known here: what is
//! written and read between two system calls is the driver's.

pub mod endpoint;
pub mod login;
pub mod out;
pub mod pair;
pub mod socket;
pub mod timers;
pub mod tls;
pub mod turns;
