//! What drivers with an epoll loop of their own over TCP have in common: endpoints, non-blocking
//! sockets, TLS, output buffers, timers. No protocol is known here, and no loop: a driver keeps
//! its own, because what it does between two system calls is its protocol.

pub mod endpoint;
pub mod out;
pub mod pair;
pub mod socket;
pub mod timers;
pub mod tls;
