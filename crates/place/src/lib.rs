//! Folders that may be somebody else's: no symbolic link there is followed, whoever made it, and nothing is read but
//! regular files.
//!
//! The folder of a run or of a collector may be a stranger's, with links where files are to be written and pipes where
//! they are to be read. An [`OpenFolder`] is reached by the path that the user named, links in it included; all below
//! it by descriptor, without links. A file that is written whole is created under a name of its own
//! (`.NAME.partial`), which takes the place of what stood there, and gets its name when it is whole.

mod refused;
pub mod shell;

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, SeekFrom, Uid, fchmod,
    fchown, fstat, openat, openat2, seek,
};
use rustix::io::Errno;

pub use refused::{Refused, is_refused};

/// A folder, and what is below it.
#[derive(Debug)]
pub struct OpenFolder {
    folder: File,
    shown: PathBuf,
    access: Access,
}

/// Who may use what is made in a folder, and below it. The process's umask takes more away, and adds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The user alone.
    Owner,
    /// The user, and the group, which may read.
    Group,
    /// Whoever the umask leaves it to.
    #[default]
    Umask,
}

impl Access {
    fn of_files(self) -> Mode {
        Mode::from_raw_mode(match self {
            Access::Owner => 0o600,
            Access::Group => 0o640,
            Access::Umask => 0o666,
        })
    }

