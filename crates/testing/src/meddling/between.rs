//! Somebody between a client and a server who changes, delays or ends what the server sends.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::Scripted;
use crate::hostile::{Dice, mutated};

/// Changes to what a server sends, from a byte on.
#[derive(Clone, Copy, Debug)]
pub enum Meddling {
    /// Each piece is changed.
    Changes,
    /// Nothing more comes, and the connection stays.
    Stalls,
    /// The connection ends.
    Ends,
    /// The server's side of the connection ends.
    EndsHalf,
    /// Bytes without sense, as fast as they are taken, up to 64 MiB.
    Floods,
    /// One byte a millisecond.
    Drips,
    /// All that was sent so far comes again.
    Repeats,
}

/// All of them.
pub const MEDDLINGS: [Meddling; 7] = [
    Meddling::Changes,
    Meddling::Stalls,
    Meddling::Ends,
    Meddling::EndsHalf,
    Meddling::Floods,
    Meddling::Drips,
    Meddling::Repeats,
];

/// One connection's: what has passed of it, and what comes of the rest.
struct Between {
    meddling: Meddling,
    from_byte: usize,
    passed: Vec<u8>,
    dice: Dice,
}

impl Between {
    fn pass(&mut self, bytes: &[u8], to: &mut TcpStream, stop: &AtomicBool) -> io::Result<()> {
        let room = self.from_byte.saturating_sub(self.passed.len());
        let (before, rest) = bytes.split_at(room.min(bytes.len()));
        self.passed.extend_from_slice(before);
        write(to, before, stop)?;
        if rest.is_empty() {
            return Ok(());
        }
        match self.meddling {
            Meddling::Changes => write(to, &mutated(rest, &mut self.dice), stop),
            Meddling::Stalls => Ok(()),
            Meddling::Ends => Err(io::ErrorKind::ConnectionAborted.into()),
            Meddling::EndsHalf => {
                let _ = to.shutdown(Shutdown::Write);
                Ok(())
            }
            Meddling::Floods => {
                for _ in 0..1024 {
                    let block: Vec<u8> = (0..8192)
                        .flat_map(|_| self.dice.throw().to_le_bytes())
                        .collect();
                    write(to, &block, stop)?;
                }
                Ok(())
            }
            Meddling::Drips => rest.iter().try_for_each(|byte| {
                std::thread::sleep(Duration::from_millis(1));
                write(to, &[*byte], stop)
            }),
            Meddling::Repeats => {
                self.passed.extend_from_slice(rest);
                let again = std::mem::take(&mut self.passed);
                write(to, &again, stop)
            }
        }
    }
}

/// Writes all of it, unless the meddler is to stop.
fn write(to: &mut TcpStream, mut bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if matches!(e.kind(), WouldBlock | TimedOut | Interrupted) => {
                if stop.load(Ordering::Relaxed) {
                    return Err(e);
                }
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Somebody in front of a port, who meddles with every second connection or with all.
fn meddler(port: u16, meddling: Meddling, dice: &mut Dice) -> Scripted {
    // From the first bytes of a handshake to the midst of the messages.
    let most = dice.one_of(&[8, 64, 512, 4096, 65_536]);
    let (seed, every) = (dice.throw(), 1 + dice.below(2) as u64);
    let connections = AtomicU64::new(0);
    Scripted::meddling(port, move || {
        let n = connections.fetch_add(1, Ordering::Relaxed);
        let mut dice = Dice::new(seed.wrapping_add(n));
        let from_byte = match n % every {
            0 => dice.below(most),
            _ => usize::MAX,
        };
        let mut between = Between {
            meddling,
            from_byte,
            passed: Vec::new(),
            dice,
        };
        move |bytes: &[u8], to: &mut TcpStream, stop: &AtomicBool| between.pass(bytes, to, stop)
    })
}

/// The endpoint with a meddler in front of each of its ports, and they.
///
/// # Panics
/// If the endpoint has no port, or none is free.
pub fn meddled(endpoint: &str, meddling: Meddling, dice: &mut Dice) -> (String, Vec<Scripted>) {
    let (scheme, rest) = endpoint.split_once("://").unwrap();
    let (place, path) = match rest.split_once('/') {
        Some((place, path)) => (place, format!("/{path}")),
        None => (rest, String::new()),
    };
    let (host, ports) = place.rsplit_once(':').unwrap();
    let meddlers: Vec<Scripted> = ports
        .split(',')
        .map(|port| meddler(port.parse().unwrap(), meddling, dice))
        .collect();
    let ports: Vec<String> = meddlers.iter().map(|m| m.port.to_string()).collect();
    (
        format!("{scheme}://{host}:{}{path}", ports.join(",")),
        meddlers,
    )
}
