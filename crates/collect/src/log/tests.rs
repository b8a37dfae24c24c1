use super::*;
use crate::message::Message;
use std::path::Path;

const LIMITS: Limits = Limits {
    segment_bytes: 400,
    segment_age: Duration::from_secs(1000),
    reserve_bytes: 0,
};

fn frames(log: &Log, seqs: std::ops::Range<u64>) -> Vec<u8> {
    let mut frames = Vec::new();
    for (index, seq) in seqs.enumerate() {
        let message = Message {
            index: index as u32,
            ..Message::numbered(seq, b"a payload")
        };
        message.append(log.mark(), &mut frames);
    }
    frames
}

fn put(log: &mut Log, seqs: std::ops::Range<u64>) {
    let frames = frames(log, seqs.clone());
    log.commit(&frames, seqs, 7).unwrap();
}

fn open(folder: &Path) -> (Log, Recovered) {
    let folder = Arc::new(OpenFolder::open(folder).unwrap());
    Log::open(&folder, Form::Parquet, LIMITS, 1).unwrap()
}

/// The numbers of all messages that recovery hands on.
fn stored(recovered: &Recovered) -> Vec<u64> {
    let each = recovered.closed.iter().map(|closed| {
        let file = File::open(&closed.path).unwrap();
        let reader = SegmentReader::open(&file, closed.first_seq).unwrap();
        let mut seqs = Vec::new();
        let scanned = reader.read(|_, message| {
            seqs.push(message.seq);
            ControlFlow::Continue(())
        });
        scanned.unwrap();
        seqs
    });
    each.flatten().collect()
}

#[test]
fn segments_are_closed_by_size_and_hour_and_go_on_where_they_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, recovered) = open(folder.path());
    assert_eq!((recovered.next_seq, recovered.closed.len()), (1, 0));
    assert!(!log.is_due(7) && !log.is_due(8), "an empty segment stays");
    put(&mut log, 1..3);
    assert!(!log.is_due(7) && log.is_due(8));
    put(&mut log, 3..20);
    assert!(log.is_due(7));
    let closed = log.rotate().unwrap().unwrap();
    assert_eq!((closed.first_seq, closed.next_seq), (1, 20));
    assert_eq!(log.rotate().unwrap(), None);
    put(&mut log, 20..22);
    drop(log);
    let (_, recovered) = open(folder.path());
    assert_eq!(recovered.next_seq, 22);
    assert_eq!(recovered.closed[0], closed);
    assert_eq!(stored(&recovered), (1..22).collect::<Vec<_>>());
}

#[test]
fn cut_at_every_byte_what_is_whole_is_recovered_and_new_numbers_follow() {
    let origin = tempfile::tempdir().unwrap();
    let (mut log, _) = open(origin.path());
    put(&mut log, 1..3);
    put(&mut log, 3..4);
    let path = origin.path().join(segment::file_name(1));
    let whole = std::fs::read(&path).unwrap();
    let frame = (whole.len() - HEADER_LEN) / 3;
    for cut in 0..=whole.len() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(segment::file_name(1)), &whole[..cut]).unwrap();
        let (mut log, recovered) = open(folder.path());
        let messages = cut.saturating_sub(HEADER_LEN) / frame;
        assert_eq!(recovered.next_seq, 1 + messages as u64, "cut at {cut}");
        assert_eq!(
            stored(&recovered),
            (1..=messages as u64).collect::<Vec<_>>()
        );
        let tail = cut.saturating_sub(HEADER_LEN) % frame;
        assert_eq!(recovered.cut_bytes, tail as u64, "cut at {cut}");
        let next = recovered.next_seq;
        put(&mut log, next..next + 2);
        drop(log);
        let (_, again) = open(folder.path());
        assert_eq!(
            stored(&again),
            (1..next + 2).collect::<Vec<_>>(),
            "cut at {cut}"
        );
        assert_eq!(again.cut_bytes, 0);
    }
}

#[test]
fn too_little_room_is_told_and_what_was_stored_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = open(folder.path());
    put(&mut log, 1..4);
    log.limits.reserve_bytes = u64::MAX / 2;
    let two = frames(&log, 4..6);
    let (error, closed) = log.commit(&two, 4..6, 7).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let closed = closed.unwrap();
    assert_eq!((closed.first_seq, closed.next_seq), (1, 4));
    let (_, closed) = log.commit(&two, 4..6, 7).unwrap_err();
    assert_eq!(closed, None, "it was handed on already");
    log.limits.reserve_bytes = 0;
    log.commit(&two, 4..6, 7).unwrap();
    drop(log);
    assert_eq!(stored(&open(folder.path()).1), (1..6).collect::<Vec<_>>());
}