    fn of_folders(self) -> Mode {
        Mode::from_raw_mode(match self {
            Access::Owner => 0o700,
            Access::Group => 0o750,
            Access::Umask => 0o777,
        })
    }
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
            shown: path.to_owned(),
            access: Access::default(),
        })
    }

    /// Opens a folder, which is made if there is none.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn open_or_create(path: &Path) -> io::Result<OpenFolder> {
        OpenFolder::made_for(path, Access::default())
    }

    /// Opens a folder, which is made if there is none; `access` is who may use it then, and what is made in it.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn made_for(path: &Path, access: Access) -> io::Result<OpenFolder> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let made = DirBuilder::new()
            .mode(access.of_folders().as_raw_mode())
            .create(path);
        match made {
            // If it is none, that is told when it is opened.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = OpenFolder::open(path)?;
        Ok(OpenFolder { access, ..folder })
    }

    /// Sets who may use what is made in it.
    #[must_use]
    pub fn with_access(self, access: Access) -> OpenFolder {
        OpenFolder { access, ..self }
    }

    /// A second handle to the folder.
    ///
    /// # Errors
    /// If no more can be open.
    pub fn try_clone(&self) -> io::Result<OpenFolder> {
        Ok(OpenFolder {
            folder: self.folder.try_clone()?,
            shown: self.shown.clone(),
            access: self.access,
        })
    }

    /// A folder in this one; it is made if there is none.
    ///
    /// # Errors
    /// If it is no folder, or a link to one.
    pub fn below(&self, name: &str) -> io::Result<OpenFolder> {
        self.make_folder(name)?;
        self.inside(name)
    }

    /// Opens a folder below; one that is made is on the disk before it is returned.
    ///
    /// # Errors
    /// As [`OpenFolder::below`].
    pub fn below_synced(&self, name: &str) -> io::Result<OpenFolder> {
        if self.make_folder(name)? {
            self.sync()?;
        }
        self.inside(name)
    }

    /// A folder in this one, which must be there.
    ///
    /// # Errors
    /// If it is not there, no folder, or a link to one.
    pub fn inside(&self, name: impl AsRef<OsStr>) -> io::Result<OpenFolder> {
        let name = name.as_ref();
        let folder = self.open_entry(name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(OpenFolder {
            folder: folder.into(),
            shown: self.shown.join(name),
            access: self.access,
        })
    }

    /// Makes a folder; whether it was not there.
    fn make_folder(&self, name: &str) -> io::Result<bool> {
        let mode = self.access.of_folders();
        match rustix::fs::mkdirat(&self.folder, check_name(name.as_ref())?, mode) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Its path, for messages: as the user named it, with the names below.
    pub fn display_path(&self) -> &Path {
        &self.shown
    }

    /// The names of what is in it, in order.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a regular file, to be read.
    ///
    /// # Errors
    /// An error of the file system. [`Refused`] if it is a link, a device, a pipe or a folder.
    pub fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.regular(name.as_ref(), OFlags::RDONLY)
    }

    /// Opens a regular file that is there, to be read and changed.
    ///
    /// # Errors
    /// As [`OpenFolder::file`].
    pub fn file_to_change(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.regular(name.as_ref(), OFlags::RDWR)
    }

    /// The content of a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// As [`OpenFolder::file`], and [`Refused`] if it is longer.
    pub fn read(&self, name: impl AsRef<OsStr>, most: u64) -> io::Result<Vec<u8>> {
        let name = name.as_ref();
        content(&self.file(name)?, most).map_err(|error| match Refused::from_io(&error) {
            Some(refused) => Refused::new(name, &refused.what).into(),
            None => error,
        })
    }

    /// Makes a file under this name, in place of one that stood there; of a link the link alone is replaced.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = check_name(name.as_ref())?;
        self.unlink(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(File::from(self.open_entry(name, flags)?))
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
        let name = check_name(name.as_ref())?;
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(PARTIAL);
        let mut file = self.create(&partial)?;
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
        let (folder, from, to) = (
            &self.folder,
            check_name(from.as_ref())?,
            check_name(to.as_ref())?,
        );
        Ok(rustix::fs::renameat(folder, from, folder, to)?)
    }

    /// Gives two files or folders the name of each other, both at once.
    ///
    /// # Errors
    /// An error of the file system, which may know no such exchange.
    pub fn exchange(&self, one_name: &str, other_name: &str) -> io::Result<()> {
        let (folder, from, to) = (
            &self.folder,
            check_name(one_name.as_ref())?,
            check_name(other_name.as_ref())?,
        );
        let flags = RenameFlags::EXCHANGE;
        Ok(rustix::fs::renameat_with(folder, from, folder, to, flags)?)
    }

    /// Has a file stand in another folder, too, under the same name; a link there is the link itself.
    ///
    /// # Errors
    /// An error of the file system, and if the name is taken there.
    pub fn link_into(&self, name: impl AsRef<OsStr>, other: &OpenFolder) -> io::Result<()> {
        let name = check_name(name.as_ref())?;
        let (from, to) = (&self.folder, &other.folder);
        Ok(rustix::fs::linkat(from, name, to, name, AtFlags::empty())?)
    }

    /// Removes a folder with all that is in it, if there is one; of a link the link alone.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match fs::remove_dir_all(self.path().join(check_name(name.as_ref())?)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Removes a file; of a link the link alone.
    ///
    /// # Errors
    /// An error of the file system, and if there is none.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = check_name(name.as_ref())?;
        Ok(rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    /// Removes a folder that is empty.
    ///
    /// # Errors
    /// An error of the file system, and if it is not empty.
    pub fn remove_empty(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = check_name(name.as_ref())?;
        Ok(rustix::fs::unlinkat(
            &self.folder,
            name,
            AtFlags::REMOVEDIR,
        )?)
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
    /// An error of the file system. [`Refused`] if it is a link, a device, a pipe or a folder.
    pub fn lock_file(&self, name: &str) -> io::Result<File> {
        self.regular(name.as_ref(), OFlags::WRONLY | OFlags::CREATE)
    }

    /// Its path while it is open, whatever it is called now.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    fn unlink(&self, name: &OsStr) -> io::Result<()> {
        match self.remove_file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Opens a regular file. Of a pipe this waits for nobody at the other end.
    fn regular(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let kind = rustix::fs::statat(&self.folder, check_name(name)?, AtFlags::SYMLINK_NOFOLLOW);
        // A device is not opened: some do something at that alone.
        match kind.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => {}
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {}
            Ok(kind) => return Err(Refused::kind(name, kind).into()),
            Err(error) => return Err(error.into()),
        }
        let file = File::from(self.open_entry(name, flags | OFlags::NONBLOCK)?);
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile {
            Ok(file)
        } else {
            Err(Refused::kind(name, kind).into())
        }
    }

    /// Opens what is in this folder under one name, unless it is a link.
    fn open_entry(&self, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
        let name = check_name(name)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if flags.contains(OFlags::CREATE) {
            self.access.of_files()
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
            // Of a link to a folder that is opened as one, `openat` says the second.
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let stat = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let kind = FileType::from_raw_mode(stat.st_mode);
                Err(Refused::kind(name, kind).into())
            }
            opened => Ok(opened?),
        }
    }
}

impl AsFd for OpenFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

