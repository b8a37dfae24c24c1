//! The reference broker: MQTT 3.1.1 and 5 in memory, for measuring against, and
//! **no broker for production**.
mod broker;
mod conn;
mod connect;
mod deliver;
mod encode;
mod message;
mod options;
mod outbuf;
mod publish;
mod retained;
mod routes;
mod server;
mod session;
mod subscribe;
mod sys;
mod table;
mod timers;
mod topic;
mod tree;
mod window;

pub use options::{BrokerError, Counters, Credential, Options};
pub use server::{run, serve};
