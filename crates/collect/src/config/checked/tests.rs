use super::*;

fn config(text: &str) -> Result<Config, StudyError> {
    let file = StrictFile::parse("collect.toml", text, &COLLECT)?;
    check(&file, Path::new("/etc/x"), &Given::default())
}

const SMALLEST: &str =
    "brokers = [\"mqtt://broker.example\"]\ntopics = [\"meters/#\"]\nto = \"data\"\n";

#[test]
fn the_smallest_file_has_the_usual_values() {
    let config = config(SMALLEST).unwrap();
    assert_eq!(config.to, Path::new("/etc/x/data"));
    assert_eq!(config.filters, ["meters/#"]);
    assert_eq!(config.qos, QoS::AtLeastOnce);
    assert_eq!(config.commit_every, 5 * MS);
    assert_eq!(config.limits.reserve_bytes, 256 << 20);
    assert_eq!(
        (config.brokers[0].host.as_str(), config.brokers[0].port),
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
}
