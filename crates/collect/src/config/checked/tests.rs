use super::*;

fn config(text: &str) -> Result<Config, InvalidInput> {
    let file = StrictFile::parse("collect.toml", text, &COLLECT)?;
    check(&file, Path::new("/etc/x"), &Given::default())
}

const SMALLEST: &str =
    "brokers = [\"mqtt://broker.example\"]\ntopics = [\"meters/#\"]\nto = \"data\"\n";

#[test]
fn the_smallest_file_has_the_usual_values() {
    let config = config(SMALLEST).unwrap();
    assert_eq!(config.to.as_deref(), Some(Path::new("/etc/x/data")));
    assert_eq!(config.filters, ["meters/#"]);
    assert_eq!(config.qos, QoS::AtLeastOnce);
    assert_eq!(config.commit_every, 5 * MS);
    assert_eq!(config.limits.reserve_bytes, 256 << 20);
    assert_eq!(
        (
            config.brokers[0].endpoint.host.as_str(),
            config.brokers[0].endpoint.port
        ),
        ("broker.example", 1883)
    );
}

#[test]
fn a_group_shares_each_filter() {
    let config = config(&format!("{SMALLEST}group = \"g\"\nmqtt = \"3.1.1\"\n")).unwrap();
    assert_eq!(config.filters, ["$share/g/meters/#"]);
    assert_eq!(config.version, Version::V311);
}

#[test]
fn only_parquet_is_compressed() {
    let form = |form: &str| {
        config(&format!(
            "{SMALLEST}form = {form:?}\ncompression = \"zstd\"\n"
        ))
    };
    let layout = form("parquet").unwrap().layout;
    assert_eq!(layout.compression, crate::config::Compression::Zstd);
    let told = form("ndjson").unwrap_err().to_string();
    assert!(told.contains("5:15: only Parquet is compressed"), "{told}");
}

#[test]
fn files_lie_by_date_and_hour_or_as_is_asked_for() {
    use crate::files::{Part, Partitioning};
    let of = |more: &str| {
        config(&format!("{SMALLEST}{more}\n"))
            .unwrap()
            .layout
            .partitioning
    };
    assert_eq!(of(""), Partitioning::default());
    assert_eq!(of("[files]"), Partitioning::default());
    let by_topic = of(
        "files = { partition = [\"site={topic level 2}\", \"date\"], event-time = \"/meta/ts\", event-time-unit = \"ms\", event-time-within = \"48h\", most-partitions = 7 }",
    );
    let site = Part::TopicLevel {
        name: "site".into(),
        nth: 1,
    };
    assert_eq!((by_topic.parts, by_topic.most), (vec![site, Part::Date], 7));
    let event_time = by_topic.event_time.unwrap();
    assert_eq!(event_time.steps, ["meta", "ts"]);
    assert_eq!(event_time.within, 48 * HOUR);
}

#[test]
fn each_fault_of_partitions_is_told_with_its_place() {
    let columns =
        "[payload]\nform = \"json\"\ncolumns = [{ name = \"site\", type = \"string\" }]\n";
    for (files, line, words) in [
        ("partition = []", 5, "files lie in one to 4 folders"),
        (
            "partition = [\"hour\"]",
            5,
            "an hour alone is one of every day",
        ),
        (
            "partition = [\"date\", \"date\"]",
            5,
            "`date` is given twice",
        ),
        (
            "partition = [\"date\", \"a={topic level 1}\", \"A={topic level 2}\"]",
            5,
            "`A` is given twice",
        ),
        ("partition = [\"month\"]", 5, "`month` is no partition"),
        ("partition = [\"a={topic level 0}\"]", 5, "is no partition"),
        ("partition = [\"a={topic}\"]", 5, "is no partition"),
        (
            "partition = [\"../a={topic level 1}\"]",
            5,
            "`../a` cannot be a partition's name",
        ),
        (
            "partition = [\"1a={topic level 1}\"]",
            5,
            "`1a` cannot be a partition's name",
        ),
        (
            "partition = [\"topic={topic level 1}\"]",
            5,
            "each file has a column `topic` already",
        ),
        (
            "partition = [\"Site={topic level 1}\"]",
            5,
            "each file has a column `Site` already",
        ),
        ("most-partitions = 0", 5, "0 partitions cannot be"),
        ("most-partitions = 501", 5, "501 partitions cannot be"),
        ("event-time = \"ts\"", 5, "`ts` is no JSON Pointer"),
        ("event-time-unit = \"ms\"", 5, "there is no `event-time`"),
        ("event-time-within = \"1h\"", 5, "there is no `event-time`"),
        (
            "event-time = \"/ts\"\npartition = [\"a={topic level 1}\"]",
            5,
            "no partition is of a time",
        ),
        (
            "event-time = \"/ts\"\nevent-time-within = \"1ms\"",
            6,
            "this takes 1s to 876000h",
        ),
    ] {
        let text = format!("{SMALLEST}[files]\n{files}\n{columns}");
        let told = config(&text).unwrap_err().problems;
        assert_eq!(told.len(), 1, "{files}: {told:?}");
        assert_eq!(told[0].line, Some(line), "{files}: {told:?}");
        assert!(told[0].message.contains(words), "{files}: {told:?}");
    }
}

