//! Folders that belong to a process. They are locked as long as the process lives, so that the
//! folder of a killed process can be told from one in use, and removed.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::residents::end_residents;

/// A folder of this process, removed when this is dropped.
///
/// It is locked (`flock` on the folder itself) until the process ends, in whatever way. Programs
/// that pubgauge starts do not inherit the lock.
#[derive(Debug)]
pub struct OwnedFolder {
    path: PathBuf,
    /// Holds the lock by being open.
    _lock: File,
    in_place: bool,
    remove: Remove,
}

/// Random letters and digits behind a prefix: so many that nobody gives a folder of their own such a name.
const RANDOM: usize = 16;

/// How a folder is removed.
type Remove = fn(&Path) -> io::Result<()>;

impl OwnedFolder {
    /// Makes a folder `PREFIX` + random letters in `parent`, for this user only. Folders with this
    /// prefix whose process is gone are removed first.
    ///
    /// # Errors
    /// If it cannot be made or locked.
    pub fn create(parent: &Path, prefix: &str) -> io::Result<Self> {
        Self::create_removed_by(parent, prefix, |path| std::fs::remove_dir_all(path))
    }

    /// As [`OwnedFolder::create`], but `remove` removes the folder, and those that earlier
    /// processes left.
    pub(crate) fn create_removed_by(
        parent: &Path,
        prefix: &str,
        remove: Remove,
    ) -> io::Result<Self> {
        sweep(parent, prefix, remove);
        loop {
            let path = tempfile::Builder::new()
                .prefix(prefix)
                .rand_bytes(RANDOM)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(parent)?
                .keep();
            // Another process may remove it before it is locked: then this one tries again.
            let lock = match open_folder(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            flock(&lock, FlockOperation::LockExclusive)?;
            let same = |seen: &std::fs::Metadata, ours: &std::fs::Metadata| {
                (seen.dev(), seen.ino()) == (ours.dev(), ours.ino())
            };
            match std::fs::symlink_metadata(&path) {
                Ok(seen) if same(&seen, &lock.metadata()?) => {
                    return Ok(OwnedFolder {
                        path,
                        _lock: lock,
                        in_place: false,
                        remove,
                    });
                }
                _ => {}
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the finished folder its final name; dropping this then leaves it.
    ///
    /// # Errors
    /// An error of the rename, above all if something of that name exists; the folder is removed then.
    pub fn into_place(mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)?;
        self.in_place = true;
        Ok(())
    }
}

impl Drop for OwnedFolder {
    fn drop(&mut self) {
        if !self.in_place {
            // A folder that cannot be removed now is removed later, by another process.
            let _ = (self.remove)(&self.path);
        }
    }
}

/// Removes the folders in `parent` whose name is `prefix` and random letters, that are this user's and
/// that no process has locked.
fn sweep(parent: &Path, prefix: &str, remove: Remove) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        if !is_made_here(&entry.file_name(), prefix) {
            continue;
        }
        let path = entry.path();
        let Ok(folder) = open_folder(&path) else {
            continue;
        };
        let ours = folder.metadata().is_ok_and(|meta| meta.uid() == user);
        if ours && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Its systems' guards may have been killed with it. Processes that cannot be ended, and files that
            // they still write, are left to the next time.
            end_residents(&path);
            let _ = remove(&path);
        }
    }
}

/// Whether a name is one of those that are given here: a user may have folders that begin alike.
fn is_made_here(name: &OsStr, prefix: &str) -> bool {
    let random = name.as_encoded_bytes().strip_prefix(prefix.as_bytes());
    random.is_some_and(|random| {
        random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

/// Opens a folder; the target of a symbolic link is an error.
fn open_folder(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_not_swept_and_what_is_left_is() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("x-0123456789abcdef");
        std::fs::create_dir_all(left.join("deep")).unwrap();
        std::fs::create_dir(parent.path().join("other")).unwrap();
        // A folder that a user calls alike is the user's.
        std::fs::create_dir_all(parent.path().join("x-results/trials")).unwrap();
        std::os::unix::fs::symlink("/", parent.path().join("x-link")).unwrap();
        std::fs::write(parent.path().join("x-file"), "").unwrap();
        let first = OwnedFolder::create(parent.path(), "x-").unwrap();
        assert!(!left.exists());
        let second = OwnedFolder::create(parent.path(), "x-").unwrap();
        assert!(first.path().is_dir() && second.path().is_dir());
        let mode = first.path().metadata().unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "for this user only");
        let gone = first.path().to_owned();
        drop(first);
        assert!(!gone.exists());
        let target = parent.path().join("done");
        second.into_place(&target).unwrap();
        assert!(target.is_dir());
        for kept in ["other", "x-results", "x-link", "x-file", "done"] {
            assert!(
                parent.path().join(kept).symlink_metadata().is_ok(),
                "{kept}"
            );
        }
        // A place that is taken keeps what it has.
        std::fs::write(target.join("a"), "").unwrap();
        let third = OwnedFolder::create(parent.path(), "x-").unwrap();
        let path = third.path().to_owned();
        assert!(third.into_place(&target).is_err());
        assert!(target.join("a").exists() && !path.exists());
    }

    #[test]
    fn many_at_once_do_not_sweep_each_other() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let folder = OwnedFolder::create(parent.path(), "x-").unwrap();
                        std::fs::write(folder.path().join("a"), "mine").unwrap();
                        assert!(folder.path().join("a").exists());
                    }
                });
            }
        });
        assert_eq!(parent.path().read_dir().unwrap().count(), 0);
    }
}
