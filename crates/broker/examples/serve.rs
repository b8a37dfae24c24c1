//! The reference broker as a program of its own, for trying it out by hand:
//! `cargo run --release -p pubgauge-broker --example serve -- 127.0.0.1:1883`.
//! It ends when its standard input does.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use pubgauge_broker::{Options, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    if let Some(listen) = std::env::args().nth(1) {
        options.listen = listen.parse()?;
    }
    let stop = AtomicBool::new(false);
    let counters = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        });
        let ready = |address| {
            println!("reference broker, for measuring against, not for production: {address}");
        };
        run(options, ready, &stop)
    })?;
    println!("{counters:#?}");
    Ok(())
}
