//! Configuration of a collector: as it is written, and checked.

mod again;
mod brokers;
mod canary;
mod checked;
mod direct;
mod faults;
mod file;
mod files;
mod filters;
mod kafka;
mod payload;
mod upload;

pub use again::read_again;
pub use brokers::Broker;
pub use canary::Canary;
pub use checked::{Config, Given, read};
pub use direct::Direct;
pub use faults::Fault;
pub use file::{
    AccessFile, Acknowledge, BrokerFile, CanaryFile, CollectFile, ColumnFile, ColumnType,
    Compression, FilesFile, Form, KafkaFile, KafkaTlsFile, LogFile, Mechanism, Mqtt, PayloadFile,
    PayloadForm, SaslFile, SessionFile, TimeUnit, TlsFile, UploadFile,
};
pub use kafka::{Kafka, Sasl};
pub use upload::Upload;

use pubgauge_quantities::schema::published;

/// The JSON Schema of collect files.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(CollectFile);
    schema.insert("title".into(), "pubgauge collect file".into());
    published(schema, "pubgauge-collect").to_value()
}
