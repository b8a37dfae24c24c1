//! Kafka in place of a data folder, checked.

use std::path::{Path, PathBuf};

use pubgauge_driver::{Secret, Tls};

use super::direct::{Direct, nothing_here};
use super::faults::{Faults, MS, SECOND};
use super::file::{CollectFile, KafkaFile, Mechanism};

/// Kafka in place of a data folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Kafka {
    /// HOST:PORT.
    pub brokers: Vec<String>,
    pub topic: String,
    pub direct: Direct,
    /// Connections are encrypted, and each broker proves its name.
    pub tls: Option<Tls>,
    pub sasl: Option<Sasl>,
}

/// How the collector logs in.
#[derive(Clone, Debug)]
pub struct Sasl {
    pub mechanism: Mechanism,
    pub user: String,
    pub password: Secret,
}

impl PartialEq for Sasl {
    fn eq(&self, other: &Sasl) -> bool {
        let all = |sasl: &Sasl| (sasl.mechanism, sasl.user.clone());
        all(self) == all(other) && self.password.reveal() == other.password.reveal()
    }
}

pub(super) fn check_kafka(
    written: &CollectFile,
    folder: &Path,
    faults: &mut Faults,
) -> Option<Kafka> {
    let kafka = written.kafka.as_ref()?;
    if cfg!(not(feature = "kafka")) {
        let hint = "build it with the feature `kafka`";
        faults.add(
            &["kafka"],
            "this program is built without Kafka",
            Some(hint),
        );
    }
    if kafka.brokers.is_empty() {
        let hint = "such as \"localhost:9092\"";
        faults.add(
            &["kafka", "brokers"],
            "at least one broker is needed",
            Some(hint),
        );
    }
    for (nth, broker) in kafka.brokers.iter().enumerate() {
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        if !broker
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && is_port(port))
        {
            let message = format!("`{broker}` is no address of a broker");
            faults.add(
                &["kafka", "brokers", &nth.to_string()],
                message,
                Some("expected HOST:PORT"),
            );
        }
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let topic = &kafka.topic;
    if topic.is_empty()
        || topic.len() > 249
        || !topic.chars().all(fits)
        || topic.chars().all(|c| c == '.')
    {
        let hint = "expected up to 249 letters, digits, `-`, `_` and `.`";
        faults.add(
            &["kafka", "topic"],
            format!("`{topic}` cannot be a topic of Kafka"),
            Some(hint),
        );
    }
    let every = faults.span(&["kafka", "every"], kafka.every, 10 * MS, (MS, 10 * SECOND));
    let bytes = faults.size(
        &["kafka", "bytes"],
        kafka.bytes,
        4 << 20,
        (64 << 10, 64 << 20),
    );
    if written.upload.is_some() {
        let hint = "leave out one of them: nothing is a file here that could be moved";
        faults.add(
            &["upload"],
            "`upload` and `kafka` exclude each other",
            Some(hint),
        );
    }
    if written.payload.is_some() {
        let hint = "leave out `payload`";
        faults.add(
            &["payload"],
            "Kafka has no columns: payloads are sent as they are",
            Some(hint),
        );
    }
    nothing_here(written, "`kafka`", &["kafka"], faults);
    let tls = tls(kafka, folder, faults);
    let sasl = sasl(kafka, folder, faults);
    Some(Kafka {
        brokers: kafka.brokers.clone(),
        topic: kafka.topic.clone(),
        direct: Direct {
            every,
            bytes: bytes as usize,
            per_s: None,
        },
        tls,
        sasl,
    })
}

fn tls(kafka: &KafkaFile, folder: &Path, faults: &mut Faults) -> Option<Tls> {
    let tls = kafka.tls.as_ref()?;
    if tls.cert.is_some() != tls.key.is_some() {
        faults.add(
            &["kafka", "tls"],
            "a certificate needs its private key, and the other way round",
            Some("give `cert` and `key`, or neither"),
        );
    }
    for (nth, broker) in kafka.brokers.iter().enumerate() {
        // rskafka takes the name to be proved from in front of the first colon.
        if broker.starts_with('[') {
            faults.add(
                &["kafka", "brokers", &nth.to_string()],
                format!("`{broker}` cannot be proved by a certificate here"),
                Some("name the broker, or give its IPv4 address"),
            );
        }
    }
    let file = |path: &Option<PathBuf>| path.as_ref().map(|path| folder.join(path));
    Some(Tls {
        ca_pem: None,
        passphrase: pubgauge_driver::Secret::of_variable(pubgauge_driver::KEY_PASSPHRASE_VARIABLE),
        alpn: Vec::new(),
        ca_file: file(&tls.ca),
        cert_file: file(&tls.cert),
        key_file: file(&tls.key),
        ..Tls::default()
    })
}

fn sasl(kafka: &KafkaFile, folder: &Path, faults: &mut Faults) -> Option<Sasl> {
    let sasl = kafka.sasl.as_ref()?;
    let mechanism = sasl.mechanism.unwrap_or_default();
    if mechanism == Mechanism::Plain && kafka.tls.is_none() {
        faults.add(
            &["kafka", "sasl", "mechanism"],
            "PLAIN sends the password, and nothing hides it or proves who gets it",
            Some("add [kafka.tls], or take \"SCRAM-SHA-512\""),
        );
    }
    let file = folder.join(&sasl.password_file);
    let password = faults.secret(&["kafka", "sasl", "password-file"], "the password", &file)?;
    Some(Sasl {
        mechanism,
        user: sasl.user.clone(),
        password,
    })
}
