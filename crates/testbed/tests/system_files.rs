//! What a system file that is wrong is answered with, and that the format carries the recipes of
//! servers of all kinds.

use pubgauge_testbed::{Catalog, CatalogError, SystemFile, Testbed};

const RIGHT: &str = r#"name = "x"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{port}"]
[find]
executables = ["x"]
[run]
command = ["{exe}", "{dir}/x.conf"]
ports = ["port"]
[ready]
tcp = ["port"]
"#;

fn error(text: &str) -> String {
    SystemFile::parse(text, "x.toml")
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn the_right_file_is_right() {
    SystemFile::parse(RIGHT, "x.toml").unwrap();
}

#[test]
fn each_mistake_is_named_with_its_place() {
    let cases = [
        (
            "driver =",
            "drivr =",
            "x.toml:2:1: there is no key `drivr` here\n  hint: did you mean `driver`?",
        ),
        (
            "ports =",
            "port =",
            "x.toml:8:1: there is no key `port` here\n  hint: did you mean `ports`?",
        ),
        ("driver = \"mqtt\"\n", "", "missing field `driver`"),
        (
            "driver = \"mqtt\"",
            "driver = 3",
            "x.toml:2:10: invalid type: integer `3`, expected a string",
        ),
        (
            "driver = \"mqtt\"",
            "driver = \"mqtt\"\nkind = \"proces\"",
            "x.toml:3:8: `proces` is not possible here\n  hint: did you mean `process`?",
        ),
        (
            "{dir}",
            "{dri}",
            "x.toml:7:22: the placeholder {dri} stands for nothing\n  hint: did you mean `dir`?; write {{dri}} for the text itself",
        ),
        (
            "tcp = [\"port\"]",
            "tcp = [\"prot\"]",
            "x.toml:10:1: ready.tcp names the port `prot`, which run.ports does not\n  hint: did you mean `port`?",
        ),
        (
            "tcp = [\"port\"]",
            "",
            "nothing says how to know that the system is ready",
        ),
        (
            "tcp = [\"port\"]",
            "tcp = [\"port\"]\ntime-out-s = -1",
            "x.toml:11:1: time-out-s = -1 is not a number of seconds",
        ),
        (
            "tcp = [\"port\"]",
            "tcp = [\"port\"]\ntime-out-s = nan",
            "time-out-s = NaN is not a number of seconds",
        ),
        (
            "name = \"x\"",
            "name = \"X Y\"",
            "x.toml:1:9: `X Y` cannot be the name of a system",
        ),
        (
            "executables = [\"x\"]",
            "",
            "nothing says where the executable is",
        ),
        (
            "command = [\"{exe}\", \"{dir}/x.conf\"]",
            "",
            "x.toml:6:1: there is no command to start the system with",
        ),
        (
            "[ready]",
            "[[files]]\npath = \"../y\"\ncontent = \"\"\n[ready]",
            "`../y` would not lie in the private folder",
        ),
        (
            "[ready]",
            "[variants.a]\n[ready]",
            "there are variants, but none is the default",
        ),
        (
            "[find]",
            "default-variant = \"b\"\n[variants.a]\n[find]",
            "x.toml:4:1: the default variant `b` is not described",
        ),
        (
            "[ready]",
            "[variants.a]\nfils = []\n[ready]",
            "there is no key `fils` here\n  hint: did you mean `files`?",
        ),
        (
            "[ready]",
            "[[hooks]]\nwhen = \"after-redy\"\ncommand = []\n[ready]",
            "did you mean `after-ready`?",
        ),
        (
            "ports = [\"port\"]",
            "ports = [\"port\", \"Port 2\"]",
            "x.toml:8:19: `Port 2` cannot be the name of a placeholder",
        ),
        (
            "ports = [\"port\"]",
            "ports = [\"port\"]\nfolders = [\"port\"]",
            "the placeholder {port} would stand for two things",
        ),
        (
            "[ready]",
            "[values]\na = \"{prot}\"\n[ready]",
            "x.toml:10:6: the placeholder {prot} stands for nothing\n  hint: did you mean `port`?",
        ),
        ("[find]", "[find", "x.toml:4:6: "),
    ];
    for (right, wrong, expected) in cases {
        assert!(RIGHT.contains(right), "{right}");
        let text = RIGHT.replacen(right, wrong, 1);
        let error = error(&text);
        assert!(
            error.contains(expected),
            "expected: {expected}\ngot: {error}\nfor:\n{text}"
        );
        assert!(error.starts_with("x.toml:"), "{error}");
    }
}

#[test]
fn a_file_that_is_no_system_file_at_all_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let contents: [(&[u8], &str); 3] = [
        (b"", "missing field `name`"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (&vec![b'#'; 2 << 20], "at most 1 MiB is sensible"),
    ];
    for (content, expected) in contents {
        std::fs::write(&path, content).unwrap();
        let error = Catalog::load(&[folder.path().to_owned()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && error.contains("x.toml:1:1"),
            "{error}"
        );
    }
    let absent = Catalog::load(&[folder.path().join("absent")]).unwrap_err();
    assert!(matches!(absent, CatalogError::Folder { .. }), "{absent}");
}

#[test]
fn names_are_looked_up_with_the_nearest_spelling() {
    let catalog = Catalog::load(&[]).unwrap();
    let names: Vec<&str> = catalog
        .systems()
        .map(|system| system.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "mosquitto",
            "reference-broker",
            "zeromq-direct",
            "zeromq-forwarder"
        ]
    );
    let error = catalog.get("mosquito").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no system `mosquito`\n  hint: did you mean `mosquitto`?"
    );
    let mosquitto = catalog.get("mosquitto").unwrap();
    let error = mosquitto
        .variant(Some("persistant"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "mosquitto has no variant `persistant`\n  hint: did you mean `persistent`?"
    );
    assert_eq!(
        catalog.get("mqtt://h").unwrap().endpoints,
        ["mqtt://h:1883"]
    );
}

#[test]
fn a_users_file_replaces_the_one_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let text = RIGHT.replace(
        "name = \"x\"",
        "name = \"mosquitto\"\ndescription = \"mine\"",
    );
    std::fs::write(folder.path().join("any-name.toml"), text).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no system").unwrap();
    let catalog = Catalog::load(&[folder.path().to_owned()]).unwrap();
    assert_eq!(catalog.get("mosquitto").unwrap().description, "mine");
    assert_eq!(catalog.systems().count(), 4);
}

