//! What is to be collected, from where, to where: as it is written, and checked.

mod again;
mod checked;
mod file;

pub use again::read_again;
pub use checked::{Config, Fault, Given, TlsFiles, read};
pub use file::{CollectFile, Form, LogFile, Mqtt, SessionFile, TlsFile};

/// The JSON Schema of collect files.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(CollectFile);
    schema.insert("title".into(), "pubgauge collect file".into());
    schema.to_value()
}
