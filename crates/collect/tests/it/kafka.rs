//! Kafka in place of a data folder: a message is acknowledged once Kafka has acknowledged it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use pubgauge_collect::{Notice, config};
use pubgauge_driver::Reliability;
use pubgauge_testing::sequence;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::UnknownTopicHandling;

use crate::common::*;

/// A broker of Kafka that is its own controller (KRaft), with its folder.
struct Kafka {
    address: String,
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
        let ports = [0; 2].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, controller] = ports.map(|listener| listener.local_addr().unwrap().port());
        let place = tempfile::tempdir().unwrap();
        let logs = place.path().join("logs");
        let settings = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\nlisteners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\ncontroller.listener.names=CONTROLLER\nlog.dirs={}\nauto.create.topics.enable=false\noffsets.topic.replication.factor=1\n",
            logs.display()
        );
        let file = place.path().join("server.properties");
        std::fs::write(&file, settings).unwrap();
        let mut format = java("kafka.tools.StorageTool");
        let format = format
            .args(["format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"])
            .arg(&file);
        let formatted = format.output().expect("this test needs Java");
        assert!(
            formatted.status.success(),
            "{}",
            String::from_utf8_lossy(&formatted.stderr)
        );
        let mut kafka = Kafka {
            address: format!("127.0.0.1:{port}"),
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

/// What is stored in each partition: MQTT topic and number.
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
        let config = config::read(&file, &config::Given::default()).unwrap();
        let collector = pubgauge_collect::Collector::new(
            config,
            pubgauge_collect::names::system(),
            std::sync::Arc::new(|_| {}),
        )
        .unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let error = collector
            .run(pubgauge_collect::EndsAfter::default(), &stop)
            .unwrap_err();
        assert!(
            error.what.ends_with("/fleet: there is no such topic"),
            "{error}"
        );
    }
}
