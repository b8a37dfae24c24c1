//! A program that runs.

use std::process::Child;
use std::time::{Duration, Instant};

use super::{Done, PATIENCE, Place, code, kill};

/// Standard error of what was started last.
fn said_in(place: &Place) -> String {
    let said = std::fs::read(place.folder.path().join("stderr")).unwrap_or_default();
    String::from_utf8_lossy(&said).into_owned()
}

/// Where a program that said this answers over HTTP; `None` before it has said so.
pub fn listens_at(said: &str) -> Option<String> {
    let address = said.split("http://").nth(1)?.split('/').next()?;
    Some(address.to_owned())
}

/// A program that runs; killed if the test gives up.
pub struct Started<'a> {
    pub(super) place: &'a Place,
    pub(super) child: Child,
}

impl Started<'_> {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    /// Waits until something holds, while it runs.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            if let Some(status) = self.child.try_wait().unwrap() {
                let done = self.outcome(code(status));
                panic!("the program ended before {what}: {done:?}");
            }
            assert!(Instant::now() < end, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until this stands in its standard error.
    #[track_caller]
    pub fn until_said(&mut self, text: &str) {
        let place = self.place;
        self.until(text, || said_in(place).contains(text));
    }

    /// Where it answers over HTTP, once it has said so.
    #[track_caller]
    pub fn address(&mut self) -> String {
        let place = self.place;
        let mut found = None;
        self.until("an address", || {
            found = listens_at(&said_in(place));
            found.is_some()
        });
        found.unwrap_or_default()
    }

    /// Its standard error so far.
    pub fn said_so_far(&self) -> String {
        said_in(self.place)
    }

    /// The processes of systems that it started: those that live here with another command
    /// line than the program itself and its guards, which are forks of it.
    pub fn systems(&self) -> Vec<i32> {
        let own = std::fs::read(format!("/proc/{}/cmdline", self.pid())).unwrap_or_default();
        let own = String::from_utf8_lossy(&own).replace('\0', " ");
        let others = self.place.processes().into_iter();
        others
            .filter(|(_, line)| *line != own)
            .map(|(pid, _)| pid)
            .collect()
    }

    /// Waits for the end, which must come within this time.
    #[track_caller]
    pub fn ends_within(mut self, time: Duration) -> Done {
        let end = Instant::now() + time;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return self.outcome(code(status));
            }
            assert!(
                Instant::now() < end,
                "the program has not ended within {time:?}: {:?}",
                self.outcome(0)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait_for_end(self) -> Done {
        self.ends_within(PATIENCE)
    }

    fn outcome(&self, code: i32) -> Done {
        let text = |name: &str| {
            let bytes = std::fs::read(self.place.folder.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Done {
            code,
            out: text("stdout"),
            err: text("stderr"),
        }
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
