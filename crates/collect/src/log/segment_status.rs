//! How a segment of the log stands.

use std::fs::File;
use std::io;
use std::time::{Instant, SystemTime};

/// A segment of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentStatus {
    pub bytes: u64,
    /// When its first message came; none while it has no message.
    pub begun: Option<Instant>,
}

impl SegmentStatus {
    /// Of a segment of an earlier start, whose first message came before it was written last.
    pub(crate) fn from_file(file: &File) -> io::Result<SegmentStatus> {
        let about = file.metadata()?;
        let written = about.modified()?;
        // The clock may have been set back since.
        let age = SystemTime::now()
            .duration_since(written)
            .unwrap_or_default();
        let now = Instant::now();
        Ok(SegmentStatus {
            bytes: about.len(),
            begun: Some(now.checked_sub(age).unwrap_or(now)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_segment_of_an_earlier_start_is_as_old_as_its_file() {
        let place = tempfile::tempdir().unwrap();
        let file = File::create(place.path().join("1.log")).unwrap();
        file.set_len(1234).unwrap();
        for (written, least, most) in [
            (
                SystemTime::now() - Duration::from_secs(7200),
                7200,
                7200 + 600,
            ),
            // The clock was set back.
            (SystemTime::now() + Duration::from_secs(7200), 0, 600),
        ] {
            file.set_modified(written).unwrap();
            let segment = SegmentStatus::from_file(&file).unwrap();
            let age = segment.begun.unwrap().elapsed().as_secs();
            assert!((least..most).contains(&age), "{age}");
            assert_eq!(segment.bytes, 1234);
        }
    }
}
