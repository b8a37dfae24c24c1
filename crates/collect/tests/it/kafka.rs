//! Kafka in place of a data folder: a message is acknowledged once Kafka has acknowledged it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use pubgauge_collect::{Notice, config};
use pubgauge_driver::Reliability;
use pubgauge_testing::certificates::Authority;
use pubgauge_testing::sequence;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::UnknownTopicHandling;

use crate::common::*;

/// The password of `collector`.
const PASSWORD: &str = "spring-9-tide";

/// A broker of Kafka that is its own controller (KRaft), with its folder. One address is for anybody; the other, for those
/// who show a certificate of the authority and log in.
struct Kafka {
    address: String,
    secured: String,
    authority: Authority,
    place: tempfile::TempDir,
    process: Option<Child>,
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The programs, which Maven fetches once for all tests and processes.
fn jars() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = own.join("../../target");
    let (jars, fetched) = (target.join("kafka"), target.join("kafka.fetched"));
    let lock = std::fs::File::create(target.join("kafka.lock")).unwrap();
    lock.lock().unwrap();
    if !fetched.is_file() {
        let mut mvn = Command::new("mvn");
        mvn.args(["--batch-mode", "--quiet"])
            .arg(format!(
                "--file={}",
                own.join("tests/kafka/pom.xml").display()
            ))
            .arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", jars.display()));
        let done = mvn
            .status()
            .expect("this test needs Maven (apt install maven)");
        assert!(done.success(), "Maven has not fetched Kafka");
        std::fs::File::create(fetched).unwrap();
    }
    jars
}

fn java(main: &str) -> Command {
    let mut java = Command::new("java");
    let path = format!("{}/*", jars().display());
    java.args([
        "-Xmx300m",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        &path,
        main,
    ]);
    java
}

