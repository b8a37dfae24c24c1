use super::*;
use crate::config::Form;
use crate::files::{self, partition_files};
use crate::folder::Folder;
use crate::log::{Limits, Log, segment};
use crate::store::StoreAddress;
use pubgauge_mqtt_codec::QoS;
use pubgauge_place::Access;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const LIMITS: Limits = Limits {
    segment_bytes: 1 << 20,
    segment_age: Duration::from_secs(1000),
    reserve_bytes: 0,
};

fn commit(log: &mut Log, seqs: std::ops::Range<u64>) {
    let mut frames = Vec::new();
    for (index, seq) in seqs.clone().enumerate() {
        let payload = seq.to_le_bytes().repeat(20);
        let message = Message {
            seq,
            index: index as u32,
            received_ns: 1_795_676_400_000_000_000 + seq as i64 * 600_000_000_000,
            broker: "127.0.0.1:1883",
            topic: "a/b",
            qos: QoS::AtLeastOnce,
            retain: false,
            dup: seq % 10 == 0,
            properties: &[],
            payload: &payload,
        };
        message.append(log.mark(), &mut frames);
    }
    log.commit(&frames, seqs, 0).unwrap();
}

/// A data folder with finished files of either form, a closed segment that is in no file, and an open one.
fn filled(data: &Path) -> Folder {
    let folder = Folder::open(data, Some("c"), Access::Owner).unwrap();
    for (form, first) in [(Form::Parquet, 1), (Form::Ndjson, 21)] {
        let (mut log, _) = Log::open(&folder.log(), form, LIMITS, first).unwrap();
        commit(&mut log, first..first + 12);
        commit(&mut log, first + 12..first + 20);
        let closed = log.rotate().unwrap().unwrap();
        let layout = crate::files::Layout::default();
        files::finish(&folder, &closed, &layout, &AtomicBool::new(false)).unwrap();
    }
    let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, 41).unwrap();
    commit(&mut log, 41..46);
    commit(&mut log, 46..51);
    log.rotate().unwrap().unwrap();
    commit(&mut log, 51..53);
    commit(&mut log, 53..56);
    folder
}

#[test]
fn what_is_whole_has_no_fault_and_every_message_is_counted() {
    let data = tempfile::tempdir().unwrap();
    let _folder = filled(data.path());
    let found = verify(data.path()).unwrap();
    assert_eq!(found.faults, []);
    assert_eq!((found.messages, found.messages_in_log), (40, 15));
    assert_eq!(found.by_qos, [0, 55, 0]);
    assert_eq!((found.marked_duplicate, found.unfinished_bytes), (5, 0));
    // Six messages an hour, in files of two segments.
    assert_eq!((found.collectors, found.files), (1, 8));
}

/// All files that hold messages, with their bytes.
fn contents(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths = partition_files(data).unwrap();
    let log = data.join("collectors/c/log");
    let segments = segment::list(&OpenFolder::open(&log).unwrap()).unwrap();
    paths.extend(segments.into_iter().map(|(_, name)| log.join(name)));
    paths
        .into_iter()
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

#[test]
fn each_planted_damage_is_found() {
    let data = tempfile::tempdir().unwrap();
    let _folder = filled(data.path());
    let files = contents(data.path());
    let (open, rest) = files.split_last().unwrap();
    let mut planted = 0;
    let mut expect_fault = |what: String| {
        planted += 1;
        let faults = verify(data.path()).unwrap().faults;
        assert!(!faults.is_empty(), "not found: {what}");
    };
    for (nth, (path, bytes)) in rest.iter().enumerate() {
        let shown = path.display();
        for (turn, bit) in (0..bytes.len() * 8)
            .step_by(1 + bytes.len() * 8 / 40)
            .enumerate()
        {
            let mut damaged = bytes.clone();
            let bit = (bit + nth + turn) % (bytes.len() * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, damaged).unwrap();
            expect_fault(format!("bit {bit} of {shown}"));
        }
        for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(path, &bytes[..len]).unwrap();
            expect_fault(format!("{shown} cut to {len}"));
        }
        std::fs::remove_file(path).unwrap();
        expect_fault(format!("{shown} missing"));
        std::fs::write(path, bytes).unwrap();
    }
    // In the last segment: whatever has a later commit behind it.
    let mut damaged = open.1.clone();
    damaged[segment::HEADER_LEN + 20] ^= 1;
    std::fs::write(&open.0, damaged).unwrap();
    expect_fault("the first commit of the open segment".into());
    std::fs::write(&open.0, &open.1).unwrap();
    let list = data.path().join("collectors/c/files.ndjson");
    let lines = std::fs::read(&list).unwrap();
    std::fs::write(&list, &lines[..lines.len() / 2]).unwrap();
    expect_fault("half of the list".into());
    std::fs::write(&list, lines).unwrap();
    assert_eq!(verify(data.path()).unwrap().faults, []);
    assert!(planted > 400, "{planted}");
}

#[test]
fn a_tail_that_was_being_written_is_no_fault_but_is_told() {
    let data = tempfile::tempdir().unwrap();
    let _folder = filled(data.path());
    let (path, bytes) = contents(data.path()).pop().unwrap();
    let begun = &bytes[segment::HEADER_LEN..segment::HEADER_LEN + 150];
    std::fs::write(&path, [&bytes[..], begun].concat()).unwrap();
    let found = verify(data.path()).unwrap();
    assert_eq!(found.faults, []);
    assert_eq!((found.messages_in_log, found.unfinished_bytes), (15, 150));
}