#[test]
fn kafka_has_no_folders() {
    let brokers = SMALLEST.replace("to = \"data\"\n", "");
    let kafka = "[kafka]\nbrokers = [\"k:9092\"]\ntopic = \"fleet\"\n";
    let told = config(&format!("{brokers}{kafka}[files]\n")).unwrap_err();
    let words = "6:1: Kafka has no folders of files";
    assert!(told.to_string().contains(words), "{told}");
}

#[test]
fn a_canary_is_subscribed_to_as_the_messages_are() {
    let of = |more: &str| config(&format!("{SMALLEST}{more}")).unwrap();
    assert_eq!(of("").canary, None);
    let usual = of("[canary]\n").canary.unwrap();
    assert_eq!(usual.every, 10 * SECOND);
    assert_eq!(usual.filter_of("c", None), "collect-canary/c");
    let own = of("canary = { every = \"100ms\", topic = \"a/b\" }\n");
    let own = own.canary.unwrap();
    assert_eq!(own.filter_of("c", Some("g")), "$share/g/a/b/c");
    assert_eq!(own.topic_of("c"), "a/b/c");
}

#[test]
fn each_fault_is_told_with_its_line_and_column() {
    let of = |line: &str| config(&format!("{SMALLEST}{line}\n")).unwrap_err().problems;
    for (line, column, words) in [
        ("qos = 3", 7, "QoS is 0, 1 or 2"),
        ("qos = \"one\"", 7, "expected a whole number"),
        ("group = \"a/b\"", 9, "cannot be a group's name"),
        ("name = \"a b\"", 8, "cannot be a collector's name"),
        ("mqtt = \"4\"", 8, "`4` is not possible here"),
        ("form = \"parket\"", 8, "did you mean `parquet`?"),
        ("topic = \"a\"", 1, "did you mean `topics`?"),
        ("log = { commit-every = \"5\" }", 24, "lacks its unit"),
        (
            "log = { commit-every = \"1h\" }",
            24,
            "this takes 100us to 10s",
        ),
        ("log = { segment = \"1kB\" }", 19, "this takes 1MiB to 1GiB"),
        ("tls = { cert = \"c.pem\" }", 7, "needs its private key"),
        ("tls = { ca = \"c\", insecure = true }", 30, "leave out one"),
        ("password-file = \"/nonexistent\"", 17, "cannot be read"),
        ("canary = { every = \"1ms\" }", 20, "this takes 100ms to 1h"),
        (
            "canary = { topic = \"a/#\" }",
            20,
            "cannot be the beginning",
        ),
        ("canary = { topic = \"$a\" }", 20, "cannot be the beginning"),
        ("payload = { form = \"jsn\" }", 20, "did you mean `json`?"),
        ("payload = { form = \"json\" }", 11, "at least one column"),
        (
            "payload = { keep = false }",
            20,
            "raw payloads are always kept",
        ),
        (
            "payload = { columns = [{ name = \"a\", type = \"string\" }] }",
            11,
            "levels of their topics",
        ),
        (
            "payload = { columns = [{ name = \"a\", type = \"string\", topic-level = 0 }] }",
            69,
            "count from 1",
        ),
        (
            "payload = { columns = [{ name = \"a\", type = \"double\", topic-level = 1 }] }",
            69,
            "a level of the topic is text",
        ),
        (
            "payload = { columns = [{ name = \"a\", type = \"string\", topic-level = 1, path = \"/a\" }] }",
            69,
            "or a value of the payload",
        ),
        (
            "payload = { form = \"json\", columns = [{ name = \"a\", type = \"string\", topics = \"a/#/b\" }] }",
            79,
            "#",
        ),
        ("compression = \"gzip\"", 15, "`gzip` is not possible here"),
        (
            "session = { largest-message = \"1B\" }",
            31,
            "this takes 1KiB to",
        ),
        (
            "payload = { form = \"json\", columns = [{ name = \"Topic\", path = \"/topic\", type = \"string\" }] }",
            48,
            "has a column `Topic` already",
        ),
        (
            "payload = { form = \"cbor\", columns = [{ name = \"a\", path = \"a\", type = \"string\" }] }",
            60,
            "no JSON Pointer",
        ),
        (
            "payload = { form = \"json\", columns = [{ name = \"a b\", path = \"/a\", type = \"string\" }] }",
            48,
            "cannot be a column's name",
        ),
        (
            "payload = { form = \"json\", columns = [{ name = \"a\", type = \"int64\", unit = \"ms\" }] }",
            76,
            "only timestamps",
        ),
    ] {
        let problems = of(line);
        assert_eq!(problems.len(), 1, "{line}: {problems:?}");
        let at = (problems[0].line, problems[0].column);
        assert_eq!(at, (Some(4), Some(column)), "{line}: {}", problems[0]);
        let text = problems[0].to_string();
        assert!(text.contains(words), "{line}: {text}");
    }
}

