//! The processes that a bench starts, and what they say to it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Where this program is.
pub fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

/// Says a line to the bench that has started this process.
pub fn report(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("writable");
}

/// A process that is spoken to by lines, and killed when dropped.
pub struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// This program again.
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(this_program());
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program starts again");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Process { child, lines }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        let len = self.lines.read_line(&mut line).expect("readable");
        assert!(len > 0, "a child ended early");
        line.trim_end().to_owned()
    }

    /// Says a line to it.
    pub fn send(&mut self, word: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{word}").expect("writable");
    }

    /// Waits for its end.
    pub fn wait(mut self) {
        assert!(self.child.wait().expect("a child").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
