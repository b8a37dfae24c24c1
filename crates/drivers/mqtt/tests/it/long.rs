//! What takes long.

mod conformance;
mod java_brokers;
mod promises;
