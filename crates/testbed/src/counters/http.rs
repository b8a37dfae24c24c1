//! One GET over HTTP, bounded in size and time. HTTP/1.0, so that no answer comes in chunks.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};

use super::OwnMemory;
use super::pick::{self, Pair};
use crate::file::{Counter, Counters};

/// The longest answer, head included. RabbitMQ's has 83 KB with nothing in it.
const MAX_BYTES: usize = 8 << 20;
/// Pause before a connection that was refused is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// The URL of a system's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    host: String,
    port: u16,
    path: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text
            .strip_prefix("http://")
            .ok_or("it does not begin with http://")?;
        let (place, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#') {
            return Err("it holds a blank, a control character or `#`".into());
        }
        if place.contains('@') {
            return Err("a user name before `@` has no meaning; there is username".into());
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (place, "80"),
        };
        let port = port.parse().ok().filter(|&port| port != 0);
        Ok(Url {
            host: Some(host)
                .filter(|h| !h.is_empty())
                .ok_or("it names no host")?
                .into(),
            port: port.ok_or("a port is a number from 1 to 65535")?,
            path: if path.starts_with('/') {
                path.into()
            } else {
                format!("/{path}")
            },
        })
    }
}

/// Both counts at this moment, from the system's HTTP answer.
///
/// # Errors
/// Why they could not be read before `until`.
pub(super) fn read(counters: &Counters, until: Instant) -> Result<Pair<u64>, String> {
    let body = answer(counters, until)?;
    picked(counters, &body, counters.message_counters())
}

/// The system's own report of its memory at this moment; nothing where its file names nothing of it.
///
/// # Errors
/// Why it could not be read before `until`.
pub(super) fn read_memory(counters: &Counters, until: Instant) -> Result<OwnMemory, String> {
    let told = counters.reported_values().map(|(_, counter)| counter);
    if told == [None; 2] {
        return Ok(OwnMemory::default());
    }
    let [heap, limit] = picked(counters, &answer(counters, until)?, told)?;
    // Before the first collection there is none to tell of.
    let heap = heap.filter(|bytes| *bytes > 0);
    Ok(OwnMemory { heap, limit })
}

/// Two numbers of an answer.
fn picked(
    counters: &Counters,
    body: &str,
    both: [Option<&Counter>; 2],
) -> Result<Pair<u64>, String> {
    let mut counts = [None; 2];
    for (count, counter) in counts.iter_mut().zip(both) {
        let found = counter.map(|c| pick::count(body, c)).transpose();
        *count = found.map_err(|why| explain(counters, why))?;
    }
    Ok(counts)
}

fn explain(counters: &Counters, why: String) -> String {
    format!("{}: {why}", counters.http.as_deref().unwrap_or_default())
}

/// The body of the system's answer.
fn answer(counters: &Counters, until: Instant) -> Result<String, String> {
    let address = counters.http.as_deref().unwrap_or_default();
    let credentials = counters.username.as_ref().map(|name| {
        let password = counters.password.as_deref().unwrap_or_default();
        BASE64_STANDARD.encode(format!("{name}:{password}"))
    });
    let url = address.parse();
    let body = url.and_then(|url| get(&url, credentials.as_deref(), until));
    body.map_err(|why| explain(counters, why))
}

