//! Sequences that a terminal obeys never reach it, wherever they come from.

use crate::common;

use std::io::Read;
use std::process::Command;

use pubgauge_testing::meddling::Scripted;

use common::*;

/// Sets the title, clears the screen (in ASCII and in ISO 6429), goes back to the line's beginning, turns the
/// direction of writing.
const ORDERS: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\rover\u{202e}txt";
/// That text as a TOML text spells it.
const SPELLED: &str = r"\u001b]0;owned\u0007\u001b[2J\u009b2J\rover\u202etxt";

/// Asserts that a text holds nothing that a terminal obeys.
#[track_caller]
fn is_plain(what: &str, text: &str) {
    let obeyed = |c: &char| {
        let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control() && !matches!(c, '\n' | '\t')
    };
    let found: Vec<char> = text.chars().filter(obeyed).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
}

#[track_caller]
fn says_plainly(what: &str, done: &Done) {
    is_plain(what, &done.out);
    is_plain(what, &done.err);
    let all = format!("{}{}", done.out, done.err);
    assert!(
        all.contains("owned"),
        "{what}: the text itself is missing: {all}"
    );
}

fn study(systems: &str, more: &str) -> String {
    format!(
        "name = \"{SPELLED}\"\nquestion = \"{SPELLED}?\"\nsystems = [{systems}]\n\
         [phases]\nwarm-up = \"50ms\"\nmeasure = \"100ms\"\n\
         [[workload]]\nname = \"{SPELLED}\"\n[[workload.flow]]\nname = \"f\"\nrate = \"100/s\"\npayload = \"64B\"\n{more}\n"
    )
}

#[test]
fn names_in_studies_are_printed_plainly() {
    let place = Place::new();
    place.write("named.toml", study("\"simulated\"", ""));
    for command in [
        &["plan", "named.toml"][..],
        &["plan", "named.toml", "--json"],
        &["run", "named.toml", "--out", "run"],
        &["report", "run"],
        &["report", "run", "--json"],
        &["compare", "run", "run"],
    ] {
        let done = place.run(command);
        is_plain(&format!("{command:?}"), &done.out);
        is_plain(&format!("{command:?}"), &done.err);
    }
    for (what, text) in [
        ("a system", study(&format!("\"{SPELLED}\""), "")),
        (
            "a topic",
            study("\"simulated\"", &format!("topic = \"{SPELLED}#\"")),
        ),
        (
            "a key",
            study("\"simulated\"", &format!("\"{SPELLED}\" = 1")),
        ),
        (
            "a value",
            study("\"simulated\"", &format!("payload = \"{SPELLED}\"")),
        ),
        ("no TOML", format!("name = {ORDERS}")),
    ] {
        place.write("wrong.toml", text);
        let done = place.run(&["plan", "wrong.toml"]).exits(3);
        is_plain(what, &done.out);
        is_plain(what, &done.err);
    }
    let file = place.write("wrong-\u{1b}]0;owned\u{7}.toml", "name = 1");
    says_plainly(
        "a file",
        &place.run(&["plan", file.to_str().unwrap()]).exits(3),
    );
    let done = place.run(&["plan", &format!("--{ORDERS}")]).exits(3);
    is_plain("an argument", &done.err);
    assert!(done.err.contains("over"), "{}", done.err);
}

#[test]
fn columns_of_traces_are_printed_plainly() {
    let place = Place::new();
    let quoted = ORDERS.replace('"', "\"\"");
    place.write("a.csv", format!("time,{quoted},size\n1,d,5\n"));
    let done = place.run(&["trace", "show", "a.csv"]).exits(3);
    is_plain("columns", &done.err);
    let one_line = ORDERS.replace('\r', "");
    place.write("b.csv", format!("time,device,size\n{one_line},d,5\n"));
    says_plainly("a value", &place.run(&["trace", "show", "b.csv"]).exits(3));
}

#[test]
fn what_systems_write_is_printed_plainly() {
    let place = Place::new();
    std::fs::create_dir(place.path_to("own")).unwrap();
    let system = r#"
name = "talks"
driver = "mqtt"
endpoints = ["mqtt://127.0.0.1:{port}"]
[find]
executables = ["/bin/sh"]
[run]
command = ["{exe}", "-c", '''printf '\033]0;owned\007\033[2J\302\2332J\n' >&2; exit 1''']
ports = ["port"]
[ready]
tcp = ["port"]
"#;
    place.write("own/talks.toml", system);
    let args = [
        "run",
        "--systems",
        "own",
        "--on",
        "talks",
        "--rate",
        "10/s",
        "--out",
        "run",
    ];
    says_plainly("its last lines", &place.run(&args).exits(2));
}

/// A server that accepts a client and throws it out with the next packet, and says why.
fn throws_out(words: &str) -> Scripted {
    let mut bytes = b"\x20\x03\x00\x00\x00".to_vec();
    let length = words.len() as u8;
    bytes.extend([0xe0, length + 5, 0x97, length + 3, 0x1f, 0, length]);
    bytes.extend(words.as_bytes());
    Scripted::answering(bytes, true)
}

#[test]
fn a_server_that_throws_out_is_quoted_plainly() {
    let place = Place::new();
    let server = throws_out(&format!("too many tonight {ORDERS}"));
    let address = format!("mqtt://127.0.0.1:{}", server.port);
    let mut args = vec!["run", "--on", &address, "--rate", "10/s", "--out", "run"];
    // Subscribers alone: they have more to do once they are connected.
    args.extend(["--publishers", "0", "--subscribers", "2"]);
    args.extend(["--set", "settings.native.mqtt.version=\"5\""]);
    let done = place.run(&args).exits(2);
    says_plainly("its reason", &done);
    // Why the connection ended, not that it had when the client went on.
    assert!(done.err.contains("too many tonight"), "{}", done.err);
}

#[test]
fn the_live_lines_are_plain() {
    let place = Place::new();
    place.write("named.toml", study("\"simulated\"", ""));
    let [mut far, near] = terminal();
    let mut command: Command = place.command(&["run", "named.toml", "--out", "run"]);
    command.stdout(near.try_clone().unwrap()).stderr(near);
    let reads = std::thread::spawn(move || {
        let mut seen = Vec::new();
        // The end comes as an error (EIO) once nobody has the near end open.
        let _ = far.read_to_end(&mut seen);
        String::from_utf8_lossy(&seen).into_owned()
    });
    let mut child = command.spawn().unwrap();
    drop(command);
    child.wait().unwrap();
    let seen = reads.join().unwrap();
    assert!(seen.contains(r"\u001b]0;owned\u0007"), "{seen:?}");
    for order in ["\u{1b}]0;", "\u{9b}", "\u{202e}", "\u{7}"] {
        assert!(!seen.contains(order), "{order:?} in {seen:?}");
    }
}
