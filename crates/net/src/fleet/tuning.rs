//! How a fleet over TCP is opened, and the settings that mean the same for every protocol.

use pubgauge_driver::{Batching, OnFull, Resolution, Settings, Transport, becomes, cannot, spelt};

use crate::out::OUT_CAP;
use crate::socket::{NameLookup, SocketOptions};

/// Bytes gathered before they are written, unless the settings say otherwise. Beyond 16 KiB a
/// larger write saves next to nothing.
const DEFAULT_BATCH: usize = 16 << 10;

/// How a fleet over TCP is opened, whatever its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Messages are dropped where they would have to wait.
    pub drop_when_full: bool,
    /// Bytes gathered before they are written; 0 means a write for every message.
    pub batch: usize,
    pub socket: SocketOptions,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning {
            drop_when_full: false,
            batch: DEFAULT_BATCH,
            socket: SocketOptions::default(),
        }
    }
}

/// A protocol's words in the answers to settings.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The protocol's name.
    pub protocol: &'static str,
    /// Units that gather before they are written.
    pub units: &'static str,
    /// One of the units, written by itself with batching off.
    pub unit: &'static str,
    /// Mapping of `transport`: TCP, and where TLS comes in.
    pub tcp: &'static str,
    /// Why any other transport is refused.
    pub not_tcp: &'static str,
}

impl Tuning {
    /// Applies the settings. The answers to `batching`, `multicast` and `transport` go to
    /// the table; that to `on-full` depends on the protocol's own window.
    pub fn resolve(
        settings: &Settings,
        socket: SocketOptions,
        terms: Terms,
        table: &mut Resolution,
    ) -> Tuning {
        table.absent(
            "multicast",
            &settings.multicast,
            "off: one TCP copy for each subscriber",
            &format!(
                "{} runs over TCP: the server sends each subscriber its own copy; leave it out",
                terms.protocol
            ),
        );
        table.decide(
            "transport",
            settings.transport,
            |transport| match transport {
                None | Some(Transport::Tcp) => becomes(terms.tcp),
                Some(_) => cannot(terms.not_tcp),
            },
        );
        Tuning {
            drop_when_full: settings.on_full == Some(OnFull::Drop),
            batch: batch(settings, terms, table),
            socket,
        }
    }
}

/// Bytes gathered before they are written.
fn batch(settings: &Settings, terms: Terms, table: &mut Resolution) -> usize {
    let Terms { units, unit, .. } = terms;
    let value = spelt(&settings.batching);
    let until = |bytes: &str| {
        format!(
            "{units} gather until {bytes} or until the worker has nothing due, whichever is first"
        )
    };
    match settings.batching {
        None | Some(Batching::Adaptive) => table.row("batching", value, until("16 KiB")),
        Some(Batching::Off) => {
            table.row("batching", value, format!("one write per {unit}"));
            return 0;
        }
        Some(Batching::Bytes(0)) => table.refuse(
            "batching",
            "0 bytes",
            format!("use batching = \"off\" for one write per {unit}"),
        ),
        Some(Batching::Bytes(n)) if n as usize > OUT_CAP => table.refuse(
            "batching",
            format!("{n} bytes"),
            format!("at most {OUT_CAP} bytes wait in the driver"),
        ),
        Some(Batching::Bytes(n)) => {
            table.row("batching", value, until(&format!("{n} bytes")));
            return n as usize;
        }
    }
    DEFAULT_BATCH
}

impl Default for SocketOptions {
    /// One look-up, `TCP_NODELAY`, and the kernel's sizes of buffers.
    fn default() -> Self {
        SocketOptions {
            name_lookup: NameLookup::Once,
            no_delay: true,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
        }
    }
}
