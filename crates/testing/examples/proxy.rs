//! The proxy as a program, for trying by hand what pubgauge says of a planted truth:
//!
//! ```text
//! cargo run --release -p pubgauge-testing --example proxy -- 127.0.0.1:1883 --listen 127.0.0.1:2883 \
//!     --to-server messages-per-s=10000,delay-ms=5 --to-client double=1,late-ms=500 --freeze 8:2
//! pubgauge run --on mqtt://127.0.0.1:2883 --rate 30k/s
//! ```
//!
//! Each second it prints what has passed; at the end of its standard input, all that it counted.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::Parser;
use pubgauge_testing::proxy::{Action, Counts, Direction, Duplicate, Proxy, Rate, Rules, Select};

/// Stands between clients and a server and plants a truth.
///
/// RULES are some of, with commas between: messages-per-s=N (MQTT PUBLISH packets), bytes-per-s=N,
/// delay-ms=N, buffer-bytes=N (then TCP holds the sender back; else the queue has no limit),
/// double=SHARE (0 to 1), late-ms=N (of the second), lose=SHARE (QoS 0 only).
#[derive(Parser)]
struct Args {
    /// The server, for example 127.0.0.1:1883
    server: SocketAddr,
    /// Where clients connect to; a free port of 127.0.0.1 by default
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Rules from the clients to the server
    #[arg(long, value_name = "RULES", value_parser = rules, default_value = "")]
    to_server: Rules,
    /// Rules from the server to the clients
    #[arg(long, value_name = "RULES", value_parser = rules, default_value = "")]
    to_client: Rules,
    /// Who has a link of its own, by MQTT client identifier (with * at the end: that begin so)
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// Its rules to the server
    #[arg(long, value_name = "RULES", value_parser = rules, default_value = "", requires = "client")]
    client_to_server: Rules,
    /// Its rules from the server
    #[arg(long, value_name = "RULES", value_parser = rules, default_value = "", requires = "client")]
    client_to_client: Rules,
    /// Nothing moves for SPAN seconds, START seconds after the first connection
    #[arg(long, value_name = "START:SPAN", value_parser = freeze)]
    freeze: Vec<(Duration, Duration)>,
    /// All connections end, so many seconds after the first connection
    #[arg(long, value_name = "START", value_parser = seconds)]
    cut: Vec<Duration>,
    /// Real-time priority of the proxy, 1 to 99 (10 is plenty): punctual on a busy machine
    #[arg(long)]
    realtime: Option<u8>,
    /// Seed of the draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn rules(text: &str) -> Result<Rules, String> {
    let mut values = BTreeMap::new();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .ok_or(format!("{pair:?} is not KEY=VALUE"))?;
        let value: f64 = value
            .parse()
            .map_err(|_| format!("{value:?} is not a number"))?;
        values.insert(key, value);
    }
    let mut take = |key| values.remove(key);
    let ms = |value: f64| Duration::try_from_secs_f64(value / 1e3).map_err(|e| e.to_string());
    let late = ms(take("late-ms").unwrap_or(0.0))?;
    let rate = match (take("messages-per-s"), take("bytes-per-s")) {
        (Some(_), Some(_)) => return Err("a link has one rate".to_owned()),
        (messages, bytes) => messages
            .map(Rate::MessagesPerS)
            .or(bytes.map(Rate::BytesPerS)),
    };
    let rules = Rules {
        rate,
        delay: ms(take("delay-ms").unwrap_or(0.0))?,
        buffer_bytes: take("buffer-bytes").map(|bytes| bytes as usize),
        duplicate: take("double").map(|share| Duplicate { share, late }),
        lose: take("lose").unwrap_or(0.0),
    };
    match values.keys().next() {
        None => Ok(rules),
        Some(key) => Err(format!("there is no rule {key:?}")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number"))?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

fn freeze(text: &str) -> Result<(Duration, Duration), String> {
    let (start, span) = text
        .split_once(':')
        .ok_or("START:SPAN is missing its colon")?;
    Ok((seconds(start)?, seconds(span)?))
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let mut builder = Proxy::to(args.server).listen(args.listen).seed(args.seed);
    let of_all = [args.to_server, args.to_client];
    let of_one = [args.client_to_server, args.client_to_client];
    for (direction, (all, one)) in Direction::BOTH
        .into_iter()
        .zip(of_all.into_iter().zip(of_one))
    {
        builder = builder.rules(Select::All, direction, all);
        if let Some(id) = &args.client {
            builder = builder.rules(Select::ClientId(id.clone()), direction, one);
        }
    }
    if let Some(priority) = args.realtime {
        builder = builder.realtime(priority);
    }
    let proxy = builder.start()?;
    println!("{} -> {}", proxy.address(), args.server);

    let (ended, end) = channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let mut before = Counts::default();
    let mut planned = false;
    while end.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
        let counts = proxy.counts();
        if let Some(first) = counts.connections.first().filter(|_| !planned) {
            planned = true;
            let at = |after: Duration| first.opened_ns + after.as_nanos() as u64;
            for (start, span) in &args.freeze {
                proxy.schedule(at(*start), Action::Freeze(*span));
            }
            for start in &args.cut {
                proxy.schedule(at(*start), Action::Cut(Select::All));
            }
        }
        if counts != before {
            print_second(&before, &counts);
        }
        before = counts;
    }
    print_all(&proxy.counts());
    Ok(())
}

fn print_second(before: &Counts, counts: &Counts) {
    let live = counts.connections.iter().filter(|c| c.ended_ns.is_none());
    let mut line = format!("{:>4} connections", live.count());
    for direction in Direction::BOTH {
        let (before, now) = (before.total(direction), counts.total(direction));
        line += &format!(
            " | {direction:?}: {:>7} messages {:>9} bytes, {:>8} messages wait",
            now.passed.publishes - before.passed.publishes,
            now.passed.bytes - before.passed.bytes,
            now.waiting.publishes,
        );
    }
    println!("{line}");
}

fn print_all(counts: &Counts) {
    for direction in Direction::BOTH {
        let mut total = counts.total(direction);
        total.slots.clear();
        println!("{direction:?}: {total:#?}");
    }
    println!("{:#?}\n{:#?}", counts.freezes, counts.cuts);
    for (order, connection) in counts.connections.iter().enumerate() {
        let id = connection.client_id.as_deref().unwrap_or("-");
        let passed = Direction::BOTH.map(|direction| connection.of(direction).passed.publishes);
        let problem = connection.problem.as_deref().unwrap_or_default();
        println!("connection {order}, {id}: {passed:?} messages to server, to client {problem}");
    }
}
