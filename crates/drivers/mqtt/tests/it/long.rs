//! What takes long.

mod java_brokers;
mod promises;
