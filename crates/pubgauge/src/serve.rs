//! `pubgauge serve`: the built-in systems, in the foreground, each in a process of its own so that
//! its processor time can be measured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pubgauge_command::exit::{Ending, FINE, print};
use pubgauge_driver::Settings;
use pubgauge_driver_zeromq::ForwarderAddress;
use pubgauge_driver_zeromq::forwarder::{self, ForwarderOptions};
use pubgauge_results::store;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::ServeVerb;

/// Largest file of settings, bytes.
const MAX_SETTINGS: u64 = 1 << 20;

/// Serves until SIGTERM or SIGINT.
pub fn serve(verb: &ServeVerb) -> Result<i32, Ending> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, stop.clone()).map_err(Ending::not_valid)?;
    }
    // For many idle clients; if it is not permitted, the present limit holds.
    let _ = pubgauge_testbed::raise_nofile();
    match verb {
        ServeVerb::ReferenceBroker {
            listen,
            cpu_per_message,
        } => {
            print(
                "pubgauge reference broker: MQTT in memory, to measure against; no broker for production\n",
            );
            let options = pubgauge_broker::Options {
                listen: *listen,
                cpu_per_message: *cpu_per_message,
                ..Default::default()
            };
            pubgauge_broker::run(
                options,
                |address| print(&format!("ready {address}\n")),
                &stop,
            )
            .map_err(Ending::not_valid)?;
        }
        ServeVerb::ZeromqForwarder {
            publishers,
            subscribers,
            settings,
        } => {
            let settings = read_settings(settings.as_deref())?;
            let address = forwarder_address(publishers, subscribers)?;
            let options = ForwarderOptions::new(address, &settings).map_err(Ending::bad_input)?;
            let counts = forwarder::run(
                &options,
                |address| print(&format!("ready {address}\n")),
                &stop,
            )
            .map_err(Ending::not_valid)?;
            print(&format!("forwarded {} messages\n", counts.messages));
        }
    }
    Ok(FINE)
}

fn read_settings(path: Option<&Path>) -> Result<Settings, Ending> {
    let Some(path) = path else {
        return Ok(Settings::default());
    };
    let wrong = |e: &dyn std::fmt::Display| {
        Ending::bad_input(format!("--settings {}: {e}", path.display()))
    };
    let text = store::read_text(path, MAX_SETTINGS).map_err(|e| wrong(&e))?;
    serde_json::from_str(&text).map_err(|e| wrong(&e))
}

fn forwarder_address(publishers: &str, subscribers: &str) -> Result<ForwarderAddress, Ending> {
    let both = |scheme| {
        let publishers = publishers.strip_prefix(scheme)?;
        Some((publishers, subscribers.strip_prefix(scheme)?))
    };
    let joined = if let Some((publishers, subscribers)) = both("tcp://") {
        let port = subscribers.rsplit_once(':');
        let port = port.map_or(subscribers, |(_, port)| port);
        format!("zmq-forwarder+tcp://{publishers},{port}")
    } else if let Some((publishers, subscribers)) = both("ipc://") {
        format!("zmq-forwarder+ipc://{publishers},{subscribers}")
    } else {
        return Err(Ending::bad_input(
            "--publishers and --subscribers want addresses of the same kind, tcp://HOST:PORT or ipc://PATH",
        ));
    };
    joined.parse().map_err(Ending::bad_input)
}
