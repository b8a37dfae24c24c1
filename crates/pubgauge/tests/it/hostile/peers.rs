//! Those at the other end: real servers with somebody between them and pubgauge who changes, delays or ends what they
//! send, and strangers who send to its own sockets.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pubgauge_driver::{Driver, Drivers};
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_nats::NatsDriver;
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testbed::{Running, SystemFile, Testbed};
use pubgauge_testing::hostile::{Dice, ended_well};
use pubgauge_testing::meddling::{MEDDLINGS, meddled};

use crate::common::*;

/// A run with the patience that its study gives to a server that says nothing: seconds, in all.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// A server for each protocol; MQTT by two brokers, which end and flush otherwise.
const SERVERS: [(&str, Option<&str>); 7] = [
    ("mosquitto", None),
    ("nats", Some("mqtt")),
    ("nats", Some("core")),
    ("rabbitmq", Some("amqp")),
    ("rabbitmq", Some("mqtt")),
    ("ejabberd", Some("xmpp")),
    ("zeromq-forwarder", None),
];

/// A server, and the folder of its own.
type Served = (Running, tempfile::TempDir);

/// The servers of a day, by name and variant. Each is started once, since pubgauge is what is tried.
static SERVED: Mutex<BTreeMap<(&str, Option<&str>), Served>> = Mutex::new(BTreeMap::new());

pub fn end_servers() {
    SERVED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

/// Where a server is, and who may log in: endpoint, user, password.
fn server(which: (&'static str, Option<&'static str>)) -> (String, Option<(String, String)>) {
    let mut servers = SERVED.lock().unwrap_or_else(PoisonError::into_inner);
    servers.retain(|_, (running, _)| running.exit_reason().is_none());
    let (running, _) = servers.entry(which).or_insert_with(|| {
        let (name, variant) = which;
        let text = std::fs::read_to_string(repository(&format!("systems/{name}.toml"))).unwrap();
        let file = SystemFile::parse(&text, name).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let drivers: Vec<Arc<dyn Driver>> = vec![
            Arc::new(AmqpDriver),
            Arc::new(MqttDriver),
            Arc::new(NatsDriver),
            Arc::new(XmppDriver),
        ];
        let drivers = Drivers::new(drivers).unwrap();
        let testbed = Testbed::with_program(program()).drivers(drivers);
        let running = testbed.start(&file, variant, scratch.path());
        (running.unwrap_or_else(|error| panic!("{error}")), scratch)
    });
    let target = &running.target;
    let password = target.password.as_ref();
    let password = password.map(|secret| secret.reveal().to_owned());
    let login = target.username.clone().zip(password);
    (target.endpoints[0].clone(), login)
}

/// Options of a run that gives a silent server seconds, not minutes.
const PATIENT: [&str; 16] = [
    "--rate",
    "200/s",
    "--warm-up",
    "100ms",
    "--duration",
    "1500ms",
    "--set",
    "phases.ready-within=3s",
    "--set",
    "phases.drain-within=2s",
    "--set",
    "phases.drain-quiet=500ms",
    "--subscribers",
    "2",
    "--out",
    "run",
];

/// A run against a real server, with somebody between them.
pub fn server_misbehaves(dice: &mut Dice) {
    let place = Place::new();
    let which = dice.one_of(&SERVERS);
    let meddling = dice.one_of(&MEDDLINGS);
    let (endpoint, login) = server(which);
    let (mut address, _meddlers) = meddled(&endpoint, meddling, dice);
    let mut command = place.command(&["run"]);
    if let Some((user, password)) = login {
        address = address.replacen("://", &format!("://{user}@"), 1);
        command.env("PUBGAUGE_PASSWORD", password);
    }
    command.args(["--on", &address]).args(PATIENT);
    if dice.below(2) == 0 && !which.0.starts_with("zeromq") {
        command.args(["--set", "settings.reliability=at-least-once"]);
    }
    println!("{which:?}, {meddling:?}");
    ended_well(&place.spawn(command).ends_within(ENDS_WITHIN));
    place.is_clean();
}

/// How often a socket took something from a stranger.
pub static THROWN: AtomicU64 = AtomicU64::new(0);

/// Verbs that run without a server, whose sockets are pubgauge's own.
const PEERS: [&str; 3] = ["zeromq-direct", "cyclonedds", "fastdds"];

/// A run, at whose sockets strangers send: connections with bytes without sense, datagrams that begin as
/// those of RTPS do (OMG DDSI-RTPS 2.3, section 8.3.3).
pub fn strangers(dice: &mut Dice) {
    let place = Place::new();
    let system = dice.one_of(&PEERS);
    let mut command = place.command(&["run", "--on", system]);
    command.args(PATIENT);
    println!("{system}");
    let run = place.spawn(command);
    let (pid, over) = (run.pid(), AtomicBool::new(false));
    let (done, sent) = std::thread::scope(|scope| {
        let throws = scope.spawn(|| throw_at(pid, dice, &over));
        let done = catch_unwind(AssertUnwindSafe(|| run.ends_within(ENDS_WITHIN)));
        over.store(true, Ordering::Relaxed);
        (done, throws.join().unwrap())
    });
    ended_well(&done.unwrap_or_else(|panic| resume_unwind(panic)));
    place.is_clean();
    THROWN.fetch_add(sent, Ordering::Relaxed);
}

/// Sends to each socket of a process, over and over; gives how often something was taken.
fn throw_at(pid: i32, dice: &mut Dice, over: &AtomicBool) -> u64 {
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut connections = Vec::new();
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        let sockets = sockets(&[pid]);
        let ports = sockets.iter().filter_map(|local| local.rsplit_once(':'));
        for port in ports.filter_map(|(_, port)| port.parse().ok()) {
            let port: u16 = port;
            for _ in 0..20 {
                let mut bytes = dice.one_of(&STARTS).to_vec();
                bytes.extend((0..dice.below(300)).map(|_| dice.throw() as u8));
                sent += u64::from(sender.send_to(&bytes, ("127.0.0.1", port)).is_ok());
                if connections.len() < 200
                    && let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port))
                {
                    sent += u64::from(connection.write_all(&bytes).is_ok());
                    connections.push(connection);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    sent
}

/// How strangers begin: anyhow, as RTPS 2.1 does, as ZMTP 3 does.
const STARTS: [&[u8]; 3] = [
    b"\x00",
    b"RTPS\x02\x01\x01\x10",
    b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL",
];