/// The body of a successful answer.
fn get(url: &Url, credentials: Option<&str>, until: Instant) -> Result<String, String> {
    let Url { host, port, path } = url;
    let authorization = match credentials {
        Some(credentials) => format!("Authorization: Basic {credentials}\r\n"),
        None => String::new(),
    };
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: */*\r\n{authorization}Connection: close\r\n\r\n"
    );
    let mut stream = connect(url, until)?;
    stream
        .set_write_timeout(Some(time_left(until)?))
        .map_err(describe)?;
    stream.write_all(request.as_bytes()).map_err(describe)?;
    let mut answer = Vec::new();
    let mut part = [0; 16 << 10];
    loop {
        stream
            .set_read_timeout(Some(time_left(until)?))
            .map_err(describe)?;
        match stream.read(&mut part) {
            Ok(0) => return body(&answer).map(str::to_owned),
            Ok(n) => answer.extend_from_slice(&part[..n]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(describe(error)),
        }
        if answer.len() > MAX_BYTES {
            return Err(format!("the answer is longer than {} MiB", MAX_BYTES >> 20));
        }
        if is_whole(&answer) {
            return body(&answer).map(str::to_owned);
        }
    }
}

/// Connects, and tries again until `until` if refused: a system may open the port after it has
/// begun to serve.
fn connect(url: &Url, until: Instant) -> Result<TcpStream, String> {
    let host = url.host.trim_start_matches('[').trim_end_matches(']');
    let mut addresses = (host, url.port).to_socket_addrs().map_err(describe)?;
    let address = addresses.next().ok_or("the host has no address")?;
    loop {
        match TcpStream::connect_timeout(&address, time_left(until)?) {
            Ok(stream) => return Ok(stream),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                std::thread::sleep(AGAIN);
                time_left(until).map_err(|_| describe(error))?;
            }
            Err(error) => return Err(describe(error)),
        }
    }
}

fn describe(error: std::io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}

fn time_left(until: Instant) -> Result<Duration, String> {
    let left = until.saturating_duration_since(Instant::now());
    // Zero would mean without limit.
    (!left.is_zero())
        .then_some(left)
        .ok_or("no answer in time".into())
}

/// Head and body.
fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((
        std::str::from_utf8(&answer[..end]).ok()?,
        &answer[end + 4..],
    ))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

fn length(head: &str) -> Option<usize> {
    header(head, "content-length")?.parse().ok()
}

/// Whether the announced length has been received: a server may leave the connection open.
fn is_whole(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(head, body)| length(head).is_some_and(|n| body.len() >= n))
}

fn body(answer: &[u8]) -> Result<&str, String> {
    let (head, body) = split(answer).ok_or("the answer is not HTTP, or was cut off")?;
    let status = head.lines().next().unwrap_or_default();
    let code = status
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1));
    if code != Some("200") {
        return Err(format!("the answer is `{status}`, expected 200"));
    }
    if header(head, "transfer-encoding").is_some_and(|v| !v.eq_ignore_ascii_case("identity")) {
        return Err("the answer came in chunks, which HTTP/1.0 does not have".into());
    }
    let body = match length(head) {
        Some(length) => body.get(..length).ok_or("the answer was cut off")?,
        None => body,
    };
    std::str::from_utf8(body).map_err(|_| "the answer is not UTF-8 text".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, host, port, path) in [
            ("http://127.0.0.1:8222/varz", "127.0.0.1", 8222, "/varz"),
            ("http://h", "h", 80, "/"),
            ("http://h?x=1", "h", 80, "/?x=1"),
            ("http://[::1]:9/a/b?c", "[::1]", 9, "/a/b?c"),
            ("http://[::1]/", "[::1]", 80, "/"),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(
                (&*url.host, url.port, &*url.path),
                (host, port, path),
                "{text}"
            );
        }
        for text in [
            "https://h/",
            "h:1",
            "http://",
            "http://:1/",
            "http://h:0/",
            "http://h:x/",
            "http://h:99999/",
            "http://u@h/",
            "http://h/a b",
            "http://h/\r\nX: y",
            "http://h/#x",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_whole_answer_with_200_is_one() {
        let right = "HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\n\r\n42 and more";
        assert_eq!(body(right.as_bytes()), Ok("42"));
        assert_eq!(body(b"HTTP/1.0 200\r\n\r\nall"), Ok("all"));
        for wrong in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n42",
            "HTTP/1.1 404 Not Found\r\n\r\n42",
            "HTTP/1.1\r\n\r\n42",
            "SMTP 200 x\r\n\r\n42",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n42\r\n0\r\n\r\n",
        ] {
            assert!(body(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(body(b"HTTP/1.1 200 OK\r\n\r\n\xff").is_err());
    }
}