impl Kafka {
    fn start() -> Kafka {
        let authority = Authority::new();
        authority.both_sides("collector");
        let pem = ["server.key", "server.pem"].map(|file| authority.file(file));
        let pem = pem.map(|file| std::fs::read_to_string(file).unwrap());
        std::fs::write(authority.file("keystore.pem"), pem.concat()).unwrap();
        let ports = [0; 3].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, secured, controller] =
            ports.map(|listener| listener.local_addr().unwrap().port());
        let place = tempfile::tempdir().unwrap();
        let logs = place.path().join("logs");
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\nlisteners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\nlog.dirs={}\nauto.create.topics.enable=false\noffsets.topic.replication.factor=1\n",
            logs.display()
        );
        let security = format!(
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT\nssl.keystore.type=PEM\nssl.keystore.location={}\nssl.truststore.type=PEM\nssl.truststore.location={}\nlistener.name.sasl_ssl.ssl.client.auth=required\nsasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\nlistener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_collector=\"{PASSWORD}\";\n",
            authority.file("keystore.pem").display(),
            authority.file("ca.pem").display()
        );
        let scram = ["256", "512"].map(|bits| {
            let module = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
            format!("listener.name.sasl_ssl.scram-sha-{bits}.sasl.jaas.config={module}\n")
        });
        let file = place.path().join("server.properties");
        std::fs::write(&file, settings + &security + &scram.concat()).unwrap();
        let mut format = java("kafka.tools.StorageTool");
        let format = format
            .args(["format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"])
            .arg(&file);
        for bits in ["256", "512"] {
            let user = format!("SCRAM-SHA-{bits}=[name=collector,password={PASSWORD}]");
            format.args(["--add-scram", &user]);
        }
        let formatted = format.output().expect("this test needs Java");
        assert!(
            formatted.status.success(),
            "{}",
            String::from_utf8_lossy(&formatted.stderr)
        );
        let mut kafka = Kafka {
            address: format!("127.0.0.1:{port}"),
            secured: format!("127.0.0.1:{secured}"),
            authority,
            place,
            process: None,
        };
        kafka.run();
        kafka
    }

    fn run(&mut self) {
        let mut server = java("kafka.Kafka");
        let server = server.arg(self.place.path().join("server.properties"));
        let out = std::fs::File::create(self.place.path().join("out")).unwrap();
        let server = server.stdout(out.try_clone().unwrap()).stderr(out);
        self.process = Some(server.spawn().unwrap());
        until("Kafka answers", || {
            std::net::TcpStream::connect(&self.address).is_ok()
        });
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn create(&self, topic: &str, partitions: i32) {
        runtime().block_on(async {
            let client = ClientBuilder::new(vec![self.address.clone()]).build().await;
            let controller = client.unwrap().controller_client().unwrap();
            let created = controller.create_topic(topic, partitions, 1, 30_000).await;
            created.unwrap();
        });
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Records of each partition: MQTT topic and number.
fn stored(kafka: &Kafka, topic: &str, partitions: i32) -> Vec<Vec<(String, u64)>> {
    let runtime = runtime();
    let client = runtime
        .block_on(ClientBuilder::new(vec![kafka.address.clone()]).build())
        .unwrap();
    let read = |partition: i32| {
        runtime.block_on(async {
            let unknown = UnknownTopicHandling::Error;
            let one = client
                .partition_client(topic, partition, unknown)
                .await
                .unwrap();
            let end = one
                .get_offset(rskafka::client::partition::OffsetAt::Latest)
                .await
                .unwrap();
            let (mut at, mut all) = (0, Vec::new());
            while at < end {
                let (records, _) = one.fetch_records(at, 1..1_000_000, 1000).await.unwrap();
                for one in records {
                    at = one.offset + 1;
                    let topic = String::from_utf8(one.record.key.unwrap()).unwrap();
                    assert_eq!(one.record.headers["qos"], b"1");
                    all.push((topic, sequence(&one.record.value.unwrap())));
                }
            }
            all
        })
    };
    (0..partitions).map(read).collect()
}

/// Takes Java and Maven.
mod long {
    use super::*;

    #[test]
    fn what_is_acknowledged_is_in_kafka_over_its_kill() {
        let place = tempfile::tempdir().unwrap();
        let broker = Broker::start();
        let mut kafka = Kafka::start();
        kafka.create("fleet", 3);
        let file = place.path().join("collect.toml");
        let text = format!(
            "brokers = [{:?}]\ntopics = [\"t/#\"]\nname = \"c\"\n[kafka]\nbrokers = [{:?}]\ntopic = \"fleet\"\n",
            broker.url(),
            kafka.address
        );
        std::fs::write(&file, text).unwrap();
        let collecting = Collecting::begin(config::read(&file, &config::Given::default()).unwrap());
        collecting.connected(1);
        let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
        let mut sent = BTreeSet::new();
        for topic in ["t/a", "t/b", "t/c", "t/d"] {
            sent.extend(publisher.publish(topic, 1000, 600));
        }
        collecting.stored(4000);
        until("all are acknowledged", || {
            collecting.status.acknowledged.get() == 4000
        });
        kafka.kill();
        sent.extend(publisher.publish("t/a", 500, 600));
        collecting.told("it stalls", |notice| {
            matches!(notice, Notice::Stalled { .. })
        });
        assert!(collecting.status.acknowledged.get() == 4000);
        kafka.run();
        collecting.told("it goes on", |notice| {
            matches!(notice, Notice::GoesOn { .. })
        });
        collecting.stored(4500);
        collecting.end();
        let partitions = stored(&kafka, "fleet", 3);
        let numbers: BTreeSet<u64> = partitions
            .iter()
            .flatten()
            .map(|(_, number)| *number)
            .collect();
        assert_eq!(numbers, sent);
        // Each MQTT topic is in one partition, in the order of its messages, but for what was sent twice.
        for topic in ["t/a", "t/b", "t/c", "t/d"] {
            let holding: Vec<_> = partitions
                .iter()
                .filter(|all| all.iter().any(|(of, _)| of == topic))
                .collect();
            assert_eq!(holding.len(), 1, "{topic}");
            let mut seen = BTreeSet::new();
            let own = holding[0]
                .iter()
                .filter(|(of, _)| of == topic)
                .map(|(_, number)| *number);
            let first: Vec<u64> = own.filter(|number| seen.insert(*number)).collect();
            assert!(first.is_sorted(), "{topic}");
        }
    }

    #[test]
    fn without_kafka_or_its_topic_it_does_not_begin() {
        let place = tempfile::tempdir().unwrap();
        let kafka = Kafka::start();
        let file = place.path().join("collect.toml");
        let text = format!(
            "brokers = [\"mqtt://127.0.0.1:1\"]\ntopics = [\"t/#\"]\nname = \"c\"\n[kafka]\nbrokers = [{:?}]\ntopic = \"fleet\"\n",
            kafka.address
        );
        std::fs::write(&file, text).unwrap();
        let told = why_it_does_not_begin(&file);
        assert!(told.ends_with("/fleet: there is no such topic"), "{told}");
    }

    fn why_it_does_not_begin(file: &Path) -> String {
        let config = config::read(file, &config::Given::default()).unwrap();
        let collector = pubgauge_collect::Collector::new(
            config,
            pubgauge_collect::names::system(),
            std::sync::Arc::new(|_| {}),
        )
        .unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let ends = pubgauge_collect::EndsAfter::default();
        let error = collector.run(ends, &stop).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
        error.what
    }

    #[test]
    fn with_certificates_and_each_mechanism_messages_are_in_kafka() {
        let place = tempfile::tempdir().unwrap();
        let broker = Broker::start();
        let kafka = Kafka::start();
        kafka.create("fleet", 1);
        std::fs::write(place.path().join("password"), format!("{PASSWORD}\n")).unwrap();
        std::fs::write(place.path().join("wrong"), "neap").unwrap();
        let stranger = Authority::new();
        let file = place.path().join("collect.toml");
        let write = |address: &str, password: &str, mechanism: &str, tls: &str| {
            let text = format!(
                "brokers = [{:?}]\ntopics = [\"t/#\"]\nname = \"c\"\n[kafka]\nbrokers = [{address:?}]\ntopic = \"fleet\"\n{tls}\n[kafka.sasl]\nuser = \"collector\"\npassword-file = {password:?}\nmechanism = {mechanism:?}\n",
                broker.url(),
            );
            std::fs::write(&file, text).unwrap();
        };
        let ca = |authority: &Authority| {
            let [pem, key] =
                ["collector.pem", "collector.key"].map(|one| kafka.authority.file(one));
            format!(
                "tls = {{ ca = {:?}, cert = {pem:?}, key = {key:?} }}",
                authority.file("ca.pem")
            )
        };
        let (ours, theirs) = (ca(&kafka.authority), ca(&stranger));
        let mut sent = BTreeSet::new();
        for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
            write(&kafka.secured, "password", mechanism, &ours);
            let config = config::read(&file, &config::Given::default()).unwrap();
            assert!(!format!("{config:?}").contains(PASSWORD));
            let collecting = Collecting::begin(config);
            collecting.connected(1);
            let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
            let topic = format!("t/{mechanism}");
            let numbers = publisher.publish(&topic, 100, 600);
            sent.extend(numbers.into_iter().map(|number| (topic.clone(), number)));
            collecting.stored(100);
            collecting.end();
            write(&kafka.secured, "wrong", mechanism, &ours);
            let told = why_it_does_not_begin(&file);
            assert!(told.contains("SaslAuthenticationFailed"), "{told}");
            assert!(!told.contains("neap"), "{told}");
        }
        let (plain, scram) = ("PLAIN", "SCRAM-SHA-512");
        write(&kafka.secured, "password", plain, &theirs);
        let told = why_it_does_not_begin(&file);
        assert!(told.contains("certificate"), "{told}");
        // Without a certificate of its own, and without encryption, it does not get in either.
        let without = format!("tls = {{ ca = {:?} }}", kafka.authority.file("ca.pem"));
        for tls in [without.as_str(), ""] {
            write(&kafka.secured, "password", scram, tls);
            let told = why_it_does_not_begin(&file);
            assert!(told.starts_with("kafka://127.0.0.1:"), "{told}");
        }
        let stored = stored(&kafka, "fleet", 1);
        assert_eq!(stored[0].len(), 300);
        assert_eq!(stored[0].iter().cloned().collect::<BTreeSet<_>>(), sent);
    }
}
