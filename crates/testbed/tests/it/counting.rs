//! Counts over HTTP from a server that answers as it is told: late, wrongly, too much, not at all.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pubgauge_driver::{Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_simulator::SimulatedDriver;
use pubgauge_testbed::{
    Counting, OwnMemory, Running, SystemCount, SystemCounts, SystemFile, Testbed,
};

/// A system that does nothing, whose counts are told by a server of the test.
struct Setup {
    running: Running,
    /// Requests that the server was asked.
    requests: Receiver<String>,
    scratch: tempfile::TempDir,
}

/// The answer to one request.
type Answer = Box<dyn FnMut(TcpStream) + Send>;

/// Starts the system. `counters` follows `http`; the server answers the first requests with
/// `answers`, one each, and all others with the last.
fn setup(counters: &str, mut answers: Vec<Answer>) -> Setup {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                request.push(byte[0]);
            }
            if tell.send(String::from_utf8(request).unwrap()).is_err() {
                return;
            }
            (answers[0])(stream);
            if answers.len() > 1 {
                drop(answers.remove(0));
            }
        }
    });
    let text = format!(
        r#"
name = "script"
driver = "simulated"
[find]
executables = ["/bin/sh"]
[run]
command = ["{{exe}}", "-c", "echo ready; exec sleep 100"]
[ready]
stdout-line = "ready"
[values]
monitor = "{port}"
[counters]
http = "http://127.0.0.1:{{monitor}}/counts?all"
{counters}
"#
    );
    let scratch = tempfile::tempdir().unwrap();
    let system = SystemFile::parse(&text, "script.toml").unwrap();
    let testbed = Testbed::new().unwrap();
    Setup {
        running: testbed.start(&system, None, scratch.path()).unwrap(),
        requests,
        scratch,
    }
}

impl Setup {
    fn begin(&self) -> Counting {
        self.running.begin_counting(&[Settings::default()]).unwrap()
    }

    fn finish(
        &self,
        counting: &Counting,
        agrees: impl FnMut(&SystemCounts) -> bool + Send,
    ) -> SystemCounts {
        counting.finish(&self.running, &SimulatedDriver, agrees)
    }

    /// From the beginning to the end with nothing between.
    fn published(&self) -> SystemCount {
        self.finish(&self.begin(), |_| true).published.unwrap()
    }

    fn not_read(&self) -> String {
        match self.published() {
            SystemCount::NotRead(why) => why,
            other => panic!("it was read: {other:?}"),
        }
    }
}

const JSON: &str = "[counters.published]\njson = \"/n\"";

/// An answer with this text.
fn says(body: impl Into<String>) -> Answer {
    raw(format!("HTTP/1.0 200 OK\r\n\r\n{}", body.into()))
}

fn raw(answer: impl Into<String>) -> Answer {
    let answer = answer.into();
    Box::new(move |mut stream| drop(stream.write_all(answer.as_bytes())))
}

fn counts(numbers: &[u64]) -> Vec<Answer> {
    numbers
        .iter()
        .map(|n| says(format!("{{\"n\": {n}}}")))
        .collect()
}

fn published(counted: &SystemCounts) -> Option<u64> {
    match counted.published {
        Some(SystemCount::Messages(messages)) => Some(messages),
        _ => None,
    }
}

#[test]
fn counts_are_read_at_rest_and_then_until_they_agree() {
    // The first three are the beginning: 7 comes twice. What follows the one that agrees is not
    // asked for.
    let setup = setup(JSON, counts(&[5, 7, 7, 8, 9, 17, 1000]));
    let counting = setup.begin();
    let mut seen = Vec::new();
    let counted = setup.finish(&counting, |counted| {
        seen.push(published(counted).unwrap());
        seen.last() == Some(&10)
    });
    assert_eq!(published(&counted), Some(10));
    assert_eq!(counted.delivered, None);
    assert_eq!(seen, [1, 2, 10]);
    assert_eq!(setup.requests.try_iter().count(), 6);
}

#[test]
fn counts_that_never_agree_are_what_they_are_once_they_stay() {
    let setup = setup(JSON, counts(&[7, 7, 8, 9, 10]));
    let counting = setup.begin();
    let begin = Instant::now();
    let counted = setup.finish(&counting, |_| false);
    assert_eq!(published(&counted), Some(3));
    assert!(begin.elapsed() >= Duration::from_secs(1));
}

