//! Who has no business at a conductor's socket: refused and counted, and no worker is kept out.

use crate::common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{PATIENCE, Run, dial, refused};
use pubgauge_engine::link::frames;
use pubgauge_hosts::hello::{Answer, LONGEST};
use pubgauge_hosts::{Counts, Dial, JoinError, Limits, join};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

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
