//! Errors of wrong system files; and those built in are right.

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
        (
            "[ready]",
            "[install.maven]\nfolder = \"a/b\"\njars = [\"g:a:1\"]\n[ready]",
            "x.toml:10:1: `a/b` is no name of a folder in the cache",
        ),
        (
            "[ready]",
            "[install.maven]\nfolder = \"x\"\n[ready]",
            "x.toml:9:1: nothing says what Maven is to fetch",
        ),
        (
            "[ready]",
            "[install.maven]\nfolder = \"x\"\njars = [\"g:a:1\", \"g:a:1;rm\"]\n[ready]",
            "x.toml:11:19: `g:a:1;rm` is no jar\n  hint: GROUP:ARTIFACT:VERSION",
        ),
        (
            "[ready]",
            "[install.maven]\nfolder = \"x\"\narchives = [\"g:a:1:zip\"]\n[ready]",
            "`g:a:1:zip` is no archive",
        ),
        (
            "[ready]",
            "[install.maven]\nfolder = \"x\"\njars = [\"g:a:1\"]\ncompile = [\"A.java\"]\n[ready]",
            "x.toml:12:1: compile names `A.java`, which is none of the files",
        ),
        (
            "[ready]",
            "[install.maven]\nfolder = \"x\"\njars = [\"g:a:1\"]\nfiles = [{ path = \"../A\", content = \"\" }]\n[ready]",
            "`../A` would not lie in the folder",
        ),
        (
            "[find]",
            "[deviations]\nlast-vlaue = \"lost\"\n[find]",
            "x.toml:5:1: `last-vlaue` is the name of no capability, and of no check\n  hint: did you mean `last-value`?",
        ),
        (
            "[find]",
            "[limits]\nfiles-per-client = nan\n[find]",
            "x.toml:5:1: files-per-client = NaN is not a number from 1 to 100",
        ),
        (
            "driver = \"mqtt\"",
            "driver = \"mqtt\"\nkind = \"unavailable\"",
            "nothing says why the system is unavailable",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\njsn = \"/a\"\n[ready]",
            "x.toml:12:1: there is no key `jsn` here\n  hint: did you mean `json`?",
        ),
        (
            "[ready]",
            "[counters]\ntime-out-s = 1\n[ready]",
            "x.toml:9:1: [counters] names no count",
        ),
        (
            "[ready]",
            "[counters.published]\njson = \"/a\"\n[ready]",
            "x.toml:9:2: [counters.published] names a place in an answer, but nothing is asked\n  hint: json and metric need http",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\ntopic = \"a\"\n[ready]",
            "x.toml:11:2: [counters.published] names a topic, but [counters] is read over http",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\njson = \"/a\"\nmetric = \"b\"\n[ready]",
            "[counters.published] does not say in one way where the count stands\n  hint: one of topic",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\nrouted-only = true\n[ready]",
            "[counters.published] does not say in one way",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\njson = \"a.b\"\n[ready]",
            "x.toml:12:9: `a.b` is no JSON Pointer",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\nmetric = \"a{b=\\\"c\\\"}\"\n[ready]",
            "is not the name of a metric\n  hint: the name alone",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\njson = \"/a\"\nlabels = { b = \"c\" }\n[ready]",
            "x.toml:13:1: [counters.published] has labels without a metric",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"https://127.0.0.1:{port}/x\"\n[counters.published]\njson = \"/a\"\n[ready]",
            "x.toml:10:9: `https://127.0.0.1:{port}/x` cannot be asked for counts: it does not begin with http://",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:0/x\"\n[counters.published]\njson = \"/a\"\n[ready]",
            "a port is a number from 1 to 65535",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{prot}/x\"\n[counters.published]\njson = \"/a\"\n[ready]",
            "the placeholder {prot} stands for nothing\n  hint: did you mean `port`?",
        ),
        (
            "[ready]",
            "[counters.published]\ntopic = \"$SYS/{a}\"\n[ready]",
            "the placeholder {a} stands for nothing",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\nupdate = \"u\"\n[counters.published]\njson = \"/a\"\n[ready]",
            "x.toml:11:1: update is a topic, and the counts are read over http",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\npassword = \"p\"\n[counters.published]\njson = \"/a\"\n[ready]",
            "username and password in [counters] are those of http",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\ntime-out-s = -1\n[counters.published]\njson = \"/a\"\n[ready]",
            "x.toml:11:1: time-out-s = -1 is not a number of seconds",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\njson = \"/a\"\nnot-at = { last-valu = \"x\" }\n[ready]",
            "x.toml:13:12: `last-valu` is the name of no capability that settings ask for\n  hint: did you mean `last-value`?",
        ),
        (
            "[ready]",
            "[counters]\nhttp = \"http://127.0.0.1:{port}/x\"\n[counters.published]\njson = \"/a\"\nnot-at = { group = \"x\" }\n[ready]",
            "`group` is the name of no capability that settings ask for",
        ),
        (
            "tcp = [\"port\"]",
            "tcp = [\"port\"]\nprobe = \"subscribe\"\n[counters.published]\ntopic = \"a\"",
            "x.toml:11:1: counts on topics begin at 0 when the system starts, but the probe `subscribe` publishes",
        ),
        (
            "[find]",
            "kind = \"library\"\n[counters.published]\ntopic = \"a\"\n[find]",
            "x.toml:5:1: [counters] is of use only where pubgauge starts the system",
        ),
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
fn what_servers_must_be_allowed_to_open() {
    let catalog = Catalog::load(&[]).unwrap();
    let files = |name: &str, clients| catalog.get(name).unwrap().limits.files_for(clients);
    // As measured: the most that connected with limits of 400 and 1000 open files.
    assert_eq!(files("mosquitto", 32), 40);
    assert_eq!(files("nats", 385), 400);
    assert_eq!(
        (files("rabbitmq", 270), files("rabbitmq", 810)),
        (400, 1000)
    );
    assert_eq!(files("reference-broker", 1000), 1008);
}

