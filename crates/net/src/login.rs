//! Why a login failed: no user name and password, only one of them, or a wrong one.

use pubgauge_driver::PASSWORD_VARIABLE;

/// Why the login was refused at `endpoint` (`SCHEME://HOST:PORT`), and what to do, by what the
/// client had to give. Neither holds the user name or the password.
pub fn refused(endpoint: &str, username: bool, password: bool) -> (&'static str, String) {
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

#[cfg(test)]
mod tests {
    use super::refused;

    #[test]
    fn nothing_half_and_all_given_are_told_apart() {
        let cases = [(false, false), (true, false), (false, true), (true, true)];
        let told: Vec<_> = cases
            .map(|(user, password)| refused("mqtts://h:8883", user, password))
            .into();
        for (n, (what, hint)) in told.iter().enumerate() {
            assert!(told[..n].iter().all(|(other, _)| other != what), "{what}");
            let names_variable = hint.contains("PUBGAUGE_PASSWORD");
            assert_eq!(names_variable, cases[n] != (false, true), "{hint}");
        }
        assert!(told[0].1.contains("mqtts://USER@h:8883"), "{}", told[0].1);
    }
}
