//! A collect file that is read again while its collector works: what may change, and what may not.

use std::path::{Path, PathBuf};

use pubgauge_strict_toml::{InvalidInput, StrictFile};

use super::checked::{COLLECT, Config, Given, check, folder_of};
use super::upload::Upload;

/// Reads a collect file again. What a collector cannot change while it works must be as it is in `current`.
///
/// # Errors
/// Everything that is wrong in it or cannot change, with line and column.
pub fn read_again(path: &Path, given: &Given, current: &Config) -> Result<Config, InvalidInput> {
    check_again(
        &StrictFile::open(path, &COLLECT)?,
        folder_of(path),
        given,
        current,
    )
}

fn check_again(
    file: &StrictFile,
    folder: &Path,
    given: &Given,
    current: &Config,
) -> Result<Config, InvalidInput> {
    let config = check(file, folder, given)?;
    let problems: Vec<_> = changed(current, &config)
        .map(|steps| {
            let key = steps.join(".");
            let message = format!("`{key}` cannot change while the collector works");
            let hint = "set it back, or end the collector and start it again";
            file.problem(steps, message, Some(hint.into()))
        })
        .collect();
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(InvalidInput { problems })
    }
}

/// Keys whose values differ and may not.
fn changed(from: &Config, to: &Config) -> impl Iterator<Item = &'static [&'static str]> {
    // Each by name, so that whoever adds one decides here.
    let Config {
        brokers: _,
        filters: _,
        to: data,
        name,
        qos: _,
        version,
        form,
        group: _,
        canary,
        listen,
        stop_within: _,
        session_expiry_s: _,
        keep_alive_s: _,
        largest_message: _,
        announces_largest: _,
        resolve_every: _,
        commit_every: _,
        commit_bytes: _,
        limits,
        layout,
        access,
        upload,
        kafka,
    } = from;
    let place_of = |upload: &Upload| (upload.place.clone(), upload.direct);
    // Their contents may change; the uploads read them themselves.
    let files_of = |upload: &Upload| -> Vec<PathBuf> {
        upload.credentials.paths().map(Path::to_owned).collect()
    };
    let keys: [(bool, &[&str]); 16] = [
        (*data == to.to, &["to"]),
        (*name == to.name, &["name"]),
        (*version == to.version, &["mqtt"]),
        (*form == to.form, &["form"]),
        (*listen == to.listen, &["listen"]),
        (*canary == to.canary, &["canary"]),
        (
            limits.segment_bytes == to.limits.segment_bytes,
            &["log", "segment"],
        ),
        (
            limits.segment_age == to.limits.segment_age,
            &["log", "segment-age"],
        ),
        (
            // It follows from the segment where it is not given.
            limits.reserve_bytes == to.limits.reserve_bytes
                || limits.segment_bytes != to.limits.segment_bytes,
            &["log", "reserve"],
        ),
        (layout.columns == to.layout.columns, &["payload"]),
        (layout.partitioning == to.layout.partitioning, &["files"]),
        (
            layout.compression == to.layout.compression,
            &["compression"],
        ),
        (*access == to.access, &["access"]),
        (
            upload.as_ref().map(place_of) == to.upload.as_ref().map(place_of),
            &["upload"],
        ),
        (
            upload.as_ref().map(files_of) == to.upload.as_ref().map(files_of),
            &["upload", "credentials-file"],
        ),
        (*kafka == to.kafka, &["kafka"]),
    ];
    keys.into_iter()
        .filter(|(same, _)| !same)
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn file(text: &str) -> StrictFile {
        StrictFile::parse("collect.toml", text, &COLLECT).unwrap()
    }

    fn read(text: &str) -> Config {
        check(&file(text), Path::new("/etc/x"), &Given::default()).unwrap()
    }

    fn reread(text: &str, current: &Config) -> Result<Config, InvalidInput> {
        check_again(&file(text), Path::new("/etc/x"), &Given::default(), current)
    }

    const BEFORE: &str =
        "brokers = [\"mqtt://a\"]\ntopics = [\"a/#\"]\nto = \"data\"\nname = \"c\"\n";

    #[test]
    fn brokers_topics_and_intervals_may_change() {
        let before = read(BEFORE);
        let text = "brokers = [\"mqtt://b\", \"mqtts://c\"]\ntopics = [\"b/#\"]\ngroup = \"g\"\nqos = 2\nto = \"data\"\nname = \"c\"\nstop-within = \"1min\"\n[log]\ncommit-every = \"50ms\"\n[session]\nresolve-every = \"1min\"\n";
        let after = reread(text, &before).unwrap();
        assert_eq!(after.filters, ["$share/g/b/#"]);
        assert_eq!(after.brokers.len(), 2);
        assert_eq!(after.commit_every, Duration::from_millis(50));
    }

    #[test]
    fn what_cannot_change_is_told_with_its_place_all_at_once() {
        let before = read(BEFORE);
        let text = "brokers = [\"mqtt://a\"]\ntopics = [\"a/#\"]\nto = \"other\"\nmqtt = \"3.1.1\"\nform = \"ndjson\"\nlisten = \"1\"\n[log]\nsegment = \"64MiB\"\nsegment-age = \"1min\"\n[canary]\n[files]\npartition = [\"date\"]\n";
        let told = reread(text, &before).unwrap_err().problems;
        let places: Vec<_> = told
            .iter()
            .map(|problem| {
                let key = problem.message.split('`').nth(1).unwrap();
                (key, problem.line, problem.column)
            })
            .collect();
        assert_eq!(
            places,
            [
                ("to", Some(3), Some(6)),
                // It is not there any more.
                ("name", None, None),
                ("mqtt", Some(4), Some(8)),
                ("form", Some(5), Some(8)),
                ("listen", Some(6), Some(10)),
                ("canary", Some(10), Some(1)),
                ("log.segment", Some(8), Some(11)),
                ("log.segment-age", Some(9), Some(15)),
                ("files", Some(11), Some(1)),
            ]
        );
        let payload = format!(
            "{BEFORE}[payload]\nform = \"json\"\ncolumns = [{{ name = \"watts\", type = \"double\" }}]\n"
        );
        let told = reread(&payload, &before).unwrap_err().to_string();
        assert!(told.contains("5:1: `payload` cannot change"), "{told}");
        let reserve = reread(&format!("{BEFORE}log = {{ reserve = \"0B\" }}"), &before);
        let told = reserve.unwrap_err().to_string();
        assert!(told.contains("5:19: `log.reserve` cannot change"), "{told}");
    }

    #[cfg(feature = "upload")]
    #[test]
    fn a_store_cannot_change_and_its_credentials_can() {
        let place = tempfile::tempdir().unwrap();
        let text = |to: &str, file: &str, key: &str| {
            let credentials = place.path().join(file);
            std::fs::write(
                &credentials,
                format!("AWS_ACCESS_KEY_ID=fleet\nAWS_SECRET_ACCESS_KEY={key}\n"),
            )
            .unwrap();
            format!("{BEFORE}[upload]\nto = \"{to}\"\ncredentials-file = {credentials:?}\n")
        };
        let before = read(&text("s3://fleet/raw", "one", "k3y"));
        for key in ["k3y", "0ther"] {
            assert!(reread(&text("s3://fleet/raw", "one", key), &before).is_ok());
        }
        for (to, file, words) in [
            ("s3://fleet/other", "one", "5:1: `upload` cannot change"),
            (
                "s3://fleet/raw",
                "two",
                "7:20: `upload.credentials-file` cannot change",
            ),
        ] {
            let told = reread(&text(to, file, "k3y"), &before).unwrap_err();
            assert_eq!(told.problems.len(), 1, "{told}");
            let told = told.to_string();
            assert!(told.contains(words) && !told.contains("k3y"), "{told}");
        }
        let without = reread(BEFORE, &before).unwrap_err();
        assert!(
            without.to_string().contains("`upload` cannot change"),
            "{without}"
        );
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn a_kafka_cannot_change() {
        let text = |topic: &str| {
            let before = BEFORE.replace("to = \"data\"\n", "");
            format!("{before}[kafka]\nbrokers = [\"k:9092\"]\ntopic = {topic:?}\n")
        };
        let before = read(&text("fleet"));
        assert!(reread(&text("fleet"), &before).is_ok());
        let told = reread(&text("other"), &before).unwrap_err().to_string();
        assert!(told.contains("4:1: `kafka` cannot change"), "{told}");
        // Another password in the file of the same name.
        let password = tempfile::NamedTempFile::new().unwrap();
        let login = format!(
            "{}[kafka.sasl]\nuser = \"u\"\npassword-file = {:?}\n",
            text("fleet"),
            password.path()
        );
        std::fs::write(password.path(), "one").unwrap();
        let before = read(&login);
        assert!(reread(&login, &before).is_ok());
        std::fs::write(password.path(), "two").unwrap();
        let told = reread(&login, &before).unwrap_err().to_string();
        assert!(told.contains("`kafka` cannot change"), "{told}");
        assert!(!told.contains("two"), "{told}");
    }
}
