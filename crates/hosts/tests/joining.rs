//! Workers that join over real sockets, and all those that must not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pubgauge_clock::udp::Key;
use pubgauge_engine::link::frames;
use pubgauge_engine::link::stream::Peer;
use pubgauge_hosts::hello::{Answer, LONGEST};
use pubgauge_hosts::{
    Address, Counts, Credentials, Dial, Identity, JoinError, Limits, Listener, Machine, Member,
    Options, Rank, join,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// Long enough on a machine that others keep busy.
const PATIENCE: Duration = Duration::from_secs(60);

struct Run {
    credentials: Credentials,
    listener: Listener,
}

impl Run {
    fn of(size: u32) -> Run {
        Run::with(
            size,
            Limits {
                time: PATIENCE,
                ..Limits::default()
            },
        )
    }

    fn with(size: u32, limits: Limits) -> Run {
        let identity = Identity::generate().unwrap();
        let credentials = identity.credentials(size).unwrap();
        let options = Options {
            limits,
            ..Options::default()
        };
        let listener = Listener::start(&identity, &credentials, options).unwrap();
        Run {
            credentials,
            listener,
        }
    }

    fn dial(&self, rank: u32) -> Dial {
        dial(self.listener.address(), self.credentials.clone(), rank)
    }

    fn join(&self, rank: u32) -> Member {
        join(&self.dial(rank)).unwrap()
    }

    fn expect(&self, what: &str, fits: impl Fn(Counts) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !fits(self.listener.counts()) {
            assert!(
                Instant::now() < until,
                "{what}: {:?}",
                self.listener.counts()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// All of that, and nobody else.
    fn counts(&self, expected: Counts) {
        self.expect(&format!("{expected:?}"), |counts| counts == expected);
    }

    /// Whatever has been, a worker that is entitled to it is let in.
    fn still_lets_in(&self, rank: u32) {
        let member = self.join(rank);
        assert_eq!(member.welcome.size as usize, self.credentials.tokens.len());
    }
}

fn dial(address: SocketAddr, credentials: Credentials, rank: u32) -> Dial {
    Dial {
        conductor: Address {
            host: address.ip().to_string(),
            port: address.port(),
        },
        credentials,
        rank: Rank { rank, size: None },
        machine: Machine::here(),
        patience: PATIENCE,
    }
}

fn refused(result: Result<Member, JoinError>) -> String {
    match result {
        Err(error @ JoinError::Refused { .. }) => error.to_string(),
        other => panic!("a refusal was expected: {other:?}"),
    }
}

#[test]
fn workers_join_and_both_sides_speak() {
    let run = Run::of(3);
    let members = [2, 0, 1].map(|rank| run.join(rank));
    let all = run.listener.all(PATIENCE).unwrap();
    assert_eq!(
        all.iter().map(|one| one.hello.rank).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    run.counts(Counts {
        joined: 3,
        ..Counts::default()
    });
    let here = Machine::here();
    let mut ends = all.into_iter().map(|one| {
        assert!(one.hello.machine.shares_clock(&here) && one.address.ip().is_loopback());
        (one.reader, one.writer, one.connection)
    });
    let (mut reader, mut writer, connection) = ends.next().unwrap();
    let member = members.into_iter().nth(1).unwrap();
    assert!(member.welcome.machine.shares_clock(&here) && member.welcome.clock.is_none());
    let (mut theirs, mut their_writer) = (member.reader, member.writer);
    // Both write more than sockets hold before either reads: nobody waits for the other for ever.
    let long = "x".repeat(8 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| frames::write(&mut writer, &long).unwrap());
        scope.spawn(|| frames::write(&mut their_writer, &vec![7u8; 2 << 20]).unwrap());
        let heard = scope.spawn(|| frames::read::<String>(&mut theirs).unwrap().unwrap());
        let back = frames::read::<Vec<u8>>(&mut reader).unwrap().unwrap();
        assert!(back.len() == 2 << 20 && back.iter().all(|byte| *byte == 7));
        assert_eq!(heard.join().unwrap(), long);
    });
    // An end that is told is told from one that is not.
    drop(their_writer);
    assert_eq!(frames::read::<String>(&mut reader).unwrap(), None);
    let ending = connection.ending();
    assert!(
        ending.contains("rank 0") && ending.contains("closed it"),
        "{ending}"
    );
}

#[test]
fn a_worker_that_is_cut_off_is_told_by_name() {
    let run = Run::of(1);
    let member = run.join(0);
    let mut joined = run.listener.next(PATIENCE).unwrap();
    member.connection.kill();
    let mut bytes = Vec::new();
    assert_eq!(joined.reader.read_to_end(&mut bytes).unwrap(), 0);
    let ending = joined.connection.ending();
    assert!(
        ending.contains("rank 0") && ending.contains(&Machine::here().host),
        "{ending}"
    );
    assert!(
        ending.contains("cut off") || ending.contains("lost"),
        "{ending}"
    );
}

#[test]
fn the_clock_server_is_told_to_those_who_are_in() {
    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(1).unwrap();
    let key = Key::random().unwrap();
    let options = Options {
        clock: Some((4_711, key.clone())),
        ..Options::default()
    };
    let listener = Listener::start(&identity, &credentials, options).unwrap();
    let member = join(&dial(listener.address(), credentials, 0)).unwrap();
    let clock = member.welcome.clock.unwrap();
    assert_eq!(clock.port, 4_711);
    assert_eq!(clock.key().unwrap().bytes(), key.bytes());
}

#[test]
fn a_wrong_token_is_refused() {
    let run = Run::of(3);
    let mut swapped = run.dial(1);
    let other = run.credentials.tokens[&0].clone();
    swapped.credentials.tokens.insert(1, other);
    let why = refused(join(&swapped));
    assert!(why.contains("rank 1") && why.contains("token"), "{why}");
    // A rank that there is not, with a token that there is.
    let mut beyond = run.dial(3);
    let token = run.credentials.tokens[&0].clone();
    beyond.credentials.tokens.insert(3, token);
    refused(join(&beyond));
    let mut none = run.dial(0);
    none.credentials.tokens.clear();
    assert!(matches!(join(&none), Err(JoinError::Credentials(_))));
    run.counts(Counts {
        wrong_token: 2,
        ..Counts::default()
    });
    run.still_lets_in(1);
}

#[test]
fn each_rank_joins_once() {
    let run = Run::of(2);
    let mut first = run.join(0);
    let why = refused(join(&run.dial(0)));
    assert!(why.contains("joined already"), "{why}");
    run.counts(Counts {
        joined: 1,
        replayed: 1,
        ..Counts::default()
    });
    // The first is not disturbed.
    let mut joined = run.listener.next(PATIENCE).unwrap();
    frames::write(&mut joined.writer, &"still here").unwrap();
    let heard = frames::read::<String>(&mut first.reader).unwrap();
    assert_eq!(heard.as_deref(), Some("still here"));
    // Its token is used up, also when it is gone.
    drop((first, joined));
    refused(join(&run.dial(0)));
    run.still_lets_in(1);
}

#[test]
fn a_rank_joins_again_when_its_connection_is_in_use_or_gone() {
    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(2).unwrap();
    let options = Options {
        again: true,
        ..Options::default()
    };
    let listener = Listener::start(&identity, &credentials, options).unwrap();
    let run = Run {
        credentials,
        listener,
    };
    let first = run.join(0);
    let waiting = run.listener.next(PATIENCE).unwrap();
    assert_eq!(run.listener.missing(), [1]);
    // Nothing was asked of it yet: a second one is one too many.
    let why = refused(join(&run.dial(0)));
    assert!(why.contains("joined already"), "{why}");
    // In use, and the rank waits with another.
    run.listener.release(0);
    assert_eq!(run.listener.missing(), [0, 1]);
    let second = run.join(0);
    refused(join(&run.dial(0)));
    assert_eq!(run.listener.missing(), [1]);
    // One that is gone keeps nobody out.
    second.connection.kill();
    let until = Instant::now() + PATIENCE;
    while run.listener.missing() != [0, 1] {
        assert!(Instant::now() < until, "{:?}", run.listener.missing());
        std::thread::sleep(Duration::from_millis(2));
    }
    run.still_lets_in(0);
    run.counts(Counts {
        joined: 3,
        replayed: 2,
        ..Counts::default()
    });
    // The first is not disturbed.
    let (mut writer, mut reader) = (waiting.writer, first.reader);
    frames::write(&mut writer, &"still here").unwrap();
    let heard = frames::read::<String>(&mut reader).unwrap();
    assert_eq!(heard.as_deref(), Some("still here"));
    drop(writer);
    assert_eq!(frames::read::<String>(&mut reader).unwrap(), None);
    assert!(first.connection.was_closed() && !second.connection.was_closed());
}

#[test]
fn of_many_with_one_token_one_is_in() {
    let run = Run::of(1);
    let joined = std::thread::scope(|scope| {
        let tries = (0..16).map(|_| scope.spawn(|| join(&run.dial(0))));
        let tries: Vec<_> = tries.collect();
        tries
            .into_iter()
            .map(|one| one.join().unwrap())
            .filter(Result::is_ok)
            .count()
    });
    assert_eq!(joined, 1);
    run.counts(Counts {
        joined: 1,
        replayed: 15,
        ..Counts::default()
    });
}

#[test]
fn another_certificate_is_not_spoken_to() {
    let (run, other) = (Run::of(1), Run::of(1));
    let wrong = dial(run.listener.address(), other.credentials.clone(), 0);
    let error = join(&wrong).unwrap_err();
    assert!(
        matches!(error, JoinError::OtherCertificate { .. }),
        "{error}"
    );
    let text = error.to_string();
    assert!(
        text.contains(&other.credentials.fingerprint.to_string()) && text.contains("hint:"),
        "{text}"
    );
    run.counts(Counts {
        strangers: 1,
        ..Counts::default()
    });
    run.still_lets_in(0);
}

#[test]
fn strangers_are_counted() {
    let run = Run::of(1);
    let knock = |what: &[u8]| {
        let mut socket = TcpStream::connect(run.listener.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(what).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        // What it says is TLS's alert, or nothing.
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(answer.len() < 64, "{answer:?}");
    };
    knock(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    knock(b"");
    knock(&[0x16, 3, 1]);
    drop(stranger(run.listener.address()));
    run.counts(Counts {
        strangers: 4,
        ..Counts::default()
    });
    run.still_lets_in(0);
}

/// Takes any certificate.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::ED25519,
        ]
    }
}

/// Somebody who speaks TLS and has no token. The handshake is over.
fn stranger(address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let name = ServerName::try_from("x").unwrap();
    let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    while tls.is_handshaking() {
        tls.complete_io(&mut socket).unwrap();
    }
    assert_eq!(
        tls.protocol_version(),
        Some(rustls::ProtocolVersion::TLSv1_3)
    );
    StreamOwned::new(tls, socket)
}

#[test]
fn garbage_is_counted() {
    let run = Run::of(1);
    let say = |what: &[u8]| {
        let mut stream = stranger(run.listener.address());
        // It may have been cut off before all is said.
        let _ = stream.write_all(what);
        let _ = stream.flush();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        heard
    };
    let framed = |what: &[u8]| [&(what.len() as u32).to_be_bytes()[..], what].concat();
    let heard = say(&framed(b"{}"));
    let answer = frames::read::<Answer>(&mut &heard[..]).unwrap().unwrap();
    assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    say(&framed(b"\xff\xfe\x00"));
    say(&framed(&vec![b' '; LONGEST]));
    // Longer than a hello is; nothing of it is waited for.
    assert!(say(&(1u32 << 30).to_be_bytes()).is_empty());
    assert!(say(&framed(&vec![b' '; 1 << 20])).is_empty());
    run.counts(Counts {
        garbage: 5,
        ..Counts::default()
    });
    // TLS that is none after the handshake.
    let mut stream = stranger(run.listener.address());
    stream.sock.write_all(&[0x17, 3, 3, 0, 40]).unwrap();
    stream.sock.write_all(&[0; 40]).unwrap();
    run.counts(Counts {
        garbage: 6,
        ..Counts::default()
    });
    run.still_lets_in(0);
}

/// A hello of which not all may be read is answered by nothing: who says too much is not heard out.
#[test]
fn bytes_are_limited() {
    let long = [&4_000u32.to_be_bytes()[..], &[b' '; 4_000]].concat();
    for (bytes, answered) in [(600, false), (16 << 10, true)] {
        let limits = Limits {
            bytes,
            time: PATIENCE,
            ..Limits::default()
        };
        let run = Run::with(1, limits);
        let mut stream = stranger(run.listener.address());
        // It may have been cut off before all is said.
        let _ = stream.write_all(&long);
        let _ = stream.flush();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert_eq!(!heard.is_empty(), answered, "{bytes}: {heard:?}");
        run.counts(Counts {
            garbage: 1,
            ..Counts::default()
        });
    }
}

#[test]
fn other_versions_and_sizes_are_refused() {
    let run = Run::of(2);
    let mut stream = stranger(run.listener.address());
    frames::write(&mut stream, &serde_json::json!({"join": 2, "new": true})).unwrap();
    let answer = frames::read::<Answer>(&mut stream).unwrap();
    let Some(Answer::Refused { why }) = answer else {
        panic!("{answer:?}");
    };
    assert!(why.contains("version 2") && why.contains("hint:"), "{why}");
    let mut other = run.dial(1);
    other.rank.size = Some(9);
    let why = refused(join(&other));
    assert!(why.contains("one of 9") && why.contains("has 2"), "{why}");
    run.counts(Counts {
        mismatched: 2,
        ..Counts::default()
    });
    other.rank.size = Some(2);
    join(&other).unwrap();
}

#[test]
fn silence_ends() {
    let limits = Limits {
        time: Duration::from_millis(300),
        ..Limits::default()
    };
    let run = Run::with(1, limits);
    let mut silent = TcpStream::connect(run.listener.address()).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    // One that says something now and then has no more time.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut slow = TcpStream::connect(run.listener.address()).unwrap();
            let record = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0; 400]].concat();
            for byte in record {
                if over.load(Ordering::Relaxed) || slow.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        run.counts(Counts {
            silent: 2,
            ..Counts::default()
        });
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or(0), 0, "it was let go");
}