#[test]
fn counts_that_go_on_rising_are_given_up_after_the_time_out() {
    let mut asked = 0;
    let rising: Answer = Box::new(move |mut stream| {
        asked += 1;
        let count = asked.max(2);
        drop(write!(stream, "HTTP/1.0 200 OK\r\n\r\n{{\"n\": {count}}}"));
    });
    let setup = setup(&format!("time-out-s = 1.5\n{JSON}"), vec![rising]);
    let counting = setup.begin();
    let begin = Instant::now();
    let counted = setup.finish(&counting, |_| false);
    assert!(begin.elapsed() >= Duration::from_millis(1400));
    let Some(SystemCount::NotRead(why)) = counted.published else {
        panic!("a count that rises is taken for one that stands: {counted:?}");
    };
    assert!(why.starts_with("after 1.5 s it was at "), "{why}");
}

#[test]
fn what_is_asked_names_path_and_credentials() {
    let counters = format!("username = \"ann\"\npassword = \"p:w\"\n{JSON}");
    let setup = setup(&counters, counts(&[1]));
    assert_eq!(setup.published(), SystemCount::Messages(0));
    let request = setup.requests.recv().unwrap();
    assert!(
        request.starts_with("GET /counts?all HTTP/1.0\r\n"),
        "{request}"
    );
    // base64 of ann:p:w, as printf ann:p:w | base64 says.
    assert!(
        request.contains("\r\nAuthorization: Basic YW5uOnA6dw==\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nConnection: close\r\n"), "{request}");
}

#[test]
fn metrics_are_added_up_and_excepted_where_the_file_says() {
    let counters = r#"
[counters.published]
metric = "in_total"
labels = { protocol = "mqtt" }
routed-only = true
[counters.delivered]
metric = "out_total"
not-at = { "reliability:at-least-once" = "it counts twice" }
"#;
    let metrics = |a: u64, b: u64, out: u64| {
        says(format!(
            "in_total{{protocol=\"mqtt\",n=\"1\"}} {a}\nin_total{{protocol=\"mqtt\"}} {b}\nin_total{{protocol=\"amqp\"}} 99\nout_total {out}\n"
        ))
    };
    let setup = setup(
        counters,
        vec![metrics(1, 2, 3), metrics(1, 2, 3), metrics(10, 20, 30)],
    );
    let counting = setup.begin();
    let counted = setup.finish(&counting, |_| true);
    assert_eq!(counted.published, Some(SystemCount::Routed(27)));
    assert_eq!(counted.delivered, Some(SystemCount::Messages(27)));
    let settings = Settings {
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    };
    let counting = setup
        .running
        .begin_counting(std::slice::from_ref(&settings))
        .unwrap();
    let counted = setup.finish(&counting, |_| true);
    let why = "with reliability:at-least-once: it counts twice";
    assert_eq!(counted.published, Some(SystemCount::Routed(0)));
    assert_eq!(
        counted.delivered,
        Some(SystemCount::NotComparable(why.into()))
    );
}

#[test]
fn nothing_is_asked_where_nothing_is_comparable() {
    let counters = format!("{JSON}\nnot-at = {{ last-value = \"why\" }}");
    let setup = setup(&counters, counts(&[1]));
    let settings = Settings {
        last_value: Some(true),
        ..Settings::default()
    };
    let counting = setup
        .running
        .begin_counting(std::slice::from_ref(&settings))
        .unwrap();
    let counted = setup.finish(&counting, |_| false);
    let why = "with last-value: why";
    assert_eq!(
        counted.published,
        Some(SystemCount::NotComparable(why.into()))
    );
    assert!(setup.requests.try_recv().is_err(), "it was asked");
}

