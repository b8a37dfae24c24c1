//! Tests that take long.

mod conformance;
mod java_brokers;
mod promises;