#[test]
fn the_listing_says_what_is_here_and_how_to_get_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let text = RIGHT.replace(
        "[run]",
        "[install]\napt = [\"apt-get install -y x\"]\nstarts-service = [\"apt\"]\n[run]",
    );
    std::fs::write(
        folder.path().join("x.toml"),
        text.replace("\"x\"]", "\"no-such-x\"]"),
    )
    .unwrap();
    let catalog = Catalog::load(&[folder.path().to_owned()]).unwrap();
    let list = catalog.list(std::path::Path::new("/bin/true"));
    let of = |name: &str| list.iter().find(|listing| listing.name == name).unwrap();
    let mosquitto = of("mosquitto");
    assert!(mosquitto.found && mosquitto.version.is_some() && mosquitto.reason.is_none());
    assert_eq!(mosquitto.variants, ["memory", "persistent"]);
    assert!(of("zeromq-direct").found && of("reference-broker").found);
    let x = of("x");
    assert!(!x.found && x.path.is_none());
    assert!(x.reason.as_ref().unwrap().contains("no-such-x on PATH"));
    assert_eq!(x.install[0].commands, ["apt-get install -y x"]);
    assert!(x.notes[0].contains("starts a service"));
    let json = serde_json::to_value(&list).unwrap();
    assert_eq!(json[0]["name"], "mosquitto");
}

#[test]
fn what_is_planned_knows_the_features_of_the_variant() {
    let mosquitto = Catalog::load(&[]).unwrap().get("mosquitto").unwrap();
    let target = Testbed::planned_target(&mosquitto, Some("persistent")).unwrap();
    assert!(target.features.contains(&"persistent".to_owned()));
}

/// Every example in the user's page is a right one.
#[test]
fn the_documented_examples_are_right() {
    let page = include_str!("../../../docs/add-a-broker.md");
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        SystemFile::parse(example, "docs/add-a-broker.md").unwrap();
    }
}

