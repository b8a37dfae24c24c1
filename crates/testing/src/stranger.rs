//! A stranger's port, which keeps every byte that it gets.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A port of the loopback address that keeps what is sent to it, and answers nothing.
pub struct StrangersPort {
    /// Where it listens.
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl StrangersPort {
    /// Begins to listen.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start() -> StrangersPort {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<u8>>>::default();
        let keep = heard.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                // Only against hanging: whoever comes and says nothing has said nothing.
                let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
                let mut bytes = vec![0; 65536];
                let got = stream.read(&mut bytes).unwrap_or(0);
                keep.lock().unwrap().extend_from_slice(&bytes[..got]);
            }
        });
        StrangersPort { address, heard }
    }

    /// All that it got, as text.
    ///
    /// # Panics
    /// If its thread has panicked.
    pub fn received_text(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}
