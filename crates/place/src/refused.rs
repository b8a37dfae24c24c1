//! An entry that is not opened or read because a folder may not hold it there.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io;

use rustix::fs::FileType;

/// Something in a folder that is not opened or not read, with its name.
#[derive(Debug)]
pub struct Refused {
    name: String,
    pub(crate) what: String,
}

impl Refused {
    pub(crate) fn new(name: &OsStr, what: &str) -> Refused {
        Refused {
            name: name.display().to_string(),
            what: what.to_owned(),
        }
    }

    /// Because of what it is.
    pub(crate) fn kind(name: &OsStr, kind: FileType) -> Refused {
        let what = match kind {
            FileType::Symlink => {
                "is a symbolic link, and none is followed in a folder that may be somebody else's"
            }
            FileType::Fifo => "is a pipe, not a file",
            FileType::Socket => "is a socket, not a file",
            FileType::CharacterDevice | FileType::BlockDevice => "is a device, not a file",
            FileType::Directory => "is a folder, not a file",
            _ => "is a file, not a folder",
        };
        Refused::new(name, what)
    }

    /// That an error is one.
    pub(crate) fn from_io(error: &io::Error) -> Option<&Refused> {
        error.get_ref()?.downcast_ref()
    }
}

/// Whether something was not opened or read because it is none of what a folder may hold there.
pub fn is_refused(error: &io::Error) -> bool {
    Refused::from_io(error).is_some()
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.name, self.what)
    }
}

impl Error for Refused {}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        io::Error::other(refused)
    }
}
