use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::store::{Credentials, StoreAddress};
use pubgauge_net::waker::Waker;
use pubgauge_place::Access;

fn upload() -> Upload {
    let place = StoreAddress {
        url: "s3://fleet/raw".into(),
        endpoint: Some("http://127.0.0.1:9".into()),
        region: None,
    };
    Upload {
        place,
        credentials: Credentials::default(),
        direct: None,
    }
}

/// What was told of files, and what waits for the store, after a start with this list.
fn begun(data: &Path, entries: &[Entry]) -> (Vec<String>, Vec<String>) {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let tell = told.clone();
    let shared = Shared {
        status: Arc::default(),
        watch: Arc::new(move |notice| {
            if let Notice::DamagedFile { path, .. } = notice {
                tell.lock().unwrap().push(path.clone());
            }
        }),
        waker: Waker::new().unwrap(),
    };
    let folder = Arc::new(Folder::open(data, Some("c"), Access::Owner).unwrap());
    folder
        .collectors_folder()
        .write(manifest::LIST, "")
        .unwrap();
    folder.list(entries).unwrap();
    let uploader = Uploader::new(&shared, &folder, &upload(), Arc::default()).unwrap();
    let to = upload().place;
    let (listed, _) = manifest::read(folder.collectors_folder()).unwrap();
    assert_eq!(listed.last(), Some(&Entry::Uploading { to }));
    let waiting = uploader.waiting.iter().map(|file| file.path.clone());
    let waiting = waiting.collect();
    let told = told.lock().unwrap().clone();
    (told, waiting)
}

fn file(path: &str, content: &[u8]) -> FileEntry {
    FileEntry {
        path: path.into(),
        bytes: content.len() as u64,
        crc32: crc32fast::hash(content),
        first: 1,
        last: 2,
        messages: 2,
        among: None,
    }
}

fn moved(file: &FileEntry, to: StoreAddress) -> Entry {
    Entry::Uploaded(Uploaded {
        path: file.path.clone(),
        to,
        e_tag: None,
    })
}

const NAME: &str = "c-0000000000000001-0000000000000002.parquet";

#[test]
fn files_outside_the_folder_are_neither_removed_nor_moved() {
    let all = tempfile::tempdir().unwrap();
    let (data, outside) = (all.path().join("data"), all.path().join("outside"));
    std::fs::create_dir_all(outside.join("hour=07")).unwrap();
    std::fs::create_dir_all(data.join("date=2026-11-26/hour=07")).unwrap();
    let victims = [outside.join(NAME), outside.join("hour=07").join(NAME)];
    for victim in &victims {
        std::fs::write(victim, "theirs").unwrap();
    }
    symlink(&outside, data.join("date=linked")).unwrap();
    symlink(&victims[0], data.join("date=2026-11-26/hour=07").join(NAME)).unwrap();
    let absolute = victims[0].display().to_string();
    let paths = [
        absolute,
        format!("../outside/{NAME}"),
        format!("../outside/hour=07/{NAME}"),
        format!("date=2026-11-26/hour=07/../../../outside/{NAME}"),
        format!("date=linked/hour=07/{NAME}"),
        format!("date=2026-11-26/hour=07/{NAME}"),
    ];
    let files: Vec<FileEntry> = paths.iter().map(|path| file(path, b"theirs")).collect();
    let listed: Vec<Entry> = files.iter().cloned().map(Entry::File).collect();
    let mut gone = listed.clone();
    gone.extend(files.iter().map(|file| moved(file, upload().place)));
    for entries in [listed, gone] {
        let (mut told, waiting) = begun(&data, &entries);
        assert_eq!(waiting, [] as [String; 0]);
        told.sort();
        let mut expected = paths.to_vec();
        expected.sort();
        assert_eq!(told, expected);
        for victim in &victims {
            assert_eq!(std::fs::read_to_string(victim).unwrap(), "theirs");
        }
    }
}

#[test]
fn a_file_that_the_list_has_in_another_store_is_kept_and_moved() {
    let all = tempfile::tempdir().unwrap();
    let path = format!("date=2026-11-26/hour=07/{NAME}");
    let here = all.path().join(&path);
    std::fs::create_dir_all(here.parent().unwrap()).unwrap();
    std::fs::write(&here, "ours").unwrap();
    let file = file(&path, b"ours");
    let other = StoreAddress {
        url: "s3://theirs/raw".into(),
        ..upload().place
    };
    let entries = [Entry::File(file.clone()), moved(&file, other)];
    assert_eq!(begun(all.path(), &entries), (vec![], vec![path.clone()]));
    assert!(here.exists());
    let entries = [Entry::File(file.clone()), moved(&file, upload().place)];
    assert_eq!(begun(all.path(), &entries), (vec![], vec![]));
    assert!(!here.exists());
}
