//! The processes that a bench starts, and what they say to it.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Where this program is.
pub fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

/// Says a line to the bench that has started this process.
pub fn tell(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("writable");
}

/// A process that is spoken to by lines, and killed when dropped.
pub struct Process {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// This program again.
    pub fn again(arguments: &[&str]) -> Self {
        let mut command = Command::new(this_program());
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program starts again");
        let lines = child.stdout.take().map(BufReader::new);
        Process { child, lines }
    }

    /// A mosquitto that its arguments make listen on `port` of the loopback address, once it does.
    pub fn mosquitto(arguments: &[&str], port: u16) -> Self {
        let mut command = Command::new("mosquitto");
        command.args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .expect("this bench needs mosquitto (apt install mosquitto)");
        let process = Process { child, lines: None };
        let end = Instant::now() + Duration::from_secs(5);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let in_time = Instant::now() < end;
            assert!(in_time, "mosquitto does not listen on port {port}");
            std::thread::sleep(Duration::from_millis(10));
        }
        process
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that it says.
    pub fn line(&mut self) -> String {
        let lines = self.lines.as_mut().expect("piped");
        let mut line = String::new();
        let len = lines.read_line(&mut line).expect("readable");
        assert!(len > 0, "a child ended early");
        line.trim_end().to_owned()
    }

    /// Says a line to it.
    pub fn say(&mut self, word: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{word}").expect("writable");
    }

    /// Waits for its end.
    pub fn end(mut self) {
        assert!(self.child.wait().expect("a child").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