#[test]
fn a_file_that_is_no_system_file_at_all_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let contents: [(&[u8], &str); 3] = [
        (b"", "missing field `name`"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (&vec![b'#'; 2 << 20], "longer than 1 MiB"),
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
    let names: Vec<&str> = catalog.systems().map(|s| s.name.as_str()).collect();
    // Each file of systems/ holds the system of its name.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems");
    let files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected: Vec<&str> = files
        .iter()
        .map(|file| file.strip_suffix(".toml").unwrap())
        .collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(names.len() > 10);
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
    assert_eq!(
        catalog.systems().count(),
        Catalog::load(&[]).unwrap().systems().count()
    );
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
    let list = catalog.list(&Testbed::with_program("/bin/true"));
    let of = |name: &str| list.iter().find(|listing| listing.name == name).unwrap();
    let mosquitto = of("mosquitto");
    // A listing starts nothing, not even the command that tells a version.
    assert!(mosquitto.found && mosquitto.version.is_none() && mosquitto.reason.is_none());
    assert_eq!(
        mosquitto.variants,
        [
            "memory",
            "defaults",
            "persistent",
            "persistent-1s",
            "persistent-on-changes",
            "queues-100",
            "queues-unlimited",
            "tls",
        ]
    );
    assert!(of("zeromq-direct").found && of("reference-broker").found);
    let x = of("x");
    assert!(!x.found && x.path.is_none());
    assert!(x.reason.as_ref().unwrap().contains("no-such-x on PATH"));
    assert_eq!(x.install[0].commands, ["apt-get install -y x"]);
    assert!(x.notes[0].contains("starts a service"));
    let json = serde_json::to_value(&list).unwrap();
    let names: Vec<_> = json
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["name"])
        .collect();
    assert!(names.iter().any(|name| *name == "x"));
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
    let page = include_str!("../../../../docs/add-a-broker.md");
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(examples.len(), 5);
    let around = RIGHT.replace("[\"port\"]\n[ready]", "[\"port\", \"monitor\"]\n[ready]");
    for example in examples {
        let is_part = example.starts_with("[counters]") || example.starts_with("[[files]]");
        let whole = if is_part {
            format!("{around}{example}")
        } else {
            example.to_owned()
        };
        SystemFile::parse(&whole, "docs/add-a-broker.md").unwrap();
    }
}

/// Systems that cannot be had are listed with the reason, and those that run elsewhere with the way to them.
#[test]
fn systems_that_are_not_here_say_why() {
    let catalog = Catalog::load(&[]).unwrap();
    let testbed = Testbed::with_program("/bin/true");
    let connext = testbed.find(&catalog.get("connext").unwrap());
    let error = connext.unwrap_err().to_string();
    assert!(
        error.contains("it cannot be had\n  hint: RTI's library loads a licence"),
        "{error}"
    );
    let jorammq = testbed.find(&catalog.get("jorammq").unwrap());
    let error = jorammq.unwrap_err().to_string();
    assert!(
        error.contains("PUBGAUGE_JORAMMQ=mqtt://HOST:PORT"),
        "{error}"
    );
    let list = catalog.list(&testbed);
    for name in ["connext", "jorammq"] {
        let row = list.iter().find(|row| row.name == name).unwrap();
        assert!(
            !row.found && row.reason.is_some() && !row.notes.is_empty(),
            "{row:?}"
        );
    }
}

#[test]
fn a_variant_may_have_counters_of_its_own() {
    let counters = r#"default-variant = "a"
[find]
"#;
    let rest = r#"
[counters.published]
topic = "all"
[variants.a]
[variants.b.counters]
http = "http://127.0.0.1:{port}"
[variants.b.counters.delivered]
json = "/n"
"#;
    let text = RIGHT.replace("[find]\n", counters) + rest;
    let system = SystemFile::parse(&text, "x.toml").unwrap();
    let of = |variant| system.variant(Some(variant)).unwrap().counters.unwrap();
    assert_eq!(of("a").published.unwrap().topic.as_deref(), Some("all"));
    assert_eq!(of("b").published, None);
    assert_eq!(of("b").delivered.unwrap().json.as_deref(), Some("/n"));
}

