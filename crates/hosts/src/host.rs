//! Hosts before anything was started there.

use std::fmt;

use pubgauge_engine::assignment::Role;
use serde::Deserialize;

/// The program that a host runs, unless another is named.
pub const PROGRAM: &str = "pubgauge";

/// Another host: what starts a program there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The command that starts it there.
    pub prefix: Prefix,
    /// The program there: a name that is found there, or a path there.
    pub program: String,
    /// Whose workers it has; those of both roles if absent.
    pub role: Option<Role>,
}

/// A command in front of which another is put, split into words as a POSIX shell does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix {
    text: String,
    /// At least one.
    words: Vec<String>,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;

    fn try_from(text: String) -> Result<Prefix, PrefixError> {
        match shell_words::split(&text) {
            Err(_) => Err(PrefixError::Quote(text)),
            Ok(words) if words.is_empty() => Err(PrefixError::Empty),
            Ok(words) => Ok(Prefix { text, words }),
        }
    }
}

/// A prefix that is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// Quotes that are not closed.
    #[error(
        "{0:?}: a quote is not closed\n  hint: a command prefix is split as a shell does, for example \"ssh loadgen-1\""
    )]
    Quote(String),
    /// Nothing.
    #[error(
        "an empty command starts nothing on another host\n  hint: for example \"ssh loadgen-1\""
    )]
    Empty,
}

impl Host {
    /// The host that `text`, split as a POSIX shell splits words, starts programs on.
    ///
    /// # Errors
    /// A text that is no command.
    pub fn new(text: &str, program: Option<&str>) -> Result<Host, PrefixError> {
        Ok(Host {
            prefix: text.to_owned().try_into()?,
            program: program.unwrap_or(PROGRAM).to_owned(),
            role: None,
        })
    }

    /// The whole command of a worker there, with these arguments more.
    pub fn worker<'a>(&'a self, arguments: &'a [&'a str]) -> Vec<&'a str> {
        let prefix = self.prefix.words.iter().map(String::as_str);
        prefix
            .chain([self.program.as_str(), "worker"])
            .chain(arguments.iter().copied())
            .collect()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostsFile {
    host: Vec<HostEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    command: Prefix,
    program: Option<String>,
    r#for: Option<Role>,
}

/// The hosts that a file names, as `[[host]]` with `command`, `program` and `for`; `program` is that of those which name
/// none.
///
/// # Errors
/// The error, with line and column.
pub fn read_hosts(text: &str, program: Option<&str>) -> Result<Vec<Host>, toml::de::Error> {
    let file: HostsFile = toml::from_str(text)?;
    let of = |entry: HostEntry| Host {
        prefix: entry.command,
        program: entry
            .program
            .or(program.map(str::to_owned))
            .unwrap_or_else(|| PROGRAM.into()),
        role: entry.r#for,
    };
    Ok(file.host.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_split_as_a_shell_does() {
        let host = Host::new("kubectl exec -i 'a pod' --", None).unwrap();
        let command = host.worker(&["--clock", "1,2,0"]);
        let expected = [
            "kubectl", "exec", "-i", "a pod", "--", "pubgauge", "worker", "--clock", "1,2,0",
        ];
        assert_eq!(command, expected);
        let quote = Host::new("ssh 'a", None).unwrap_err().to_string();
        assert!(quote.contains("is not closed"), "{quote}");
        assert_eq!(Host::new(" ", None), Err(PrefixError::Empty));
    }

    #[test]
    fn a_file_says_what_each_host_is_for() {
        let text = "[[host]]\ncommand = \"ssh a\"\nfor = \"publishers\"\n\n[[host]]\ncommand = \"ssh b\"\nprogram = \"/opt/pubgauge\"\n";
        let hosts = read_hosts(text, Some("other")).unwrap();
        let of: Vec<_> = hosts
            .iter()
            .map(|host| (&host.program[..], host.role))
            .collect();
        assert_eq!(
            of,
            [("other", Some(Role::Publishers)), ("/opt/pubgauge", None)]
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_place() {
        for (text, says) in [
            ("[[host]]\ncommand = \"ssh 'a\"\n", "line 2, column 11"),
            (
                "[[host]]\ncommand = \"ssh a\"\nfor = \"both\"\n",
                "line 3, column 7",
            ),
            ("[[host]]\ncomand = \"ssh a\"\n", "line 2, column 1"),
            ("host = 1\n", "line 1, column 8"),
        ] {
            let error = read_hosts(text, None).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
