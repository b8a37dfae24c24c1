//! Who clients are: what the study's words become, and what is said of those that cannot be.

use std::path::Path;

use pubgauge_study::{Plan, PlanOptions, Study};
use pubgauge_workload::{Device, Identity};

/// Plans two publishers and one subscriber with these identities, in this folder.
fn plan(identities: &str, folder: &Path) -> Result<Plan, String> {
    let text = format!(
        "name = \"t\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npattern = \"n-1\"\npublishers = 2\n\
         payload = \"64B\"\nrate = \"1/s\"\n{identities}"
    );
    let options = PlanOptions::with_systems(["mosquitto"]);
    let study = Study::parse("study.toml", &text, folder).and_then(|study| study.plan(&options));
    study.map_err(|error| error.to_string())
}

fn identities(plan: &Plan) -> Vec<Option<&Identity>> {
    let devices = plan.trials[0].workload.devices.iter();
    devices
        .map(|device: &Device| device.identity.as_deref())
        .collect()
}

fn parts(identity: Option<&Identity>) -> (&str, &str, &str) {
    let own = identity.expect("an identity");
    let password = own
        .password
        .as_ref()
        .map_or("", |password| password.reveal());
    let [id, user] = [&own.id, &own.user].map(|part| part.as_deref().unwrap_or_default());
    (id, user, password)
}

#[test]
fn patterns_and_lists_become_identities() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("u1.password", "hush 1\r\n");
    write("u0.password", "hush 0");
    write(
        "list.csv",
        "user,password-file\nann,u1.password\nbob,\ncyd,\n",
    );
    let by_pattern = "identities.publishers = { client-id = \"d{n}\", user = \"u{n}\", password-file = \"{user}.password\" }";
    let planned = plan(by_pattern, folder.path()).expect("sound");
    let found = identities(&planned);
    assert_eq!(parts(found[0]), ("d0", "u0", "hush 0"));
    assert_eq!(parts(found[1]), ("d1", "u1", "hush 1"));
    assert_eq!(found[2], None);
    assert_eq!(planned.trials[0].workload.devices[1].client_id(), "d1");
    for text in [
        format!("{planned:?}"),
        serde_json::to_string(&planned.trials[0].workload).unwrap(),
        planned.resolved.clone(),
    ] {
        assert!(!text.contains("hush"), "{text}");
    }
    // Run again and again on one system, each run marks the names that it made up, and no others.
    let marked = planned.trials[0].workload.marked("0a1b");
    assert_eq!(marked.devices[1].client_id(), "d1");
    assert!(marked.devices[2].client_id().ends_with("0a1b"));

    let listed = "identities.publishers = { from = \"list.csv\" }\nidentities.subscribers = { user = \"all\" }";
    let planned = plan(listed, folder.path()).expect("sound");
    let found = identities(&planned);
    assert_eq!(parts(found[0]), ("", "ann", "hush 1"));
    assert_eq!(parts(found[1]), ("", "bob", ""));
    assert_eq!(parts(found[2]), ("", "all", ""));
}

#[test]
fn certificates_are_found_by_name() {
    const CERT: &str = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n";
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("d0.pem", CERT);
    write("d0.key", KEY);
    write("d1.pem", &format!("{CERT}{KEY}"));
    for certs in [".", "d{n}", "{id}"] {
        let text =
            format!("identities.publishers = {{ client-id = \"d{{n}}\", certs = \"{certs}\" }}");
        let planned = plan(&text, folder.path()).expect("sound");
        for identity in identities(&planned)[..2].iter().flatten() {
            let pem = identity.certificate.as_ref().unwrap().pem.reveal();
            assert!(pem.contains(CERT) && pem.contains(KEY), "{pem}");
        }
    }
    std::fs::remove_file(folder.path().join("d0.key")).unwrap();
    let text = "identities.publishers = { client-id = \"d{n}\", certs = \".\" }";
    let error = plan(text, folder.path()).unwrap_err();
    assert!(
        error.contains("client 0 (id d0): there is no private key in"),
        "{error}"
    );
    assert!(error.contains("study.toml:9:55"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_where_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("short.csv", "id\nd0\n");
    write("twice.csv", "id\nd0\nd0\n");
    write("empty.csv", "id,user\nd0,u0\nd1,\n");
    write("bytes.csv", "id\nd0\nd1\n");
    write("blank", "\n");
    for (keys, said) in [
        (
            "client-id = \"d\"",
            "study.toml:9:39: 2 clients would have one identifier",
        ),
        ("user = \"\"", "`user` is empty"),
        ("", "this says nothing of who the clients are"),
        ("user = \"{m}\"", "`{m}` stands for nothing"),
        (
            "user = \"u\", password-file = \"p/{id}\"",
            "these clients have no client identifier",
        ),
        (
            "user = \"u\", password-file = \"blank\"",
            "there is no password in it",
        ),
        ("user = \"u\", password-file = \"missing\"", "No such file"),
        ("user = \"u\", password-file = \".\"", "is not a file"),
        (
            "user = \"u\", password-variable = \"PUBGAUGE_NO_SUCH\"",
            "`PUBGAUGE_NO_SUCH` is not set",
        ),
        (
            "user = \"../x\", password-file = \"{user}\"",
            "cannot be part of a file's name",
        ),
        (
            "password-file = \"a\", password-variable = \"b\"",
            "not from both",
        ),
        ("from = \"short.csv\", user = \"u\"", "exclude one another"),
        ("from = \"missing.csv\"", "No such file"),
        (
            "from = \"short.csv\"",
            "short.csv:3:1: the table ends after 1 row",
        ),
        (
            "from = \"twice.csv\"",
            "twice.csv:3:1: the id d0 is that of line 2",
        ),
        ("from = \"empty.csv\"", "empty.csv:3:4: the user is empty"),
        ("certs = \".\"", "neither client identifiers nor users"),
        ("password = \"x\"", "password-file"),
    ] {
        let error = plan(
            &format!("identities.publishers = {{ {keys} }}"),
            folder.path(),
        );
        let error = error.expect_err(keys);
        assert!(error.contains(said), "{keys}: {error}");
        assert!(error.contains("study.toml:9:"), "{keys}: {error}");
    }
    let both = "identities = { publishers = { client-id = \"d{n}\" }, subscribers = { client-id = \"d1\" } }";
    let error = plan(both, folder.path()).unwrap_err();
    assert!(
        error.contains("`d1` is that of connection `w-pub-1` and of `w-sub-0`"),
        "{error}"
    );
    let shared = "publish-as = \"x\"\nsubscribe-as = \"x\"\nidentities = { publishers = { user = \"a{n}\" }, subscribers = { user = \"b\" } }";
    let error = plan(shared, folder.path()).unwrap_err();
    assert!(
        error.contains("has two identities: user a0, and user b"),
        "{error}"
    );
}
