//! Kafka, with the crate `rskafka`: a message is a record, and is confirmed once all in-sync replicas have it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use rskafka::BackoffConfig;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::super::Shared;
use super::Sink;
use crate::config::{self, Mechanism};
use crate::message::{Message, Messages};
use crate::store::Failure;

/// Longest time until an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// Bytes of records that are sent in one batch: brokers take 1 MiB unless they are told otherwise.
const BATCH_BYTES: usize = 900_000;

/// Records of one partition that are sent together.
struct Batch {
    partition: usize,
    records: Vec<Record>,
    bytes: usize,
}

/// Puts commits into a topic of Kafka.
pub struct Kafka {
    runtime: Runtime,
    partitions: Vec<PartitionClient>,
    place: String,
    /// Batches that are not confirmed yet.
    batches: VecDeque<Batch>,
}

impl Kafka {
    /// Connects, and finds the topic.
    ///
    /// # Errors
    /// If no broker answers, or there is no such topic.
    pub fn begin(kafka: &config::Kafka, name: &str) -> Result<Kafka, Failure> {
        let place = format!("kafka://{}/{}", kafka.brokers.join(","), kafka.topic);
        let failed = |what: String| Failure {
            what: format!("{place}: {what}"),
            is_missing: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let connected = runtime.block_on(async { timeout(ANSWER, connect(kafka, name)).await });
        let partitions = connected
            .map_err(|_| failed(unanswered()))
            .and_then(|done| done.map_err(failed))?;
        Ok(Kafka {
            runtime,
            partitions,
            place,
            batches: VecDeque::new(),
        })
    }

    /// The partition of an MQTT topic: always the same, so that its messages keep their order.
    fn partition(&self, topic: &str) -> usize {
        crc32fast::hash(topic.as_bytes()) as usize % self.partitions.len()
    }
}

fn unanswered() -> String {
    format!("no answer within {} s", ANSWER.as_secs())
}

/// Tries for some seconds, then tells why it was in vain: well before there is said to be no answer.
fn backoff() -> BackoffConfig {
    BackoffConfig {
        max_backoff: Duration::from_secs(2),
        deadline: Some(Duration::from_secs(5)),
        ..BackoffConfig::default()
    }
}

fn login(sasl: &config::Sasl) -> SaslConfig {
    let credentials = Credentials::new(sasl.user.clone(), sasl.password.reveal().to_owned());
    match sasl.mechanism {
        Mechanism::Plain => SaslConfig::Plain(credentials),
        Mechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
        Mechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
    }
}

async fn connect(kafka: &config::Kafka, name: &str) -> Result<Vec<PartitionClient>, String> {
    let mut builder = ClientBuilder::new(kafka.brokers.clone())
        .client_id(name)
        .backoff_config(backoff());
    if let Some(tls) = &kafka.tls {
        let tls = pubgauge_net::tls::configure(tls).map_err(|error| error.to_string())?;
        builder = builder.tls_config(tls);
    }
    if let Some(sasl) = &kafka.sasl {
        builder = builder.sasl_config(login(sasl));
    }
    let client: Client = builder.build().await.map_err(|error| error.to_string())?;
    let topics = client
        .list_topics()
        .await
        .map_err(|error| error.to_string())?;
    let Some(topic) = topics.into_iter().find(|topic| topic.name == kafka.topic) else {
        return Err("there is no such topic".into());
    };
    let mut partitions = Vec::new();
    for partition in topic.partitions {
        let unknown = UnknownTopicHandling::Error;
        let one = client
            .partition_client(topic.name.clone(), partition, unknown)
            .await;
        partitions.push(one.map_err(|error| error.to_string())?);
    }
    if partitions.is_empty() {
        return Err("the topic has no partition".into());
    }
    Ok(partitions)
}

/// A message as a record: its topic is the key, and the rest stands in headers.
fn record(message: &Message<'_>) -> Record {
    let (content_type, properties) = crate::files::properties_of(message.properties);
    let mut headers = BTreeMap::from([
        ("broker".to_owned(), message.broker.as_bytes().to_vec()),
        (
            "qos".to_owned(),
            (message.qos as u8).to_string().into_bytes(),
        ),
        ("retain".to_owned(), message.retain.to_string().into_bytes()),
        ("dup".to_owned(), message.dup.to_string().into_bytes()),
        (
            "received_ns".to_owned(),
            message.received_ns.to_string().into_bytes(),
        ),
    ]);
    headers.extend(content_type.map(|text| ("content_type".to_owned(), text.as_bytes().to_vec())));
    headers.extend(properties.map(|all| {
        (
            "properties".to_owned(),
            serde_json::Value::Object(all).to_string().into_bytes(),
        )
    }));
    Record {
        key: Some(message.topic.as_bytes().to_vec()),
        value: Some(message.payload.to_vec()),
        headers,
        timestamp: rskafka::chrono::DateTime::from_timestamp_nanos(message.received_ns),
    }
}

impl Sink for Kafka {
    fn description(&self) -> String {
        self.place.clone()
    }

    fn take(&mut self, frames: &Bytes, mark: u32, _: &Shared) -> Result<(), String> {
        // The open batch of each partition.
        let mut open: BTreeMap<usize, Batch> = BTreeMap::new();
        for message in Messages::new(mark, frames) {
            let partition = self.partition(message.topic);
            let record = record(&message);
            let bytes = record.approximate_size();
            let batch = open.entry(partition).or_insert(Batch {
                partition,
                records: Vec::new(),
                bytes: 0,
            });
            if !batch.records.is_empty() && batch.bytes + bytes > BATCH_BYTES {
                let records = std::mem::take(&mut batch.records);
                self.batches.push_back(Batch {
                    partition,
                    records,
                    bytes: batch.bytes,
                });
                batch.bytes = 0;
            }
            batch.records.push(record);
            batch.bytes += bytes;
        }
        self.batches.extend(open.into_values());
        Ok(())
    }

    fn deliver(&mut self, shared: &Shared) -> Result<(), Failure> {
        while let Some(batch) = self.batches.front() {
            let produced = self.partitions[batch.partition]
                .produce(batch.records.clone(), Compression::NoCompression);
            let produced = self
                .runtime
                .block_on(async { timeout(ANSWER, produced).await });
            let produced = produced
                .map_err(|_| unanswered())
                .and_then(|done| done.map_err(|error| error.to_string()));
            produced.map_err(|what| Failure {
                what: format!("{}: {what}", self.place),
                is_missing: false,
            })?;
            shared.status.uploaded_bytes.add(batch.bytes as u64);
            self.batches.pop_front();
        }
        Ok(())
    }
}
