//! Servers on a thread of the test.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// A server on a thread of the test, reached at an `A`, that gives a `C` at its end. It ends when this is dropped.
pub struct Background<A, C> {
    /// Where it is reached.
    pub address: A,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<C>>,
}

impl<A: Send + 'static, C: Send + 'static> Background<A, C> {
    /// Starts `serve`, which tells its address once and runs until the flag is set.
    ///
    /// # Panics
    /// If it ends without having told its address.
    #[track_caller]
    pub fn start(serve: impl FnOnce(&dyn Fn(A), &AtomicBool) -> C + Send + 'static) -> Self {
        let (tell, told) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let ready = move |address| tell.send(address).expect("the test waits");
        let thread = std::thread::spawn(move || serve(&ready, &flag));
        Background {
            address: told.recv().expect("it serves"),
            stop,
            thread: Some(thread),
        }
    }
}

impl<A, C> Background<A, C> {
    /// Ends it; what it gives.
    ///
    /// # Panics
    /// If it has panicked.
    #[track_caller]
    pub fn stop(mut self) -> C {
        self.join().expect("it runs").expect("it ends well")
    }

    fn join(&mut self) -> Option<std::thread::Result<C>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join)
    }
}

impl<A, C> Drop for Background<A, C> {
    fn drop(&mut self) {
        let ended = self.join();
        if !std::thread::panicking() {
            ended.map(|ended| ended.expect("it ends well"));
        }
    }
}

/// Runs a script on a port of its own.
///
/// # Panics
/// If no port is left.
pub fn scripted(script: impl FnOnce(TcpListener) + Send + 'static) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (port, std::thread::spawn(move || script(listener)))
}
