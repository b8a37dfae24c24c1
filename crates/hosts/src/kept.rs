//! Credentials in a file for as long as a run needs them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::credentials::{Credentials, CredentialsError, FIRST_LINE, open};

/// A file with credentials. It is locked by the run that has written it, and removed when this is dropped; the
/// file that a killed run has left is replaced by the next run.
#[derive(Debug)]
pub struct KeptCredentials {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl KeptCredentials {
    /// Writes `credentials` to `path`.
    ///
    /// # Errors
    /// There is another file there, or that of a run that still needs it; it cannot be written.
    pub fn write(
        credentials: &Credentials,
        path: &Path,
    ) -> Result<KeptCredentials, CredentialsError> {
        let failed = |error| CredentialsError::File {
            attempt: "write",
            file: path.into(),
            error,
        };
        remove_left(path).map_err(failed)?;
        credentials.write(path)?;
        let lock = || -> io::Result<File> {
            let file = File::open(path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(file)
        };
        Ok(KeptCredentials {
            path: path.into(),
            _file: lock().map_err(failed)?,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KeptCredentials {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes credentials of a run that is gone.
fn remove_left(path: &Path) -> io::Result<()> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut first = [0; FIRST_LINE.len()];
    if file.read_exact(&mut first).is_err() || first != *FIRST_LINE.as_bytes() {
        return Err(io::Error::other("there is another file"));
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => std::fs::remove_file(path),
        Err(_) => Err(io::Error::other("they are those of another run")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    fn credentials() -> Credentials {
        let identity = Identity::generate().unwrap();
        identity.credentials(2).unwrap()
    }

    #[test]
    fn they_are_there_as_long_as_they_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("join");
        let own = credentials();
        let kept = KeptCredentials::write(&own, &path).unwrap();
        assert_eq!(kept.path(), path);
        assert_eq!(Credentials::read(&path).unwrap(), own);
        let error = KeptCredentials::write(&credentials(), &path).unwrap_err();
        assert!(error.to_string().contains("another run"), "{error}");
        assert_eq!(Credentials::read(&path).unwrap(), own);
        drop(kept);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_run_has_left_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("join");
        credentials().write(&path).unwrap();
        let own = credentials();
        let kept = KeptCredentials::write(&own, &path).unwrap();
        assert_eq!(Credentials::read(&path).unwrap(), own);
        drop(kept);
        std::fs::write(&path, "a diary").unwrap();
        let error = KeptCredentials::write(&own, &path).unwrap_err();
        assert!(error.to_string().contains("another file"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a diary");
    }
}