#[test]
fn a_tail_that_was_on_disk_is_a_fault_whatever_became_of_it() {
    let data = tempfile::tempdir().unwrap();
    let _folder = filled(data.path());
    let (path, bytes) = contents(data.path()).pop().unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() - 3] ^= 1;
    let mut zeroed = bytes.clone();
    zeroed[bytes.len() - 10..].fill(0);
    let missing =
        |faults: &[Discrepancy]| faults.iter().any(|fault| fault.what.contains("55 to 55"));
    for planted in [&flipped[..], &zeroed, &bytes[..bytes.len() - 3]] {
        std::fs::write(&path, planted).unwrap();
        let found = verify(data.path()).unwrap();
        assert!(missing(&found.faults), "{:?}", found.faults);
        assert_eq!((found.messages_in_log, found.unfinished_bytes), (14, 0));
    }
    std::fs::remove_file(&path).unwrap();
    let found = verify(data.path()).unwrap();
    let of_it = |fault: &Discrepancy| fault.what == "messages 51 to 55 are missing";
    assert!(found.faults.iter().any(of_it), "{:?}", found.faults);
}

#[test]
fn what_is_listed_as_lost_stays_a_fault() {
    let data = tempfile::tempdir().unwrap();
    let folder = filled(data.path());
    let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, 60).unwrap();
    commit(&mut log, 60..62);
    let lost = Entry::Lost {
        first: 56,
        last: 59,
    };
    // A start that was killed lists them again.
    manifest::append(folder.collectors_folder(), &[lost.clone(), lost]).unwrap();
    let faults = verify(data.path()).unwrap().faults;
    assert!(
        faults.len() == 1 && faults[0].what.contains("messages 56 to 59 are lost"),
        "{faults:?}"
    );
}

#[test]
fn a_file_whose_segment_is_still_there_is_no_fault() {
    let data = tempfile::tempdir().unwrap();
    let folder = filled(data.path());
    let (first_seq, name) = segment::list(&folder.log()).unwrap().remove(0);
    let path = folder.log().display_path().join(name);
    let kept = std::fs::read(&path).unwrap();
    let list_of = folder.collectors_folder().display_path().join(LIST);
    let list = std::fs::read(&list_of).unwrap();
    let closed = crate::log::Closed {
        path: path.clone(),
        first_seq,
        next_seq: 51,
    };
    let layout = crate::files::Layout::default();
    files::finish(&folder, &closed, &layout, &AtomicBool::new(false)).unwrap();
    // Killed after the files were renamed: neither is the list written, nor the segment removed.
    std::fs::write(&path, kept).unwrap();
    std::fs::write(&list_of, list).unwrap();
    let found = verify(data.path()).unwrap();
    assert_eq!(found.faults, []);
    assert_eq!(found.messages + found.messages_in_log, 55);
}

#[test]
fn numbers_that_never_reached_the_disk_are_explained() {
    let data = tempfile::tempdir().unwrap();
    let folder = filled(data.path());
    let (mut log, _) = Log::open(&folder.log(), Form::Parquet, LIMITS, 60).unwrap();
    commit(&mut log, 60..62);
    let place = "c".to_owned();
    let what = "messages 56 to 59 are missing".to_owned();
    assert_eq!(
        verify(data.path()).unwrap().faults,
        [Discrepancy { place, what }]
    );
    manifest::append(
        folder.collectors_folder(),
        &[Entry::NotStored {
            first: 56,
            last: 59,
        }],
    )
    .unwrap();
    assert_eq!(verify(data.path()).unwrap().faults, []);
}

#[test]
fn a_store_that_the_list_alone_names_is_not_asked() {
    let data = tempfile::tempdir().unwrap();
    let folder = filled(data.path());
    let (entries, _) = manifest::read(folder.collectors_folder()).unwrap();
    let (path, _) = manifest::files(&entries, &|_| false)
        .into_iter()
        .next()
        .unwrap();
    let there = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    there.set_nonblocking(true).unwrap();
    let to = StoreAddress {
        url: "s3://fleet/raw".into(),
        endpoint: Some(format!("http://{}", there.local_addr().unwrap())),
        region: None,
    };
    let uploaded = Uploaded {
        path: path.to_owned(),
        to: to.clone(),
        e_tag: None,
    };
    manifest::append(folder.collectors_folder(), &[Entry::Uploaded(uploaded)]).unwrap();
    std::fs::remove_file(data.path().join(path)).unwrap();
    let mine = StoreAddress {
        endpoint: None,
        ..to.clone()
    };
    for named in [vec![], vec![mine]] {
        let look = Look {
            named,
            ..Look::default()
        };
        let found = verify_with(data.path(), look, &mut |_| {}).unwrap();
        assert_eq!(found.faults, []);
        assert_eq!(found.not_seen[0].unnamed.as_deref(), Some(&to));
        assert!(there.accept().is_err(), "somebody came");
    }
}

#[test]
fn another_folder_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let error = verify(data.path()).unwrap_err();
    assert!(
        error.is_input && error.to_string().contains("no data folder"),
        "{error}"
    );
}