#[test]
fn each_fault_of_a_broker_with_a_table_is_told_with_its_place() {
    let table = |key: &str| {
        config(&format!(
            "{SMALLEST}[[broker]]\naddress = \"mqtts://own.example\"\n{key}\n"
        ))
    };
    let own = table("password-variable = \"CARGO_PKG_NAME\"").unwrap();
    let [listed, own] = &own.brokers[..] else {
        panic!("{own:?}");
    };
    assert!(listed.password.is_none());
    let password = own.password.as_ref().unwrap();
    assert_eq!(password.reveal(), env!("CARGO_PKG_NAME"));
    assert!(!format!("{own:?}").contains(env!("CARGO_PKG_NAME")));
    for (key, place, words) in [
        (
            "password-file = \"/nonexistent\"",
            (6, 17),
            "the password of mqtts://own.example cannot be read from /nonexistent",
        ),
        (
            "password-variable = \"PUBGAUGE_NOT_THERE\"",
            (6, 21),
            "the password of mqtts://own.example: the environment has no text in `PUBGAUGE_NOT_THERE`",
        ),
        (
            "password-file = \"p\"\npassword-variable = \"P\"",
            (7, 21),
            "leave out one of them",
        ),
        (
            "tls = { cert = \"c.pem\" }",
            (6, 7),
            "needs its private key",
        ),
        (
            "tls = { ca = \"c.pem\", insecure = true }",
            (6, 34),
            "leave out one of them",
        ),
        ("password = \"p\"", (6, 1), "did you mean `password-file`"),
        (
            "[[broker]]\naddress = \"mqtt://own.example:8883\"",
            (7, 11),
            "is given twice",
        ),
        (
            "[[broker]]\naddress = \"mqtt://other.example\"\ntls = {}",
            (8, 7),
            "is not encrypted",
        ),
        (
            "[[broker]]\naddress = \"mqtt://broker.example\"",
            (7, 11),
            "is given twice",
        ),
    ] {
        let problems = table(key).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{key}: {problems:?}");
        let at = (problems[0].line.unwrap(), problems[0].column.unwrap());
        let told = problems[0].to_string();
        assert!(at == place && told.contains(words), "{key}: {told}");
    }
}