/// A file with one thing that can be tuned, and with `{turbo}` in its command.
fn with_tunable(tunable: &str) -> String {
    let right = RIGHT.replace("\"{dir}/x.conf\"", "\"--turbo\", \"{turbo}\"");
    format!("{right}[[tunable]]\n{tunable}\n")
}

#[test]
fn what_can_be_tuned_is_checked_with_its_place() {
    let turbo = "option = \"turbo\"\nabout = \"x\"\nvalues = [1, 2]\ndefault = 0\n";
    SystemFile::parse(&with_tunable(turbo), "x.toml").unwrap();
    let with_another = |more: &str| format!("{turbo}[[tunable]]\n{more}");
    let cases = [
        (
            turbo.replace("default = 0\n", ""),
            "x.toml:12:10: the option `turbo` has no default\n  hint: add default = ...",
        ),
        (
            turbo.replace("values = [1, 2]", "valeus = [1, 2]"),
            "x.toml:14:1: there is no key `valeus` here\n  hint: did you mean `values`?",
        ),
        (
            turbo.replace("values = [1, 2]", "values = [1, 1]"),
            "x.toml:12:10: `turbo` has the value 1 twice",
        ),
        (
            turbo.replace("values = [1, 2]\n", ""),
            "`turbo` has neither a list of values nor a range",
        ),
        (
            turbo.replace("values = [1, 2]", "values = [[1]]"),
            "`turbo`: [1] is no text, number or yes and no",
        ),
        (
            turbo.replace("\"x\"", "\"\""),
            "`turbo` says nothing about itself",
        ),
        (
            with_another("option = \"fast\"\nabout = \"x\"\nvalues = [1]\ndefault = 0"),
            "x.toml:17:10: the option `fast` changes nothing: {fast} stands nowhere",
        ),
        (
            with_another("setting = \"in-fligt\"\nabout = \"x\"\nvalues = [1]"),
            "x.toml:17:11: `in-fligt` is no setting\n  hint: did you mean `in-flight`?",
        ),
        (
            with_another("about = \"x\"\nvalues = [1]"),
            "a [[tunable]] names either a setting or an option",
        ),
        (
            with_another("setting = \"reliability\"\nabout = \"x\"\nvalues = [\"at-most-once\"]"),
            "x.toml:17:11: `reliability` is a promise, and nothing says what another value gives up",
        ),
        (
            with_another(
                "setting = \"in-flight\"\nabout = \"x\"\nfrom = 0\nto = 9\nscale = \"log\"\ndefault = 5",
            ),
            "a logarithmic range begins above 0, not at 0",
        ),
        (
            with_another("setting = \"in-flight\"\nabout = \"x\"\nfrom = 9\nto = 1\ndefault = 5"),
            "from = 9 is not below to = 1",
        ),
        (
            with_another("setting = \"in-flight\"\nabout = \"x\"\nfrom = 1\nto = 9\ndefault = 20"),
            "x.toml:17:11: `in-flight`: its default does not lie from 1 to 9",
        ),
        (
            with_another(
                "setting = \"in-flight\"\nabout = \"x\"\nfrom = 1\nto = 9\nscale = \"lgo\"\ndefault = 2",
            ),
            "`lgo` is not possible here\n  hint: did you mean `log`?",
        ),
    ];
    for (tunable, expected) in cases {
        let error = error(&with_tunable(&tunable));
        assert!(
            error.contains(expected),
            "{tunable}\n{error}\nnot: {expected}"
        );
    }
    // An option that is no option of the file stands for nothing.
    let error = error(&RIGHT.replace("{dir}", "{turbo}"));
    assert!(
        error.contains("the placeholder {turbo} stands for nothing"),
        "{error}"
    );
}

#[test]
fn options_become_lines_of_configuration() {
    let catalog = Catalog::load(&[]).unwrap();
    let mosquitto = catalog.get("mosquitto").unwrap();
    let in_variant = |name: &str| mosquitto.variant(Some(name)).unwrap();
    let lines = in_variant("memory").option_lines("max-inflight", &20.into());
    assert_eq!(lines.unwrap(), ["max_inflight_messages 20"]);
    // One variant has the server's own limits, and no such line.
    let error = in_variant("defaults").option_lines("max-inflight", &20.into());
    assert!(error.unwrap_err().starts_with("it has no such option"));
    for wrong in [
        serde_json::json!("many"),
        serde_json::json!(true),
        serde_json::json!("0\nuser root"),
    ] {
        let error = in_variant("memory").option_lines("max-inflight", &wrong);
        assert_eq!(error.unwrap_err(), "expected a number");
    }
    let rabbitmq = catalog.get("rabbitmq").unwrap().variant(None).unwrap();
    let line = |option: &str, value: &str| rabbitmq.option_lines(option, &value.into()).unwrap();
    assert_eq!(
        line("busy-wait", "short"),
        ["RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD=short"]
    );
    assert!(
        line("flow-credit", "200, 100")[0].contains("{credit_flow_default_credit, { 200, 100 }}")
    );
}