/// Servers with their traps: a Java home and class path, several ports and protocols, Erlang
/// braces, users made by a command after the start, a log file of its own.
#[test]
fn the_format_carries_servers_of_all_kinds() {
    let rabbitmq = r#"
name = "rabbitmq"
driver = "amqp"
default-variant = "amqp"
[find]
executables = ["/usr/lib/rabbitmq/bin/rabbitmq-server"]
[version]
path = "{server}"
pattern = "rabbitmq_server-{version}"
[find.paths]
server = ["/usr/lib/rabbitmq/lib/rabbitmq_server-*"]
[run]
command = ["{exe}"]
ports = ["amqp", "mqtt", "dist", "epmd"]
folders = ["mnesia", "log", "home"]
[run.env]
HOME = "{home}"
RABBITMQ_NODENAME = "n{amqp}@localhost"
RABBITMQ_DIST_PORT = "{dist}"
ERL_EPMD_PORT = "{epmd}"
RABBITMQ_MNESIA_BASE = "{mnesia}"
RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS = "-kernel inet_dist_use_interface {127,0,0,1}"
[[files]]
path = "enabled_plugins"
content = "[rabbitmq_management,rabbitmq_mqtt]."
[ready]
tcp = ["amqp", "mqtt"]
probe = "connect"
time-out-s = 60
[stop]
grace-s = 20
[login]
username = "guest"
password = "guest"
[variants.amqp]
endpoints = ["amqp://127.0.0.1:{amqp}"]
[variants.mqtt]
driver = "mqtt"
features = ["mqtt-3.1.1"]
endpoints = ["mqtt://127.0.0.1:{mqtt}"]
"#;
    let rabbitmq = SystemFile::parse(rabbitmq, "rabbitmq.toml").unwrap();
    let mqtt = rabbitmq.variant(Some("mqtt")).unwrap();
    assert_eq!(
        (mqtt.driver.as_str(), mqtt.endpoints[0].as_str()),
        ("mqtt", "mqtt://127.0.0.1:{mqtt}")
    );

    let ejabberd = r#"
name = "ejabberd"
driver = "xmpp"
endpoints = ["xmpp://127.0.0.1:{xmpp}"]
[find]
executables = ["erl"]
[run]
command = ["{exe}", "-sname", "ej{xmpp}@localhost", "-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-mnesia", "dir", "\"{spool}\"", "-s", "ejabberd", "-noinput"]
ports = ["xmpp", "epmd"]
folders = ["spool", "logs", "conf"]
env = { ERL_EPMD_PORT = "{epmd}", EJABBERD_CONFIG_PATH = "{conf}/ejabberd.yml", EJABBERD_LOG_PATH = "{logs}/ejabberd.log" }
[[files]]
path = "conf/ejabberd.yml"
content = """
listen:
  - port: {xmpp}
    module: ejabberd_c2s
modules:
  mod_disco: {}
"""
[[hooks]]
when = "after-ready"
command = ["{exe}", "-sname", "ctl{xmpp}@localhost", "-hidden", "-noinput", "-s", "ejabberd_ctl", "-extra", "ej{xmpp}@localhost", "register", "u1", "localhost", "pw"]
time-out-s = 30
[ready]
tcp = ["xmpp"]
log-file = "{logs}/ejabberd.log"
log-line = "started in the node"
time-out-s = 60
"#;
    SystemFile::parse(ejabberd, "ejabberd.toml").unwrap();

    let artemis = r#"
name = "artemis"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{port}"]
default-variant = "persistent"
[find]
executables = ["java"]
[find.paths]
home = ["{cache}/apache-artemis-*"]
[version]
path = "{home}"
pattern = "apache-artemis-{version}"
[install]
maven = [
  "mvn -q dependency:copy -Dartifact=org.apache.activemq:apache-artemis:2.40.0:tar.gz:bin -DoutputDirectory={cache}",
  "tar -C {cache} -xzf {cache}/apache-artemis-2.40.0-bin.tar.gz",
]
note = "needs Java 17"
[run]
command = ["{exe}", "-Xms256m", "-Xmx1g", "-XX:+UseG1GC", "-Djava.io.tmpdir={dir}/tmp", "-Dartemis.home={home}", "-Dartemis.instance={dir}", "-classpath", "{home}/lib/artemis-boot.jar", "org.apache.activemq.artemis.boot.Artemis", "run", "--", "xml:{dir}/etc/bootstrap.xml"]
ports = ["port"]
folders = ["data"]
[[files]]
path = "etc/bootstrap.xml"
content = "<broker><server configuration=\"file:{dir}/etc/broker.xml\"/></broker>"
[[files]]
path = "etc/broker.xml"
content = "<persistence-enabled>{persist}</persistence-enabled><acceptor>tcp://127.0.0.1:{port}?protocols=MQTT</acceptor>"
[ready]
tcp = ["port"]
time-out-s = 120
[stop]
grace-s = 20
[variants.memory]
values = { persist = "false" }
[variants.persistent]
values = { persist = "true" }
"#;
    let artemis = SystemFile::parse(artemis, "artemis.toml").unwrap();
    assert_eq!(
        artemis.variant(Some("memory")).unwrap().values["persist"],
        "false"
    );

    let nats = r#"
name = "nats"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{mqtt}"]
[find]
executables = ["{cache}/bin/nats-server", "nats-server"]
[run]
command = ["{exe}", "-c", "{dir}/nats.conf"]
ports = ["mqtt", "nats"]
[[files]]
path = "nats.conf"
content = """
listen: 127.0.0.1:{nats}
jetstream { store_dir: "{dir}/js", max_mem: 2GB }
mqtt { listen: "127.0.0.1:{mqtt}", max_ack_pending: 1000 }
"""
[ready]
log-line = "Server is ready"
tcp = ["mqtt"]
"#;
    SystemFile::parse(nats, "nats.toml").unwrap();

    let joram = r#"
name = "joram"
driver = "mqtt"
kind = "external"
description = "JoramMQ, where one is already running"
endpoints = ["mqtt://broker.example:1883"]
[login]
username = "ann"
"#;
    SystemFile::parse(joram, "joram.toml").unwrap();
}