#[test]
fn addresses_of_websocket_have_ports_of_http_and_a_path() {
    let of = |url: &str| config(&SMALLEST.replace("mqtt://broker.example", url));
    for (url, port, asked) in [
        ("ws://h", 80, "ws://h/mqtt"),
        ("wss://u@h/", 443, "wss://h/"),
        ("wss://h:8084/a%20b?c=d", 8084, "wss://h:8084/a%20b?c=d"),
    ] {
        let broker = of(url).unwrap().brokers.remove(0);
        assert_eq!(
            (broker.endpoint.port, &*broker.endpoint.websocket.unwrap()),
            (port, asked)
        );
    }
    assert_eq!(of("mqtts://h").unwrap().brokers[0].endpoint.websocket, None);
    for (url, words) in [
        ("ws://h/a b", "its path cannot be asked for"),
        ("ws://u:secret@h/a", "1:12: an MQTT endpoint has a password"),
        (
            "http://h/a",
            "or wss://[USER@]HOST[:PORT][/PATH] (TLS, port 443)",
        ),
    ] {
        let told = of(url).unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn what_is_for_the_list_of_brokers_is_not_for_those_with_tables() {
    let text = "topics = [\"t\"]\nto = \"data\"\nmqtt = \"3.1.1\"\npassword-file = \"/dev/null\"\ntls = { ca = \"c\" }\n[[broker]]\naddress = \"mqtts://h\"\npassword-variable = \"CARGO_PKG_NAME\"\n";
    let problems = config(text).unwrap_err().problems;
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    for (told, words) in told.iter().zip([
        "4:17: `password-file` is for `brokers`, of which there are none",
        "5:7: `tls` is for `brokers`",
        "7:11: the password of mqtts://h needs a user",
    ]) {
        assert!(told.contains(words), "{told}");
    }
    let problems = config("topics = [\"t\"]\nto = \"data\"\n").unwrap_err();
    assert!(problems.to_string().contains("at least one broker"));
}

#[test]
fn all_faults_are_told_at_once() {
    let text = "brokers = [\"mqtt://a\", \"amqp://b\", \"mqtt://a:1883\"]\ntopics = [\"a#\", \"b\", \"b\"]\nto = \"\"\n";
    let problems = config(text).unwrap_err().problems;
    let places: Vec<_> = problems
        .iter()
        .map(|p| (p.line.unwrap(), p.column.unwrap()))
        .collect();
    assert_eq!(
        places,
        [(1, 24), (1, 36), (2, 11), (2, 22), (3, 6)],
        "{problems:#?}"
    );
}

#[test]
fn the_schema_takes_the_smallest_file_and_no_unknown_key() {
    let schema = crate::config::schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let file = serde_json::json!({"brokers": ["mqtt://h"], "topics": ["#"], "to": "data"});
    assert!(validator.is_valid(&file));
    let mut wrong = file.clone();
    wrong["topic"] = "#".into();
    assert!(!validator.is_valid(&wrong));
    let with_table =
        serde_json::json!({"broker": [{"address": "mqtt://h"}], "topics": ["#"], "to": "data"});
    assert!(validator.is_valid(&with_table));
    let none = serde_json::json!({"topics": ["#"], "to": "data"});
    assert!(!validator.is_valid(&none));
}

#[cfg(not(feature = "upload"))]
#[test]
fn without_object_storage_that_is_told_where_it_is_asked_for() {
    let problems = config(&format!("{SMALLEST}[upload]\nto = \"s3://b/p\"\n"))
        .unwrap_err()
        .problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let text = problems[0].to_string();
    assert!(
        text.contains("built without object storage") && text.contains("`upload`"),
        "{text}"
    );
    assert_eq!((problems[0].line, problems[0].column), (Some(5), Some(6)));
}

#[cfg(feature = "upload")]
mod upload {
    use super::*;
    use crate::config::Direct;

    const MOVED: &str = "[upload]\nto = \"s3://fleet/raw\"\n";

    #[test]
    fn files_are_moved_to_a_place() {
        let config = config(&format!("{SMALLEST}{MOVED}endpoint = \"http://h:9000\"\n")).unwrap();
        let upload = config.upload.unwrap();
        assert_eq!(upload.place.url, "s3://fleet/raw");
        assert_eq!(upload.place.endpoint.as_deref(), Some("http://h:9000"));
        assert_eq!((upload.direct, config.commit_bytes), (None, 4 << 20));
    }

    #[test]
    fn without_a_folder_messages_are_gathered_for_objects() {
        let text = format!(
            "brokers = [\"mqtt://h\"]\ntopics = [\"t\"]\nname = \"c\"\n{MOVED}acknowledge = \"uploaded\"\nrate = \"2k/s\"\n"
        );
        let config = config(&text).unwrap();
        let direct = Direct {
            every: SECOND,
            bytes: 16 << 20,
            per_s: Some(2000.0),
        };
        assert_eq!(config.upload.unwrap().direct, Some(direct));
        assert_eq!((config.to, config.commit_bytes), (None, 16 << 20));
    }

    #[test]
    fn each_fault_of_an_upload_is_told_with_its_line() {
        for (text, line, words) in [
            (
                format!("{SMALLEST}[upload]\nto = \"/mnt/x\"\n"),
                5,
                "it is no address",
            ),
            (
                format!("{SMALLEST}[upload]\nto = \"ftp://h/x\"\n"),
                5,
                "s3://BUCKET/PREFIX",
            ),
            (
                format!("{SMALLEST}[upload]\nto = \"s3://key:secret@b/p\"\n"),
                5,
                "credentials have no place",
            ),
            (
                format!("{SMALLEST}{MOVED}endpoint = \"h:9000\"\n"),
                6,
                "http://HOST:PORT",
            ),
            (
                format!("{SMALLEST}{MOVED}credentials-file = \"/nonexistent\"\n"),
                6,
                "cannot be read",
            ),
            (
                format!(
                    "{SMALLEST}[upload]\nto = \"az://fleet/raw\"\ncredentials-file = \"/nonexistent\"\n"
                ),
                6,
                "cannot be read",
            ),
            (
                format!("{SMALLEST}{MOVED}every = \"1s\"\n"),
                6,
                "is for acknowledge = \"uploaded\"",
            ),
            (
                format!("{SMALLEST}{MOVED}acknowledge = \"stored\"\n"),
                6,
                "`stored` is not possible here",
            ),
        ] {
            let problems = config(&text).unwrap_err().problems;
            assert_eq!(problems.len(), 1, "{text}: {problems:?}");
            let told = problems[0].to_string();
            assert!(told.contains(words), "{told}");
            assert_eq!(problems[0].line, Some(line), "{told}");
        }
    }

    #[test]
    fn what_cannot_open_a_store_is_told_before_anything_is_collected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.env");
        for (to, line, words) in [
            (
                "az://fleet/raw",
                "AZURE_STORAGE_ACCOUNT_NAME=fleet\nAZURE_STORAGE_ACCOUNT_KEY=no-such-key",
                "AZURE_STORAGE_ACCOUNT_KEY open it",
            ),
            (
                "gs://fleet/raw",
                "GOOGLE_SERVICE_ACCOUNT=/nonexistent/account.json",
                "GOOGLE_SERVICE_ACCOUNT names the file",
            ),
        ] {
            std::fs::write(&path, line).unwrap();
            let text = format!("{SMALLEST}[upload]\nto = \"{to}\"\ncredentials-file = {path:?}\n");
            let problems = config(&text).unwrap_err().problems;
            assert_eq!(problems.len(), 1, "{problems:?}");
            let told = problems[0].to_string();
            assert!(
                told.contains(words) && !told.contains("no-such-key"),
                "{told}"
            );
            assert_eq!(problems[0].line, Some(5), "{told}");
        }
    }

    #[test]
    fn what_does_not_go_without_a_folder_is_told_at_once() {
        let text = format!(
            "{SMALLEST}mqtt = \"3.1.1\"\nlog = {{ segment = \"2MiB\" }}\n{MOVED}acknowledge = \"uploaded\"\nevery = \"60s\"\nrate = \"2k/s\"\n"
        );
        let problems = config(&text).unwrap_err().problems;
        let mut told: Vec<_> = problems
            .iter()
            .map(|problem| (problem.line.unwrap(), problem.to_string()))
            .collect();
        told.sort();
        let lines: Vec<_> = told.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 4, 5, 8, 10], "{told:#?}");
        for (told, words) in told.iter().zip([
            "nothing is stored here",
            "needs MQTT 5",
            "there is no log",
            "needs a `name`",
            "120000 unacknowledged",
        ]) {
            assert!(told.1.contains(words), "{told:?}");
        }
    }
}

