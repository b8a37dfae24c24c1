//! Why a login failed: no user name and password, only one of them, or a wrong one.

use pubgauge_driver::PASSWORD_VARIABLE;

/// The parts of a login that a client had to give.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub username: bool,
    pub password: bool,
    /// Some of it is the client's own, as the study says.
    pub own: bool,
}

/// Why the login was refused at `endpoint` (`SCHEME://HOST:PORT`), and what to do, by what the
/// client had to give. Neither holds the user name or the password.
pub fn refused(endpoint: &str, given: Given) -> (&'static str, String) {
    let Given {
        username,
        password,
        own,
    } = given;
    if own {
        return refused_one(username, password);
    }
    let (scheme, place) = endpoint.split_once("://").unwrap_or(("mqtt", endpoint));
    let address = format!("the user name stands in the address ({scheme}://USER@{place})");
    let secret = format!("the variable {PASSWORD_VARIABLE}, or in a file: --password-file FILE");
    match (username, password) {
        (false, false) => (
            "no user name and no password were given",
            format!("{address}, the password in {secret}"),
        ),
        (true, false) => (
            "a user name was given, but no password",
            format!("the password stands in {secret}"),
        ),
        (false, true) => ("a password was given, but no user name", address),
        (true, true) => (
            "the user name or the password is wrong, or this user may not connect",
            format!(
                "check USER in the address and the password in {secret}; the server's log may say which is wrong"
            ),
        ),
    }
}

/// As [`refused`], of a client with a login of its own.
fn refused_one(username: bool, password: bool) -> (&'static str, String) {
    let hint =
        "look at this client's line in `identities` of the flow, or at the file that it names";
    let what = match (username, password) {
        (false, false) => "this client has no user name and no password",
        (true, false) => "this client has a user name, but no password",
        (false, true) => "this client has a password, but no user name",
        (true, true) => {
            "the user name or the password of this client is wrong, or this user may not connect"
        }
    };
    (
        what,
        format!("{hint}; the server's log may say which is wrong"),
    )
}

#[cfg(test)]
mod tests {
    use super::{Given, refused};

    #[test]
    fn nothing_half_and_all_given_are_told_apart() {
        let cases = [(false, false), (true, false), (false, true), (true, true)];
        let told: Vec<_> = cases
            .map(|(username, password)| {
                let given = Given {
                    username,
                    password,
                    own: false,
                };
                refused("mqtts://h:8883", given)
            })
            .into();
        for (n, (what, hint)) in told.iter().enumerate() {
            assert!(told[..n].iter().all(|(other, _)| other != what), "{what}");
            let names_variable = hint.contains("PUBGAUGE_PASSWORD");
            assert_eq!(names_variable, cases[n] != (false, true), "{hint}");
        }
        assert!(told[0].1.contains("mqtts://USER@h:8883"), "{}", told[0].1);
    }
}