/// Connections that are opened faster than they end take each other's place; a worker gets in between.
#[test]
fn a_flood_keeps_no_worker_out() {
    let limits = Limits {
        pending: 8,
        time: PATIENCE,
        ..Limits::default()
    };
    let run = Run::with(2, limits);
    let address = run.listener.address();
    let mut idle = Vec::new();
    idle.extend((0..40).map(|_| TcpStream::connect(address).unwrap()));
    run.expect("those above eight had to go", |counts| counts.crowded >= 32);
    run.still_lets_in(0);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = TcpStream::connect(address);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let before = run.listener.counts();
        let came = |counts: Counts| counts.crowded + counts.strangers;
        run.expect("a flood", |counts| came(counts) > came(before) + 50);
        run.still_lets_in(1);
        over.store(true, Ordering::Relaxed);
    });
    let counts = run.listener.counts();
    assert_eq!(
        (counts.joined, counts.wrong_token, counts.replayed),
        (2, 0, 0)
    );
    let started = Instant::now();
    drop(run);
    assert!(
        started.elapsed() < PATIENCE,
        "those who wait do not keep it from ending"
    );
}

#[test]
fn a_conductor_may_come_later() {
    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(1).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| join(&dial(address, credentials.clone(), 0)));
        std::thread::sleep(Duration::from_millis(400));
        let options = Options {
            address,
            ..Options::default()
        };
        let listener = Listener::start(&identity, &credentials, options).unwrap();
        worker.join().unwrap().unwrap();
        assert_eq!(listener.all(PATIENCE).unwrap().len(), 1);
    });
}

