//! Removes the files that the library leaves in `/dev/shm` when its process is killed.
//!
//! The shared-memory transport and data sharing keep files there, which the library removes only on
//! an orderly exit. While a fleet of this process uses them, a shell process waits for the end of
//! this process (the end of its own standard input) and then removes the files whose owner is dead:
//! locked files by trying their lock, as the library's own `fastdds shm clean` does; files of data
//! sharing by the number of the process, which is part of their name.

use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use pubgauge_driver::{Attempt, DriverError};

/// Files: `fastrtps_ID` and `fastrtps_portN` with a lock each (`_el`, exclusive; `_sl`, shared)
/// and a semaphore; `fast_datasharing_` with the GUID of the writer or reader.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
read -r _
for lock in /dev/shm/fastrtps_*_el /dev/shm/fastrtps_*_sl; do
    [ -e "$lock" ] || continue
    base=${lock%_?l}
    flock -n "$lock" true && rm -f "$base" "$lock" "/dev/shm/sem.${base##*/}_mutex"
done
rm -f /dev/shm/fast_datasharing_??.??.??.??."$1".*
"#;

static AT_WORK: Mutex<(usize, Option<Child>)> = Mutex::new((0, None));

/// Keeps the shell process running until the last one is dropped.
#[derive(Debug)]
pub(crate) struct Janitor(());

impl Janitor {
    /// Starts the shell process, unless it runs already.
    ///
    /// # Errors
    /// If `/bin/sh` cannot be started.
    pub(crate) fn engage() -> Result<Self, DriverError> {
        let mut state = AT_WORK.lock().expect("nobody panics with this lock");
        if state.1.is_none() {
            let process = std::process::id().to_le_bytes();
            let process = process.map(|byte| format!("{byte:02x}")).join(".");
            let child = Command::new("/bin/sh")
                .args(["-c", SCRIPT, "pubgauge-shm-janitor", &process])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| {
                    let what = "cannot start /bin/sh to look after /dev/shm";
                    DriverError::of_io(what, Attempt::Start, &error).or_hint(
                        "leave out transport = \"shared-memory\" and native.fastdds.data-sharing",
                    )
                })?;
            state.1 = Some(child);
        }
        state.0 += 1;
        Ok(Janitor(()))
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        let mut state = AT_WORK.lock().expect("nobody panics with this lock");
        state.0 -= 1;
        if state.0 == 0
            && let Some(mut child) = state.1.take()
        {
            // Closes its standard input; it then cleans, which takes milliseconds, and ends.
            let _ = child.wait();
        }
    }
}