#[cfg(feature = "kafka")]
#[test]
fn each_fault_of_kafka_is_told_with_its_line() {
    let text = "brokers = [\"mqtt://h\"]\ntopics = [\"t\"]\nname = \"c\"\n[kafka]\nbrokers = [\"k:9092\"]\ntopic = \"fleet\"\n";
    let kafka = config(text).unwrap().kafka.unwrap();
    assert_eq!((kafka.direct.every, kafka.direct.per_s), (10 * MS, None));
    for (old, new, line, words) in [
        ("k:9092", "k", 5, "expected HOST:PORT"),
        ("[\"k:9092\"]", "[]", 5, "at least one broker"),
        ("fleet", "a b", 6, "cannot be a topic"),
        (
            "name = \"c\"",
            "name = \"c\"\nto = \"data\"",
            4,
            "nothing is stored here",
        ),
        (
            "topic = \"fleet\"",
            "topic = \"fleet\"\n[payload]\nform = \"raw\"",
            7,
            "no columns",
        ),
        (
            "topic = \"fleet\"",
            "topic = \"fleet\"\ntls = { key = \"k\" }",
            7,
            "needs its private key",
        ),
        (
            "\"k:9092\"]",
            "\"[::1]:9092\"]\ntls = {}",
            5,
            "give its IPv4 address",
        ),
        (
            "topic = \"fleet\"",
            "topic = \"fleet\"\n[kafka.sasl]\nmechanism = \"PLAIN\"\nuser = \"u\"\npassword-file = \"/dev/null\"",
            8,
            "PLAIN sends the password",
        ),
        (
            "topic = \"fleet\"",
            "topic = \"fleet\"\n[kafka.sasl]\nuser = \"u\"\npassword-file = \"not-there\"",
            9,
            "the password cannot be read from",
        ),
    ] {
        let problems = config(&text.replace(old, new)).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{new}: {problems:?}");
        let told = problems[0].to_string();
        assert!(
            told.contains(words) && problems[0].line == Some(line),
            "{told}"
        );
    }
}