#[test]
fn who_is_not_there_is_told() {
    let run = Run::of(12);
    run.still_lets_in(4);
    drop(stranger(run.listener.address()));
    run.counts(Counts {
        joined: 1,
        strangers: 1,
        ..Counts::default()
    });
    let missing = run.listener.all(Duration::from_millis(100)).unwrap_err();
    assert_eq!(missing.missing, [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]);
    let text = missing.to_string();
    assert!(
        text.contains("11 of 12")
            && text.contains("9, 10, ...")
            && text.contains("1 left without a word"),
        "{text}"
    );

    let nobody = dial(run.listener.address(), run.credentials.clone(), 0);
    drop(run);
    let nobody = Dial {
        patience: Duration::from_millis(300),
        ..nobody
    };
    let error = join(&nobody).unwrap_err();
    assert!(matches!(error, JoinError::NotReached { .. }), "{error}");
}

/// A process with a monotonic clock of its own is on the same kernel, and has not the same clock.
#[test]
fn a_time_namespace_is_another_clock() {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["-U", "-r"]);
    }
    command.args(["-T", "--monotonic", "5", "readlink", "/proc/self/ns/time"]);
    let output = command.output().expect("unshare, of util-linux");
    assert!(output.status.success(), "{output:?}");
    let here = Machine::here();
    let there = Machine {
        time_namespace: String::from_utf8(output.stdout).unwrap().trim().into(),
        ..here.clone()
    };
    assert!(there.time_namespace.starts_with("time:["), "{there:?}");
    assert!(!here.shares_clock(&there), "{here:?} {there:?}");
}

#[test]
fn it_listens_on_loopback_unless_asked() {
    assert!(Options::default().address.ip().is_loopback());
    assert!(Run::of(1).listener.address().ip().is_loopback());
}

#[test]
fn no_secret_is_in_debug_output() {
    let run = Run::of(1);
    let text = run.credentials.text();
    let token = text.lines().last().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(token.len(), 64);
    let member = run.join(0);
    let joined = run.listener.next(PATIENCE).unwrap();
    let bytes: Vec<u8> = (0..32)
        .map(|n| u8::from_str_radix(&token[2 * n..2 * n + 2], 16).unwrap())
        .collect();
    let listed = format!("{:?}", &bytes[..8]);
    let listed = listed.trim_matches(['[', ']']);
    for text in [
        format!("{:?}", run.credentials),
        format!("{:?}", run.dial(0)),
        format!("{:?}", run.listener),
        format!("{member:?}"),
        format!("{joined:?}"),
    ] {
        assert!(!text.contains(token) && !text.contains(listed), "{text}");
    }
}