/// Gives a file or a folder the owner and the group of another one.
///
/// # Errors
/// An error of the file system: this user may not give it to that owner.
pub fn take_owner(made: impl AsFd, model: impl AsFd) -> io::Result<()> {
    let (is, wanted) = (fstat(&made)?, fstat(model)?);
    if (is.st_uid, is.st_gid) != (wanted.st_uid, wanted.st_gid) {
        let (uid, gid) = (Uid::from_raw(wanted.st_uid), Gid::from_raw(wanted.st_gid));
        fchown(&made, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Gives a file or a folder the owner, the group and the permissions of another one.
///
/// # Errors
/// As [`take_owner`].
pub fn take_after(made: impl AsFd, model: impl AsFd) -> io::Result<()> {
    take_owner(&made, &model)?;
    let mode = fstat(model)?.st_mode;
    Ok(fchmod(made, Mode::from_raw_mode(mode))?)
}

/// The length of a file of at most `most` bytes.
///
/// # Errors
/// An error of the file system. [`Refused`] if it is longer.
pub fn len_within(file: &File, most: u64) -> io::Result<u64> {
    let len = file.metadata()?.len();
    if len > most {
        let what = format!("has {len} bytes, and no more than {most} are read");
        return Err(Refused::new(OsStr::new("a file"), &what).into());
    }
    Ok(len)
}

/// The content of a regular file of at most `most` bytes. Holes in it are read as zeros, and take no memory.
///
/// # Errors
/// An error of the file system. [`Refused`] if it is longer.
pub fn content(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let len = len_within(file, most)?;
    // Pages of zeros that nothing is written to are not there until then.
    let mut bytes = vec![0; len as usize];
    let mut at = 0;
    while at < len {
        let begin = match seek(file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => break,
            // A file system that knows no holes.
            Err(_) => at,
        };
        let end = seek(file, SeekFrom::Hole(begin)).unwrap_or(len).min(len);
        // Cut off or grown meanwhile: what was there at the beginning counts.
        if begin >= end {
            break;
        }
        let got = read_at(file, &mut bytes[begin as usize..end as usize], begin)?;
        at = begin + got as u64;
        if got as u64 != end - begin {
            bytes.truncate(at as usize);
            break;
        }
    }
    Ok(bytes)
}

/// Reads as much as there is.
fn read_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], from + got as u64) {
            Ok(0) => break,
            Ok(read) => got += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// A name that stands for something in the folder itself.
fn check_name(name: &OsStr) -> io::Result<&OsStr> {
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
pub const PARTIAL: &str = ".partial";

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
        let place = OpenFolder::open_or_create(&run).unwrap();
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

    #[test]
    fn folders_are_exchanged_at_once_with_files_that_stand_in_both() {
        let all = tempfile::tempdir().unwrap();
        let place = OpenFolder::open_or_create(all.path()).unwrap();
        let (old, new) = (place.below("old").unwrap(), place.below(".new").unwrap());
        old.write("kept", "k").unwrap();
        old.write("gone", "g").unwrap();
        new.write("made", "m").unwrap();
        old.link_into("kept", &new).unwrap();
        assert!(old.link_into("kept", &new).is_err(), "the name is taken");
        assert!(old.link_into("../old/kept", &new).is_err());
        let mode = |folder: &OpenFolder| fstat(folder).unwrap().st_mode & 0o777;
        fchmod(&old, Mode::from_raw_mode(0o710)).unwrap();
        take_after(&new, &old).unwrap();
        assert_eq!(mode(&new), 0o710);
        place.exchange("old", ".new").unwrap();
        assert!(place.exchange("old", "../old").is_err());
        assert_eq!(
            place.inside("old").unwrap().names().unwrap(),
            ["kept", "made"]
        );
        assert_eq!(
            place.inside(".new").unwrap().names().unwrap(),
            ["gone", "kept"]
        );
    }

    #[test]
    fn regular_files_alone_are_read_and_what_is_refused_is_named() {
        let all = tempfile::tempdir().unwrap();
        let (mine, theirs) = (all.path().join("mine"), all.path().join("theirs"));
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("file"), "theirs").unwrap();
        let place = OpenFolder::open_or_create(&mine).unwrap();
        place.write("file", "mine").unwrap();
        assert_eq!(place.read("file", 4).unwrap(), b"mine");
        symlink(theirs.join("file"), mine.join("link")).unwrap();
        symlink("/dev/zero", mine.join("zero")).unwrap();
        symlink(&theirs, mine.join("linked")).unwrap();
        let (pipe, kind) = (mine.join("pipe"), FileType::Fifo);
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let refused = |name: &str, done: io::Result<()>, words: &str| {
            let error = done.unwrap_err();
            assert!(is_refused(&error), "{name}: {error}");
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(words), "{text}");
        };
        for (name, words) in [
            ("link", "symbolic link"),
            ("zero", "symbolic link"),
            ("pipe", "pipe"),
        ] {
            refused(name, place.file(name).map(drop), words);
            refused(name, place.file_to_change(name).map(drop), words);
            refused(name, place.lock_file(name).map(drop), words);
        }
        refused("linked", place.inside("linked").map(drop), "symbolic link");
        refused("linked", place.below("linked").map(drop), "symbolic link");
        refused("file", place.inside("file").map(drop), "file");
        refused("file", place.read("file", 3).map(drop), "4 bytes");
        assert!(place.read("../theirs/file", 9).is_err());
        assert_eq!(
            place.file("nothing").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        // A hole of 1 TiB is refused without being read, one within the bound is zeros.
        let sparse = place.create("sparse").unwrap();
        sparse.write_all_at(b"end", 1 << 20).unwrap();
        let bytes = place.read("sparse", 2 << 20).unwrap();
        assert_eq!(bytes.len(), (1 << 20) + 3);
        assert!(bytes.ends_with(b"end") && bytes[..1 << 20].iter().all(|byte| *byte == 0));
        sparse.set_len(1 << 40).unwrap();
        refused("sparse", place.read("sparse", 1 << 30).map(drop), "bytes");
        place.create("link").unwrap();
        place.remove_file("pipe").unwrap();
        assert_eq!(fs::read_to_string(theirs.join("file")).unwrap(), "theirs");
    }
}
