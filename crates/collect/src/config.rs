//! What is to be collected, from where, to where: as it is written, and checked.

mod brokers;
mod checked;
mod faults;
mod file;

pub use checked::{Config, TlsFiles, read};
pub use faults::Fault;
pub use file::{CollectFile, Form, LogFile, Mqtt, SessionFile, TlsFile};

/// The JSON Schema of collect files.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(CollectFile);
    schema.insert("title".into(), "pubgauge collect file".into());
    schema.to_value()
}
