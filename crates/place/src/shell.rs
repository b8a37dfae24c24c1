//! Paths in commands that users copy into a shell.

use std::path::Path;

/// A path quoted as one word for a POSIX shell, which no command takes for a flag.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.starts_with('-') {
        format!("./{text}")
    } else {
        text
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        for name in [
            "results/first-look-20261121T025917",
            "a b",
            "it's",
            "$HOME `id` \"x\" \\ ! * ?",
            "ü ~",
            "~",
            "a\nb",
            "",
        ] {
            let word = quoted(Path::new(name));
            let script = format!("printf %s {word}");
            let said = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout), name, "{word}");
        }
        assert_eq!(quoted(Path::new("-x")), "./-x");
        assert_eq!(quoted(Path::new("a/b.c")), "a/b.c");
    }
}
