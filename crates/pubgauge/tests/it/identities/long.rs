//! Servers that start slowly.

use super::*;

const TOPIC: &str = "meters/meter-{device}";

/// Measures three devices and an application, each with its own user, on a system of this file.
fn measure(place: &Place, name: &str) {
    let secrets = tempfile::tempdir().unwrap();
    for who in ["meter-0", "meter-1", "meter-2", "board"] {
        std::fs::write(secrets.path().join(who), format!("{SECRET}-{who}")).unwrap();
    }
    let identities = |wrong: &str| {
        format!(
            r#"identities.publishers = {{ client-id = "dev-{{n}}", user = "meter-{{n}}", password-file = "{0}/{{user}}" }}
               identities.subscribers = {{ user = "board{wrong}", password-file = "{0}/board" }}"#,
            secrets.path().display()
        )
    };
    for (out, wrong) in [("own", ""), ("wrong", "er")] {
        let study = study(3, TOPIC, "meters/meter-0", "50/s-each", &identities(wrong));
        place.write(&format!("{out}.toml"), study);
        let file = format!("{out}.toml");
        let args = [
            "run",
            &file,
            "--systems",
            "mine",
            "--on",
            name,
            "--out",
            out,
        ];
        let done = place.run(&args);
        place.is_clean();
        assert!(!(done.out + &done.err).contains(SECRET));
    }
    for out in ["own", "wrong"] {
        assert!(!place.results(out).to_string().contains(SECRET));
    }
    adds_up(&place.trial("own"));
    is_broken(
        &place.trial("wrong"),
        &[
            "user boarder",
            "the user name or the password of this client is wrong",
        ],
    );
}

#[test]
fn users_of_rabbitmq() {
    // SHA-256 of a salt and the password "Xy7-hunt-USER", both behind the salt; guest's is "guest".
    let users = [
        ("guest", "ChssPYAaTQZZ9LqZoubibmBISBv5Jrti0dvv7EYbjXWpS0+X"),
        (
            "meter-0",
            "ChssPZfBTXHp5jhBAmOfhKHccwFktoV7QUzSlW7VcJcsQkfw",
        ),
        (
            "meter-1",
            "ChssPfe1mc9/VJkd+w8SsoFAAPJ4I5R4ZXoF2b5GkZym0P6z",
        ),
        (
            "meter-2",
            "ChssPcWU+HEp8DgeuSkHXxmdstukNjLX84tFrOvTD38lqRF9",
        ),
        ("board", "ChssPZ7PE1o7FtvVtDS8ny0JJuGvG/FroRn9dzGP8jcgxGze"),
    ];
    let user = |(name, hash): &(&str, &str)| {
        format!(
            r#"{{"name":"{name}","password_hash":"{hash}","hashing_algorithm":"rabbit_password_hashing_sha256","tags":""}}"#
        )
    };
    let permission = |(name, _): &(&str, &str)| {
        format!(r#"{{"user":"{name}","vhost":"/","configure":".*","write":".*","read":".*"}}"#)
    };
    let joined = |each: &dyn Fn(&(&str, &str)) -> String| {
        users.iter().map(each).collect::<Vec<_>>().join(",")
    };
    let definitions = format!(
        r#"{{"rabbit_version":"3.10.8","vhosts":[{{"name":"/"}}],"users":[{}],"permissions":[{}]}}"#,
        joined(&user),
        joined(&permission)
    );
    let file = format!(
        "[[files]]\npath = \"definitions.json\"\ncontent = '''{definitions}'''\n\n[[files]]\npath = \"enabled_plugins\""
    );
    let place = Place::new();
    place.system(
        "rabbitmq",
        "users",
        &[
            (
                "loopback_users = none\n",
                "loopback_users = none\nload_definitions = {dir}/definitions.json\n",
            ),
            ("[[files]]\npath = \"enabled_plugins\"", &file),
        ],
    );
    measure(&place, "users");
}

#[test]
fn accounts_of_ejabberd() {
    let account = |user: &str| {
        format!(
            r#"ok = ejabberd_auth:try_register(<<\"{user}\">>, <<\"localhost\">>, <<\"{SECRET}-{user}\">>), "#
        )
    };
    let accounts: String = ["meter-0", "meter-1", "meter-2", "board"]
        .map(account)
        .concat();
    let place = Place::new();
    place.system(
        "ejabberd",
        "accounts",
        &[(
            "io:format(\\\"accounts made",
            &format!("{accounts}io:format(\\\"accounts made"),
        )],
    );
    measure(&place, "accounts");
}
