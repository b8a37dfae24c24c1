//! Folders that files are written below: no symbolic link there is followed, whoever made it.
//!
//! The folder of a run may be a stranger's, with links where files are to be written. A [`OpenFolder`] is reached by the
//! path that the user named, links in it included; all below it by descriptor, without links. A file is created under
//! a name of its own (`.NAME.partial`), which takes the place of what stood there, and gets its name when it is whole.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// A folder that files are written below.
#[derive(Debug)]
pub struct OpenFolder {
    folder: File,
}

impl OpenFolder {
    /// Opens a folder that the user named.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(OpenFolder {
            folder: folder.into(),
        })
    }

    /// The same; the folder is made if there is none.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn made(path: &Path) -> io::Result<OpenFolder> {
        fs::create_dir_all(path)?;
        OpenFolder::open(path)
    }

    /// A folder in this one; it is made if there is none.
    ///
    /// # Errors
    /// If it is no folder, or a link to one.
    pub fn below(&self, name: &str) -> io::Result<OpenFolder> {
        match rustix::fs::mkdirat(
            &self.folder,
            one(name.as_ref())?,
            Mode::from_raw_mode(0o777),
        ) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = self.at(name.as_ref(), flags)?;
        Ok(OpenFolder {
            folder: folder.into(),
        })
    }

    /// Writes a file whole or not at all; what stood under its name is replaced. It is synced, its name is not.
    ///
    /// # Errors
    /// An error of the file system; nothing is left of the file then.
    pub fn write(&self, name: impl AsRef<OsStr>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.fill(name, |file| file.write_all(bytes.as_ref()))
    }

    /// As [`OpenFolder::write`], with what `fill` writes.
    ///
    /// # Errors
    /// As there, and those of `fill`.
    pub fn fill(
        &self,
        name: impl AsRef<OsStr>,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = one(name.as_ref())?;
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(PARTIAL);
        self.unlink(&partial)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = File::from(self.at(&partial, flags)?);
        let written = fill(&mut file)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.rename(&partial, name));
        if written.is_err() {
            let _ = self.unlink(&partial);
        }
        written
    }

    /// Gives a file or a folder another name; a file of that name is replaced.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (folder, from, to) = (&self.folder, one(from.as_ref())?, one(to.as_ref())?);
        Ok(rustix::fs::renameat(folder, from, folder, to)?)
    }

    /// Removes a folder with all that is in it, if there is one; of a link the link alone.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match fs::remove_dir_all(self.path().join(one(name.as_ref())?)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Syncs the names in it to the disk.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    /// Opens a file to be locked, which is made if there is none.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn lock_file(&self, name: &str) -> io::Result<File> {
        // Of a pipe this is an error instead of waiting for a reader.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK;
        Ok(File::from(self.at(name.as_ref(), flags)?))
    }

    /// Its path while it is open, whatever it is called now.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens what is in this folder under one name, unless it is a link.
    fn at(&self, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        let name = one(name)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if flags.contains(OFlags::CREATE) {
            Mode::from_raw_mode(0o666)
        } else {
            Mode::empty()
        };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = match openat2(&self.folder, name, flags, mode, beneath) {
            // A kernel before 5.6, or a container that does not know the call: one name that is no link leads nowhere
            // else.
            Err(Errno::NOSYS | Errno::PERM) => openat(&self.folder, name, flags, mode),
            opened => opened,
        };
        match opened {
            Err(Errno::LOOP) => Err(io::Error::other(
                "a symbolic link stands there, and nothing is written through one in the folder of a run",
            )),
            opened => Ok(opened?),
        }
    }
}

/// A name that stands for something in the folder itself.
fn one(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(name),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name:?} is no name of something in a folder"),
        )),
    }
}

/// How the name of a file ends that is not whole yet.
pub(crate) const PARTIAL: &str = ".partial";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_written_whole_and_through_no_link() {
        let all = tempfile::tempdir().unwrap();
        let (run, elsewhere) = (all.path().join("run"), all.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("file"), "theirs").unwrap();
        let place = OpenFolder::made(&run).unwrap();
        // Links under the name, under that of the part, and hard links too.
        symlink(elsewhere.join("file"), run.join("a")).unwrap();
        symlink(elsewhere.join("file"), run.join(".a.partial")).unwrap();
        fs::hard_link(elsewhere.join("file"), run.join("b")).unwrap();
        fs::hard_link(elsewhere.join("file"), run.join(".b.partial")).unwrap();
        symlink(elsewhere.join("new"), run.join(".lock")).unwrap();
        symlink(&elsewhere, run.join("folder")).unwrap();
        for name in ["a", "b"] {
            place.write(name, "ours").unwrap();
            assert_eq!(fs::read_to_string(run.join(name)).unwrap(), "ours");
            assert!(run.join(name).symlink_metadata().unwrap().is_file());
        }
        for refused in [
            place.below("folder").map(drop),
            place.below("..").map(drop),
            place.below("../elsewhere").map(drop),
            place.lock_file(".lock").map(drop),
        ] {
            assert!(refused.is_err());
        }
        place.remove("folder").unwrap();
        assert!(run.join("folder").symlink_metadata().is_err());
        let failed = place.fill("c", |_| Err(io::Error::other("no")));
        assert!(failed.is_err());
        let below = place.below("d").unwrap();
        below.write("e", "ours").unwrap();
        assert_eq!(fs::read_to_string(run.join("d/e")).unwrap(), "ours");
        let names = |folder: &Path| {
            let names = folder.read_dir().unwrap().map(|e| e.unwrap().file_name());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        assert_eq!(names(&run), [".lock", "a", "b", "d"]);
        assert_eq!(names(&elsewhere), ["file"]);
        assert_eq!(
            fs::read_to_string(elsewhere.join("file")).unwrap(),
            "theirs"
        );
        place.remove("d").unwrap();
        place.remove("d").unwrap();
        assert!(!run.join("d").exists());
    }
}