#[test]
fn what_cannot_be_read_is_not_read_and_says_why() {
    let endless: Answer = Box::new(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 65536]).is_ok() {}
    });
    for (answer, why) in [
        (
            raw("HTTP/1.1 503 Busy\r\n\r\n{\"n\": 1}"),
            "the answer is `HTTP/1.1 503 Busy`, expected 200",
        ),
        (raw(""), "the answer is not HTTP, or was cut off"),
        (
            raw("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{}"),
            "the answer was cut off",
        ),
        (says("{}"), "the answer has no /n"),
        (says("{\"n\": -1}"), "/n is -1, not a count"),
        (says("<html>"), "the answer is not JSON"),
        (endless, "the answer is longer than 8 MiB"),
    ] {
        let said = setup(JSON, vec![answer]).not_read();
        assert!(
            said.starts_with("before the trial: http://127.0.0.1:"),
            "{said}"
        );
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_server_that_stays_silent_is_not_waited_for_beyond_the_time_out() {
    let mut held = Vec::new();
    let silent: Answer = Box::new(move |stream| held.push(stream));
    let setup = setup(&format!("time-out-s = 0.3\n{JSON}"), vec![silent]);
    let begin = Instant::now();
    let said = setup.not_read();
    assert!(said.contains("no answer in time"), "{said}");
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
}

#[test]
fn a_server_that_trickles_is_not_waited_for_beyond_the_time_out() {
    let trickling: Answer = Box::new(move |mut stream| {
        while stream.write_all(b"H").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let setup = setup(&format!("time-out-s = 0.3\n{JSON}"), vec![trickling]);
    let said = setup.not_read();
    assert!(said.contains("no answer in time"), "{said}");
}

#[test]
fn a_count_that_falls_is_none() {
    let setup = setup(JSON, counts(&[7, 7, 3]));
    let counting = setup.begin();
    let counted = setup.finish(&counting, |_| true);
    let why = "the count fell from 7 to 3";
    assert_eq!(counted.published, Some(SystemCount::NotRead(why.into())));
}

#[test]
fn a_system_that_has_ended_is_not_asked() {
    let mut setup = setup(JSON, counts(&[7]));
    let counting = setup.begin();
    let asked = setup.requests.try_iter().count();
    setup.running.kill();
    let counted = setup.finish(&counting, |_| true);
    let Some(SystemCount::NotRead(why)) = counted.published else {
        panic!("a killed system told its count");
    };
    assert!(why.contains("SIGKILL"), "{why}");
    assert_eq!((asked, setup.requests.try_iter().count()), (2, 0));
    drop(setup.running);
    assert_eq!(setup.scratch.path().read_dir().unwrap().count(), 0);
}

#[test]
fn systems_that_pubgauge_did_not_start_have_no_counts() {
    let scratch = tempfile::tempdir().unwrap();
    let system = pubgauge_testbed::from_address("mqtt://127.0.0.1:1", &MqttDriver.into()).unwrap();
    let testbed = Testbed::new().unwrap();
    let running = testbed.start(&system, None, scratch.path()).unwrap();
    assert!(running.begin_counting(&[Settings::default()]).is_none());
}

/// Heap and limit of memory are told beside the counts, and not taken for messages.
#[test]
fn memory_is_told_as_the_system_says_it() {
    let told = |body: &str| {
        let counters = format!(
            "{JSON}\n[counters.heap]\njson = \"/heap\"\n[counters.memory-limit]\njson = \"/limit\""
        );
        let setup = setup(&counters, vec![says(body)]);
        let counting = setup.begin();
        assert_eq!(published(&setup.finish(&counting, |_| true)), Some(0));
        counting.memory(&setup.running)
    };
    let memory = told(r#"{"n": 5, "heap": 900, "limit": 1000}"#);
    let memory = memory.expect("both are there");
    assert_eq!((memory.heap, memory.limit), (Some(900), Some(1000)));
    // No collection yet.
    let memory = told(r#"{"n": 5, "heap": 0, "limit": 1000}"#).expect("both are there");
    assert_eq!((memory.heap, memory.limit), (None, Some(1000)));
    let why = told(r#"{"n": 5, "limit": 1000}"#).expect_err("no heap");
    assert!(why.ends_with("the answer has no /heap"), "{why}");
    // A system that says nothing of its memory is not asked.
    let setup = setup(JSON, counts(&[5]));
    let counting = setup.begin();
    let asked = setup.requests.try_iter().count();
    assert_eq!(counting.memory(&setup.running), Ok(OwnMemory::default()));
    assert_eq!((asked, setup.requests.try_iter().count()), (2, 0));
}