#[test]
fn a_link_or_a_pipe_in_place_of_a_segment_is_refused_by_its_name() {
    let all = tempfile::tempdir().unwrap();
    let (folder, theirs) = (all.path().join("log"), all.path().join("theirs"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&theirs, vec![7; 100]).unwrap();
    let place = Arc::new(OpenFolder::open(&folder).unwrap());
    let segment = folder.join(segment::file_name(1));
    let plants: [&dyn Fn(); 3] = [
        &|| std::os::unix::fs::symlink(&theirs, &segment).unwrap(),
        &|| std::os::unix::fs::symlink("/dev/zero", &segment).unwrap(),
        &|| pipe(&segment),
    ];
    for plant in plants {
        plant();
        let error = Log::open(&place, Form::Parquet, LIMITS, 1).unwrap_err();
        assert!(
            error.to_string().contains(&segment::file_name(1)),
            "{error}"
        );
        std::fs::remove_file(&segment).unwrap();
    }
    // The log ends with a hole that is longer than a segment can be.
    let file = std::fs::File::create(&segment).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = Log::open(&place, Form::Parquet, LIMITS, 1).unwrap_err();
    assert!(error.to_string().contains("1099511627776 bytes"), "{error}");
    assert_eq!(std::fs::read(&theirs).unwrap(), [7; 100]);
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

/// What recovery says is gone: of the last segment, by what making it into files will find, and of segments that are gone.
fn gone(recovered: &Recovered) -> Vec<u64> {
    let there = stored(recovered);
    let closed = recovered.closed.iter();
    let all = closed.flat_map(|closed| closed.first_seq..closed.next_seq);
    let unread = all.filter(|seq| !there.contains(seq));
    let missing = recovered.missing.iter().cloned().flatten();
    let mut gone: Vec<u64> = missing.chain(unread).collect();
    gone.sort_unstable();
    gone
}

#[test]
fn a_tail_that_was_on_disk_is_told_whatever_became_of_it() {
    let origin = tempfile::tempdir().unwrap();
    let (mut log, _) = open(origin.path());
    put(&mut log, 1..3);
    put(&mut log, 3..6);
    let whole = std::fs::read(origin.path().join(segment::file_name(1))).unwrap();
    let noted = std::fs::read(origin.path().join(stored::NAME)).unwrap();
    let frame = (whole.len() - HEADER_LEN) / 5;
    let at = |message: usize| HEADER_LEN + (message - 1) * frame;
    let mut flipped = whole.clone();
    flipped[at(5) + 20] ^= 1;
    let mut torn = whole.clone();
    torn[at(3) + 20] ^= 1;
    let mut zeroed = whole.clone();
    zeroed[at(3)..].fill(0);
    let mut all_zeroed = whole.clone();
    all_zeroed[HEADER_LEN..].fill(0);
    // What was done, what is there then, and the numbers that are gone.
    type Planted<'a> = (&'a str, Option<&'a [u8]>, &'a [u64]);
    let plants: [Planted<'_>; 8] = [
        ("whole", Some(&whole), &[]),
        ("flipped", Some(&flipped), &[5]),
        ("flipped in the last commit", Some(&torn), &[3]),
        ("cut by a byte", Some(&whole[..whole.len() - 1]), &[5]),
        ("cut at a message", Some(&whole[..at(4)]), &[4, 5]),
        ("zeroed", Some(&zeroed), &[3, 4, 5]),
        ("all zeroed", Some(&all_zeroed), &[1, 2, 3, 4, 5]),
        ("removed", None, &[1, 2, 3, 4, 5]),
    ];
    for (what, planted, expected) in plants {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(stored::NAME), &noted).unwrap();
        if let Some(bytes) = planted {
            std::fs::write(folder.path().join(segment::file_name(1)), bytes).unwrap();
        }
        let (_, recovered) = open(folder.path());
        assert_eq!(gone(&recovered), expected, "{what}");
        assert_eq!(recovered.next_seq, 6, "{what}: no number is given twice");
        assert_eq!(recovered.cut_bytes, 0, "{what}");
        assert!(recovered.gaps.iter().all(|gap| gap.damaged), "{what}");
    }
}

#[test]
fn a_segment_that_is_gone_in_front_of_others_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = open(folder.path());
    put(&mut log, 1..20);
    log.rotate().unwrap();
    put(&mut log, 20..25);
    drop(log);
    std::fs::remove_file(folder.path().join(segment::file_name(1))).unwrap();
    let (_, recovered) = open(folder.path());
    assert_eq!(recovered.missing.first(), Some(&(1..20)));
    assert_eq!(gone(&recovered), (1..20).collect::<Vec<_>>());
}

#[test]
fn what_was_being_written_is_no_loss() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = open(folder.path());
    put(&mut log, 1..3);
    let more = frames(&log, 3..5);
    drop(log);
    let path = folder.path().join(segment::file_name(1));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(&more[..more.len() - 1]);
    std::fs::write(&path, bytes).unwrap();
    let (_, recovered) = open(folder.path());
    assert_eq!(gone(&recovered), [0; 0]);
    assert!(recovered.is_noted && recovered.cut_bytes > 0);
}

#[test]
fn a_segment_that_is_removed_while_it_is_written_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (mut log, _) = open(folder.path());
    put(&mut log, 1..4);
    assert_eq!(log.restore().unwrap(), None);
    let path = folder.path().join(segment::file_name(1));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(log.restore().unwrap(), Some(path));
    put(&mut log, 4..6);
    drop(log);
    let (_, recovered) = open(folder.path());
    assert_eq!(stored(&recovered), [1, 2, 3, 4, 5]);
    assert_eq!(gone(&recovered), [0; 0]);
}
