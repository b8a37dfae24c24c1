//! A disk of the test's own, whose power can be cut: ext4 on a loop device. Takes root.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// FS_IOC_SHUTDOWN of ext4 and XFS.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
/// Neither data nor journal is flushed.
static NOTHING_FLUSHED: u32 = 2;

/// A mounted loop device.
pub struct Loop {
    pub folder: PathBuf,
    device: String,
}

fn run(command: &str, args: &[&str]) -> String {
    let done = Command::new(command).args(args).output();
    let done = done.unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(
        done.status.success(),
        "{command} {args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

impl Loop {
    pub fn new(place: &Path, mebibytes: u64) -> Loop {
        let image = place.join("disk.img");
        File::create(&image)
            .unwrap()
            .set_len(mebibytes << 20)
            .unwrap();
        let image = image.to_str().unwrap();
        run("mkfs.ext4", &["-q", "-F", image]);
        let device = run("losetup", &["--find", "--show", image]);
        let folder = place.join("disk");
        std::fs::create_dir(&folder).unwrap();
        let disk = Loop { folder, device };
        disk.mount();
        disk
    }

    fn mount(&self) {
        run("mount", &[&self.device, self.folder.to_str().unwrap()]);
    }

    /// Shuts the file system down: what was not written to the disk is lost, and later writes fail.
    pub fn lose_power(&mut self) {
        let folder = File::open(&self.folder).unwrap();
        let above = self.folder.parent().unwrap().metadata().unwrap();
        // The call acts on the whole file system: never on that of the host.
        assert_ne!(folder.metadata().unwrap().dev(), above.dev());
        // SAFETY: the descriptor is open, and the call reads one u32.
        let cut = unsafe { libc::ioctl(folder.as_raw_fd(), SHUTDOWN, &raw const NOTHING_FLUSHED) };
        assert_eq!(cut, 0, "{}", std::io::Error::last_os_error());
    }

    /// The folder as a start after the power loss finds it. Nobody may have files open there.
    pub fn mount_again(&mut self) {
        run("umount", &[self.folder.to_str().unwrap()]);
        self.mount();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        for (command, args) in [
            ("umount", ["-l", self.folder.to_str().unwrap()]),
            ("losetup", ["-d", &self.device]),
        ] {
            let _ = Command::new(command).args(args).output();
        }
    }
}
