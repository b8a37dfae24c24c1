//! A hypervisor that takes processor time, as the kernel would tell of it. The kernel's figures are replaced where they are
//! mounted alone; its clock is no part of them, so that a busy machine changes nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The text of `/proc/stat` of a machine with two processors after some seconds: half of the time is idle, a hypervisor
/// takes `percent`, programs have the rest. All texts have the same length.
fn machine_time(seconds: u64, percent: u64) -> String {
    let (idle, stolen) = (seconds * 100, seconds * 2 * percent);
    let user = seconds * 200 - idle - stolen;
    format!("cpu  {user:012} 0 0 {idle:012} 0 0 0 {stolen:012} 0 0\n")
}

/// Does `what` while the file `stat`, to be mounted at `/proc/stat`, tells of a hypervisor that takes `percent` of all
/// processors' time.
pub fn takes<T>(percent: u64, stat: &Path, what: impl FnOnce() -> T) -> T {
    std::fs::write(stat, machine_time(1, percent)).unwrap();
    let file = File::options().write(true).open(stat).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seconds in (2..).take_while(|_| !over.load(Ordering::Relaxed)) {
                let text = machine_time(seconds, percent);
                file.write_all_at(text.as_bytes(), 0).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what));
        over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
