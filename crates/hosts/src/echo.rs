//! The companion's end: says which host this is, and echoes questions for its clock until its input ends.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pubgauge_driver::Nanos;
use pubgauge_engine::link::frames;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::hello::Hello;
use crate::packet::{EchoKey, EchoPacket, LEN};

/// How often a companion shows that its host lives.
pub(crate) const BEAT: Duration = Duration::from_secs(1);
/// Packets that are taken between two looks at the input.
const AT_ONCE: usize = 256;

/// Reads the key from `input`, writes a [`Hello`] and then a beat each second to `output`, and answers questions with
/// readings of `clock`, until the input ends. `conductor` is the address whose side of this host the echo listens at.
///
/// # Errors
/// No route to the conductor; no socket; an output that nobody reads.
pub fn serve(
    conductor: IpAddr,
    mut input: impl Read + AsFd,
    mut output: impl Write,
    clock: impl Fn() -> Nanos,
) -> io::Result<()> {
    let Some(key) = frames::read_within(&mut input, 1 << 10)? else {
        return Ok(());
    };
    let key = EchoKey::from_bytes(key);
    let own = towards(conductor)?;
    let socket = UdpSocket::bind((own, 0))?;
    socket.set_nonblocking(true)?;
    let port = socket.local_addr()?.port();
    frames::write(&mut output, &Hello::from_here(own, port))?;
    let mut beat = Instant::now() + BEAT;
    loop {
        let now = Instant::now();
        if now >= beat {
            frames::write(&mut output, &())?;
            beat = now + BEAT;
        }
        let mut waiting = [
            PollFd::new(&socket, PollFlags::IN),
            PollFd::new(&input, PollFlags::IN),
        ];
        let left = Timespec::try_from(beat.saturating_duration_since(now)).ok();
        // A wait that a signal ended is a wait that found nothing.
        let _ = poll(&mut waiting, left.as_ref());
        let is_told = !waiting[1].revents().is_empty();
        // A bounded number, so that a flood does not keep it from being ended.
        for _ in 0..AT_ONCE {
            if !answer(&socket, &key, &clock) {
                break;
            }
        }
        // The conductor says nothing after the key: the input has ended, or has bytes that mean nothing.
        if is_told && input.read(&mut [0; 64])? == 0 {
            return Ok(());
        }
    }
}

/// This host's address towards another.
fn towards(other: IpAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = match other {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    // Nothing is sent: the kernel chooses the route.
    socket
        .connect((other, 9))
        .and_then(|()| socket.local_addr())
        .map(|own| own.ip())
        .map_err(|error| io::Error::new(error.kind(), format!("no route to {other}: {error}")))
}

/// Takes one packet and answers it if it is a question; returns whether there was one.
fn answer(socket: &UdpSocket, key: &EchoKey, clock: impl Fn() -> Nanos) -> bool {
    // One byte more, so that a longer packet is not taken for a whole one.
    let mut bytes = [0; LEN + 1];
    let Ok((length, from)) = socket.recv_from(&mut bytes) else {
        return false;
    };
    let received = clock();
    let question = EchoPacket::decode(&bytes[..length], key).filter(|packet| !packet.is_answer);
    if let Some(question) = question {
        let mut answer = EchoPacket {
            is_answer: true,
            received,
            ..question
        };
        answer.answered = clock();
        // An answer that cannot be sent is a lost one, which the asker asks for again.
        let _ = socket.send_to(&answer.encode(key), from);
    }
    true
}
